"""Shared by the clients of a repository that changes: runs them until a file appears, and collects wrong responses.

A model adds a number to its input: its version times 1000, and the number of the edit. So each response shows which
version executed the request.
"""

import argparse
import pathlib
import sys
import threading
import time
import traceback

import checks


class Wrong(Exception):
    pass


def base(got, given, versions, steps=1):
    """The number that a response shows to have been added, which must be one of these versions'."""
    number = round(float(got) - given)
    if number // (1000 * steps) not in versions:
        raise Wrong(f"{got} for {given}: added {number}, expected that of versions {versions}")
    return number


def run(clients):
    """`clients`: by name, functions that send one request or one sequence each time they are called."""
    arguments = argparse.ArgumentParser()
    for kind in ("http", "grpc", "metrics"):
        arguments.add_argument(f"--{kind}", required=True, help="HOST:PORT")
    arguments.add_argument("--begun", required=True, type=pathlib.Path, help="made when all clients had a response")
    arguments.add_argument("--until", required=True, type=pathlib.Path, help="the file that ends the run")
    given = arguments.parse_args()
    checks.HTTP, checks.GRPC, checks.METRICS = given.http, given.grpc, given.metrics
    wrong, counts = [], {}

    def work(name, make):
        try:
            once = make()
            counts[name] = 0
            while not given.until.exists() and not wrong:
                once()
                counts[name] += 1
                if counts[name] == 1 and len(counts) == len(clients) and 0 not in counts.values():
                    given.begun.touch()
                time.sleep(0.002)
        except BaseException:
            wrong.append(f"{name}, after {counts.get(name)} requests: {traceback.format_exc()}")

    threads = [threading.Thread(target=work, args=item, name=item[0]) for item in clients.items()]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(counts)
    for text in wrong:
        print(text)
    sys.exit(1 if wrong or 0 in counts.values() else 0)

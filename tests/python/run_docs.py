"""Runs the commands of a page against a running server and compares the output.

    run_docs.py --http HOST:PORT [--grpc HOST:PORT] [--metrics HOST:PORT] [--set NAME=VALUE]... PAGE...

A fenced block marked `sh` is a command, given HTTP, GRPC, METRICS and what is set in its environment and run by bash in the repository's top folder; the
next block, if it is marked `text`, is its whole output, where `…` stands for any text at all. Blocks without a mark
are ignored. Standard library only.
"""

import argparse
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def examples(page):
    """(line, command, expected or None) for each command of the page."""
    blocks = [(page.count("\n", 0, m.start()) + 1, m[1], m[2]) for m in FENCE.finditer(page)]
    for index, (line, mark, text) in enumerate(blocks):
        if mark == "sh":
            follower = blocks[index + 1] if index + 1 < len(blocks) else (0, "", "")
            yield line, text, follower[2] if follower[1] == "text" else None


def matches(expected, got):
    pattern = ".*".join(map(re.escape, expected.rstrip("\n").split("…")))
    return re.fullmatch(pattern, got.rstrip("\n"), re.DOTALL) is not None


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--http", required=True, help="HOST:PORT")
    arguments.add_argument("--grpc", default="", help="HOST:PORT")
    arguments.add_argument("--metrics", default="", help="HOST:PORT")
    arguments.add_argument("--set", action="append", default=[], metavar="NAME=VALUE")
    arguments.add_argument("pages", nargs="+", type=pathlib.Path)
    given = arguments.parse_args()
    environment = dict(os.environ, HTTP=given.http, GRPC=given.grpc, METRICS=given.metrics, LC_ALL="C.UTF-8")
    environment.update(pair.split("=", 1) for pair in given.set)
    failures = count = 0
    for page in given.pages:
        for line, command, expected in examples(page.read_text(encoding="utf-8")):
            count += 1
            done = subprocess.run(
                ["bash", "-euo", "pipefail", "-c", command], cwd=ROOT, env=environment, timeout=60,
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8", errors="replace")
            if done.returncode == 0 and (expected is None or matches(expected, done.stdout)):
                continue
            failures += 1
            print(f"{page}:{line}: exit code {done.returncode}; printed\n{done.stdout}\ninstead of\n{expected}\n")
    print(f"{count - failures} of {count} commands printed the expected output")
    sys.exit(1 if failures or not count else 0)


if __name__ == "__main__":
    main()

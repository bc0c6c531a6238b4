"""Shared by all scripts: addresses of the server, time limit, running the checks.

A script holds unittest cases and ends with `checks.run()`. By hand, against a server of your own:

    SCRIPT.py --http HOST:PORT --grpc HOST:PORT --metrics HOST:PORT [-k PART-OF-A-NAME] [--without TYPE]
"""

import argparse
import contextlib
import functools
import sys
import threading
import time
import unittest

HTTP = GRPC = METRICS = ""
# Types and models that the framework under test does not have, from `--without`.
WITHOUT = set()
# Limit of every wait, in seconds. Only failing checks reach it.
TIMEOUT = 30


class Case(unittest.TestCase):
    maxDiff = None

    @contextlib.contextmanager
    def refusal(self, kind, text, whole=True):
        """The block must raise an exception of this kind with this text (or with it as a part)."""
        with self.assertRaises(kind) as caught:
            yield caught
        message = caught.exception.message()
        if isinstance(message, bytes):
            message = message.decode()
        if whole:
            self.assertEqual(message, text)
        else:
            self.assertIn(text, message)


    def becomes(self, value, expected):
        """Polls until `value` returns this. For conditions without an event."""
        end = time.monotonic() + TIMEOUT
        while (got := value()) != expected:
            self.assertLess(time.monotonic(), end, f"{got}, expected {expected} within {TIMEOUT} s")


def present(kinds):
    """These types (a dictionary or a list), without those that the framework under test does not have."""
    if isinstance(kinds, dict):
        return {name: kind for name, kind in kinds.items() if name not in WITHOUT}
    return [name for name in kinds if name not in WITHOUT]


def needs(kind):
    """Leaves the check out of a run with `--without kind`."""
    def decorate(check):
        @functools.wraps(check)
        def run(self):
            if kind in WITHOUT:
                self.skipTest(f"--without {kind}")
            check(self)
        return run
    return decorate


def only(case, *names):
    """The case with these checks and no others."""
    inherited = {name for name in dir(case) if name.startswith("test_")}
    assert inherited.issuperset(names), set(names) - inherited
    return type(case.__name__, (case,), dict.fromkeys(inherited.difference(names)))


class Mailbox:
    """Collects what callbacks receive; a check waits for it."""

    def __init__(self):
        self._changed = threading.Condition()
        self._items = []

    def put(self, *item):
        with self._changed:
            self._items.append(item[0] if len(item) == 1 else item)
            self._changed.notify_all()

    def take(self, count):
        with self._changed:
            done = self._changed.wait_for(lambda: len(self._items) >= count, TIMEOUT)
            assert done, f"{len(self._items)} of {count} responses within {TIMEOUT} s: {self._items}"
            taken, self._items = self._items[:count], self._items[count:]
            return taken


def run():
    arguments = argparse.ArgumentParser()
    for kind in ("http", "grpc", "metrics"):
        arguments.add_argument(f"--{kind}", required=True, help="HOST:PORT")
    arguments.add_argument("-k", action="append", default=[], help="only checks with this in their name")
    arguments.add_argument("--without", action="append", default=[], help="a type that no model has")
    given = arguments.parse_args()
    WITHOUT.update(given.without)
    module = sys.modules["__main__"]
    global HTTP, GRPC, METRICS
    HTTP, GRPC, METRICS = given.http, given.grpc, given.metrics
    argv = [sys.argv[0], "--verbose"] + [arg for part in given.k for arg in ("-k", part)]
    unittest.main(module=module, argv=argv)

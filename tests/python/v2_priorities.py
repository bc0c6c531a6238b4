"""Priorities and queue policies with the v2 client.

Every model executes one request at a time and numbers them: each adds 1 to a sum. The first request of a
check is slow, so the others are queued behind it.
"""

import threading

import numpy as np
import tritonclient.http as http
from tritonclient.utils import InferenceServerException

import checks
from v2_stream import Stream, counts, failures, number, tensor, until, value, waiting

FULL = "Exceeds maximum queue size"
LATE = "Request timeout expired"
TENTH = 100_000  # microseconds, much less than the first request takes
MINUTE = 60_000_000


class Priorities(checks.Case):
    def behind(self, model, requests, delay_ms=400):
        """Sends requests while the model is busy; returns the position of each in the order of execution, or its error."""
        with Stream() as stream:
            stream.send(model, 1, priority=1, parameters={"delay_ms": delay_ms})
            for request in requests:
                stream.send(model, 1, **request)
            first, *responses = stream.responses()
        if isinstance(first, Exception):
            raise first
        place = lambda response: response if isinstance(response, Exception) else value(response) - value(first)
        return [place(response) for response in responses]

    def busy(self, stream, model):
        """Sends a slow request and waits until it is executing."""
        before = counts("no_levels")["executions"]
        stream.send(model, 1, parameters={"delay_ms": 1500})
        # Requests of a stream are accepted in order: when this one is done, the slow one was
        # accepted.
        stream.send("no_levels", 1)
        until("it is accepted", lambda: counts("no_levels")["executions"] > before)
        until("it runs", lambda: waiting(model) == 0)

    def refused(self, error, text):
        self.assertIsInstance(error, InferenceServerException)
        self.assertTrue(error.message().endswith(text), error.message())

    def test_highest_level_first_then_arrival_order(self):
        # Level 2 is the default: for requests without a level, with 0, or with one that is too
        # large.
        got = self.behind("levels", [{"priority": p} for p in (3, 0, 99, 1, 3, 2, 1)] + [{}])
        self.assertEqual(got, [7, 3, 4, 1, 8, 5, 2, 6])

    def test_model_without_levels_ignores_priorities(self):
        self.assertEqual(self.behind("no_levels", [{"priority": p} for p in (3, 1, 2)]), [1, 2, 3])

    def test_many_levels(self):
        got = self.behind("billions", [{"priority": p} for p in (2**33, 2**32 + 1, 2**32, 2)])
        self.assertEqual(got, [4, 3, 2, 1])

    def test_full_queue_refuses(self):
        one, two, three, other = self.behind("two_wait", [{"priority": p} for p in (2, 2, 2, 1)])
        self.assertEqual((other, one, two), (1, 2, 3))
        self.refused(three, FULL)
        self.assertEqual(failures("two_wait", "REJECTED"), 1)
        got = counts("two_wait")
        self.assertEqual((got["success"], got["fail"]), (4, 1))
        # The queue has space again.
        self.assertEqual(self.behind("two_wait", [{"priority": 2}]), [1])

    def test_full_queue_without_levels(self):
        with Stream() as stream:
            self.busy(stream, "one_waits")
            for _ in range(3):
                stream.send("one_waits", 1)
            first, _, second, third, fourth = stream.responses()
        self.assertEqual(value(second) - value(first), 1)
        for error in (third, fourth):
            self.refused(error, FULL)
        self.assertEqual(failures("one_waits", "REJECTED"), 2)

    def test_full_queue_is_503_over_http(self):
        with Stream() as stream:
            self.busy(stream, "one_waits_http")
            stream.send("one_waits_http", 1)
            until("one waits", lambda: waiting("one_waits_http") == 1)
            with http.InferenceServerClient(checks.HTTP) as client:
                with self.assertRaises(InferenceServerException) as caught:
                    client.infer("one_waits_http", [tensor(http, "INPUT0", number(1))])
            self.assertEqual(caught.exception.status(), "503")
            self.refused(caught.exception, FULL)
            stream.results()

    def test_default_timeout_rejects(self):
        late, also, other = self.behind("late_after_a_tenth", [{"priority": 2}, {}, {"priority": 1}])
        self.assertEqual(other, 1)
        self.refused(late, LATE)
        self.refused(also, LATE)
        self.assertEqual(failures("late_after_a_tenth", "REJECTED"), 2)

    def test_request_timeout_rejects_if_allowed(self):
        late, none, long = self.behind("may_be_shorter", [
            {"priority": 2, "timeout": TENTH}, {"priority": 2}, {"priority": 2, "timeout": 2 * MINUTE}])
        self.refused(late, LATE)
        self.assertEqual((none, long), (1, 2))

    def test_request_timeout_is_ignored_unless_allowed(self):
        for model in ("may_not_be_shorter", "no_timeout_to_shorten"):
            with self.subTest(model):
                got = self.behind(model, [{"priority": 2, "timeout": TENTH}, {"priority": 2}])
                self.assertEqual(got, [1, 2])

    def test_request_timeout_cannot_extend_default(self):
        late, = self.behind("late_after_a_tenth_too", [{"priority": 2, "timeout": MINUTE}])
        self.refused(late, LATE)

    def test_delayed_requests_are_executed_last(self):
        got = self.behind("delays", [
            {"priority": 2, "timeout": TENTH}, {"priority": 2}, {"priority": 2, "timeout": TENTH}, {"priority": 2}])
        self.assertEqual(got, [3, 1, 4, 2])
        self.assertEqual(failures("delays", "REJECTED"), 0)
        self.assertEqual(counts("delays")["fail"], 0)

    def test_timeout_of_zero_is_none(self):
        self.assertEqual(self.behind("may_be_shorter", [{"priority": 2, "timeout": 0}]), [1])

    def test_largest_timeout(self):
        self.assertEqual(self.behind("may_be_shorter", [{"priority": 2, "timeout": 2**63 - 1}]), [1])

    def test_concurrent_requests_of_all_levels(self):
        seen = []

        def work():
            with Stream() as stream:
                for i in range(50):
                    stream.send("levels", 1, priority=i % 4)
                stream.results()
                seen.append(50)

        before = counts("levels")["success"]
        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(sum(seen), 200)
        self.assertEqual(counts("levels")["success"], before + 200)
        self.assertEqual(waiting("levels"), 0)


if __name__ == "__main__":
    checks.run()

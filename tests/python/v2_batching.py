"""Dynamic batching with the v2 client: which requests share a batch, and the statistics.

`Held`: the server's scheduler waits for six requests of each model (TRTSERVER_DELAY_SCHEDULER=6), so that the
requests queued for the first batch are known. `Free`: without the delay hook. Delays of 600 s never expire: where they
are set, a response arrives only if the batch was formed without waiting.
"""

import threading
import time

import numpy as np
import tritonclient.grpc as grpc
import tritonclient.http as http
from tritonclient.utils import InferenceServerException

import checks
from v2_stream import Stream, batch, counts, failures, tensor, until, waiting

A, B = 3, 4  # two lengths that cannot share a batch


class Case(checks.Case):
    def send(self, stream, model, rows, length=A, outputs=(), **more):
        """A request of this many rows, whose values identify it."""
        values = np.full((rows, length), stream.sent, np.float32)
        values += np.arange(rows, dtype=np.float32)[:, None] / 16
        stream.send(model, {"INPUT0": values, "INPUT1": -values},
                   outputs=[*outputs, "BATCH"] if outputs else [], **more)
        return values

    def check(self, result, values, outputs=("OUTPUT0", "OUTPUT1")):
        """The response has the rows of its request."""
        for output, expected in (("OUTPUT0", values), ("OUTPUT1", -values)):
            if output in outputs:
                np.testing.assert_array_equal(result.as_numpy(output), expected)
            else:
                self.assertIsNone(result.as_numpy(output))

    def batches(self, model, sizes, lengths=None):
        """Sends them all and returns the batches (rows, requests) they were in."""
        with Stream() as stream:
            lengths = lengths or [A] * len(sizes)
            values = [self.send(stream, model, rows, length) for rows, length in zip(sizes, lengths)]
            results = stream.results()
            for result, expected in zip(results, values, strict=True):
                self.check(result, expected)
            return [batch(result) for result in results]


class Held(Case):
    def counted(self, model, batches, requests=6):
        """`batches`: number by size."""
        rows = sum(size * count for size, count in batches.items())
        expected = {"executions": sum(batches.values()), "inferences": rows, "batches": batches,
                  "success": requests, "queue": requests, "fail": 0}
        self.assertEqual(counts(model), expected)

    def test_largest_preferred_size_wins(self):
        self.assertEqual(self.batches("p26_six", [1] * 6), [(6, 6)] * 6)
        self.counted("p26_six", {6: 1})

    def test_preferred_size_before_request_that_does_not_fit(self):
        got = self.batches("p26_too_much", [1, 1, 1, 1, 1, 3])
        self.assertEqual(got, [(2, 2)] * 2 + [(6, 4)] * 4)
        self.counted("p26_too_much", {2: 1, 6: 1})

    def test_request_that_does_not_fit_flushes(self):
        got = self.batches("p4_flush", [3, 2, 1, 1, 3, 1])
        self.assertEqual(got, [(3, 1)] + [(4, 3)] * 3 + [(4, 2)] * 2)
        self.counted("p4_flush", {3: 1, 4: 2})

    def test_without_preferred_sizes_batches_are_full(self):
        got = self.batches("p_none", [1, 2, 1, 1, 1, 2])
        self.assertEqual(got, [(4, 3)] * 6)
        self.counted("p_none", {4: 2})

    def test_other_shapes_flush(self):
        got = self.batches("p6_shapes", [1, 1, 1, 1, 3, 3], [A, A, B, B, A, A])
        self.assertEqual(got, [(2, 2)] * 4 + [(6, 2)] * 2)
        self.counted("p6_shapes", {2: 2, 6: 1})

    def test_one_input_of_another_shape_flushes(self):
        with Stream() as stream:
            short, long = np.ones((1, A), np.float32), np.ones((1, B), np.float32)
            for one, two in ((short, short), (short, long), (short, long), (long, long), (long, short), (long, short)):
                stream.send("p0_shapes", {"INPUT0": one, "INPUT1": two})
            got = [batch(result)[1] for result in stream.results()]
        self.assertEqual(got, [1, 2, 2, 1, 2, 2])

    def test_without_delay_all_queued_requests_are_batched(self):
        self.assertEqual(self.batches("p0_all", [1, 1, 1, 1, 1, 2]), [(7, 6)] * 6)
        self.counted("p0_all", {7: 1})

    def test_different_requested_outputs_share_a_batch(self):
        requested = [("OUTPUT0",), ("OUTPUT1",), ("OUTPUT1", "OUTPUT0"), ("OUTPUT0",), (), ("OUTPUT1",)]
        with Stream() as stream:
            values = [self.send(stream, "p26_outputs", 1, outputs=outputs) for outputs in requested]
            for result, sent, outputs in zip(stream.results(), values, requested):
                self.check(result, sent, outputs or ("OUTPUT0", "OUTPUT1"))
                self.assertEqual(batch(result), (6, 6))
        self.counted("p26_outputs", {6: 1})

    def test_non_batching_model_executes_in_order(self):
        with Stream() as stream:
            for i in range(6):
                values = np.full(A, i, np.float32)
                stream.send("p_nobatch", {"INPUT0": values, "INPUT1": values})
            for i, result in enumerate(stream.results()):
                np.testing.assert_array_equal(result.as_numpy("OUTPUT0"), np.full(A, i, np.float32))
                self.assertEqual(batch(result)[1], 1)
        self.assertEqual(counts("p_nobatch")["executions"], 6)

    def test_failing_request_fails_alone(self):
        with Stream() as stream:
            for i in range(6):
                self.send(stream, "p26_fails", 1, parameters={"fail": "not this one"} if i == 2 else None)
            responses = stream.responses()
        for i, response in enumerate(responses):
            if i == 2:
                self.assertIn("not this one", response.message())
            else:
                self.assertEqual(batch(response), (6, 6))
        got = counts("p26_fails")
        self.assertEqual((got["inferences"], got["success"], got["fail"]), (5, 5, 1))
        self.assertEqual(got["executions"], 1)

    def test_connections_are_batched_together(self):
        for module, url, model in ((http, checks.HTTP, "p26_http"), (grpc, checks.GRPC, "p26_grpc")):
            with self.subTest(model):
                seen = [None] * 6

                def one(i):
                    with module.InferenceServerClient(url) as client:
                        values = np.full((1, A), i, np.float32)
                        inputs = [tensor(module, name, values) for name in ("INPUT0", "INPUT1")]
                        result = client.infer(model, inputs)
                        np.testing.assert_array_equal(result.as_numpy("OUTPUT0"), values)
                        seen[i] = batch(result)

                threads = [threading.Thread(target=one, args=(i,)) for i in range(6)]
                for thread in threads:
                    thread.start()
                for thread in threads:
                    thread.join()
                self.assertEqual(seen, [(6, 6)] * 6)
                self.counted(model, {6: 1})


class Free(Case):
    def test_client_batch_of_preferred_size_is_not_delayed(self):
        for rows in (2, 6, 7, 8):
            with self.subTest(rows=rows):
                self.assertEqual(self.batches("p26_endless", [rows]), [(rows, 1)])

    def test_batch_above_maximum_is_refused(self):
        with Stream() as stream:
            self.send(stream, "p26_endless", 9)
            [response] = stream.responses()
        self.assertIn("inference request batch-size must be <= 8 for 'p26_endless'", response.message())

    def test_smaller_batches_are_delayed_then_execute(self):
        # The preferred size is larger.
        for sizes in ([1], [1, 2]):
            with self.subTest(sizes=sizes):
                begin = time.monotonic()
                got = self.batches("p6_second", sizes)
                self.assertGreaterEqual(time.monotonic() - begin, 0.95)
                self.assertEqual(got, [(sum(sizes), len(sizes))] * len(sizes))

    def test_preferred_size_is_not_delayed_the_rest_is(self):
        with Stream() as stream:
            self.send(stream, "p4_second", 1)
            self.send(stream, "p4_second", 3)
            first = stream.results(2)
            self.assertEqual([batch(result) for result in first], [(4, 2)] * 2)
            begin = time.monotonic()
            self.send(stream, "p4_second", 3)
            [last] = stream.results(1)
            self.assertEqual(batch(last), (3, 1))
            self.assertGreaterEqual(time.monotonic() - begin, 0.95)

    def test_expired_delay_batches_all_queued_requests(self):
        """Not only a preferred size: the model is busy for longer than the delay."""
        with Stream() as stream:
            self.send(stream, "p2_third", 2, parameters={"delay_ms": 800})
            for _ in range(3):
                self.send(stream, "p2_third", 1)
            got = [batch(result) for result in stream.results()]
        self.assertEqual(got, [(2, 1)] + [(3, 3)] * 3)

    def test_request_that_does_not_fit_ends_the_delay(self):
        self.assertEqual(self.batches("p4_endless", [3, 2, 2]), [(3, 1), (4, 2), (4, 2)])

    def test_another_shape_ends_the_delay(self):
        got = self.batches("p4_endless_too", [1, 2, 2], [A, B, B])
        self.assertEqual(got, [(1, 1), (4, 2), (4, 2)])

    def test_cancelled_request_is_not_batched(self):
        model = "p3_cancelled"
        gone = Stream()
        self.send(gone, model, 1)
        until("it waits", lambda: waiting(model) == 1)
        gone.close(cancel=True)
        until("it is gone", lambda: failures(model, "CANCELED") == 1)
        self.assertEqual(waiting(model), 0)
        self.assertEqual(self.batches(model, [1, 1, 1]), [(3, 3)] * 3)
        got = counts(model)
        self.assertEqual((got["executions"], got["success"], got["fail"]), (1, 3, 1))

    def test_queued_unary_call_is_cancelled(self):
        model = "p3_cancelled_call"
        mailbox = checks.Mailbox()
        with grpc.InferenceServerClient(checks.GRPC) as client:
            values = np.ones((1, A), np.float32)
            inputs = [tensor(grpc, name, values) for name in ("INPUT0", "INPUT1")]
            call = client.async_infer(model, inputs, lambda result, error: mailbox.put(result, error))
            until("it waits", lambda: waiting(model) == 1)
            call.cancel()
            [(result, error)] = mailbox.take(1)
            self.assertIsNone(result)
            self.assertIsInstance(error, InferenceServerException)
        until("it is gone", lambda: failures(model, "CANCELED") == 1)
        self.assertEqual(self.batches(model, [1, 2]), [(3, 2)] * 2)

    def overtaking(self, model):
        """Sends a slow request (0.7 s) and, once it has been accepted, a fast one on another connection. Returns the
        response ids in order of arrival, and the time from the slow request to the fast response."""
        order, when = checks.Mailbox(), []
        values = np.ones((1, A), np.float32)
        inputs = [tensor(grpc, name, values) for name in ("INPUT0", "INPUT1")]

        def fast(result, error):
            when.append(time.monotonic())
            order.put(result, error)

        with Stream() as stream, grpc.InferenceServerClient(checks.GRPC) as client:
            stream.mailbox = order
            before = counts("marker")["executions"]
            begin = time.monotonic()
            self.send(stream, model, 1, parameters={"delay_ms": 700})
            # Requests of a stream are accepted in order.
            self.send(stream, "marker", 1)
            until("the first is accepted", lambda: counts("marker")["executions"] > before)
            client.async_infer(model, inputs, fast, request_id="fast")
            responses = order.take(3)
        self.assertEqual([error for _, error in responses], [None] * 3)
        return [result.get_response().id for result, _ in responses], when[0] - begin

    def test_preserve_ordering(self):
        order, _ = self.overtaking("two_instances")
        self.assertEqual(order[0], "fast")
        # The responses leave one right after the other, on different connections.
        _, after = self.overtaking("two_instances_in_order")
        self.assertGreaterEqual(after, 0.69)

    def test_concurrent_shapes(self):
        """Batches of ONNX Runtime: only equal lengths share a batch, and every request gets its own sum."""
        def work(seed):
            random = np.random.default_rng(seed)
            with Stream() as stream:
                expected = []
                for _ in range(60):
                    rows, length = random.integers(1, 4), random.choice([1, 2, 5])
                    values = random.integers(-99, 99, (rows, length)).astype(np.float32)
                    stream.send("sum_fp32", {"INPUT0": values})
                    expected.append(values.sum(axis=1, keepdims=True))
                for result, sums in zip(stream.results(), expected, strict=True):
                    np.testing.assert_array_equal(result.as_numpy("OUTPUT0"), sums)
                done.append(seed)

        done = []
        threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(sorted(done), [0, 1, 2, 3])
        got = counts("sum_fp32")
        self.assertEqual(got["success"], 240)
        self.assertLessEqual(got["executions"], 240)
        self.assertEqual(sum(got["batches"].values()), got["executions"])


if __name__ == "__main__":
    checks.run()

"""Dynamic batching with the v1 client: which requests share a batch, and the v1 statistics.

`Held` and `Free` as in v2_batching.py.
"""

import threading
import time

import numpy as np

import checks
from trtis_client import InferContext, ProtocolType, ServerStatusContext

RAW = InferContext.ResultFormat.RAW
A, B = 3, 4


class Case(checks.Case):
    def request(self, rows, length, seed):
        values = [np.full(length, seed + row / 16, np.float32) for row in range(rows)]
        outputs = {"OUTPUT0": RAW, "OUTPUT1": RAW, "BATCH": RAW}
        return values, {"INPUT0": values, "INPUT1": [-v for v in values]}, outputs

    def check(self, got, values):
        """The batch that the response came from: (rows, requests)."""
        for row, expected in enumerate(values):
            np.testing.assert_array_equal(got["OUTPUT0"][row], expected)
            np.testing.assert_array_equal(got["OUTPUT1"][row], -expected)
        return tuple(int(n) for n in got["BATCH"][0])

    def run_one(self, context, rows, length=A, seed=0):
        values, inputs, outputs = self.request(rows, length, seed)
        return self.check(context.run(inputs, outputs, rows), values)

    def batches(self, model, sizes, lengths=None):
        """Over a stream, so that the order is known."""
        context = InferContext(checks.GRPC, ProtocolType.GRPC, model, streaming=True)
        mailbox, sent = checks.Mailbox(), []
        for i, (rows, length) in enumerate(zip(sizes, lengths or [A] * len(sizes))):
            values, inputs, outputs = self.request(rows, length, i)
            sent.append(values)
            context.async_run(lambda ctx, id: mailbox.put(id), inputs, outputs, rows)
        # Responses of a stream arrive in request order.
        return [self.check(context.get_async_run_results(id), values)
                for id, values in zip(mailbox.take(len(sizes)), sent, strict=True)]

    def version(self, model):
        status = ServerStatusContext(checks.HTTP, ProtocolType.HTTP, model).get_server_status()
        return status.model_status[model].version_status[1]


class Held(Case):
    def counted(self, model, executions, stats):
        """`stats`: number of requests by their batch size."""
        version = self.version(model)
        self.assertEqual({size: s.success.count for size, s in version.infer_stats.items()}, stats)
        for stat in version.infer_stats.values():
            self.assertEqual((stat.queue.count, stat.compute.count, stat.failed.count),
                             (stat.success.count, stat.success.count, 0))
        inferences = sum(size * count for size, count in stats.items())
        self.assertEqual((version.model_execution_count, version.model_inference_count), (executions, inferences))

    def test_largest_preferred_size_wins(self):
        self.assertEqual(self.batches("v1_26_stream", [1] * 6), [(6, 6)] * 6)
        self.counted("v1_26_stream", 1, {1: 6})

    def test_request_that_does_not_fit_flushes(self):
        got = self.batches("v1_4_flush", [3, 2, 1, 1, 3, 1])
        self.assertEqual(got, [(3, 1)] + [(4, 3)] * 3 + [(4, 2)] * 2)
        self.counted("v1_4_flush", 3, {1: 3, 2: 1, 3: 2})

    def test_other_shapes_flush(self):
        got = self.batches("v1_6_shapes", [1, 1, 1, 1, 3, 3], [A, A, B, B, A, A])
        self.assertEqual(got, [(2, 2)] * 4 + [(6, 2)] * 2)
        self.counted("v1_6_shapes", 3, {1: 4, 3: 2})

    def test_without_preferred_sizes_batches_are_full(self):
        self.assertEqual(self.batches("v1_none", [1, 2, 1, 1, 1, 2]), [(4, 3)] * 6)
        self.counted("v1_none", 2, {1: 4, 2: 2})

    def test_connections_are_batched_together(self):
        for protocol, url, model in ((ProtocolType.HTTP, checks.HTTP, "v1_26_http"),
                                     (ProtocolType.GRPC, checks.GRPC, "v1_26_grpc")):
            with self.subTest(model):
                seen = [None] * 6

                def one(i):
                    seen[i] = self.run_one(InferContext(url, protocol, model), 1, seed=i)

                threads = [threading.Thread(target=one, args=(i,)) for i in range(6)]
                for thread in threads:
                    thread.start()
                for thread in threads:
                    thread.join()
                self.assertEqual(seen, [(6, 6)] * 6)
                self.counted(model, 1, {1: 6})


class Free(Case):
    def contexts(self, model):
        yield InferContext(checks.HTTP, ProtocolType.HTTP, model)
        yield InferContext(checks.GRPC, ProtocolType.GRPC, model)
        yield InferContext(checks.GRPC, ProtocolType.GRPC, model, streaming=True)

    def test_client_batch_of_preferred_size_is_not_delayed(self):
        for context in self.contexts("v1_26_endless"):
            for rows in (2, 6, 7, 8):
                self.assertEqual(self.run_one(context, rows), (rows, 1))
        stats = self.version("v1_26_endless").infer_stats
        self.assertEqual({size: s.success.count for size, s in stats.items()}, {2: 3, 6: 3, 7: 3, 8: 3})

    def test_smaller_batches_are_delayed(self):
        begin = time.monotonic()
        self.assertEqual(self.batches("v1_6_second", [1, 2]), [(3, 2)] * 2)
        self.assertGreaterEqual(time.monotonic() - begin, 0.95)
        queue = self.version("v1_6_second").infer_stats[1].queue
        self.assertGreaterEqual(queue.total_time_ns, 900_000_000)

    def test_request_that_does_not_fit_ends_the_delay(self):
        self.assertEqual(self.batches("v1_4_endless", [3, 2, 2]), [(3, 1), (4, 2), (4, 2)])


if __name__ == "__main__":
    checks.run()

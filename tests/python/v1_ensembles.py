"""Ensembles with the v1 client, over HTTP, gRPC and gRPC streams. The server is that of tests/wire/ensembles/requests.rs."""

import itertools

import numpy as np

import checks
import v1_checks
from trtis_client import InferenceServerException, ProtocolType, server_status_pb2
from v1_checks import CLASS, RAW

# Pairs of correlation ids, different from those of the other client, which runs at the same time.
ids = ((id, id + 1) for id in itertools.count(5000, 2))


class Ensembles(v1_checks.Protocol):
    def diamond(self, batch, context, name="diamond", factor=2):
        a = [np.arange(i, i + 16, dtype=np.float32) for i in range(batch)]
        b = [np.full(16, i + 3, np.float32) for i in range(batch)]
        got = context.run({"A": a, "B": b}, {"TWICE_A": RAW, "TWICE_B": RAW}, batch)
        for i in range(batch):
            np.testing.assert_array_equal(got["TWICE_A"][i], a[i] * factor)
            np.testing.assert_array_equal(got["TWICE_B"][i], b[i] * factor)
        self.assertEqual(context.get_last_request_model_name(), name)
        self.assertEqual(context.get_last_request_model_version(), 1)

    def test_diamond(self):
        context = self.context("diamond")
        for batch in (1, 8):
            self.diamond(batch, context)

    def test_nested_ensemble(self):
        self.diamond(4, self.context("outer"), "outer", 4)

    def test_batching_steps_in_non_batching_ensemble(self):
        self.diamond(1, self.context("diamond_nobatch"), "diamond_nobatch")

    def test_strings(self):
        texts = np.array([b"one", b"", b"three"])
        got = self.context("text").run({"INPUT0": [texts]}, {"OUTPUT0": RAW})
        self.assertEqual(list(got["OUTPUT0"][0]), list(texts))

    def test_only_requested_outputs(self):
        one = np.ones(2, np.float32)
        got = self.context("lazy").run({"INPUT0": [one]}, {"GOOD": RAW})
        self.assertEqual(list(got), ["GOOD"])
        np.testing.assert_array_equal(got["GOOD"][0], one)

    def test_labels_of_the_producing_model(self):
        scores = [np.array([1, 5, 2, 4, 3], np.float32), np.array([0.5, -1, 0.25, -2, 0], np.float32)]
        got = self.context("scores").run({"INPUT0": scores}, {"SCORES": (CLASS, 2)}, 2)["SCORES"]
        self.assertEqual(got, [[(1, 5.0, "green"), (3, 4.0, "")], [(0, 0.5, "red"), (2, 0.25, "blue")]])

    def test_error_in_a_step(self):
        with self.refusal(InferenceServerException, "in ensemble 'failing', the probe was told to fail"):
            self.context("failing").run({"INPUT0": [np.ones(2, np.float32)]}, {"OUTPUT0": RAW})

    def test_versions_and_sequences(self):
        context = self.context("two_versions", correlation_id=42)
        one = np.ones(2, np.float32)
        got = context.run({"INPUT0": [one]}, {"OUTPUT0": RAW}, flags=3)
        np.testing.assert_array_equal(got["OUTPUT0"][0], one + 4)

    def test_steps_keep_sequences_separate(self):
        contexts = [self.context("totals", correlation_id=id) for id in next(ids)]
        sums = [0, 0]
        for i in range(5):
            for which, context in enumerate(contexts):
                value = 10 * i + which
                sums[which] += value
                flags = (1 if i == 0 else 0) | (2 if i == 4 else 0)
                got = context.run({"IN": [np.array([value], np.int32)]}, {"OUT": RAW}, flags=flags)
                self.assertEqual(got["OUT"][0].item(), sums[which])

    def test_sequence_errors_of_a_step(self):
        one = [np.ones(1, np.int32)]
        text = ("in ensemble 'totals', inference request for sequence 99999 to model 'summing' must specify the START "
                "flag on the first request of the sequence")
        with self.refusal(InferenceServerException, text):
            self.context("totals", correlation_id=99999).run({"IN": one}, {"OUT": RAW})
        with self.refusal(InferenceServerException, "in ensemble 'totals', inference request to model 'summing' must "
                          "specify a non-zero correlation ID"):
            self.context("totals").run({"IN": one}, {"OUT": RAW}, flags=1)

    def test_concurrent_requests(self):
        mailbox = checks.Mailbox()
        context = self.context("diamond")
        b = np.zeros(16, np.float32)
        for i in range(40):
            context.async_run(lambda ctx, id: mailbox.put(id), {"A": [np.full(16, i, np.float32)], "B": [b]},
                              {"TWICE_A": RAW})
        got = [context.get_async_run_results(id)["TWICE_A"][0][0] for id in mailbox.take(40)]
        self.assertEqual(sorted(got), [2 * i for i in range(40)])

    def test_status(self):
        model = self.status("two_versions").model_status["two_versions"]
        self.assertEqual(model.config.platform, "ensemble")
        self.assertEqual([s.model_version for s in model.config.ensemble_scheduling.step], [1, -1])
        self.assertEqual(model.version_status[1].ready_state, server_status_pb2.MODEL_READY)

    def test_status_counts(self):
        def numbers(model):
            version = self.status(model).model_status[model].version_status[1]
            stats = version.infer_stats[2]
            return (version.model_inference_count, version.model_execution_count, stats.success.count,
                    stats.queue.count, stats.compute.count, stats.failed.count)

        names = ("counting1", "counted1")
        before = [numbers(name) for name in names]
        values = [np.ones(3, np.float32)] * 2
        self.context("counting1").run({"INPUT0": values}, {"OUTPUT0": RAW}, 2)
        after = [numbers(name) for name in names]
        self.assertEqual([[a - b for a, b in zip(*pair)] for pair in zip(after, before)],
                         [[2, 1, 1, 1, 1, 0], [4, 2, 2, 2, 2, 0]])


class Http(Ensembles):
    PROTOCOL = ProtocolType.HTTP


class Grpc(Ensembles):
    PROTOCOL = ProtocolType.GRPC


class Streaming(Ensembles):
    PROTOCOL = ProtocolType.GRPC
    STREAMING = True


del Ensembles

if __name__ == "__main__":
    checks.run()

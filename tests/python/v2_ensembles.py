"""Ensembles with the v2 client, over HTTP and gRPC. The server is that of tests/wire/ensembles/requests.rs."""

import itertools

import numpy as np
import tritonclient.grpc
import tritonclient.http
from tritonclient.utils import InferenceServerException

import checks
import v2_checks
import v2_grpc
import v2_http

# Pairs of correlation ids, different from those of the other client, which runs at the same time.
ids = ((id, id + 1) for id in itertools.count(7000, 2))


class Ensembles(v2_checks.Protocol):
    def two(self, rows, seed=0):
        a = np.arange(seed, seed + rows * 16, dtype=np.float32).reshape(rows, 16)
        b = np.full((rows, 16), 3, np.float32)
        return a, b, [self.input("A", a, "FP32"), self.input("B", b, "FP32")]

    def requested(self, *names, **more):
        return [self.MODULE.InferRequestedOutput(name, **more) for name in names]

    def test_diamond(self):
        for rows in (1, 8):
            a, b, tensors = self.two(rows)
            got = self.client.infer("diamond", tensors, request_id="d")
            np.testing.assert_array_equal(got.as_numpy("TWICE_A"), a * 2)
            np.testing.assert_array_equal(got.as_numpy("TWICE_B"), b * 2)
            response = self.response(got)
            self.assertEqual((response["id"], response["model_name"], response["model_version"]),
                             ("d", "diamond", "1"))

    def test_outputs_are_in_requested_order(self):
        a, b, tensors = self.two(1)
        got = self.client.infer("diamond", tensors, outputs=self.requested("TWICE_B", "TWICE_A"))
        self.assertEqual([o["name"] for o in self.response(got)["outputs"]], ["TWICE_B", "TWICE_A"])

    def test_nested_ensemble(self):
        a, b, tensors = self.two(4)
        got = self.client.infer("outer", tensors, outputs=self.requested("TWICE_A"))
        np.testing.assert_array_equal(got.as_numpy("TWICE_A"), a * 4)
        self.assertIsNone(got.as_numpy("TWICE_B"))

    def test_batching_steps_in_non_batching_ensemble(self):
        a, b = np.arange(16, dtype=np.float32), np.ones(16, np.float32)
        got = self.client.infer("diamond_nobatch", [self.input("A", a, "FP32"), self.input("B", b, "FP32")])
        np.testing.assert_array_equal(got.as_numpy("TWICE_A"), a * 2)
        self.assertEqual(got.as_numpy("TWICE_B").shape, (16,))

    def test_non_batching_steps_in_batching_ensemble(self):
        three = np.arange(6, dtype=np.float32).reshape(3, 2)
        np.testing.assert_array_equal(self.identity("whole", three, "FP32").as_numpy("OUTPUT0"), three)
        np.testing.assert_array_equal(self.identity("rowwise", three[:1], "FP32").as_numpy("OUTPUT0"), three[:1])
        with self.failing(400, "in ensemble 'rowwise', [request id: <id_unknown>] unexpected shape for input 'INPUT0' "
                               "for model 'row'. Expected [2], got [3,2]. "):
            self.identity("rowwise", three, "FP32")

    def test_steps_keep_sequences_separate(self):
        pair, sums = next(ids), [0, 0]
        for i in range(5):
            for which, id in enumerate(pair):
                value = 10 * i + which
                sums[which] += value
                got = self.client.infer("totals", [self.input("IN", np.array([[value]], np.int32), "INT32")],
                                        sequence_id=id, sequence_start=i == 0, sequence_end=i == 4)
                self.assertEqual(got.as_numpy("OUT").item(), sums[which])

    def test_sequence_errors_of_a_step(self):
        one = [self.input("IN", np.ones((1, 1), np.int32), "INT32")]
        with self.refusal(InferenceServerException, "in ensemble 'totals', inference request for sequence 99998 to model "
                          "'summing' must specify the START flag on the first request of the sequence", whole=False):
            self.client.infer("totals", one, sequence_id=99998)

    def test_strings(self):
        texts = np.array([[b"", b"x", "grüezi".encode()]], object)
        got = self.identity("text", texts, "BYTES").as_numpy("OUTPUT0")
        self.assertEqual(got.tolist(), texts.tolist())

    def test_step_versions(self):
        one = np.ones((2, 3), np.float32)
        np.testing.assert_array_equal(self.identity("two_versions", one, "FP32").as_numpy("OUTPUT0"), one + 4)

    def test_steps_with_reshape(self):
        values = np.arange(12, dtype=np.float32).reshape(2, 2, 3)
        got = self.identity("reshaped", values, "FP32").as_numpy("OUTPUT0")
        np.testing.assert_array_equal(got, values * 4)

    def test_labels_of_the_producing_model(self):
        scores = np.array([[1, 5, 2, 4, 3], [0.5, -1, 0.25, -2, 0]], np.float32)
        got = self.identity("scores", scores, "FP32", outputs=self.requested("SCORES", class_count=2))
        self.assertEqual(got.as_numpy("SCORES").tolist(), [[b"5.000000:1:green", b"4.000000:3"],
                                                            [b"0.500000:0:red", b"0.250000:2:blue"]])

    def test_error_in_a_step(self):
        with self.failing(500, "in ensemble 'failing', the probe was told to fail"):
            self.client.infer("failing", [self.fp32()])

    def test_unneeded_steps_are_not_executed(self):
        got = self.client.infer("lazy", [self.fp32()], outputs=self.requested("GOOD"))
        np.testing.assert_array_equal(got.as_numpy("GOOD"), np.ones((1, 2)))
        with self.failing(500, "in ensemble 'lazy', the probe was told to fail"):
            self.client.infer("lazy", [self.fp32()])

    def test_optional_inputs(self):
        one = np.ones((1, 2), np.float32)
        x, y = self.input("X", one, "FP32"), self.input("Y", one * 2, "FP32")
        got = self.client.infer("maybe", [x], outputs=self.requested("U"))
        np.testing.assert_array_equal(got.as_numpy("U"), one)
        got = self.client.infer("maybe", [x, y])
        np.testing.assert_array_equal(got.as_numpy("V"), one * 2)
        # The model omits outputs without an input.
        with self.failing(500, "in ensemble 'maybe', model 'halves': the backend did not produce output 'OUTPUT1', "
                               "which the request asked for"):
            self.client.infer("maybe", [x])

    def test_input_as_output(self):
        values = np.array([[1.5, 2]], np.float32)
        got = self.identity("through", values, "FP32")
        for name in ("INPUT0", "OUTPUT0"):
            np.testing.assert_array_equal(got.as_numpy(name), values)

    def test_errors_name_the_ensemble(self):
        a, b, tensors = self.two(9)
        text = "[request id: <id_unknown>] inference request batch-size must be <= 8 for 'diamond'"
        with self.failing(400, text):
            self.client.infer("diamond", tensors)

    def test_scheduling_parameters_reach_the_steps(self):
        self.client.infer("two_versions", [self.fp32()], sequence_id=5, sequence_start=True, sequence_end=True,
                          priority=1, timeout=1_000_000)

    def test_statistics(self):
        def numbers():
            return {model: v2_checks.counted(self.json(self.client.get_inference_statistics, model))
                    for model in ("counting2", "counted2")}

        before = numbers()
        for _ in range(2):
            self.identity("counting2", np.ones((3, 5), np.float32), "FP32")
        after = numbers()
        for model, each in (("counting2", 2), ("counted2", 4)):
            got = {k: v - before[model][k] for k, v in after[model].items()}
            self.assertEqual(got, {
                "inferences": 3 * each, "executions": each, "success": each, "fail": 0, "queue": each,
                "compute_input": each, "compute_infer": each, "compute_output": each,
                "cache_hit": 0, "cache_miss": 0})

    def test_readiness_and_metadata(self):
        self.assertTrue(self.client.is_model_ready("outer"))
        self.assertEqual(self.json(self.client.get_model_metadata, "outer")["platform"], "ensemble")
        config = self.json(self.client.get_model_config, "outer")
        [first, second] = config.get("config", config)["ensemble_scheduling"]["step"]
        self.assertEqual((first["model_name"], int(first["model_version"])), ("diamond", -1))
        self.assertEqual(second["output_map"], {"TWICE_A": "TWICE_A", "TWICE_B": "TWICE_B"})


class Http(v2_http.Http, Ensembles):
    def test_concurrent_requests(self):
        with tritonclient.http.InferenceServerClient(checks.HTTP, concurrency=8) as client:
            sent = []
            for i in range(40):
                a, b, tensors = self.two(1 + i % 4, seed=i)
                sent.append((a, client.async_infer("outer", tensors)))
            for a, response in sent:
                np.testing.assert_array_equal(response.get_result().as_numpy("TWICE_A"), a * 4)


class Grpc(v2_grpc.Grpc, Ensembles):
    def test_concurrent_requests(self):
        mailbox = checks.Mailbox()
        sent = {}
        for i in range(40):
            sent[str(i)], b, tensors = self.two(1 + i % 4, seed=i)
            self.client.async_infer("outer", tensors, v2_grpc.deliver_to(mailbox), request_id=str(i))
        for result, error in mailbox.take(40):
            self.assertIsNone(error)
            a = sent.pop(result.get_response().id)
            np.testing.assert_array_equal(result.as_numpy("TWICE_A"), a * 4)

    def test_stream(self):
        mailbox = checks.Mailbox()
        self.client.start_stream(v2_grpc.deliver_to(mailbox))
        a, b, tensors = self.two(2)
        self.client.async_stream_infer("diamond", tensors, request_id="good")
        self.client.async_stream_infer("failing", [self.fp32()], request_id="bad")
        (good, none), (nothing, bad) = sorted(mailbox.take(2), key=lambda pair: pair[0] is None)
        self.client.stop_stream()
        self.assertIsNone(none)
        np.testing.assert_array_equal(good.as_numpy("TWICE_B"), b * 2)
        self.assertIn("in ensemble 'failing', the probe was told to fail", bad.message())

    def test_cancelled_call(self):
        mailbox = checks.Mailbox()
        call = self.client.async_infer("waiting", [self.fp32()], v2_grpc.deliver_to(mailbox))
        call.cancel()
        [(result, error)] = mailbox.take(1)
        self.assertIsInstance(error, InferenceServerException)
        self.assertIsNone(result)


del Ensembles

if __name__ == "__main__":
    checks.run()

"""The checks that models of every framework pass with the v2 client: types, shapes, strings, classes, batching, two instances,
sequences. The server has the models of tests/models in the format of one framework.

`Free`: without the delay hook. `Held`: it waits for eight requests of each model.
"""

import threading

import numpy as np
import tritonclient.grpc as grpc

import checks
import v2_batching
import v2_grpc
import v2_http
import v2_sequences
from v2_stream import Stream, counts

INFER = (
    "test_addsub_of_every_type", "test_bf16", "test_bytes", "test_classes",
    "test_classes_of_integers_and_non_batching_models", "test_data_dependent_output_shape", "test_errors",
    "test_fixed_size_types_are_unchanged", "test_input_order_is_free", "test_large_tensor", "test_non_batching_models",
    "test_only_requested_outputs", "test_reshaped_tensor_has_configured_shape", "test_versions")
SEQUENCES = ("test_clients_cannot_set_controls_and_states", "test_control_tensors_of_every_type", "test_states",
             "test_state_that_is_also_an_output")

FreeHttp = checks.only(v2_http.Infer, *INFER)
FreeGrpc = checks.only(v2_grpc.Infer, *INFER)
FreeHttpSequences = checks.only(v2_sequences.FreeHttp, *SEQUENCES)
FreeGrpcSequences = checks.only(v2_sequences.FreeGrpc, *SEQUENCES)
FreeStream = checks.only(v2_sequences.FreeStream, "test_states_are_separate")
FreeShapes = checks.only(v2_batching.Free, "test_concurrent_shapes")


def addsub(stream, model, seed, rows):
    random = np.random.default_rng(seed)
    a, b = (random.integers(-99, 99, (rows, 16)).astype(np.float32) for _ in range(2))
    stream.send(model, {"INPUT0": a, "INPUT1": b})
    return a + b, a - b


class Case(checks.Case):
    def compare(self, stream, sent):
        for result, (total, difference) in zip(stream.results(), sent, strict=True):
            np.testing.assert_array_equal(result.as_numpy("OUTPUT0"), total)
            np.testing.assert_array_equal(result.as_numpy("OUTPUT1"), difference)


class FreeConcurrent(Case):
    def test_responses_belong_to_their_requests(self):
        def work(model, seed):
            with Stream() as stream:
                self.compare(stream, [addsub(stream, model, 100 * seed + i, 1 + i % 4) for i in range(50)])
                done.append(seed)

        for model in ("addsub_fp32", "addsub_fp32_dynamic", "addsub_fp32_twice"):
            with self.subTest(model):
                done, threads = [], [threading.Thread(target=work, args=(model, seed)) for seed in range(4)]
                for thread in threads:
                    thread.start()
                for thread in threads:
                    thread.join()
                self.assertEqual(sorted(done), [0, 1, 2, 3])

    def test_two_instances(self):
        with grpc.InferenceServerClient(checks.GRPC) as client:
            [group] = client.get_model_config("addsub_fp32_twice").config.instance_group
        self.assertEqual(group.count, 2)


class Held(Case):
    def test_eight_requests_are_one_batch(self):
        with Stream() as stream:
            self.compare(stream, [addsub(stream, "addsub_fp32_dynamic", i, 1) for i in range(8)])
        got = counts("addsub_fp32_dynamic")
        self.assertEqual((got["executions"], got["batches"]), (1, {8: 1}))


if __name__ == "__main__":
    checks.run()

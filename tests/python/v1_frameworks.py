"""The checks that models of every framework pass with the v1 client. Models and classes as in v2_frameworks.py."""

import numpy as np

import checks
import v1_checks
import v1_sequences
from trtis_client import InferContext, ProtocolType, ServerStatusContext

RAW = InferContext.ResultFormat.RAW
INFER = (
    "test_addsub_of_every_type", "test_classes_of_every_numeric_type", "test_classification_with_labels",
    "test_concurrent_requests", "test_context_with_changing_shapes", "test_context_works_after_a_failure",
    "test_data_dependent_output_shape", "test_fixed_size_types_are_unchanged", "test_large_tensor",
    "test_more_classes_than_elements", "test_non_batching_models", "test_only_requested_outputs",
    "test_raw_and_class_output_of_one_request", "test_reshaped_tensor_has_configured_shape",
    "test_strings_are_unchanged", "test_strings_of_a_non_batching_model", "test_versions")
SEQUENCES = ("test_control_tensors_of_every_type", "test_states")


class Infer(v1_checks.Infer):
    PROTOCOL = ProtocolType.GRPC


FreeGrpc = checks.only(Infer, *INFER)
FreeHttp = type("FreeHttp", (FreeGrpc,), {"PROTOCOL": ProtocolType.HTTP})
FreeStream = type("FreeStream", (FreeGrpc,), {"STREAMING": True})
FreeHttpSequences = checks.only(v1_sequences.FreeHttp, *SEQUENCES)
FreeGrpcSequences = checks.only(v1_sequences.FreeUnary, *SEQUENCES)
# Not run itself: it has all checks of its base.
del Infer


class Case(checks.Case):
    def concurrent(self, model, rows):
        """Requests of these numbers of rows over one stream, none of which waits for another."""
        context = InferContext(checks.GRPC, ProtocolType.GRPC, model, streaming=True)
        mailbox, random, sent = checks.Mailbox(), np.random.RandomState(7), []
        for count in rows:
            values = [random.randint(-99, 99, 16).astype(np.float32) for _ in range(count)]
            inputs = {"INPUT0": values} if model == "sum_fp32" else {"INPUT0": values, "INPUT1": values[::-1]}
            outputs = {name: RAW for name in ("OUTPUT0", "OUTPUT1")[:len(inputs)]}
            sent.append(values)
            context.async_run(lambda ctx, id: mailbox.put(id), inputs, outputs, count)
        # Responses of a stream arrive in request order.
        for id, values in zip(mailbox.take(len(sent)), sent, strict=True):
            got = context.get_async_run_results(id)
            for row, value in enumerate(values):
                if model == "sum_fp32":
                    np.testing.assert_array_equal(got["OUTPUT0"][row], [value.sum()])
                else:
                    np.testing.assert_array_equal(got["OUTPUT0"][row], value + values[-1 - row])
                    np.testing.assert_array_equal(got["OUTPUT1"][row], value - values[-1 - row])


class FreeConcurrent(Case):
    def test_responses_belong_to_their_requests(self):
        for model in ("addsub_fp32", "addsub_fp32_dynamic", "addsub_fp32_twice", "sum_fp32"):
            with self.subTest(model):
                self.concurrent(model, [1 + i % 4 for i in range(50)])


class Held(Case):
    def test_eight_requests_are_one_batch(self):
        self.concurrent("sum_fp32", [1] * 8)
        status = ServerStatusContext(checks.HTTP, ProtocolType.HTTP, "sum_fp32").get_server_status()
        version = status.model_status["sum_fp32"].version_status[1]
        self.assertEqual((version.model_execution_count, version.model_inference_count), (1, 8))


if __name__ == "__main__":
    checks.run()

"""Requests to the models of tests/triton/contract.c, a Triton backend that checks every function of the host. The same checks pass
against Triton itself, which proves the expectations of the backend."""

import urllib.request

import numpy as np
import tritonclient.grpc
import tritonclient.http
from tritonclient.utils import InferenceServerException

import checks


def sample(name):
    """The value of a metric, or none."""
    page = urllib.request.urlopen(f"http://{checks.METRICS}/metrics", timeout=checks.TIMEOUT).read().decode()
    values = [line.rpartition(" ")[2] for line in page.splitlines() if line.rpartition(" ")[0] == name]
    return float(values[0]) if values else None


def row(values, module=tritonclient.http, name="INPUT0"):
    tensor = module.InferInput(name, [1, 4], "INT32")
    tensor.set_data_from_numpy(np.array([values], np.int32))
    return tensor


class Single(checks.Case):
    def setUp(self):
        self.client = tritonclient.http.InferenceServerClient(checks.HTTP, concurrency=4)
        self.addCleanup(self.client.close)

    def infer(self, model, values, **more):
        return self.client.infer(model, [row(values)], **more)

    def test_every_model_is_ready(self):
        """Values, messages, metrics, model and instances were checked while the models were opened."""
        for model in self.client.get_model_repository_index():
            with self.subTest(model["name"]):
                self.assertEqual(model.get("state"), "READY", model.get("reason"))

    def test_plain(self):
        self.assertEqual(self.infer("plain", [1, 2, 3, 4]).as_numpy("OUTPUT0").tolist(), [[1, 2, 3, 4]])

    def test_completed_configuration(self):
        config = self.client.get_model_config("complete")
        self.assertEqual(config["max_batch_size"], 6)
        self.assertIn("dynamic_batching", config)
        self.assertEqual(self.infer("complete", [4, 3, 2, 1]).as_numpy("OUTPUT0").tolist(), [[4, 3, 2, 1]])

    def test_preferred_instance_group(self):
        """The backend prefers two instances on CPUs where the configuration has no group."""
        [group] = self.client.get_model_config("plain")["instance_group"]
        self.assertEqual((group["kind"], group["count"]), ("KIND_CPU", 2))

    def test_requests(self):
        text = tritonclient.http.InferInput("TEXT", [1, 2], "BYTES")
        text.set_data_from_numpy(np.array([["a", "bc"]], object))
        result = self.client.infer(
            "requests", [row([1, 2, 3, 4]), text], request_id="r-1", timeout=50000000,
            parameters={"word": "text", "number": -5, "truth": True},
            outputs=[tritonclient.http.InferRequestedOutput("OUTPUT0")])
        self.assertEqual(result.as_numpy("OUTPUT0").tolist(), [[1, 2, 3, 4]])
        self.assertEqual(result.get_response()["id"], "r-1")

    def test_responses(self):
        with tritonclient.grpc.InferenceServerClient(checks.GRPC) as grpc:
            result = grpc.infer("responses", [row([1, 2, 3, 4], tritonclient.grpc)])
        self.assertEqual(result.as_numpy("OUTPUT0").tolist(), [[10, 20, 30, 40]])
        self.assertEqual(result.as_numpy("WORDS").tolist(), [[b"a", b"bc"]])
        parameters = result.get_response().parameters
        self.assertEqual(parameters["word"].string_param, "text")
        self.assertEqual(parameters["number"].int64_param, -(2**63))
        self.assertTrue(parameters["truth"].bool_param)
        self.assertEqual(parameters["real"].double_param, 2.5)

    def test_error_for_one_request(self):
        with self.refusal(InferenceServerException, "this request is refused by the probe", whole=False):
            self.infer("responses", [-1, 0, 0, 0])
        self.infer("responses", [1, 0, 0, 0])
        [model] = self.client.get_inference_statistics("responses")["model_stats"]
        self.assertEqual(model["inference_stats"]["fail"]["count"], 1)

    def test_state(self):
        def step(*values, **more):
            return int(self.infer("state", list(values), sequence_id=7, **more).as_numpy("OUTPUT0")[0, 0])
        self.assertEqual(step(1, 1, 0, 0, sequence_start=True), 1)
        self.assertEqual(step(2, 0, 0, 0), 3)
        # Written without being committed.
        self.assertEqual(step(0, 0, 0, 0), 3)
        self.assertEqual(step(4, 0, 0, 0, sequence_end=True), 7)

    def test_nested(self):
        self.assertEqual(self.infer("nested", [5, 6, 7, 8]).as_numpy("OUTPUT0").tolist(), [[5, 6, 7, 8]])
        [model] = self.client.get_inference_statistics("inner")["model_stats"]
        self.assertGreaterEqual(model["inference_count"], 1)

    def test_metrics(self):
        self.assertEqual(sample('contract_counter{source="probe"}'), 2.5)
        self.assertEqual(sample('contract_gauge{source="probe"}'), 4)
        self.assertIsNone(sample("contract_histogram_count"), "the backend deleted it")


class Decoupled(checks.Case):
    def setUp(self):
        self.client = tritonclient.grpc.InferenceServerClient(checks.GRPC)
        self.addCleanup(self.client.close)
        self.mailbox = checks.Mailbox()
        self.client.start_stream(lambda result, error: self.mailbox.put((result, error)))
        self.addCleanup(self.client.stop_stream)

    def test_factory(self):
        """Responses from a thread of the backend, after the request was released."""
        self.client.async_stream_infer(
            "factory", [row([3, 7, 8, 9], tritonclient.grpc)], request_id="d", enable_empty_final_response=True)
        values = []
        for result, error in self.mailbox.take(4):
            self.assertIsNone(error)
            response = result.get_response()
            self.assertEqual(response.id, "d")
            if response.outputs:
                values.append(result.as_numpy("OUTPUT0").tolist())
        self.assertEqual(values, [[[i, 7, 8, 9]] for i in range(3)])
        with tritonclient.http.InferenceServerClient(checks.HTTP) as http:
            [model] = http.get_inference_statistics("factory")["model_stats"]
        self.assertEqual(sorted(model["response_stats"]), ["0", "1", "2", "3"])
        self.assertEqual(model["response_stats"]["3"]["empty_response"]["count"], 1)

    def test_cancellation(self):
        """The backend polls until the request is cancelled, which its metric says."""
        seen = checks.Mailbox()
        with tritonclient.grpc.InferenceServerClient(checks.GRPC) as client:
            call = client.async_infer("cancel", [row([1, 2, 3, 4], tritonclient.grpc)],
                                      lambda result, error: seen.put(error))
            self.becomes(lambda: sample("contract_waiting"), 1)
            call.cancel()
            [error] = seen.take(1)
        self.assertIn("CANCELLED", str(error).upper())
        self.becomes(lambda: sample("contract_waiting"), 2)


if __name__ == "__main__":
    checks.run()

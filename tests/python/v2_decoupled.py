"""Decoupled models: any number of responses to a request, over streams only."""

import numpy as np
import tritonclient.grpc
import tritonclient.http
from tritonclient.utils import InferenceServerException

import checks
from v2_stream import metric


def numbers(module, *values):
    tensor = module.InferInput("INPUT0", [1, len(values)], "FP32")
    tensor.set_data_from_numpy(np.array([values], np.float32))
    return [tensor]


class Stream(checks.Case):
    def setUp(self):
        self.client = tritonclient.grpc.InferenceServerClient(checks.GRPC)
        self.addCleanup(self.client.close)
        self.mailbox = checks.Mailbox()
        self.client.start_stream(lambda result, error: self.mailbox.put((result, error)))
        self.addCleanup(self.client.stop_stream)

    def send(self, model, id, responses, **more):
        parameters = {"responses": responses, **more.pop("parameters", {})}
        inputs = numbers(tritonclient.grpc, float(id))
        self.client.async_stream_infer(model, inputs, request_id=str(id), parameters=parameters, **more)

    def take(self, count):
        """(id, value or None, final) of each response."""
        responses = []
        for result, error in self.mailbox.take(count):
            self.assertIsNone(error)
            response = result.get_response()
            value = float(result.as_numpy("OUTPUT0")[0, 0]) if response.outputs else None
            responses.append((response.id, value, response.parameters["triton_final_response"].bool_param))
        return responses

    def test_one_to_many(self):
        self.send("many", 1, 3)
        self.assertEqual(self.take(3), [("1", 1, False), ("1", 1, False), ("1", 1, True)])

    def test_detached_responses(self):
        self.send("many", 1, 2, parameters={"detach": True})
        self.assertEqual(self.take(2), [("1", 1, False), ("1", 1, True)])

    def test_one_to_none(self):
        """No response, unless the client requests an empty final one."""
        self.send("many", 1, 0)
        self.send("many", 2, 0, enable_empty_final_response=True)
        self.send("many", 3, 1)
        self.assertEqual(sorted(self.take(2)), [("2", None, True), ("3", 3, True)])
        self.assertEqual(self.mailbox._items, [])

    def test_preserve_ordering(self):
        for i in range(20):
            self.send("ordered", i, 2, parameters={"detach": True})
        got = [(id, final) for id, _, final in self.take(40)]
        self.assertEqual(got, [(str(i), final) for i in range(20) for final in (False, True)])

    def test_a_request_counts_once(self):
        before = self.count()
        self.send("many", 1, 5)
        self.take(5)
        self.assertEqual(self.count(), before + 1)

    def count(self):
        [model] = self.client.get_inference_statistics("many", as_json=True)["model_stats"]
        return int(model["inference_stats"].get("success", {}).get("count", 0))

    def test_error_is_the_final_response(self):
        self.send("many", 1, 2, parameters={"fail": "not today"})
        [(_, error)] = self.mailbox.take(1)
        self.assertEqual(error.message(), "not today")

    def test_responses_are_counted_by_position(self):
        """`response_stats` over both wires, and the time to the first response."""
        self.send("counted", 1, 3)
        self.take(3)
        self.send("counted", 2, 1, parameters={"detach": True})
        self.take(1)
        self.send("counted", 3, 0, enable_empty_final_response=True)
        self.take(1)
        self.send("counted", 4, 2, parameters={"fail": "not today"})
        self.mailbox.take(1)
        kinds = ("compute_infer", "compute_output", "success", "fail", "empty_response", "cancel")
        expected = {"0": (3, 3, 2, 1, 1, 0), "1": (1, 1, 1, 0, 0, 0), "2": (1, 1, 1, 0, 0, 0)}
        with tritonclient.http.InferenceServerClient(checks.HTTP) as http:
            for client, more in ((http, {}), (self.client, {"as_json": True})):
                [model] = client.get_inference_statistics("counted", **more)["model_stats"]
                got = {
                    index: tuple(int(stats[kind].get("count", 0)) for kind in kinds)
                    for index, stats in model["response_stats"].items()
                }
                self.assertEqual(got, expected)
                self.assertGreater(int(model["response_stats"]["0"]["success"]["ns"]), 0)
        family = 'nv_inference_first_response_histogram_ms_bucket{model="counted",version="1",le='
        self.assertEqual([metric(family + f'"{le}"}}') for le in ("1", "60000", "+Inf")][1:], [3, 3])

    def test_after_warmup(self):
        self.send("warm", 1, 1)
        self.assertEqual(self.take(1), [("1", 1, True)])


class Unary(checks.Case):
    def test_refused(self):
        for module, url, kind, status in (
                (tritonclient.grpc, checks.GRPC, "ModelInfer RPC", "StatusCode.UNIMPLEMENTED"),
                (tritonclient.http, checks.HTTP, "HTTP end point", "501")):
            with self.subTest(kind), module.InferenceServerClient(url) as client:
                text = f"{kind} doesn't support models with decoupled transaction policy"
                with self.refusal(InferenceServerException, text) as caught:
                    client.infer("many", numbers(module, 1))
                if module is tritonclient.grpc:
                    self.assertEqual(caught.exception.status(), status)

    def test_model_without_transaction_policy(self):
        for module, url in ((tritonclient.grpc, checks.GRPC), (tritonclient.http, checks.HTTP)):
            with module.InferenceServerClient(url) as client:
                with self.refusal(InferenceServerException, "expected a single response, got 2"):
                    client.infer("one", numbers(module, 1), parameters={"responses": 2})


if __name__ == "__main__":
    checks.run()

"""The v2 client over HTTP."""

import json

import numpy as np
import tritonclient.http as module
import tritonclient.http.aio as aio
from tritonclient.utils import InferenceServerException

import checks
import v2_checks


class Http:
    MODULE = module
    STATUS = {code: str(code) for code in (400, 404, 500, 501, 503)}

    @staticmethod
    def json(call, *arguments):
        return call(*arguments)

    @staticmethod
    def response(result):
        return result.get_response()


class Server(Http, v2_checks.Server):
    def test_config_prints_dimensions_as_numbers(self):
        config = self.client.get_model_config("addsub_fp32")
        self.assertEqual(config["input"][0]["dims"], [16])
        self.assertEqual(config["version_policy"]["latest"]["num_versions"], 1)

    def test_statistics_are_numbers(self):
        [entry] = self.client.get_inference_statistics("echo")["model_stats"]
        for key in ("last_inference", "inference_count", "execution_count"):
            self.assertIsInstance(entry[key], int)
        self.assertLessEqual({"inference_stats", "response_stats", "batch_stats", "memory_usage"}, set(entry))

    def test_log_and_trace_settings_can_be_read(self):
        self.assertEqual(list(self.client.get_log_settings()), [
            "log_file", "log_info", "log_warning", "log_error", "log_verbose_level", "log_format"])


class Infer(Http, v2_checks.Infer):
    def test_json_in_and_out(self):
        for name in v2_checks.NUMBERS:
            kind = v2_checks.TYPES[name]
            with self.subTest(name):
                values = v2_checks.samples(kind, (2, 5))
                got = self.client.infer(
                    f"identity_{name}", [self.input("INPUT0", values, name.upper(), binary_data=False)],
                    outputs=[module.InferRequestedOutput("OUTPUT0", binary_data=False)])
                self.assertIn("data", got.get_response()["outputs"][0])
                self.assertEqual(got.as_numpy("OUTPUT0").tobytes(), values.tobytes())

    def test_strings_and_booleans_in_json(self):
        for model, values, datatype in (
                ("identity_bool", np.array([[True, False]]), "BOOL"),
                ("identity_string", np.array([["a", "grüezi \" \\ \n", ""]], object), "BYTES")):
            got = self.client.infer(
                model, [self.input("INPUT0", values, datatype, binary_data=False)],
                outputs=[module.InferRequestedOutput("OUTPUT0", binary_data=False)])
            self.assertEqual(got.as_numpy("OUTPUT0").tolist(), values.tolist())

    def test_json_and_binary_output(self):
        tensors = [self.input(n, np.ones((1, 16), np.int32), "INT32", binary_data=n == "INPUT0")
                   for n in ("INPUT0", "INPUT1")]
        got = self.client.infer("addsub_int32", tensors, outputs=[
            module.InferRequestedOutput("OUTPUT0", binary_data=True),
            module.InferRequestedOutput("OUTPUT1", binary_data=False)])
        outputs = {o["name"]: o for o in got.get_response()["outputs"]}
        self.assertEqual(outputs["OUTPUT0"]["parameters"], {"binary_data_size": 64})
        self.assertEqual(outputs["OUTPUT1"]["data"], [0] * 16)
        np.testing.assert_array_equal(got.as_numpy("OUTPUT0"), np.full((1, 16), 2, np.int32))

    def test_compression_in_both_directions(self):
        values = np.zeros((1, 50_000), np.float32)
        for kind in ("gzip", "deflate"):
            for request, response in ((kind, None), (None, kind), (kind, kind)):
                with self.subTest(kind, request=request, response=response):
                    got = self.identity("identity_fp32", values, "FP32", request_compression_algorithm=request,
                                        response_compression_algorithm=response)
                    np.testing.assert_array_equal(got.as_numpy("OUTPUT0"), values)

    def test_concurrent_requests(self):
        client = module.InferenceServerClient(self.url, concurrency=8)
        self.addCleanup(client.close)
        values = [np.full((1, 3), i, np.float32) for i in range(40)]
        waiting = [client.async_infer("echo", [self.input("INPUT0", v, "FP32")]) for v in values]
        for value, response in zip(values, waiting):
            np.testing.assert_array_equal(response.get_result().as_numpy("OUTPUT0"), value)

    def test_body_encoding_of_the_client(self):
        body, size = module.InferenceServerClient.generate_request_body([self.fp32()])
        self.assertEqual(json.loads(body[:size])["inputs"][0]["parameters"], {"binary_data_size": 8})


class Asynchronous(v2_checks.Asynchronous):
    AIO = aio


if __name__ == "__main__":
    checks.run()

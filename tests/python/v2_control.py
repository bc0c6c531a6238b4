"""Model control with the v2 client, over HTTP and gRPC. The server is that of tests/wire/model_control/requests.rs."""

import json
import pathlib

import numpy as np
import tritonclient.grpc
import tritonclient.http
from tritonclient.utils import InferenceServerException

import checks

MODELS = pathlib.Path(__file__).resolve().parents[1] / "models"


class Control(checks.Case):
    MODULE = None

    def setUp(self):
        self.client = self.MODULE.InferenceServerClient(self.url())
        self.addCleanup(self.client.close)

    def index(self, **more):
        return [(m["name"], m.get("state", ""), m.get("reason", "")) for m in self.entries(**more)]

    def run_model(self, model):
        values = np.ones((1, 2), np.float32)
        tensor = self.MODULE.InferInput("INPUT0", [1, 2], "FP32")
        tensor.set_data_from_numpy(values)
        np.testing.assert_array_equal(self.client.infer(model, [tensor]).as_numpy("OUTPUT0"), values)

    def test_load_and_unload(self):
        for _ in range(3):
            self.client.load_model("pair")
            self.client.load_model("pair")
            for model in ("pair", "m"):
                self.assertTrue(self.client.is_model_ready(model))
                self.run_model(model)
            self.assertTrue(self.client.is_server_ready())
            self.client.unload_model("pair")
            self.assertFalse(self.client.is_model_ready("pair"))
            self.becomes(lambda: ("pair", "UNAVAILABLE", "unloaded") in self.index(), True)
            with self.refusal(InferenceServerException, "Request for unknown model: 'pair' has no available versions"):
                self.run_model("pair")
            self.run_model("m")
            self.client.unload_model("m")
            self.client.load_model("pair")
            self.client.unload_model("pair", unload_dependents=True)
            self.assertFalse(self.client.is_model_ready("m"))
            self.assertTrue(self.client.is_server_ready())

    def test_index(self):
        self.client.load_model("addsub_fp32")
        names = [name for name, _, _ in self.index()]
        self.assertEqual(names, ["addsub_fp32", "broken", "m", "pair"])
        self.assertIn(("addsub_fp32", "READY", ""), self.index())
        self.client.unload_model("addsub_fp32")
        self.becomes(lambda: ("addsub_fp32", "UNAVAILABLE", "unloaded") in self.index(), True)

    def test_file_override(self):
        folder = MODELS / "addsub_fp32"
        content = (folder / "1/model.onnx").read_bytes()
        self.client.load_model("addsub_fp32")
        config = self.config("addsub_fp32")
        config["name"] = "uploaded"
        config["version_policy"] = {"all": {}}
        files = {"file:2/model.onnx": content, "file:7/model.onnx": content}
        with self.refusal(InferenceServerException, "no parameter 'config'", whole=False):
            self.client.load_model("uploaded", files=files)
        self.client.load_model("uploaded", config=json.dumps(config), files=files)
        for version, ready in (("2", True), ("7", True), ("1", False)):
            self.assertEqual(self.client.is_model_ready("uploaded", version), ready)
        values = np.arange(16, dtype=np.float32).reshape(1, 16)
        tensors = [self.MODULE.InferInput(f"INPUT{n}", [1, 16], "FP32") for n in (0, 1)]
        for tensor in tensors:
            tensor.set_data_from_numpy(values)
        got = self.client.infer("uploaded", tensors, model_version="2").as_numpy("OUTPUT0")
        np.testing.assert_array_equal(got, values * 2)
        # A model of the repository has only the files of the request until it is loaded without
        # them.
        config["name"] = "addsub_fp32"
        self.client.load_model("addsub_fp32", config=json.dumps(config), files={"file:3/model.onnx": content})
        self.assertTrue(self.client.is_model_ready("addsub_fp32", "3"))
        self.assertFalse(self.client.is_model_ready("addsub_fp32", "1"))
        self.client.load_model("addsub_fp32")
        self.assertTrue(self.client.is_model_ready("addsub_fp32", "1"))
        self.client.unload_model("addsub_fp32")

        def names():
            self.client.unload_model("uploaded")
            return [name for name, _, _ in self.index()]

        self.becomes(lambda: "uploaded" in names(), False)

    def test_config_override(self):
        self.client.load_model("m")
        config = self.config()
        config["parameters"] = {"fail": {"string_value": "as the request has it"}}
        self.client.load_model("m", config=json.dumps(config))
        with self.refusal(InferenceServerException, "as the request has it"):
            self.run_model("m")
        with self.refusal(InferenceServerException, "failed to load 'm', failed to poll from model repository: "
                          "Invalid config override: parameter 'config':2:", whole=False):
            self.client.load_model("m", config='{"name": "m",\n"no": 1}')
        # Kept until the directory changes or the model is unloaded.
        self.client.load_model("m")
        with self.refusal(InferenceServerException, "as the request has it"):
            self.run_model("m")
        self.client.unload_model("m")
        self.client.load_model("m")
        self.run_model("m")
        self.client.unload_model("m")

    def test_errors(self):
        self.client.unload_model("unknown")
        with self.refusal(InferenceServerException, "failed to load 'unknown', failed to poll from model repository"):
            self.client.load_model("unknown")
        with self.refusal(InferenceServerException, "failed to load 'broken', failed to poll from model repository"):
            self.client.load_model("broken")
        [reason] = [reason for name, _, reason in self.index() if name == "broken"]
        self.assertIn("config.pbtxt:1:", reason)
        # A configuration that cannot be read does not make the server unready.
        self.assertTrue(self.client.is_server_ready())
        self.client.unload_model("broken")
        self.assertIn(("broken", "", ""), self.index())


class Http(Control):
    MODULE = tritonclient.http

    def url(self):
        return checks.HTTP

    def entries(self):
        return self.client.get_model_repository_index()

    def config(self, model="m"):
        return self.client.get_model_config(model)


class Grpc(Control):
    MODULE = tritonclient.grpc

    def url(self):
        return checks.GRPC

    def entries(self):
        return self.client.get_model_repository_index(as_json=True)["models"]

    def config(self, model="m"):
        return self.client.get_model_config(model, as_json=True)["config"]

    def test_parameters_of_the_wrong_type(self):
        pb2, stub = tritonclient.grpc.service_pb2, self.client._client_stub
        load, unload = pb2.RepositoryModelLoadRequest, pb2.RepositoryModelUnloadRequest
        for kind, call, key, choice, value, text in (
            (load, stub.RepositoryModelLoad, "config", "bool_param", True,
             "invalid value type for load parameter 'config', expected string_param."),
            (load, stub.RepositoryModelLoad, "file:1/x", "string_param", "x",
             "invalid value type for load parameter 'file:1/x', expected bytes_param."),
            (load, stub.RepositoryModelLoad, "else", "string_param", "x", "unrecognized load parameter 'else'."),
            (unload, stub.RepositoryModelUnload, "unload_dependents", "string_param", "true",
             "invalid value type for 'unload_dependents' parameter, expected bool_param."),
        ):
            request = kind(model_name="m")
            setattr(request.parameters[key], choice, value)
            with self.assertRaises(Exception) as caught:
                call(request)
            self.assertEqual(caught.exception.details(), text)
            self.assertEqual(caught.exception.code().name, "INVALID_ARGUMENT")
        for name, text in (
            ("", "Model name cannot be empty. Please enter a valid name to deploy."),
            ("a/b", "invalid model name 'a/b', model name must not contain path traversal characters"),
            ("..", "invalid model name '..', model name must not contain path traversal characters"),
        ):
            with self.assertRaises(Exception) as caught:
                stub.RepositoryModelLoad(load(model_name=name))
            self.assertEqual((caught.exception.code().name, caught.exception.details()), ("INVALID_ARGUMENT", text))
        with self.assertRaises(Exception) as caught:
            stub.RepositoryModelLoad(load(model_name="m", repository_name="r"))
        self.assertEqual(caught.exception.code().name, "UNIMPLEMENTED")


del Control

if __name__ == "__main__":
    checks.run()

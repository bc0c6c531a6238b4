"""Model control with the v1 client, over HTTP and gRPC. The server is that of tests/wire/model_control/requests.rs."""

import numpy as np

import checks
import v1_checks
from trtis_client import (
    InferenceServerException,
    ModelControlContext,
    ModelRepositoryContext,
    ProtocolType,
    server_status_pb2,
)
from v1_checks import RAW


class Control(v1_checks.Protocol):
    def setUp(self):
        self.control = ModelControlContext(self.url, self.PROTOCOL)

    def state(self, model):
        version = self.status(model).model_status[model].version_status[1]
        return version.ready_state, version.ready_state_reason.message

    def run_pair(self, model="pair"):
        one = np.ones(2, np.float32)
        got = self.context(model).run({"INPUT0": [one]}, {"OUTPUT0": RAW})
        np.testing.assert_array_equal(got["OUTPUT0"][0], one)

    def test_load_and_unload(self):
        for _ in range(3):
            self.control.load("pair")
            self.control.load("pair")
            for model in ("pair", "m"):
                self.run_pair(model)
                self.assertEqual(self.state(model), (server_status_pb2.MODEL_READY, ""))
            self.control.unload("pair")
            self.becomes(lambda: self.state("pair"), (server_status_pb2.MODEL_UNAVAILABLE, "unloaded"))
            with self.refusal(InferenceServerException, "unknown model 'pair'", whole=False):
                self.run_pair()
            self.run_pair("m")
            self.control.unload("m")
            self.becomes(lambda: self.state("m"), (server_status_pb2.MODEL_UNAVAILABLE, "unloaded"))

    def test_onnx_model(self):
        self.control.load("addsub_fp32")
        values = np.arange(16, dtype=np.float32)
        got = self.context("addsub_fp32").run({"INPUT0": [values], "INPUT1": [values]}, {"OUTPUT0": RAW})
        np.testing.assert_array_equal(got["OUTPUT0"][0], values * 2)
        self.control.unload("addsub_fp32")

    def test_unknown_models(self):
        self.control.unload("unknown")
        for model, reason in (("unknown", "no version is available"),
                              ("broken", "no version is available")):
            with self.refusal(InferenceServerException, f"failed to load '{model}', {reason}"):
                self.control.load(model)
        self.control.unload("broken")

    def test_index(self):
        index = ModelRepositoryContext(self.url, self.PROTOCOL).get_model_repository_index()
        self.assertEqual([model.name for model in index.models], ["addsub_fp32", "broken", "m", "pair"])


class Http(Control):
    PROTOCOL = ProtocolType.HTTP


class Grpc(Control):
    PROTOCOL = ProtocolType.GRPC


del Control

if __name__ == "__main__":
    checks.run()

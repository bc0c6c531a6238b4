"""Tokens of an auth file as headers of the unmodified clients; with tests/wire/tokens/clients.rs."""

import numpy as np
from tritonclient.utils import InferenceServerException

import checks
import v2_clients

TEAM = {"Authorization": "Bearer team-a-token"}
ADMIN = {"Authorization": "Bearer admin-token"}


class Calls:
    """The same calls over both wires."""

    def tensor(self):
        tensor = self.library.InferInput("INPUT0", [1, 2], "FP32")
        tensor.set_data_from_numpy(np.ones((1, 2), np.float32))
        return [tensor]

    def refused(self, text, call, *args, **more):
        with self.assertRaises(InferenceServerException) as raised:
            call(*args, **more)
        self.assertIn(text, str(raised.exception))

    def headers(self, headers):
        # gRPC has metadata in lower case.
        return {name.lower(): value for name, value in headers.items()}

    def test_inference(self):
        team = self.headers(TEAM)
        self.client.infer("a-echo", self.tensor(), headers=team)
        self.refused("infer:inference:b-echo", self.client.infer, "b-echo", self.tensor(), headers=team)
        self.refused("expected a token", self.client.infer, "a-echo", self.tensor())
        self.refused("is not valid", self.client.infer, "a-echo", self.tensor(), headers={"authorization": "Bearer x"})

    def test_control(self):
        self.client.load_model("b-echo", headers=self.headers(ADMIN))
        self.refused("control:model-repository", self.client.load_model, "a-echo", headers=self.headers(TEAM))


class Http(Calls, v2_clients.HttpCase):
    def test_plugin(self):
        """A client plugin adds the token to every request."""
        from tritonclient.http import InferenceServerClientPlugin

        class Bearer(InferenceServerClientPlugin):
            def __call__(self, request):
                request.headers["authorization"] = "Bearer team-a-token"

        self.client.register_plugin(Bearer())
        self.client.infer("a-echo", self.tensor())


class Grpc(Calls, v2_clients.GrpcCase):
    def test_stream(self):
        results = []
        self.client.start_stream(lambda result, error: results.append((result, error)), headers=self.headers(TEAM))
        self.client.async_stream_infer("a-echo", self.tensor())
        self.client.async_stream_infer("b-echo", self.tensor())
        self.client.async_stream_infer("a-echo", self.tensor())
        self.client.stop_stream()
        self.assertEqual([error is None for _, error in results], [True, False, True])
        self.assertIn("infer:inference:b-echo", str(results[1][1]))


if __name__ == "__main__":
    checks.run()

"""What the v2 client sees of a request that is refused because it would wait too long; with
tests/wire/late_requests.rs, which keeps model `slow` busy."""

import numpy as np
import tritonclient.grpc as grpc
import tritonclient.http as http
from tritonclient.utils import InferenceServerException

import checks
from v2_stream import Stream, tensor

BUSY = "model 'slow' is busy: the request would wait"
VALUES = np.array([[1, 2]], np.float32)


class LateRequests(checks.Case):
    def test_http(self):
        with http.InferenceServerClient(checks.HTTP) as client:
            with self.refusal(InferenceServerException, BUSY, whole=False) as caught:
                client.infer("slow", [tensor(http, "INPUT0", VALUES)])
        self.assertEqual(caught.exception.status(), "429")

    def test_grpc(self):
        with grpc.InferenceServerClient(checks.GRPC) as client:
            for more in ({}, {"client_timeout": 100}):
                with self.refusal(InferenceServerException, BUSY, whole=False) as caught:
                    client.infer("slow", [tensor(grpc, "INPUT0", VALUES)], **more)
                self.assertEqual(caught.exception.status(), "StatusCode.RESOURCE_EXHAUSTED")

    def test_stream_goes_on(self):
        with Stream() as stream:
            for model in ("slow", "quick"):
                stream.send(model, {"INPUT0": VALUES})
            refused, answered = stream.responses()
        self.assertIn(BUSY, refused.message())
        self.assertEqual(answered.as_numpy("OUTPUT0").tolist(), VALUES.tolist())


checks.run()

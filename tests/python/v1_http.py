"""The v1 client over HTTP."""

import checks
import v1_checks
from trtis_client import InferContext, InferenceServerException, ProtocolType


class Infer(v1_checks.Infer):
    PROTOCOL = ProtocolType.HTTP


class Control(v1_checks.Control):
    PROTOCOL = ProtocolType.HTTP

    def test_streams_are_refused(self):
        with self.assertRaises(InferenceServerException):
            InferContext(checks.HTTP, ProtocolType.HTTP, "echo", streaming=True)

    def test_unknown_headers_are_ignored(self):
        context = InferContext(checks.HTTP, ProtocolType.HTTP, "echo", http_headers=["X-One:1", "Accept:*/*"])
        self.assertIsNotNone(context)


if __name__ == "__main__":
    checks.run()

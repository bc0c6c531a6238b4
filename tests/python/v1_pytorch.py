"""As v2_pytorch.py, with the v1 client."""

import numpy as np

import checks
import v1_checks
from pytorch_models import NAMES
from trtis_client import InferContext, ProtocolType

RAW = InferContext.ResultFormat.RAW


class Http(v1_checks.Protocol):
    PROTOCOL = ProtocolType.HTTP

    def test_all_models(self):
        x = np.arange(12, dtype=np.float32).reshape(2, 2, 3)
        for model, (inputs, outputs) in NAMES.items():
            with self.subTest(model):
                given = dict(zip(inputs, (list(x), list(x + 1))))
                got = self.context(model).run(given, dict.fromkeys(outputs, RAW), len(x))
                for row, total, turned in zip(x, *(got[name] for name in outputs)):
                    np.testing.assert_array_equal(total, 2 * row + 1)
                    np.testing.assert_array_equal(turned, row.T)


class Grpc(Http):
    PROTOCOL = ProtocolType.GRPC


if __name__ == "__main__":
    checks.run()

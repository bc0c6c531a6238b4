"""The backend written in C with the v1 client of 2020."""

import numpy as np

import checks
from trtis_client import InferContext, ProtocolType


class CPlugin(checks.Case):
    def test_addsub(self):
        for url, protocol in ((checks.HTTP, ProtocolType.HTTP), (checks.GRPC, ProtocolType.GRPC)):
            with self.subTest(protocol):
                a = [np.arange(i, i + 16, dtype=np.float32) for i in range(3)]
                b = [np.ones(16, np.float32)] * 3
                raw = InferContext.ResultFormat.RAW
                got = InferContext(url, protocol, "c_addsub").run(
                    {"INPUT0": a, "INPUT1": b}, {"OUTPUT0": raw, "OUTPUT1": raw}, 3)
                for i in range(3):
                    np.testing.assert_array_equal(got["OUTPUT0"][i], a[i] + b[i])
                    np.testing.assert_array_equal(got["OUTPUT1"][i], a[i] - b[i])


if __name__ == "__main__":
    checks.run()

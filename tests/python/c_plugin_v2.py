"""The backend written in C with the current v2 client."""

import numpy as np
import tritonclient.grpc
import tritonclient.http

import checks


class CPlugin(checks.Case):
    def test_addsub(self):
        for url, module in ((checks.HTTP, tritonclient.http), (checks.GRPC, tritonclient.grpc)):
            with self.subTest(module.__name__), module.InferenceServerClient(url) as client:
                a = np.arange(48, dtype=np.float32).reshape(3, 16)
                b = np.ones((3, 16), np.float32)
                tensors = []
                for name, values in (("INPUT1", b), ("INPUT0", a)):
                    tensor = module.InferInput(name, values.shape, "FP32")
                    tensor.set_data_from_numpy(values)
                    tensors.append(tensor)
                got = client.infer("c_addsub", tensors)
                np.testing.assert_array_equal(got.as_numpy("OUTPUT0"), a + b)
                np.testing.assert_array_equal(got.as_numpy("OUTPUT1"), a - b)


if __name__ == "__main__":
    checks.run()

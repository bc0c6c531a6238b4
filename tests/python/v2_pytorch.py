"""The fake model of tests/fakes/torch, with tests/wire/frameworks/pytorch_safety.rs: a sum, its first input turned."""

import numpy as np

import checks
import v2_clients
from pytorch_models import NAMES


class Calls:
    """The same calls over both wires."""

    def test_all_models(self):
        x = np.arange(12, dtype=np.float32).reshape(2, 2, 3)
        for model, (inputs, outputs) in NAMES.items():
            with self.subTest(model):
                tensors = [self.library.InferInput(name, list(x.shape), "FP32") for name in inputs]
                for tensor, value in zip(tensors, (x, x + 1)):
                    tensor.set_data_from_numpy(value)
                got = self.client.infer(model, tensors)
                np.testing.assert_array_equal(got.as_numpy(outputs[0]), 2 * x + 1)
                np.testing.assert_array_equal(got.as_numpy(outputs[1]), x.transpose(0, 2, 1))


class Http(Calls, v2_clients.HttpCase):
    pass


class Grpc(Calls, v2_clients.GrpcCase):
    pass


if __name__ == "__main__":
    checks.run()

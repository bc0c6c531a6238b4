"""The fake model of tests/fakes/torch, with tests/wire/frameworks/pytorch_safety.rs: a sum, its first input turned."""

import numpy as np
import tritonclient.grpc as grpc
import tritonclient.http as http

import checks

# Inputs and outputs of the models.
NAMES = {
    "numbered": (("INPUT__0", "INPUT__1"), ("OUTPUT__0", "OUTPUT__1")),
    "completed": (("ARGS[0]", "KWARGS[bias]"), ("RESULT[total]", "RESULT[turned]")),
}


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


class Http(Calls, checks.Case):
    library = http

    def setUp(self):
        self.client = http.InferenceServerClient(checks.HTTP)
        self.addCleanup(self.client.close)


class Grpc(Calls, checks.Case):
    library = grpc

    def setUp(self):
        self.client = grpc.InferenceServerClient(checks.GRPC)
        self.addCleanup(self.client.close)


if __name__ == "__main__":
    checks.run()

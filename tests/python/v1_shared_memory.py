"""The v1 client with tensors in system shared memory, over HTTP and gRPC."""

import itertools
import os

import numpy as np
import tensorrtserver.shared_memory as shm

import checks
import v1_checks
from trtis_client import InferContext, InferenceServerException, ProtocolType, SharedMemoryControlContext

RAW = InferContext.ResultFormat.RAW
NUMBERS = itertools.count()


class Infer:
    """Checks for each protocol."""

    def setUp(self):
        self.control = SharedMemoryControlContext(self.url, self.PROTOCOL)
        self.addCleanup(self.control.close)

    def region(self, size):
        """The handle and the name of a registered region."""
        name = f"region{os.getpid()}_{next(NUMBERS)}"
        handle = shm.create_shared_memory_region(name, "/" + name, size)
        self.addCleanup(shm.destroy_shared_memory_region, handle)
        self.control.register(handle)
        self.addCleanup(self.control.unregister, handle)
        return handle, name

    def filled(self, values):
        handle, _ = self.region(values.nbytes)
        shm.set_shared_memory_region(handle, [values])
        return handle

    def test_inputs_and_outputs(self):
        a, b = np.arange(16, dtype=np.int32), np.ones(16, np.int32)
        inputs = {"INPUT0": self.filled(a), "INPUT1": self.filled(b)}
        outputs = {name: (RAW, self.region(64)[0]) for name in ("OUTPUT0", "OUTPUT1")}
        context = self.context("addsub_int32")
        for _ in range(3):
            got = context.run(inputs, outputs)
            np.testing.assert_array_equal(got["OUTPUT0"][0], a + b)
            np.testing.assert_array_equal(got["OUTPUT1"][0], a - b)

    def test_one_of_two_tensors(self):
        a, b = np.arange(16, dtype=np.int32), np.ones(16, np.int32)
        for inputs in ({"INPUT0": self.filled(a), "INPUT1": [b]}, {"INPUT0": [a], "INPUT1": self.filled(b)}):
            for outputs in ({"OUTPUT0": RAW, "OUTPUT1": (RAW, self.region(64)[0])},
                            {"OUTPUT0": (RAW, self.region(64)[0]), "OUTPUT1": RAW}):
                got = self.context("addsub_int32").run(inputs, outputs)
                np.testing.assert_array_equal(got["OUTPUT0"][0], a + b)
                np.testing.assert_array_equal(got["OUTPUT1"][0], a - b)

    def test_batches(self):
        values = np.arange(32, dtype=np.int32).reshape(2, 16)
        inputs = {"INPUT0": self.filled(values), "INPUT1": self.filled(values)}
        got = self.context("addsub_int32").run(inputs, {"OUTPUT0": (RAW, self.region(128)[0])}, 2)
        np.testing.assert_array_equal(got["OUTPUT0"], 2 * values)

    def test_variable_shape_and_isolated_model(self):
        values = np.arange(1000, dtype=np.float32)
        source = self.filled(values)
        for model in ("echo", "isolated"):
            got = self.context(model).run(
                {"INPUT0": (source, [1000])}, {"OUTPUT0": (RAW, self.region(4000)[0])})
            np.testing.assert_array_equal(got["OUTPUT0"][0], values)

    def test_strings(self):
        texts = [b"one", b"", b"three" * 100]
        data = b"".join(len(text).to_bytes(4, "little") + text for text in texts)
        source = self.filled(np.frombuffer(data, np.uint8))
        output, _ = self.region(len(data))
        got = self.context("identity_string").run({"INPUT0": (source, [3])}, {"OUTPUT0": (RAW, output)})
        self.assertEqual(list(got["OUTPUT0"][0]), texts)

    def failing(self, text, call, *arguments):
        with self.assertRaises(InferenceServerException) as caught:
            call(*arguments)
        message = caught.exception.message()
        self.assertIn(text, message.decode() if isinstance(message, bytes) else message)

    def test_errors(self):
        ones = np.ones(16, np.int32)
        context = self.context("addsub_int32")
        short, _ = self.region(32)
        self.failing("shared memory size specified with the request for output 'OUTPUT0' (32 bytes) should be at "
                     "least 64 bytes to hold the results",
                     context.run, {"INPUT0": [ones], "INPUT1": [ones]}, {"OUTPUT0": (RAW, short)})
        gone, name = self.region(64)
        self.control.unregister(gone)
        text = f"shared memory block '{name}' not found in manager"
        self.failing(text, context.run, {"INPUT0": gone, "INPUT1": [ones]}, {"OUTPUT0": RAW})
        self.failing(text, context.run, {"INPUT0": [ones], "INPUT1": [ones]}, {"OUTPUT0": (RAW, gone)})
        got = context.run({"INPUT0": [ones], "INPUT1": [ones]}, {"OUTPUT0": RAW})
        np.testing.assert_array_equal(got["OUTPUT0"][0], 2 * ones)


class Http(Infer, v1_checks.Protocol):
    PROTOCOL = ProtocolType.HTTP


class Grpc(Infer, v1_checks.Protocol):
    PROTOCOL = ProtocolType.GRPC


class Stream(Infer, v1_checks.Protocol):
    PROTOCOL = ProtocolType.GRPC
    STREAMING = True


if __name__ == "__main__":
    checks.run()

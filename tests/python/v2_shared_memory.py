"""The v2 client with tensors in system shared memory, over HTTP and gRPC."""

import itertools
import os

import numpy as np
import tritonclient.grpc as grpc
import tritonclient.http as http
import tritonclient.utils.shared_memory as shm
from tritonclient.utils import InferenceServerException, serialize_byte_tensor

import checks

NUMBERS = itertools.count()


class Region:
    """An object of shared memory, registered as a whole."""

    def __init__(self, client, size):
        self.client, self.size = client, size
        self.name = f"region{os.getpid()}_{next(NUMBERS)}"
        self.handle = shm.create_shared_memory_region(self.name, self.name, size, create_only=True)
        client.register_system_shared_memory(self.name, "/" + self.name, size)

    def write(self, values, offset=0):
        shm.set_shared_memory_region(self.handle, [values], offset)

    def read(self, kind, shape, offset=0):
        return shm.get_contents_as_numpy(self.handle, kind, shape, offset)

    def remove(self):
        self.client.unregister_system_shared_memory(self.name)
        shm.destroy_shared_memory_region(self.handle)


class Protocol(checks.Case):
    MODULE = None

    def setUp(self):
        url = checks.HTTP if self.MODULE is http else checks.GRPC
        self.client = self.MODULE.InferenceServerClient(url)
        self.addCleanup(self.client.close)

    def region(self, size):
        region = Region(self.client, size)
        self.addCleanup(region.remove)
        return region

    def input(self, region, shape, datatype="FP32", size=None, offset=0, name="INPUT0"):
        size = 4 * int(np.prod(shape)) if size is None else size
        tensor = self.MODULE.InferInput(name, shape, datatype)
        tensor.set_shared_memory(region if isinstance(region, str) else region.name, size, offset)
        return tensor

    def sent(self, values, name="INPUT0"):
        tensor = self.MODULE.InferInput(name, values.shape, "FP32")
        tensor.set_data_from_numpy(values)
        return tensor

    def output(self, region, size, offset=0, name="OUTPUT0"):
        output = self.MODULE.InferRequestedOutput(name)
        output.set_shared_memory(region if isinstance(region, str) else region.name, size, offset)
        return output

    def entry(self, result, name="OUTPUT0"):
        """The output as the response describes it."""
        found = result.get_output(name)
        if self.MODULE is http:
            self.assertEqual(set(found), {"name", "datatype", "shape"})
            return found["datatype"], found["shape"]
        self.assertFalse(found.parameters)
        response = result.get_response()
        position = [output.name for output in response.outputs].index(name)
        self.assertEqual(response.raw_output_contents[position], b"")
        return found.datatype, list(found.shape)

    def refused(self, status, text):
        return Refused(self, self.STATUS[status], text)


class Refused:
    def __init__(self, case, status, text):
        self.case, self.status, self.text = case, status, text

    def __enter__(self):
        self.raised = self.case.assertRaises(InferenceServerException)
        return self.raised.__enter__()

    def __exit__(self, *what):
        handled = self.raised.__exit__(*what)
        error = self.raised.exception
        self.case.assertIn(self.text, error.message())
        self.case.assertEqual(error.status(), self.status)
        return handled


class Infer:
    """Checks for both protocols."""

    MODELS = ("echo", "adopt", "merge", "isolated", "isolated_adopt", "isolated_merge")

    def test_input_and_output_in_one_region(self):
        values = np.arange(6, dtype=np.float32).reshape(2, 3)
        for model in self.MODELS:
            with self.subTest(model):
                region = self.region(64)
                region.write(values, 8)
                for round in range(3):
                    region.write(values + round, 8)
                    result = self.client.infer(
                        model, [self.input(region, [2, 3], offset=8)], outputs=[self.output(region, 32, 32)])
                    self.assertEqual(self.entry(result), ("FP32", [2, 3]))
                    np.testing.assert_array_equal(region.read(np.float32, [2, 3], 32), values + round)

    def test_input_alone(self):
        region, values = self.region(1 << 20), np.random.default_rng(1).random((1, 1 << 18), np.float32)
        region.write(values)
        for model in self.MODELS:
            with self.subTest(model):
                result = self.client.infer(model, [self.input(region, values.shape)])
                np.testing.assert_array_equal(result.as_numpy("OUTPUT0"), values)

    def test_output_alone(self):
        region, values = self.region(1 << 20), np.random.default_rng(2).random((1, 1 << 18), np.float32)
        for model in self.MODELS:
            with self.subTest(model):
                region.write(np.zeros(1 << 18, np.float32))
                result = self.client.infer(
                    model, [self.sent(values)], outputs=[self.output(region, 1 << 20)])
                self.entry(result)
                np.testing.assert_array_equal(region.read(np.float32, values.shape), values)

    def test_some_tensors_in_shared_memory(self):
        region = self.region(256)
        a, b = np.arange(16, dtype=np.float32).reshape(1, 16), np.ones((1, 16), np.float32)
        region.write(b)
        for first, second in ((self.sent(a), self.input(region, [1, 16], name="INPUT1")),
                              (self.input(region, [1, 16], name="INPUT1"), self.sent(a))):
            result = self.client.infer("addsub_fp32", [first, second], outputs=[
                self.MODULE.InferRequestedOutput("OUTPUT0"), self.output(region, 64, 64, "OUTPUT1")])
            np.testing.assert_array_equal(result.as_numpy("OUTPUT0"), a + b)
            self.entry(result, "OUTPUT1")
            np.testing.assert_array_equal(region.read(np.float32, [1, 16], 64), a - b)

    def test_all_tensors_in_shared_memory(self):
        region = self.region(256)
        a, b = np.arange(16, dtype=np.float32).reshape(1, 16), np.ones((1, 16), np.float32)
        region.write(a)
        region.write(b, 64)
        result = self.client.infer(
            "addsub_fp32",
            [self.input(region, [1, 16]), self.input(region, [1, 16], offset=64, name="INPUT1")],
            outputs=[self.output(region, 64, 128), self.output(region, 64, 192, "OUTPUT1")])
        self.entry(result)
        self.entry(result, "OUTPUT1")
        np.testing.assert_array_equal(region.read(np.float32, [1, 16], 128), a + b)
        np.testing.assert_array_equal(region.read(np.float32, [1, 16], 192), a - b)

    def test_strings(self):
        texts = np.array([["", "a", "grüezi", "x" * 3000]], object)
        data = serialize_byte_tensor(texts).item()
        region = self.region(2 * len(data) + 4)
        region.write(np.frombuffer(data, np.uint8))
        result = self.client.infer(
            "identity_string", [self.input(region, [1, 4], "BYTES", len(data))],
            outputs=[self.output(region, len(data) + 4, len(data))])
        self.assertEqual(self.entry(result), ("BYTES", [1, 4]))
        got = region.read(np.object_, [1, 4], len(data))
        self.assertEqual([text.decode() for text in got[0]], list(texts[0]))
        with self.refused(400, "expected 5 string elements for inference input 'INPUT0'"):
            self.client.infer("identity_string", [self.input(region, [1, 5], "BYTES", len(data))])

    def test_misaligned_tensors(self):
        region, values = self.region(64), np.array([[1.5, 2.5]], np.float32)
        region.write(np.frombuffer(values.tobytes(), np.uint8), 3)
        for model in ("echo", "isolated"):
            result = self.client.infer(
                model, [self.input(region, [1, 2], offset=3)], outputs=[self.output(region, 8, 21)])
            self.entry(result)
            got = region.read(np.uint8, [8], 21).tobytes()
            self.assertEqual(got, values.tobytes(), model)

    def test_outputs_overlap_inputs_and_each_other(self):
        region = self.region(128)
        a = np.arange(16, dtype=np.float32)
        region.write(a)
        region.write(a, 64)
        inputs = [self.input(region, [1, 16]), self.input(region, [1, 16], offset=64, name="INPUT1")]
        # What is in the region afterwards depends on the model.
        result = self.client.infer("addsub_fp32", inputs, outputs=[
            self.output(region, 64), self.output(region, 64, 0, "OUTPUT1")])
        self.entry(result)
        self.entry(result, "OUTPUT1")
        region.write(a)
        self.client.infer("echo", [self.input(region, [1, 16])], outputs=[self.output(region, 64)])
        np.testing.assert_array_equal(region.read(np.float32, [16]), a)

    def test_several_models_and_requests_use_a_region(self):
        region = self.region(1 << 16)
        region.write(np.arange(1 << 14, dtype=np.float32))
        for step in range(20):
            size = 1 << (step % 12)
            for model in self.MODELS:
                self.client.infer(model, [self.input(region, [1, size])],
                                  outputs=[self.output(region, 4 * size, 1 << 15)])
                np.testing.assert_array_equal(
                    region.read(np.float32, [size], 1 << 15), np.arange(size, dtype=np.float32))

    def test_empty_tensor(self):
        region = self.region(64)
        for model in ("echo", "isolated"):
            result = self.client.infer(
                model, [self.input(region, [1, 0], size=0)], outputs=[self.output(region, 0)])
            self.assertEqual(self.entry(result), ("FP32", [1, 0]))

    def test_output_that_does_not_fit(self):
        region = self.region(64)
        text = ("shared memory size specified with the request for output 'OUTPUT0' (7 bytes) should be at least 8 "
                "bytes to hold the results")
        for model in self.MODELS:
            with self.subTest(model), self.refused(500, text):
                self.client.infer(model, [self.input(region, [1, 2])], outputs=[self.output(region, 7)])

    def test_wrong_ranges(self):
        region = self.region(64)
        sizes = f"Invalid offset + byte size for shared memory region: '{region.name}'"
        offsets = f"Invalid offset for shared memory region: '{region.name}'"
        for size, offset, text in ((65, 0, sizes), (8, 57, sizes), (1 << 40, 0, sizes), ((1 << 63) - 1, 1, sizes),
                                   (8, 64, offsets), (8, 1 << 40, offsets), (8, (1 << 63) - 1, offsets)):
            with self.subTest(size=size, offset=offset):
                with self.refused(400, text):
                    self.client.infer("echo", [self.input(region, [1, 2], size=size, offset=offset)])
                with self.refused(400, text):
                    self.client.infer("echo", [self.input(region, [1, 2])],
                                      outputs=[self.output(region, size, offset)])

    def test_size_differs_from_the_shape(self):
        region = self.region(64)
        with self.refused(400, "input byte size mismatch for input 'INPUT0' for model 'echo'. Expected 8, got 12"):
            self.client.infer("echo", [self.input(region, [1, 2], size=12)])

    def test_unknown_region(self):
        region = self.region(64)
        text = "Unable to find shared memory region: 'absent'"
        with self.refused(404, text):
            self.client.infer("echo", [self.input("absent", [1, 2])])
        with self.refused(404, text):
            self.client.infer("echo", [self.input(region, [1, 2])], outputs=[self.output("absent", 8)])

    def test_unregistered_region(self):
        region = self.region(64)
        region.write(np.ones(2, np.float32))
        self.client.infer("isolated", [self.input(region, [1, 2])])
        self.client.unregister_system_shared_memory(region.name)
        with self.refused(404, f"Unable to find shared memory region: '{region.name}'"):
            self.client.infer("isolated", [self.input(region, [1, 2])])
        self.client.register_system_shared_memory(region.name, "/" + region.name, 32, 32)
        result = self.client.infer("isolated", [self.input(region, [1, 2])])
        self.assertEqual(result.as_numpy("OUTPUT0").tolist(), [[0, 0]])


class Http(Infer, Protocol):
    MODULE = http
    STATUS = {code: str(code) for code in (400, 404, 500)}


class Grpc(Infer, Protocol):
    MODULE = grpc
    STATUS = {400: "StatusCode.INVALID_ARGUMENT", 404: "StatusCode.NOT_FOUND", 500: "StatusCode.INTERNAL"}

    def test_stream(self):
        region, mailbox = self.region(64), checks.Mailbox()
        region.write(np.array([[1, 2]], np.float32))
        self.client.start_stream(lambda result, error: mailbox.put(result, error))
        self.addCleanup(self.client.stop_stream)
        for model in ("echo", "isolated"):
            self.client.async_stream_infer(
                model, [self.input(region, [1, 2])], outputs=[self.output(region, 8, 32)])
            [(result, error)] = mailbox.take(1)
            self.assertIsNone(error)
            self.entry(result)
            np.testing.assert_array_equal(region.read(np.float32, [1, 2], 32), [[1, 2]])
            region.write(np.zeros(2, np.float32), 32)


if __name__ == "__main__":
    checks.run()

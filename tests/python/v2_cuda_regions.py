"""Tensors in GPU memory of a fake CUDA driver, with the v2 client over HTTP and gRPC, and v1 over plain HTTP.

The server is that of tests/wire/cuda_regions.rs; `--fake` is its driver library, which this process uses as well. A test double:
what passes here is no result on a GPU.
"""

import base64
import ctypes
import http.client
import os
import sys
import unittest

import numpy as np
import tritonclient.grpc
import tritonclient.http

import checks
import v2_checks

SIZE = 4096


def argument(name, default=""):
    if name not in sys.argv:
        return default
    at = sys.argv.index(name)
    value = sys.argv.pop(at + 1)
    sys.argv.pop(at)
    return value


FAKE = argument("--fake")
# OUTPUT0 = INPUT0.
MODELS = [model for model in argument("--models").split(",") if model]
# OUTPUT0 = INPUT0 + INPUT1.
SUMS = argument("--sums")


def load():
    """The driver, with the context of the first device current."""
    cuda, device, context = ctypes.CDLL(FAKE), ctypes.c_int(), ctypes.c_void_p()
    for result in (
        cuda.cuInit(0),
        cuda.cuDeviceGet(ctypes.byref(device), 0),
        cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device),
        cuda.cuCtxSetCurrent(context),
    ):
        assert result == 0, result
    return cuda


CUDA = load()


class Memory:
    """GPU memory of this process."""

    def __init__(self, size=SIZE):
        address, self.handle, self.size = ctypes.c_uint64(), bytes(64), size
        assert CUDA.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(size)) == 0
        self.address = address.value
        handle = (ctypes.c_char * 64)()
        assert CUDA.cuIpcGetMemHandle(handle, address) == 0
        self.handle = handle.raw

    def copy(self, to, source, size):
        stream = ctypes.c_void_p()
        assert CUDA.cuMemcpyAsync(ctypes.c_uint64(to), ctypes.c_uint64(source), ctypes.c_size_t(size), stream) == 0
        assert CUDA.cuStreamSynchronize(stream) == 0

    def write(self, values):
        self.copy(self.address, values.ctypes.data, values.nbytes)

    def read(self, count):
        values = np.zeros(count, np.float32)
        self.copy(values.ctypes.data, self.address, values.nbytes)
        return values


class Cuda(v2_checks.Protocol):
    def setUp(self):
        super().setUp()
        self.addCleanup(self.client.unregister_cuda_shared_memory)

    def register(self, name, memory, size=SIZE, device=0):
        self.client.register_cuda_shared_memory(name, base64.b64encode(memory.handle), device, size)

    def infer(self, model, count, offset=0):
        """Reads INPUT0 from region `in`."""
        tensor = self.MODULE.InferInput("INPUT0", [1, count], "FP32")
        tensor.set_shared_memory("in", 4 * count, offset)
        return self.client.infer(model, [tensor]).as_numpy("OUTPUT0")[0]

    def test_register_list_unregister(self):
        memory = Memory()
        self.register("r", memory)
        self.register("s", memory, 64)
        self.assertEqual(sorted(self.regions()), [("r", 0, SIZE), ("s", 0, 64)])
        self.assertEqual(self.regions("s"), [("s", 0, 64)])
        with self.failing("exists", "shared memory region 'r' already in manager"):
            self.register("r", memory)
        wrong = "The region named 'r' is registered as CUDA shared memory, not system shared memory"
        with self.failing(404, wrong):
            self.client.get_system_shared_memory_status("r")
        self.client.unregister_system_shared_memory("r")
        self.client.unregister_system_shared_memory()
        self.assertEqual(len(self.regions()), 2)
        self.client.unregister_cuda_shared_memory("r")
        self.client.unregister_cuda_shared_memory("unknown")
        self.assertEqual(self.regions(), [("s", 0, 64)])
        self.client.unregister_cuda_shared_memory()
        self.assertEqual(self.regions(), [])

    def test_refused_registrations(self):
        memory, failed = Memory(), "failed to register CUDA shared memory region 'r': "
        range_ = failed + f"the size must be from 1 to {SIZE} bytes, the size of the allocation"
        for size in (0, SIZE + 1, 2**64 - 1):
            with self.failing(400, range_):
                self.register("r", memory, size)
        with self.failing(400, failed + "GPU 7 is not available: this process sees 1 GPUs"):
            self.register("r", memory, device=7)
        with self.failing(400, "unexpected size for CUDA shared-memory handle, expecting 64 bytes"):
            self.client.register_cuda_shared_memory("r", base64.b64encode(bytes(63)), 0, SIZE)
        with self.assertRaises(Exception) as caught:
            self.client.register_cuda_shared_memory("r", base64.b64encode(bytes(64)), 0, SIZE)
        self.assertIn(failed + "GPU 0: cuIpcOpenMemHandle_v2 failed", str(caught.exception))
        self.assertEqual(self.regions(), [])

    def test_inputs_are_read_in_device_memory(self):
        memory = Memory()
        values = np.arange(SIZE // 4, dtype=np.float32)
        memory.write(values)
        self.register("in", memory)
        for model in MODELS:
            with self.subTest(model):
                np.testing.assert_array_equal(self.infer(model, 100, 40), values[10:110])
            with self.failing(400, "Invalid offset + byte size for shared memory region: 'in'"):
                self.infer(model, SIZE // 4, 4)
        self.client.unregister_cuda_shared_memory("in")
        for model in MODELS:
            with self.failing(404, "Unable to find shared memory region: 'in'"):
                self.infer(model, 1)

    def test_outputs_are_written_to_device_memory(self):
        given, taken = Memory(), Memory()
        values = np.arange(SIZE // 4, dtype=np.float32)
        given.write(values)
        self.register("in", given)
        self.register("out", taken)
        tensor = self.MODULE.InferInput("INPUT0", [1, 100], "FP32")
        tensor.set_shared_memory("in", 400, 40)
        output = self.MODULE.InferRequestedOutput("OUTPUT0")
        output.set_shared_memory("out", 400, 80)
        for model in MODELS:
            with self.subTest(model):
                taken.write(np.zeros(SIZE // 4, np.float32))
                self.client.infer(model, [tensor], outputs=[output])
                got = taken.read(SIZE // 4)
                np.testing.assert_array_equal(got[20:120], values[10:110])
                self.assertEqual((got[19], got[120]), (0, 0))

    @unittest.skipUnless(SUMS, "no model")
    def test_all_tensors_are_in_device_memory(self):
        values = np.arange(SIZE // 4, dtype=np.float32)
        for round_ in range(3):
            # Registered anew: the server and its child close the region of the last round.
            given, taken = Memory(), Memory()
            given.write(values + round_)
            taken.write(np.zeros(SIZE // 4, np.float32))
            self.register("in", given)
            self.register("out", taken)
            tensors = [self.MODULE.InferInput(name, [1, 100], "FP32") for name in ("INPUT0", "INPUT1")]
            for tensor, offset in zip(tensors, (0, 1024)):
                tensor.set_shared_memory("in", 400, offset)
            output = self.MODULE.InferRequestedOutput("OUTPUT0")
            output.set_shared_memory("out", 400, 512)
            for _ in range(5):
                self.client.infer(SUMS, tensors, outputs=[output])
            got = taken.read(SIZE // 4)
            np.testing.assert_array_equal(got[128:228], values[:100] + values[256:356] + 2 * round_)
            self.assertEqual((got[127], got[228]), (0, 0))
            self.client.unregister_cuda_shared_memory("in")
            self.client.unregister_cuda_shared_memory("out")


class Http(Cuda):
    MODULE = tritonclient.http
    STATUS = {400: "400", 404: "404", "exists": "400"}

    def regions(self, name=""):
        return [(r["name"], r["device_id"], r["byte_size"]) for r in self.client.get_cuda_shared_memory_status(name)]

    def test_v1(self):
        memory = Memory()

        def call(method, path, body=b""):
            connection = http.client.HTTPConnection(checks.HTTP)
            self.addCleanup(connection.close)
            connection.request(method, "/api/sharedmemorycontrol/" + path, body)
            response = connection.getresponse()
            return response.status, response.getheader("NV-Status"), response.read().decode()

        register = f"cudaregister/v1/{SIZE}/0"
        self.assertEqual(call("POST", register, memory.handle)[0], 200)
        self.assertIn("already in manager", call("POST", register, memory.handle)[1])
        text = call("GET", "status")[2]
        for part in ("cuda_shared_memory", 'name: "v1"', f"byte_size: {SIZE}"):
            self.assertIn(part, text)
        wrong = "unexpected size for CUDA shared-memory handle, expecting 64 bytes"
        for handle in (b"", bytes(63), bytes(65)):
            self.assertIn(wrong, call("POST", f"cudaregister/n/{SIZE}/0", handle)[1])
        self.assertEqual(self.regions(), [("v1", 0, SIZE)])
        self.assertEqual(call("POST", "unregister/v1")[0], 200)
        self.assertEqual(self.regions(), [])


class Grpc(Cuda):
    MODULE = tritonclient.grpc
    STATUS = {400: "StatusCode.INVALID_ARGUMENT", 404: "StatusCode.NOT_FOUND", "exists": "StatusCode.ALREADY_EXISTS"}

    def regions(self, name=""):
        regions = self.client.get_cuda_shared_memory_status(name).regions.values()
        return sorted((r.name, r.device_id, r.byte_size) for r in regions)


del Cuda

if __name__ == "__main__":
    checks.run()

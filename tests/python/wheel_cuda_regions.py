"""CUDA shared memory with our wheel: a fake driver (`--fake`), and without it the errors of a machine without a GPU."""

import sys

import numpy as np

import checks

FAKE = None
if "--fake" in sys.argv:
    at = sys.argv.index("--fake")
    FAKE = sys.argv[at + 1]
    del sys.argv[at : at + 2]

import tensorrtserver.cuda_shared_memory as cuda  # noqa: E402
import tensorrtserver.shared_memory as shm  # noqa: E402
import trtserver_client._cuda  # noqa: E402
from tensorrtserver.api import (  # noqa: E402
    InferContext,
    InferenceServerException,
    ProtocolType,
    SharedMemoryControlContext,
)

RAW = InferContext.ResultFormat.RAW
trtserver_client._cuda.LIBRARY = FAKE or "libcuda.so.none"


class Driver(checks.Case):
    def test_regions(self):
        if FAKE is None:
            self.skipTest("no driver")
        values = np.arange(16, dtype=np.float32)
        for url, protocol in ((checks.HTTP, ProtocolType.HTTP), (checks.GRPC, ProtocolType.GRPC)):
            control = SharedMemoryControlContext(url, protocol)
            source, target = (cuda.create_shared_memory_region(name, 64, 0) for name in ("source", "target"))
            cuda.set_shared_memory_region(source, [values[:8], values[8:]])
            control.cuda_register(source)
            control.cuda_register(target)
            regions = control.get_shared_memory_status().shared_memory_region
            self.assertEqual(sorted((r.name, r.byte_size) for r in regions), [("source", 64), ("target", 64)])
            context = InferContext(url, protocol, "echo")
            got = context.run({"INPUT0": (source, [16])}, {"OUTPUT0": (RAW, target)})
            np.testing.assert_array_equal(got["OUTPUT0"][0], values)
            with self.assertRaisesRegex(InferenceServerException, "use cuda_register"):
                control.register(source)
            with self.assertRaisesRegex(cuda.CudaSharedMemoryException, "64 bytes"):
                cuda.set_shared_memory_region(source, [values, values])
            control.unregister(source)
            control.unregister(target)
            for handle in (source, target):
                cuda.destroy_shared_memory_region(handle)
            with self.assertRaisesRegex(cuda.CudaSharedMemoryException, "destroyed"):
                cuda.destroy_shared_memory_region(source)
        with self.assertRaisesRegex(cuda.CudaSharedMemoryException, "unable to set device successfully"):
            cuda.create_shared_memory_region("none", 64, 99)

    def test_no_driver(self):
        if FAKE is not None:
            self.skipTest("there is a driver")
        with self.assertRaisesRegex(cuda.CudaSharedMemoryException, "no CUDA driver"):
            cuda.create_shared_memory_region("none", 64, 0)
        handle = shm.create_shared_memory_region("plain", "/wheel_plain", 64)
        self.addCleanup(shm.destroy_shared_memory_region, handle)
        with self.assertRaisesRegex(InferenceServerException, "use register"):
            SharedMemoryControlContext(checks.HTTP, ProtocolType.HTTP).cuda_register(handle)


if __name__ == "__main__":
    checks.run()

"""Registers system shared memory with the v2 client, over HTTP and gRPC, also what no client should register.

The server is that of tests/wire/shared_memory_regions.rs. No other client registers regions meanwhile.
"""

import base64
import itertools
import os
import socket

import numpy as np
import tritonclient.grpc
import tritonclient.http
import tritonclient.utils.shared_memory as shm
from tritonclient.grpc import service_pb2

import checks
import v2_checks

NUMBERS = itertools.count()
EXTENSIONS = list(v2_checks.EXTENSIONS)
EXTENSIONS.insert(EXTENSIONS.index("model_configuration") + 1, "system_shared_memory")


class Regions(v2_checks.Protocol):
    def setUp(self):
        super().setUp()
        self.addCleanup(self.client.unregister_system_shared_memory)

    def name(self):
        return f"trtserver-v2-{os.getpid()}-{next(NUMBERS)}"

    def object(self, size):
        """The path of a new object, and its key."""
        name = self.name()
        path = "/dev/shm/" + name
        with open(path, "xb") as file:
            file.truncate(size)
        self.addCleanup(lambda: os.path.exists(path) and os.unlink(path))
        return path, "/" + name

    def register(self, name, key, size, offset=0):
        self.client.register_system_shared_memory(name, key, size, offset)

    def status(self, name=""):
        return sorted(self.regions(name))

    def test_extension_is_listed(self):
        self.assertEqual(self.json(self.client.get_server_metadata)["extensions"], EXTENSIONS)

    def test_register_list_unregister(self):
        handle = shm.create_shared_memory_region("r", "/" + self.name(), 64)
        self.addCleanup(shm.destroy_shared_memory_region, handle)
        shm.set_shared_memory_region(handle, [np.arange(16, dtype=np.int32)])
        _, key = self.object(10_000)
        self.assertEqual(self.status(), [])
        self.register("r", handle._shm_key, 64)
        # Not a multiple of a page, and without the slash.
        self.register("s", key[1:], 5000, 5000)
        r, s = ("r", handle._shm_key, 0, 64), ("s", key[1:], 5000, 5000)
        self.assertEqual(self.status(), [r, s])
        self.assertEqual(self.status("s"), [s])
        with self.failing("exists", "shared memory region 'r' already in manager"):
            self.register("r", key, 1)
        with self.failing(404, "Unable to find system shared memory region: 'x'"):
            self.status("x")
        self.client.unregister_system_shared_memory("x")
        self.client.unregister_cuda_shared_memory("r")
        self.client.unregister_cuda_shared_memory()
        self.assertEqual(self.status(), [r, s])
        self.client.unregister_system_shared_memory("r")
        self.client.unregister_system_shared_memory("r")
        self.assertEqual(self.status(), [s])
        self.register("r", key, 1)
        self.client.unregister_system_shared_memory()
        self.assertEqual(self.status(), [])

    def test_no_gpu(self):
        text = "failed to register CUDA shared memory region: 'r', GPUs not supported"
        with self.failing(400, text):
            self.client.register_cuda_shared_memory("r", base64.b64encode(bytes(64)), 0, 64)
        _, key = self.object(1)
        self.register("r", key, 1)
        with self.failing(404, "The region named 'r' is registered as system shared memory, not CUDA shared memory"):
            self.client.get_cuda_shared_memory_status("r")
        with self.failing(404, "Unable to find cuda shared memory region: 'x'"):
            self.client.get_cuda_shared_memory_status("x")

    def test_ranges_outside_of_the_object(self):
        _, key = self.object(4096)
        for size, offset in ((0, 0), (4097, 0), (1, 4096), (4096, 1), (1, 2**64 - 1), (2**64 - 1, 1),
                             (2**64 - 1, 2**64 - 1), (4096, 2**64 - 4096), (2**63, 2**63)):
            with self.subTest(size=size, offset=offset):
                with self.failing(400, "failed to register shared memory region 'r': invalid args"):
                    self.register("r", key, size, offset)
        self.assertEqual(self.status(), [])

    def test_keys_that_are_no_objects(self):
        path, key = self.object(64)
        name = os.path.basename(path)
        made = {kind: f"{path}-{kind}" for kind in ("folder", "fifo", "link", "socket")}
        os.mkdir(made["folder"])
        self.addCleanup(os.rmdir, made["folder"])
        os.mkfifo(made["fifo"])
        os.symlink(path, made["link"])
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(made["socket"])
        for kind in ("fifo", "link", "socket"):
            self.addCleanup(os.unlink, made[kind])
        keys = ["/" + os.path.basename(file) for file in made.values()]
        keys += ["", "/", ".", "..", "/..", "/../null", "//" + name, key + "/", f"/./{name}", "/" + "n" * 256,
                 "/absent", "../../dev/shm/" + name, "/etc/passwd", "\0"]
        for bad in keys:
            with self.subTest(bad):
                with self.failing(500, f"Unable to open shared memory region: '{bad}'"):
                    self.register("r", bad, 64)
        reserved = "/triton_python_backend_shm_region_1"
        with self.failing(400, f"cannot register shared memory region 'r' - invalid shm key '{reserved}'"):
            self.register("r", reserved, 64)
        self.assertEqual(self.status(), [])

    def test_object_that_may_not_be_opened(self):
        path, key = self.object(64)
        if os.getuid() == 0:
            os.chown(path, 4242, 4242)
        for mode in (0o000, 0o400):
            os.chmod(path, mode)
            with self.failing(500, f"Unable to open shared memory region: '{key}'"):
                self.register("r", key, 64)

    def test_unlinked_and_replaced_object(self):
        path, key = self.object(64)
        self.register("r", key, 64)
        os.unlink(path)
        self.assertEqual(self.status(), [("r", key, 0, 64)])
        with self.failing(500, f"Unable to open shared memory region: '{key}'"):
            self.register("s", key, 64)
        with open(path, "xb") as file:
            file.truncate(8)
        self.register("s", key, 8)
        self.assertEqual(self.status(), [("r", key, 0, 64), ("s", key, 0, 8)])

    def test_two_thousand_regions(self):
        _, key = self.object(4096)
        for i in range(2000):
            self.register(f"r{i}", key, 1, i)
        regions = self.status()
        self.assertEqual(len(regions), 2000)
        self.assertIn(("r1999", key, 1999, 1), regions)
        for i in range(1000):
            self.client.unregister_system_shared_memory(f"r{i}")
        self.assertEqual(len(self.status()), 1000)
        self.client.unregister_system_shared_memory()
        self.assertEqual(self.status(), [])


class Http(Regions):
    MODULE = tritonclient.http
    STATUS = {400: "400", "exists": "400", 404: "404", 500: "500"}

    @staticmethod
    def json(call, *arguments):
        return call(*arguments)

    def regions(self, name):
        status = self.client.get_system_shared_memory_status(name)
        return [(r["name"], r["key"], r["offset"], r["byte_size"]) for r in status]

    def test_negative_numbers(self):
        _, key = self.object(64)
        for field, size, offset in (("byte_size", -1, 0), ("offset", 1, -1), ("offset", 1, 2**64)):
            text = f"Unable to parse '{field}': attempt to access JSON non-unsigned-integer as unsigned-integer"
            with self.failing(500, text):
                self.register("r", key, size, offset)


class Grpc(Regions):
    MODULE = tritonclient.grpc
    STATUS = {400: "StatusCode.INVALID_ARGUMENT", "exists": "StatusCode.ALREADY_EXISTS",
              404: "StatusCode.NOT_FOUND", 500: "StatusCode.INTERNAL"}

    @staticmethod
    def json(call, *arguments):
        return call(*arguments, as_json=True)

    def regions(self, name):
        status = self.client.get_system_shared_memory_status(name)
        assert isinstance(status, service_pb2.SystemSharedMemoryStatusResponse)
        for name, region in status.regions.items():
            self.assertEqual(name, region.name)
        return [(r.name, r.key, r.offset, r.byte_size) for r in status.regions.values()]

    def test_empty_name(self):
        _, key = self.object(64)
        with self.failing(400, "failed to register shared memory region '': the name is empty"):
            self.register("", key, 64)


del Regions

if __name__ == "__main__":
    checks.run()

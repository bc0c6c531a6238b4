"""Registers system shared memory with the v1 client, over HTTP and gRPC, and with the messages of older releases.

The server is that of tests/wire/shared_memory_regions.rs. No other client registers regions meanwhile.
"""

import itertools
import os

import grpc
import tensorrtserver.shared_memory as shm

import checks
from tensorrtserver.api import grpc_service_pb2 as messages
from trtis_client import (
    InferenceServerException,
    ProtocolType,
    ServerStatusContext,
    SharedMemoryControlContext,
    request_status_pb2 as codes,
    server_status_pb2,
)

NUMBERS = itertools.count()


def create(case, size):
    """A new object: the client's handle, and its name, which is that of its region, too."""
    name = f"trtserver-v1-{os.getpid()}-{next(NUMBERS)}"
    handle = shm.create_shared_memory_region(name, "/" + name, size)
    case.addCleanup(shm.destroy_shared_memory_region, handle)
    return handle, name


class Regions(checks.Case):
    PROTOCOL = None

    @property
    def url(self):
        return checks.HTTP if self.PROTOCOL == ProtocolType.HTTP else checks.GRPC

    def setUp(self):
        self.control = SharedMemoryControlContext(self.url, self.PROTOCOL)
        self.addCleanup(self.control.close)
        self.addCleanup(self.control.unregister_all)

    def status(self):
        regions = self.control.get_shared_memory_status().shared_memory_region
        system = lambda region: region.system_shared_memory
        return sorted((r.name, system(r).shared_memory_key, system(r).offset, r.byte_size) for r in regions)

    def test_register_list_unregister(self):
        self.assertEqual(self.status(), [])
        handles = [create(self, size) for size in (64, 5000)]
        for handle, _ in handles:
            self.control.register(handle)
        [(first, one), (second, two)] = handles
        self.assertEqual(self.status(), [(one, "/" + one, 0, 64), (two, "/" + two, 0, 5000)])
        with self.refusal(InferenceServerException, f"shared memory block '{one}' already in manager", whole=False):
            self.control.register(first)
        self.control.unregister(first)
        self.control.unregister(first)
        self.assertEqual(self.status(), [(two, "/" + two, 0, 5000)])
        self.control.register(first)
        self.control.unregister_all()
        self.assertEqual(self.status(), [])
        self.control.unregister(second)

    def test_object_is_gone(self):
        name = f"trtserver-v1-{os.getpid()}-{next(NUMBERS)}"
        handle = shm.create_shared_memory_region(name, "/" + name, 64)
        os.unlink("/dev/shm/" + name)
        with self.refusal(InferenceServerException, f"Unable to open shared memory region: '/{name}'", whole=False):
            self.control.register(handle)

    def test_object_is_too_short(self):
        handle, name = create(self, 64)
        os.truncate("/dev/shm/" + name, 63)
        with self.refusal(InferenceServerException, f"failed to register shared memory region '{name}'", whole=False):
            self.control.register(handle)
        self.assertEqual(self.status(), [])

    def test_calls_are_counted(self):
        server = ServerStatusContext(self.url, self.PROTOCOL)
        self.addCleanup(server.close)
        count = lambda: server.get_server_status().shm_control_stats.success.count
        before = count()
        self.control.unregister_all()
        self.status()
        self.assertEqual(count(), before + 2)
        self.assertGreater(server.get_server_status().shm_control_stats.success.total_time_ns, 0)


class Http(Regions):
    PROTOCOL = ProtocolType.HTTP


class Grpc(Regions):
    PROTOCOL = ProtocolType.GRPC


def varint(value):
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes(out + bytes([value]))


def field(number, value):
    """An encoded field: an integer, or text, or an encoded message."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    value = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(value)) + value


class Releases(checks.Case):
    """The messages of v1.5 to v1.8, as bytes."""

    def setUp(self):
        channel = grpc.insecure_channel(checks.GRPC)
        self.addCleanup(channel.close)
        call = channel.unary_unary("/nvidia.inferenceserver.GRPCService/SharedMemoryControl")
        self.call = lambda message: messages.SharedMemoryControlResponse.FromString(call(message))
        _, self.name = create(self, 100)
        self.key = "/" + self.name
        self.addCleanup(self.send, field(3, b""))

    def send(self, message, code="SUCCESS", text=""):
        status = self.call(message).request_status
        self.assertEqual((codes.RequestStatusCode.Name(status.code), status.msg), (code, text))

    def listed(self):
        # The list is at 2 of a message that declares it at 1.
        sent = self.call(field(4, b"")).shared_memory_status
        declared = [(r.name, r.system_shared_memory.offset, r.byte_size) for r in sent.shared_memory_region]
        status = server_status_pb2.SharedMemoryStatus.FromString(sent.SerializeToString())
        actual = [(r.name, r.system_shared_memory.offset, r.byte_size) for r in status.shared_memory_region]
        self.assertEqual(declared, actual)
        return actual

    def test_register_and_unregister(self):
        name, key = field(1, self.name), self.key
        region = name + field(2, key) + field(3, 36) + field(4, 64)
        old = field(2, region)
        releases = {
            "v1.5": (field(1, 1) + old, field(2, name)),
            "v1.6": (old, field(1, 1) + field(2, name)),
            "v1.7": (field(1, name + field(2, field(2, key)) + field(4, 36) + field(5, 64)), field(2, name)),
            "v1.8": (field(1, name + field(2, field(1, key) + field(2, 36)) + field(4, 64)), field(2, name)),
        }
        for release, (register, unregister) in releases.items():
            with self.subTest(release):
                self.send(register)
                self.assertEqual(self.listed(), [(self.name, 36, 64)])
                text = f"shared memory block '{self.name}' already in manager"
                self.send(register, "ALREADY_EXISTS", text)
                self.send(unregister)
                self.assertEqual(self.listed(), [])
                self.send(unregister)

    def test_unregister_all(self):
        for unregister_all in (field(1, 2), field(3, b"")):
            self.send(field(1, field(1, self.name) + field(2, field(1, self.key)) + field(4, 1)))
            self.assertEqual(len(self.listed()), 1)
            self.send(unregister_all)
            self.assertEqual(self.listed(), [])

    def test_refused_requests(self):
        name = field(1, self.name)
        self.send(b"", "UNKNOWN", "unknown sharedmemorycontrol request type")
        text = f"failed to register shared memory region: '{self.name}', improperly formed request."
        self.send(field(1, name), "INVALID_ARG", text)
        text = f"failed to register CUDA shared memory region: '{self.name}', GPUs not supported"
        self.send(field(1, name + field(3, field(1, bytes(64)))), "INVALID_ARG", text)
        text = f"failed to register shared memory region '{self.name}': invalid args"
        for offset, size in ((0, 101), (100, 1), (0, 0), (2**64 - 1, 1), (2**64 - 1, 2**64 - 1), (1, 2**64 - 1)):
            identifier = field(1, self.key) + field(2, offset)
            self.send(field(1, name + field(2, identifier) + field(4, size)), "INVALID_ARG", text)
        with self.assertRaises(grpc.RpcError) as caught:
            self.call(field(2, b"\x0a\x01\xff"))
        self.assertEqual(caught.exception.code(), grpc.StatusCode.INTERNAL)
        self.assertEqual(self.listed(), [])


del Regions

if __name__ == "__main__":
    checks.run()

"""Servers that do not answer as they should: our wheel raises an error that names the server, within its deadline."""

import contextlib
import gc
import socket
import threading

import numpy as np

import checks
from tensorrtserver.api import InferContext, InferenceServerException, ProtocolType, ServerHealthContext
from tensorrtserver.api import ServerStatusContext
from trtserver_client import Client, ConnectionFailed, DeadlineExceeded, InferenceError
from trtserver_client._library import library

VALUES = {"INPUT0": np.ones((1, 2), np.float32)}


def http(body, headers=(), length=None):
    """A response with this body."""
    lines = ["HTTP/1.1 200 OK", f"Content-Length: {len(body) if length is None else length}", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def binary(json, data):
    return http(json.encode() + data, [f"Inference-Header-Content-Length: {len(json)}"])


def output(shape, size):
    return ('{"model_name":"m","model_version":"1","outputs":[{"name":"OUTPUT0","datatype":"FP32","shape":%s,'
            '"parameters":{"binary_data_size":%d}}]}' % (shape, size))


RESPONSES = {
    "closed at once": b"",
    "garbage": b"\x00\xff\x17garbage\r\n\r\n",
    "HTML": http(b"<html><body>It works!</body></html>", ["Content-Type: text/html"]),
    "cut off": http(b"{}", length=1000),
    "endless header": b"HTTP/1.1 200 OK\r\n" + b"X: " + b"y" * 300_000,
    "wrong length of JSON": http(b"{}", ["Inference-Header-Content-Length: 99"]),
    "more bytes than there are": binary(output("[1,2]", 800), bytes(8)),
    "shape larger than data": binary(output("[1,200]", 8), bytes(8)),
    "negative shape": binary(output("[-1,2]", 8), bytes(8)),
    "overflowing shape": binary(output("[4611686018427387904,4]", 8), bytes(8)),
    "huge length": http(b"{}", length=2**62),
}


@contextlib.contextmanager
def server(response):
    """Reads one request of each connection, sends this response and closes. None: never responds."""
    listener = socket.create_server(("127.0.0.1", 0))
    open_ones = []

    def serve():
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            open_ones.append(connection)
            if response is None:
                continue
            try:
                connection.recv(1 << 16)
                connection.sendall(response)
                connection.shutdown(socket.SHUT_WR)
            except OSError:
                pass

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield "127.0.0.1:%d" % listener.getsockname()[1]
    finally:
        # Wakes the accept.
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join()
        for connection in open_ones:
            connection.close()


class BadServers(checks.Case):
    def fails(self, url, kind=InferenceError, deadline=checks.TIMEOUT):
        with Client(url, deadline=deadline) as client:
            with self.assertRaises(kind) as caught:
                client.infer("m", VALUES)["OUTPUT0"]
        return caught.exception

    def test_v2(self):
        for title, response in RESPONSES.items():
            for scheme in ("http", "grpc"):
                with self.subTest(title, scheme=scheme), server(response) as address:
                    error = self.fails(f"{scheme}://{address}")
                    self.assertTrue(error.message)

    def test_v2_control(self):
        for title, response in RESPONSES.items():
            if title == "wrong length of JSON":
                # That header means nothing to these calls.
                continue
            with self.subTest(title), server(response) as address, Client(address) as client:
                for call in (client.server_metadata, client.statistics, lambda: client.model_metadata("m")):
                    with self.assertRaises(InferenceError):
                        call()

    def test_v1(self):
        for title, response in RESPONSES.items():
            for protocol in (ProtocolType.HTTP, ProtocolType.GRPC):
                with self.subTest(title, protocol=protocol), server(response) as address:
                    with self.assertRaises(InferenceServerException) as caught:
                        InferContext(address, protocol, "a-model")
                    self.assertIn(address, caught.exception.message())
                    self.assertIn("a-model", caught.exception.message())
                    with self.assertRaises(InferenceServerException) as caught:
                        ServerStatusContext(address, protocol).get_server_status()
                    self.assertIn(address, caught.exception.message())

    def test_silent_server(self):
        with server(None) as address:
            for scheme in ("http", "grpc"):
                error = self.fails(f"{scheme}://{address}", DeadlineExceeded, 0.2)
                self.assertIn(address, str(error))

    def test_refused_connection(self):
        with server(b"") as address:
            pass
        for scheme in ("http", "grpc"):
            self.assertIn(address, str(self.fails(f"{scheme}://{address}", ConnectionFailed)))
        for protocol in (ProtocolType.HTTP, ProtocolType.GRPC):
            with self.assertRaisesRegex(InferenceServerException, f"client failed: .*://{address}/"):
                ServerHealthContext(address, protocol).is_live()

    def test_wrong_addresses(self):
        for url in ("", "http://", "no such host.invalid:80", "127.0.0.1:99999", "ftp://127.0.0.1:1", "http://[::1"):
            with self.subTest(url), self.assertRaises(InferenceError) as caught:
                Client(url, deadline=5).is_live()
            self.assertTrue(str(caught.exception))

    def test_server_that_ends_midway_through_a_stream(self):
        """A proxy cuts the connection after the first response."""
        host, port = checks.GRPC.rsplit(":", 1)
        listener = socket.create_server(("127.0.0.1", 0))
        ends = []

        def copy(source, target):
            with contextlib.suppress(OSError):
                while data := source.recv(1 << 16):
                    target.sendall(data)

        def proxy():
            near, _ = listener.accept()
            far = socket.create_connection((host, int(port)))
            ends.extend((near, far))
            for pair in ((near, far), (far, near)):
                threading.Thread(target=copy, args=pair, daemon=True).start()

        thread = threading.Thread(target=proxy)
        thread.start()
        address = "127.0.0.1:%d" % listener.getsockname()[1]
        with Client(f"grpc://{address}", deadline=checks.TIMEOUT) as client, client.stream() as stream:
            stream.send("echo", VALUES)
            self.assertEqual(stream.receive()["OUTPUT0"].tolist(), [[1, 1]])
            thread.join()
            for end in ends:
                end.shutdown(socket.SHUT_RDWR)
                end.close()
            with self.assertRaises(InferenceError) as caught:
                for _ in stream:
                    pass
            self.assertIn(address, str(caught.exception))
        listener.close()


def tearDownModule():
    """Every client, context, stream and result was released."""
    gc.collect()
    assert library.live_handles() == 0, library.live_handles()


if __name__ == "__main__":
    checks.run()

"""The v2 clients over TLS, against the model `echo`, and a health probe as grpc_health_probe makes it.

    v2_tls.py … --files CA CERTIFICATE KEY [--mutual]

With --mutual the server wants the client's certificate.
"""

import asyncio
import ssl
import sys
import unittest

import grpc as grpcio
import numpy as np
import tritonclient.grpc as grpc
import tritonclient.grpc.aio as grpc_aio
import tritonclient.http as http
import tritonclient.http.aio as http_aio

at = sys.argv.index("--files")
CA, CERTIFICATE, KEY = sys.argv[at + 1:at + 4]
del sys.argv[at:at + 4]
MUTUAL = "--mutual" in sys.argv
if MUTUAL:
    sys.argv.remove("--mutual")

import checks  # noqa: E402

VALUES = np.array([[1.5, -2.0]], np.float32)
LARGE = np.arange(1 << 20, dtype=np.float32).reshape(1, -1)


def contents(name):
    with open(name, "rb") as file:
        return file.read()


def request(module, values=VALUES):
    tensor = module.InferInput("INPUT0", values.shape, "FP32")
    tensor.set_data_from_numpy(values)
    return [tensor]


def http_client(shows=MUTUAL):
    options = {"ca_certs": CA}
    if shows:
        options |= {"certfile": CERTIFICATE, "keyfile": KEY}
    return http.InferenceServerClient(checks.HTTP, ssl=True, ssl_options=options)


def grpc_settings(shows=MUTUAL):
    settings = {"ssl": True, "root_certificates": CA}
    if shows:
        settings |= {"certificate_chain": CERTIFICATE, "private_key": KEY}
    return settings


class Http(checks.Case):
    def test_blocking_client(self):
        with http_client() as client:
            self.assertTrue(client.is_server_ready())
            self.assertEqual(client.get_model_metadata("echo")["name"], "echo")
            for values in (VALUES, LARGE, VALUES):
                result = client.infer("echo", request(http, values))
                np.testing.assert_array_equal(result.as_numpy("OUTPUT0"), values)
            for compression in ("gzip", "deflate"):
                result = client.infer("echo", request(http), request_compression_algorithm=compression)
                np.testing.assert_array_equal(result.as_numpy("OUTPUT0"), VALUES)
            calls = [client.async_infer("echo", request(http)) for _ in range(10)]
            for call in calls:
                np.testing.assert_array_equal(call.get_result().as_numpy("OUTPUT0"), VALUES)

    def test_asyncio_client(self):
        async def infer():
            context = ssl.create_default_context(cafile=CA)
            if MUTUAL:
                context.load_cert_chain(CERTIFICATE, KEY)
            async with http_aio.InferenceServerClient(checks.HTTP, ssl=True, ssl_context=context) as client:
                return await client.infer("echo", request(http_aio))

        np.testing.assert_array_equal(asyncio.run(infer()).as_numpy("OUTPUT0"), VALUES)

    def test_refusals(self):
        with self.assertRaises(Exception), http.InferenceServerClient(checks.HTTP) as plain:
            plain.is_server_live()
        if MUTUAL:
            with self.assertRaises(Exception), http_client(shows=False) as unknown:
                unknown.is_server_live()


class Grpc(checks.Case):
    def test_blocking_client(self):
        with grpc.InferenceServerClient(checks.GRPC, **grpc_settings()) as client:
            self.assertTrue(client.is_server_ready())
            self.assertEqual(client.get_model_metadata("echo").name, "echo")
            for values in (VALUES, LARGE, VALUES):
                result = client.infer("echo", request(grpc, values))
                np.testing.assert_array_equal(result.as_numpy("OUTPUT0"), values)

    def test_stream(self):
        mailbox = checks.Mailbox()
        with grpc.InferenceServerClient(checks.GRPC, **grpc_settings()) as client:
            client.start_stream(lambda result, error: mailbox.put(result, error))
            for number in range(5):
                client.async_stream_infer("echo", request(grpc), request_id=str(number))
            for number, (result, error) in enumerate(mailbox.take(5)):
                self.assertIsNone(error)
                self.assertEqual(result.get_response().id, str(number))
            client.stop_stream()

    def test_asyncio_client(self):
        async def infer():
            async with grpc_aio.InferenceServerClient(checks.GRPC, **grpc_settings()) as client:
                return await client.infer("echo", request(grpc_aio))

        np.testing.assert_array_equal(asyncio.run(infer()).as_numpy("OUTPUT0"), VALUES)

    def test_health_probe(self):
        key, chain = (contents(KEY), contents(CERTIFICATE)) if MUTUAL else (None, None)
        credentials = grpcio.ssl_channel_credentials(contents(CA), key, chain)
        with grpcio.secure_channel(checks.GRPC, credentials) as channel:
            check = channel.unary_unary("/grpc.health.v1.Health/Check")
            # HealthCheckResponse { status: SERVING }
            self.assertEqual(check(b"", timeout=checks.TIMEOUT), b"\x08\x01")

    def test_refusals(self):
        with grpc.InferenceServerClient(checks.GRPC) as plain, self.assertRaises(grpc.InferenceServerException):
            plain.get_server_metadata(client_timeout=checks.TIMEOUT)
        if MUTUAL:
            unknown = grpc.InferenceServerClient(checks.GRPC, **grpc_settings(shows=False))
            with unknown, self.assertRaises(grpc.InferenceServerException):
                unknown.get_server_metadata(client_timeout=checks.TIMEOUT)


if __name__ == "__main__":
    checks.run()

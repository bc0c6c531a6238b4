"""The v2 clients for gRPC on a Unix socket, against the model `echo`."""

import asyncio
import unittest

import numpy as np
import tritonclient.grpc as grpc
import tritonclient.grpc.aio as aio

import checks

VALUES = np.array([[1.5, -2.0]], np.float32)


def request(module):
    tensor = module.InferInput("INPUT0", VALUES.shape, "FP32")
    tensor.set_data_from_numpy(VALUES)
    return [tensor]


class UnixSocket(checks.Case):
    def test_blocking_client(self):
        self.assertTrue(checks.GRPC.startswith("unix:"))
        with grpc.InferenceServerClient(checks.GRPC) as client:
            self.assertTrue(client.is_server_ready())
            self.assertTrue(client.is_model_ready("echo"))
            self.assertEqual(client.get_model_metadata("echo").name, "echo")
            for _ in range(3):
                result = client.infer("echo", request(grpc))
                np.testing.assert_array_equal(result.as_numpy("OUTPUT0"), VALUES)

    def test_stream(self):
        mailbox = checks.Mailbox()
        with grpc.InferenceServerClient(checks.GRPC) as client:
            client.start_stream(lambda result, error: mailbox.put(result, error))
            for number in range(5):
                client.async_stream_infer("echo", request(grpc), request_id=str(number))
            for number, (result, error) in enumerate(mailbox.take(5)):
                self.assertIsNone(error)
                self.assertEqual(result.get_response().id, str(number))
            client.stop_stream()

    def test_asyncio_client(self):
        async def infer():
            async with aio.InferenceServerClient(checks.GRPC) as client:
                return await client.infer("echo", request(aio))

        result = asyncio.run(infer())
        np.testing.assert_array_equal(result.as_numpy("OUTPUT0"), VALUES)


if __name__ == "__main__":
    checks.run()

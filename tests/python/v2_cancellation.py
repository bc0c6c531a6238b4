"""Cancellation with the v2 client: deadline, cancel, disconnect, over HTTP and gRPC."""

import asyncio

import numpy as np
import tritonclient.grpc as grpc
import tritonclient.grpc.aio as grpc_aio
import tritonclient.http as http
import tritonclient.http.aio as http_aio
from tritonclient.utils import InferenceServerException

import cancellation
import checks


def inputs(module):
    tensor = module.InferInput("INPUT0", (1, 2), "FP32")
    tensor.set_data_from_numpy(np.ones((1, 2), np.float32))
    return [tensor]


class Grpc(cancellation.Case):
    def setUp(self):
        super().setUp()
        self.client = grpc.InferenceServerClient(checks.GRPC)
        self.addCleanup(self.client.close)
        self.mailbox = checks.Mailbox()

    def deliver(self, result, error):
        self.mailbox.put(result, error)

    def test_deadline(self):
        with self.assertRaises(InferenceServerException) as caught:
            self.client.infer(self.MODEL, inputs(grpc), client_timeout=0.1)
        self.assertEqual(caught.exception.status(), "StatusCode.DEADLINE_EXCEEDED")
        self.all_gone(1)

    def test_deadline_of_asynchronous_call(self):
        self.client.async_infer(self.MODEL, inputs(grpc), self.deliver, client_timeout=0.1)
        [(_, error)] = self.mailbox.take(1)
        self.assertEqual(error.status(), "StatusCode.DEADLINE_EXCEEDED")
        self.all_gone(1)

    def test_cancelled_calls(self):
        calls = [self.client.async_infer(self.MODEL, inputs(grpc), self.deliver) for _ in range(5)]
        # One is executed, the others wait.
        self.until("four wait", lambda: self.waiting() == 4)
        for call in reversed(calls):
            call.cancel()
        for _, error in self.mailbox.take(5):
            self.assertEqual((error.status(), error.message()),
                             ("StatusCode.CANCELLED", "Locally cancelled by application!"))
        self.all_gone(5)

    def test_stopped_stream(self):
        self.client.start_stream(self.deliver)
        for _ in range(5):
            self.client.async_stream_infer(self.MODEL, inputs(grpc))
        self.until("four wait", lambda: self.waiting() == 4)
        self.client.stop_stream(cancel_requests=True)
        [(_, error)] = self.mailbox.take(1)
        self.assertEqual(error.status(), "StatusCode.CANCELLED")
        self.all_gone(5)

    def test_stream_deadline(self):
        self.client.start_stream(self.deliver, stream_timeout=1)
        for _ in range(3):
            self.client.async_stream_infer(self.MODEL, inputs(grpc))
        [(_, error)] = self.mailbox.take(1)
        self.assertEqual(error.status(), "StatusCode.DEADLINE_EXCEEDED")
        self.client.stop_stream()
        self.all_gone(3)

    def test_met_deadline(self):
        result = self.client.infer("echo", inputs(grpc), client_timeout=checks.TIMEOUT)
        self.assertEqual(result.as_numpy("OUTPUT0").tolist(), [[1, 1]])


class Http(cancellation.Case):
    def test_client_timeout(self):
        client = http.InferenceServerClient(checks.HTTP, network_timeout=0.2)
        self.addCleanup(client.close)
        with self.assertRaises(Exception):
            client.infer(self.MODEL, inputs(http))
        self.all_gone(1)

    def test_closed_client(self):
        client = http.InferenceServerClient(checks.HTTP, concurrency=2, network_timeout=0.2)
        calls = [client.async_infer(self.MODEL, inputs(http)) for _ in range(2)]
        for call in calls:
            with self.assertRaises(Exception):
                call.get_result()
        client.close()
        self.all_gone(2)


class Asynchronous(cancellation.Case):
    def cancelled(self, module, url):
        async def work():
            async with module.InferenceServerClient(url) as client:
                send = lambda: asyncio.create_task(client.infer(self.MODEL, inputs(module)))
                tasks = [send(), send()]
                await asyncio.to_thread(self.until, "one waits", lambda: self.waiting() == 1)
                for task in tasks:
                    task.cancel()
                    with self.assertRaises(asyncio.CancelledError):
                        await task
                # The client is still open.
                await asyncio.to_thread(self.all_gone, 2)
        asyncio.run(work())

    def test_cancelled_task_over_grpc(self):
        self.cancelled(grpc_aio, checks.GRPC)

    def test_cancelled_task_over_http(self):
        self.cancelled(http_aio, checks.HTTP)

    def test_cancelled_stream(self):
        async def work():
            async with grpc_aio.InferenceServerClient(checks.GRPC) as client:
                async def requests():
                    for _ in range(3):
                        yield {"model_name": self.MODEL, "inputs": inputs(grpc_aio)}
                    await asyncio.sleep(checks.TIMEOUT)
                responses = client.stream_infer(requests())
                pending = asyncio.create_task(anext(responses))
                await asyncio.to_thread(self.until, "two wait", lambda: self.waiting() == 2)
                responses.cancel()
                with self.assertRaises((InferenceServerException, asyncio.CancelledError)):
                    await pending
                await asyncio.to_thread(self.all_gone, 3)
        asyncio.run(work())


if __name__ == "__main__":
    checks.run()

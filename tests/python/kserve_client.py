"""KServe's own client over HTTP and gRPC: every call, in JSON and binary. Against the models `echo` and `broken`."""

import unittest

import clients  # Must come before the packages that it loads without their servers.
import grpc
import httpx
import numpy as np
from kserve.errors import UnsupportedProtocol
from kserve.inference_client import InferenceGRPCClient, InferenceRESTClient, RESTConfig
from kserve.protocol.infer_type import InferInput, InferRequest, RequestedOutput

import checks

VALUES = np.array([[1.5, -2.0, 3.25]], np.float32)


def request(binary, outputs=None, model="echo"):
    tensor = InferInput("INPUT0", list(VALUES.shape), "FP32")
    tensor.set_data_from_numpy(VALUES, binary_data=binary)
    return InferRequest(model, [tensor], request_id="7", request_outputs=outputs)


class Echo:
    def check_response(self, response):
        self.assertEqual((response.id, response.model_name), ("7", "echo"))
        output = response.get_output_by_name("OUTPUT0")
        self.assertEqual((output.datatype, list(output.shape)), ("FP32", [1, 3]))
        np.testing.assert_array_equal(output.as_numpy(), VALUES)


class Rest(Echo, checks.Case, unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self):
        self.url = f"http://{checks.HTTP}"
        self.client = await self.enterAsyncContext(InferenceRESTClient(RESTConfig(protocol="v2")))

    async def test_health(self):
        self.assertIs(await self.client.is_server_live(self.url), True)
        self.assertIs(await self.client.is_model_ready(self.url, "echo"), True)
        for name in ("broken", "absent"):
            self.assertIs(await self.client.is_model_ready(self.url, name), False)
        # The server is not ready because of `broken`; this client raises an exception then.
        with self.assertRaises(httpx.HTTPStatusError) as caught:
            await self.client.is_server_ready(self.url)
        body = caught.exception.response.json()
        self.assertIs(body["ready"], False)
        self.assertIn("model 'broken' version 1 is UNAVAILABLE", body["reason"])

    async def test_infer(self):
        binary = [RequestedOutput("OUTPUT0", {"binary_data": True})]
        text = [RequestedOutput("OUTPUT0", {"binary_data": False})]
        for inputs in (False, True):
            for outputs in (None, text, binary):
                with self.subTest(inputs=inputs, outputs=outputs):
                    headers = {}
                    response = await self.client.infer(
                        self.url, request(inputs, outputs), model_name="echo", response_headers=headers)
                    self.check_response(response)
                    length = headers.get("inference-header-content-length")
                    self.assertEqual(length is not None, outputs is binary)

    async def test_errors(self):
        with self.assertRaises(httpx.HTTPStatusError) as caught:
            await self.client.infer(self.url, request(False, model="absent"), model_name="absent")
        self.assertEqual(caught.exception.response.status_code, 404)
        self.assertIn("'absent' is not found", caught.exception.response.json()["error"])
        # The client itself refuses to explain with v2.
        with self.assertRaises(UnsupportedProtocol):
            await self.client.explain(self.url, "echo", {})


class Grpc(Echo, checks.Case, unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self):
        self.client = await self.enterAsyncContext(InferenceGRPCClient(checks.GRPC))

    async def test_health(self):
        self.assertIs(await self.client.is_server_live(), True)
        self.assertIs(await self.client.is_server_ready(), False)
        for name, ready in (("echo", True), ("broken", False), ("absent", False)):
            self.assertIs(await self.client.is_model_ready(name), ready, name)

    async def test_infer(self):
        for raw in (False, True):
            with self.subTest(raw=raw):
                self.check_response(await self.client.infer(request(raw)))

    async def test_errors(self):
        with self.assertRaises(grpc.RpcError) as caught:
            await self.client.infer(request(True, model="absent"))
        self.assertEqual(caught.exception.code(), grpc.StatusCode.NOT_FOUND)


if __name__ == "__main__":
    checks.run()

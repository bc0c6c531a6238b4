"""The v2 client over gRPC: unary, asynchronous, streams, and the plain stub."""

import time

import grpc
import numpy as np
import tritonclient.grpc as module
import tritonclient.grpc.aio as aio
from tritonclient.grpc import service_pb2, service_pb2_grpc
from tritonclient.utils import InferenceServerException

import checks
import v2_checks


def deliver_to(mailbox):
    return lambda result, error: mailbox.put(result, error)


class Grpc:
    MODULE = module
    STATUS = {400: "StatusCode.INVALID_ARGUMENT", 404: "StatusCode.NOT_FOUND", 500: "StatusCode.INTERNAL",
              501: "StatusCode.UNIMPLEMENTED", 503: "StatusCode.UNAVAILABLE"}

    @staticmethod
    def json(call, *arguments):
        return call(*arguments, as_json=True)

    @staticmethod
    def response(result):
        return result.get_response(as_json=True)


class Server(Grpc, v2_checks.Server):
    def test_log_settings(self):
        settings = self.client.get_log_settings(as_json=True)["settings"]
        self.assertLessEqual({"log_info", "log_warning", "log_error", "log_verbose_level", "log_format"},
                             set(settings))

    def test_standard_health_service(self):
        # One empty message each way: field 1 of the response is the status, 1 is SERVING.
        with grpc.insecure_channel(checks.GRPC) as channel:
            check = channel.unary_unary("/grpc.health.v1.Health/Check", request_serializer=bytes,
                                        response_deserializer=bytes)
            self.assertEqual(check(b""), b"\x08\x01")


class Infer(Grpc, v2_checks.Infer):
    def test_compression_in_both_directions(self):
        values = np.zeros((1, 50_000), np.float32)
        for kind in ("gzip", "deflate"):
            with self.subTest(kind):
                got = self.identity("identity_fp32", values, "FP32", compression_algorithm=kind)
                np.testing.assert_array_equal(got.as_numpy("OUTPUT0"), values)

    def test_concurrent_requests(self):
        mailbox = checks.Mailbox()
        for i in range(40):
            tensor = self.input("INPUT0", np.full((1, 3), i, np.float32), "FP32")
            self.client.async_infer("echo", [tensor], deliver_to(mailbox), request_id=str(i))
        responses = mailbox.take(40)
        for result, error in responses:
            self.assertIsNone(error)
            id = int(result.get_response().id)
            np.testing.assert_array_equal(result.as_numpy("OUTPUT0"), np.full((1, 3), id, np.float32))
        self.assertEqual(len({result.get_response().id for result, _ in responses}), 40)

    def test_deadline_cancels_the_request(self):
        # The model waits for the cancellation, and fails after ten seconds without it.
        with self.assertRaises(InferenceServerException):
            self.echo(parameters={"until_cancelled": True}, client_timeout=0.2)
        before = time.monotonic()
        self.echo()
        self.assertLess(time.monotonic() - before, 5)

    def test_deadline(self):
        with self.assertRaises(InferenceServerException) as caught:
            self.client.infer("slow", [self.fp32()], client_timeout=0.05)
        self.assertEqual(caught.exception.status(), "StatusCode.DEADLINE_EXCEEDED")
        self.echo()


class Stream(Grpc, v2_checks.Protocol):
    def setUp(self):
        super().setUp()
        self.mailbox = checks.Mailbox()
        self.client.start_stream(deliver_to(self.mailbox))

    def send(self, model, id, count=2, **more):
        tensor = self.input("INPUT0", np.full((1, count), int(id), np.float32), "FP32")
        self.client.async_stream_infer(model, [tensor], request_id=str(id), **more)

    def test_responses_are_in_order(self):
        for i in range(40):
            self.send("echo", i)
        responses = self.mailbox.take(40)
        self.assertEqual([result.get_response().id for result, _ in responses], [str(i) for i in range(40)])
        for i, (result, error) in enumerate(responses):
            self.assertIsNone(error)
            np.testing.assert_array_equal(result.as_numpy("OUTPUT0"), np.full((1, 2), i, np.float32))

    def test_order_is_kept_across_models(self):
        self.send("slow", 1)
        self.send("echo", 2)
        self.assertEqual([result.get_response().id for result, _ in self.mailbox.take(2)], ["1", "2"])

    def test_every_response_is_marked_final(self):
        self.send("echo", 1)
        [(result, _)] = self.mailbox.take(1)
        self.assertTrue(result.get_response().parameters["triton_final_response"].bool_param)

    def test_error_does_not_end_the_stream(self):
        self.send("absent", 1)
        self.send("fails", 2)
        self.send("echo", 3)
        responses = self.mailbox.take(3)
        self.assertEqual([error and error.message() for _, error in responses], [
            "Request for unknown model: 'absent' is not found", "the probe was told to fail", None])

    def test_half_close_waits_for_responses(self):
        self.send("slow", 1)
        self.client.stop_stream()
        [(result, error)] = self.mailbox.take(1)
        self.assertIsNone(error)
        self.assertEqual(result.get_response().id, "1")

    def test_cancelled_stream_cancels_its_requests(self):
        self.send("echo", 1, parameters={"until_cancelled": True})
        self.client.stop_stream(cancel_requests=True)
        before = time.monotonic()
        self.echo()
        self.assertLess(time.monotonic() - before, 5)

    def test_class_output(self):
        tensor = self.input("INPUT0", np.array([[1, 5, 2, 4, 3]], np.float32), "FP32")
        requested = module.InferRequestedOutput("OUTPUT0", class_count=1)
        self.client.async_stream_infer("classes", [tensor], outputs=[requested])
        [(result, error)] = self.mailbox.take(1)
        self.assertIsNone(error)
        self.assertEqual(result.as_numpy("OUTPUT0").tolist(), [[b"5.000000:1:green"]])

    def test_cancel(self):
        self.send("slow", 1)
        self.client.stop_stream(cancel_requests=True)
        self.client.start_stream(deliver_to(self.mailbox))
        # The next request succeeds, whatever the result of the cancelled one.
        self.send("echo", 2)
        while True:
            [(result, _)] = self.mailbox.take(1)
            if result is not None and result.get_response().id == "2":
                break


class Asynchronous(v2_checks.Asynchronous):
    AIO = aio

    def test_stream(self):
        async def work(client):
            async def requests():
                for i in range(10):
                    values = np.full((1, 2), i, np.float32)
                    yield {"model_name": "echo", "inputs": self.fp32(values), "request_id": str(i)}
            seen = []
            async for result, error in client.stream_infer(requests()):
                self.assertIsNone(error)
                seen.append(result.get_response().id)
                if len(seen) == 10:
                    break
            self.assertEqual(seen, [str(i) for i in range(10)])
        self.run_with_client(work)


class Stub(checks.Case):
    """Requests that the client's classes never send."""

    @classmethod
    def setUpClass(cls):
        cls.channel = grpc.insecure_channel(checks.GRPC)
        cls.stub = service_pb2_grpc.GRPCInferenceServiceStub(cls.channel)

    @classmethod
    def tearDownClass(cls):
        cls.channel.close()

    def request(self, model="echo", datatype="FP32", shape=(1, 2), raw=(), **contents):
        request = service_pb2.ModelInferRequest(model_name=model, raw_input_contents=list(raw))
        input = request.inputs.add(name="INPUT0", datatype=datatype, shape=shape)
        for field, values in contents.items():
            getattr(input.contents, field).extend(values)
        return request

    def refused(self, request, code, text):
        with self.assertRaises(grpc.RpcError) as caught:
            self.stub.ModelInfer(request, timeout=checks.TIMEOUT)
        self.assertEqual((caught.exception.code(), caught.exception.details()), (code, text))

    def test_typed_contents_in_raw_contents_out(self):
        for datatype, field, values, expected in (
                ("BOOL", "bool_contents", [True, False], b"\1\0"),
                ("INT8", "int_contents", [-1, 2], b"\xff\2"),
                ("INT16", "int_contents", [-1, 2], b"\xff\xff\2\0"),
                ("INT32", "int_contents", [-1, 2], np.array([-1, 2], np.int32).tobytes()),
                ("INT64", "int64_contents", [-1, 2], np.array([-1, 2], np.int64).tobytes()),
                ("UINT8", "uint_contents", [255, 2], b"\xff\2"),
                ("UINT16", "uint_contents", [65535, 2], b"\xff\xff\2\0"),
                ("UINT32", "uint_contents", [1, 2], np.array([1, 2], np.uint32).tobytes()),
                ("UINT64", "uint64_contents", [1, 2], np.array([1, 2], np.uint64).tobytes()),
                ("FP32", "fp32_contents", [1.5, 2], np.array([1.5, 2], np.float32).tobytes()),
                ("FP64", "fp64_contents", [1.5, 2], np.array([1.5, 2], np.float64).tobytes()),
                ("BYTES", "bytes_contents", [b"a", b""], b"\1\0\0\0a\0\0\0\0")):
            with self.subTest(datatype):
                model = "identity_" + ("string" if datatype == "BYTES" else datatype.lower())
                response = self.stub.ModelInfer(self.request(model, datatype, **{field: values}))
                self.assertEqual(list(response.raw_output_contents), [expected])
                self.assertFalse(response.outputs[0].HasField("contents"))
                self.assertEqual(list(response.outputs[0].shape), [1, 2])

    def test_errors(self):
        eight = bytes(8)
        invalid = grpc.StatusCode.INVALID_ARGUMENT
        id = "[request id: <id_unknown>] "
        cases = [
            (self.request(raw=[eight], fp32_contents=[1, 2]), invalid,
             "contents field must not be specified when using raw_input_contents for 'INPUT0' for model 'echo'"),
            (self.request(), invalid,
             "unable to find data for input tensor 'INPUT0' for model 'echo' in request."),
            (self.request(int_contents=[1, 2]), invalid,
             "unexpected explicit tensor data for input tensor 'INPUT0' for model 'echo' of type 'INT32', "
             "expected datatype 'FP32'"),
            (self.request(raw=[bytes(7)]), invalid,
             f"{id}input byte size mismatch for input 'INPUT0' for model 'echo'. Expected 8, got 7"),
            (self.request(raw=[eight], shape=(1, -2)), invalid,
             f"{id}All input dimensions should be specified for input 'INPUT0' for model 'echo', got [1,-2]"),
            (self.request(raw=[eight], shape=()), invalid,
             f"{id}input 'INPUT0' has no shape but model requires batch dimension for 'echo'"),
            (self.request("identity_string", "BYTES", (1, 2), [b"\1\0\0\0a"]), invalid,
             f"{id}expected 2 string elements for inference input 'INPUT0' for model 'identity_string', got 1"),
            (self.request("identity_string", "BYTES", (1, 1), [b"\1\0\0\0a" * 2]), invalid,
             f"{id}unexpected number of string elements 2 for inference input 'INPUT0' for model "
             "'identity_string', expecting 1"),
            (self.request("identity_string", "BYTES", (1, 1), [b"\1\0"]), invalid,
             f"{id}incomplete string length indicator for inference input 'INPUT0' for model 'identity_string', "
             "expecting 4 bytes but only 2 bytes available. Please make sure the string length indicator is in one "
             "buffer."),
        ]
        for request, code, text in cases:
            with self.subTest(text):
                self.refused(request, code, text)
        self.stub.ModelInfer(self.request(raw=[eight]))

    def test_truncated_string(self):
        for data in (b"\x09\0\0\0abc", b"\xff\xff\xff\xffabcd"):
            with self.assertRaises(grpc.RpcError) as caught:
                self.stub.ModelInfer(self.request("identity_string", "BYTES", (1, 1), [data]))
            self.assertEqual(caught.exception.code(), grpc.StatusCode.INVALID_ARGUMENT)
            self.assertIn("INPUT0", caught.exception.details())

    def test_sizes_beyond_memory(self):
        for shape in ((1, 2**62), (1, 2**63 - 1), (8, 2**61)):
            with self.subTest(shape=shape), self.assertRaises(grpc.RpcError) as caught:
                self.stub.ModelInfer(self.request(raw=[bytes(8)], shape=shape))
            self.assertEqual(caught.exception.code(), grpc.StatusCode.INVALID_ARGUMENT)

    def test_invalid_versions(self):
        request = self.request(raw=[bytes(8)])
        request.model_version = "-1"
        self.refused(request, grpc.StatusCode.INVALID_ARGUMENT, "failed to get model version from specified version "
                     "string '-1', version should be an integral value > 0")
        for text in ("abc", "", "1.0", "99999999999999999999"):
            request.model_version = text
            if text not in ("", "1.0"):
                with self.assertRaises(grpc.RpcError) as caught:
                    self.stub.ModelInfer(request)
                self.assertEqual(caught.exception.code(), grpc.StatusCode.INVALID_ARGUMENT)
                self.assertIn(f"failed to get model version from specified version string '{text}'",
                              caught.exception.details())
            else:
                self.stub.ModelInfer(request)

    def test_parameters_of_wrong_type(self):
        def with_parameter(key, **value):
            request = self.request(raw=[bytes(8)])
            for field, content in value.items():
                setattr(request.parameters[key], field, content)
            return request

        invalid = grpc.StatusCode.INVALID_ARGUMENT
        for request, text in (
                (with_parameter("sequence_id", bool_param=True),
                 "invalid value type for 'sequence_id' parameter, expected int64_param or string_param."),
                (with_parameter("sequence_start", int64_param=1),
                 "invalid value type for 'sequence_start' parameter, expected bool_param."),
                (with_parameter("priority", int64_param=-1),
                 "invalid value for 'priority', expected value >= 0."),
                (with_parameter("triton_secret", bool_param=True),
                 "parameter keys starting with 'triton_' are reserved for Triton usage. Only the following keys "
                 "starting with 'triton_' are allowed: triton_enable_empty_final_response"),
                (with_parameter("mine", uint64_param=1),
                 "invalid value type for 'mine' parameter, expected int64_param, bool_param, or string_param.")):
            with self.subTest(text):
                self.refused(request, invalid, text)
        self.stub.ModelInfer(with_parameter("triton_enable_empty_final_response", bool_param=False))

    def test_class_count_must_be_positive(self):
        request = self.request("classes", raw=[bytes(20)], shape=(1, 5))
        request.outputs.add(name="OUTPUT0").parameters["classification"].int64_param = 0
        self.refused(request, grpc.StatusCode.INVALID_ARGUMENT,
                     "invalid value for 'classification' parameter, expected >= 0")

    def test_repository_names_are_not_supported(self):
        with self.assertRaises(grpc.RpcError) as caught:
            self.stub.RepositoryIndex(service_pb2.RepositoryIndexRequest(repository_name="other"))
        self.assertEqual((caught.exception.code(), caught.exception.details()),
                         (grpc.StatusCode.UNIMPLEMENTED, "'repository_name' specification is not supported"))

    def test_invalid_protobuf(self):
        call = self.channel.unary_unary("/inference.GRPCInferenceService/ModelInfer",
                                        request_serializer=bytes, response_deserializer=bytes)
        with self.assertRaises(grpc.RpcError):
            call(b"\xff\xff\xff\xff not protobuf")
        self.assertTrue(self.stub.ServerLive(service_pb2.ServerLiveRequest()).live)

    def test_error_may_end_the_stream(self):
        responses = self.stub.ModelStreamInfer(iter([self.request("absent", raw=[bytes(8)])]),
                                             metadata=[("triton_grpc_error", "true")])
        with self.assertRaises(grpc.RpcError) as caught:
            list(responses)
        self.assertEqual(caught.exception.code(), grpc.StatusCode.NOT_FOUND)


if __name__ == "__main__":
    checks.run()

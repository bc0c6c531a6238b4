"""The v1 client over gRPC: unary, streams, and the plain stub."""

import queue

import grpc
import numpy as np

import checks
import v1_checks
from tensorrtserver.api import grpc_service_pb2_grpc
from trtis_client import ProtocolType, api_pb2, grpc_service_pb2 as messages, request_status_pb2 as codes


class Unary(v1_checks.Infer):
    PROTOCOL = ProtocolType.GRPC


class Streaming(v1_checks.Infer):
    PROTOCOL = ProtocolType.GRPC
    STREAMING = True


class Control(v1_checks.Control):
    PROTOCOL = ProtocolType.GRPC


def infer(model, data, version=-1, batch=1, id=0, dims=None, **header):
    """A request with one input; `data` is bytes."""
    input = api_pb2.InferRequestHeader.Input(name="INPUT0", dims=dims or [len(data) // 4 // max(batch, 1)])
    header = api_pb2.InferRequestHeader(
        id=id, batch_size=batch, input=[input], output=[api_pb2.InferRequestHeader.Output(name="OUTPUT0")], **header)
    return messages.InferRequest(model_name=model, model_version=version, meta_data=header, raw_input=[data])


class Stub(checks.Case):
    """Requests that the client's classes never send."""

    @classmethod
    def setUpClass(cls):
        cls.channel = grpc.insecure_channel(checks.GRPC)
        cls.stub = grpc_service_pb2_grpc.GRPCServiceStub(cls.channel)

    @classmethod
    def tearDownClass(cls):
        cls.channel.close()

    def refused(self, response, code, text):
        status = response.request_status
        self.assertEqual(codes.RequestStatusCode.Name(status.code), code)
        self.assertEqual(status.msg, text)
        self.assertEqual(status.server_id, "inference:0")
        self.assertFalse(response.raw_output)

    def test_response_has_an_entry_per_output(self):
        request = messages.InferRequest(model_name="addsub_int32", model_version=-1)
        header = request.meta_data
        header.batch_size, header.id = 1, 77
        for name in ("INPUT0", "INPUT1"):
            header.input.add(name=name, dims=[16])
            request.raw_input.append(np.arange(16, dtype=np.int32).tobytes())
        header.output.add(name="OUTPUT1")
        header.output.add(name="OUTPUT0").cls.count = 1
        response = self.stub.Infer(request)
        self.assertEqual(response.request_status.code, codes.SUCCESS)
        header = response.meta_data
        self.assertEqual((header.id, header.model_name, header.model_version, header.batch_size),
                         (77, "addsub_int32", 1, 1))
        self.assertEqual([o.name for o in header.output], ["OUTPUT1", "OUTPUT0"])
        self.assertEqual(list(response.raw_output), [bytes(64), b""])
        self.assertEqual((list(header.output[0].raw.dims), header.output[0].raw.batch_byte_size), ([16], 64))
        self.assertEqual(header.output[1].batch_classes[0].cls[0].idx, 15)
        self.assertFalse(header.output[1].HasField("raw"))

    def test_unknown_health_mode(self):
        response = self.stub.Health(messages.HealthRequest(mode="sleepy"))
        self.assertFalse(response.health)
        self.assertEqual(response.request_status.code, codes.UNKNOWN)
        self.assertEqual(response.request_status.msg, "unknown health mode 'sleepy'")

    def test_errors_in_response_with_id(self):
        eight = bytes(8)
        cases = [
            (infer("absent", eight), "UNAVAILABLE", "Inference request for unknown model 'absent'"),
            (infer("echo", eight, version=9), "UNAVAILABLE", "Inference request for unknown model 'echo'"),
            (infer("echo", eight, batch=0), "INVALID_ARG", "inference request batch-size must be >= 1 for 'echo'"),
            (infer("echo", bytes(72), batch=9), "INVALID_ARG",
             "inference request batch-size must be <= 8 for 'echo'"),
            (infer("echo", eight, dims=[3]), "INVALID_ARG",
             "unexpected size 8 for input 'INPUT0', expecting 12 for model 'echo'"),
            (infer("echo", eight, dims=[1, 2]), "INVALID_ARG",
             "unexpected shape for input 'INPUT0' for model 'echo'. Expected [-1], got [1,2]"),
        ]
        two = infer("echo", eight)
        two.raw_input.append(b"more")
        cases.append((two, "INVALID_ARG", "expected tensor data for 1 inputs but got 2 sets of data for model 'echo'"))
        none = infer("echo", eight)
        del none.raw_input[:]
        cases.append((none, "INVALID_ARG", "expected tensor data for 1 inputs but got 0 sets of data for model 'echo'"))
        other = infer("echo", eight)
        other.meta_data.input[0].name = "INPUT9"
        cases.append((other, "INVALID_ARG", "unexpected inference input 'INPUT9' for model 'echo'"))
        missing = infer("addsub_fp32", eight)
        cases.append((missing, "INVALID_ARG", "expected 2 inputs but got 1 inputs for model 'addsub_fp32'"))
        shapeless = infer("echo", eight)
        del shapeless.meta_data.input[0].dims[:]
        cases.append((shapeless, "INVALID_ARG", "model supports variable-size for input 'INPUT0', "
                      "request must specify input shape for model 'echo'"))
        wrong = infer("echo", eight)
        wrong.meta_data.input[0].batch_byte_size = 9
        cases.append((wrong, "INVALID_ARG", "specific batch-byte-size for input 'INPUT0' does not match expected "
                      "byte-size calculated from shape and datatype for model 'echo'"))
        for request, code, text in cases:
            with self.subTest(text):
                request.meta_data.id = 5
                response = self.stub.Infer(request)
                self.refused(response, code, text)
                self.assertEqual(response.meta_data, api_pb2.InferResponseHeader(id=5))

    def test_empty_request(self):
        response = self.stub.Infer(messages.InferRequest())
        self.refused(response, "UNAVAILABLE", "Inference request for unknown model ''")

    def test_truncated_strings(self):
        for data, code, text in (
                (b"\x09\0\0\0abc", "INVALID_ARG", "incomplete string data for inference input 'INPUT0', "
                 "expecting string of length 9 but only 3 bytes available"),
                (b"\xff\xff\xff\xffabcd", "INVALID_ARG", "incomplete string data for inference input 'INPUT0', "
                 "expecting string of length 4294967295 but only 4 bytes available"),
                (bytes(12), "INVALID_ARG",
                 "unexpected number of string elements 3 for inference input 'INPUT0', expecting 2"),
                # Up to three extra bytes are ignored.
                (b"\x01\0\0\0a\x02\0", "INTERNAL", "expected 2 strings for inference input 'INPUT0', got 1")):
            with self.subTest(text):
                request = infer("identity_string", data, dims=[2])
                request.meta_data.input[0].batch_byte_size = len(data)
                self.refused(self.stub.Infer(request), code, text)

    def test_stream_responses_are_in_request_order(self):
        requests = [infer("slow", bytes(8), id=1), infer("echo", bytes(8), id=2), infer("absent", b"", id=3),
                    infer("echo", bytes(8), id=4)]
        responses = list(self.stub.StreamInfer(iter(requests)))
        self.assertEqual([response.meta_data.id for response in responses], [1, 2, 3, 4])
        self.assertEqual([response.request_status.code == codes.SUCCESS for response in responses],
                         [True, True, False, True])

    def test_stream_responds_before_half_close(self):
        requests = queue.Queue()
        responses = self.stub.StreamInfer(iter(requests.get, None), timeout=checks.TIMEOUT)
        for id in range(1, 4):
            requests.put(infer("echo", bytes(8), id=id))
            self.assertEqual(next(responses).meta_data.id, id)
        requests.put(None)
        self.assertEqual(list(responses), [])
        self.assertEqual(responses.code(), grpc.StatusCode.OK)

    def test_empty_stream(self):
        self.assertEqual(list(self.stub.StreamInfer(iter([]))), [])

    def test_invalid_protobuf(self):
        for path in ("Infer", "Status", "Health"):
            call = self.channel.unary_unary(f"/nvidia.inferenceserver.GRPCService/{path}",
                                            request_serializer=bytes, response_deserializer=bytes)
            with self.subTest(path), self.assertRaises(grpc.RpcError):
                call(b"\xff\xff\xff\xff not protobuf")
            self.assertTrue(self.stub.Health(messages.HealthRequest(mode="live")).health)

    def test_unknown_method(self):
        call = self.channel.unary_unary("/nvidia.inferenceserver.GRPCService/Sing",
                                        request_serializer=bytes, response_deserializer=bytes)
        with self.assertRaises(grpc.RpcError) as caught:
            call(b"")
        self.assertEqual(caught.exception.code(), grpc.StatusCode.UNIMPLEMENTED)

    def test_empty_control_requests(self):
        response = self.stub.Repository(messages.RepositoryRequest())
        self.assertEqual(response.request_status.code, codes.UNKNOWN)
        self.assertEqual(response.request_status.msg, "request type is not specified")


if __name__ == "__main__":
    checks.run()

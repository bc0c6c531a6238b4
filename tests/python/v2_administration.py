"""Administration over gRPC: log settings, request ids, restricted RPCs, forwarded metadata, reflection, compression, delays.
Each class belongs to one server of tests/wire/administration."""

import time

import grpc as plain
import numpy as np
import tritonclient.grpc as grpc
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase
from tritonclient.grpc import service_pb2
from tritonclient.utils import InferenceServerException

import checks

INFER = "/inference.GRPCInferenceService/ModelInfer"


class Case(checks.Case):
    def setUp(self):
        self.client = grpc.InferenceServerClient(checks.GRPC)
        self.addCleanup(self.client.close)
        self.channel = plain.insecure_channel(checks.GRPC)
        self.addCleanup(self.channel.close)

    def tensor(self, count=2):
        tensor = grpc.InferInput("INPUT0", [1, count], "FP32")
        tensor.set_data_from_numpy(np.ones((1, count), np.float32))
        return [tensor]

    def infer(self, headers=None, count=2, **more):
        result = self.client.infer("echo", self.tensor(count), headers=headers, **more)
        np.testing.assert_array_equal(result.as_numpy("OUTPUT0"), np.ones((1, count), np.float32))

    def request(self, count):
        request = service_pb2.ModelInferRequest(model_name="echo")
        request.inputs.add(name="INPUT0", datatype="FP32", shape=[1, count])
        request.raw_input_contents.append(np.ones((1, count), np.float32).tobytes())
        return request

    def metadata(self, metadata, count=2):
        """Leading metadata of a plain call."""
        call = self.channel.unary_unary(
            INFER,
            request_serializer=service_pb2.ModelInferRequest.SerializeToString,
            response_deserializer=service_pb2.ModelInferResponse.FromString,
        )
        response, call = call.with_call(self.request(count), metadata=metadata)
        self.assertEqual(len(response.raw_output_contents[0]), 4 * count)
        return dict(call.initial_metadata())


class LogSettings(Case):
    def test_changes(self):
        changed = {"log_info": True, "log_verbose_level": 1, "log_format": "default"}
        settings = self.client.update_log_settings(changed, as_json=True)["settings"]
        self.assertEqual(settings["log_info"], {"bool_param": True})
        self.assertEqual(settings["log_verbose_level"], {"uint32_param": 1})
        self.assertEqual(settings["log_format"], {"string_param": "default"})
        self.assertEqual(self.client.get_log_settings(as_json=True)["settings"], settings)

    def test_refusals(self):
        before = self.client.get_log_settings(as_json=True)
        settings = service_pb2.LogSettingsRequest.SettingValue
        for key, value, text in [
            ("log_info", settings(string_param="x"), "expect boolean for 'log_info'"),
            ("log_verbose_level", settings(bool_param=True), "expect int32 for 'log_verbose_level'"),
            ("log_format", settings(uint32_param=1), "expect string for 'log_format'"),
            ("log_format", settings(string_param="x"), "invalid argument for log_format, got: x"),
            ("log_file", settings(string_param="/x"),
             "log file location can not be updated through network protocol"),
        ]:
            request = service_pb2.LogSettingsRequest()
            request.settings["log_error"].bool_param = False
            request.settings[key].CopyFrom(value)
            with self.assertRaises(plain.RpcError) as caught:
                self.client._client_stub.LogSettings(request)
            self.assertEqual(caught.exception.details(), text)
        self.assertEqual(self.client.get_log_settings(as_json=True), before)


class RequestId(Case):
    def test_metadata(self):
        self.assertEqual(self.metadata([("x-request-id", "grpc-7")]).get("x-request-id"), "grpc-7")
        self.assertNotIn("x-request-id", self.metadata([]))

    def test_control_calls(self):
        call = self.channel.unary_unary(
            "/inference.GRPCInferenceService/ServerLive",
            request_serializer=service_pb2.ServerLiveRequest.SerializeToString,
            response_deserializer=service_pb2.ServerLiveResponse.FromString,
        )
        _, call = call.with_call(service_pb2.ServerLiveRequest(), metadata=[("x-request-id", "a")])
        self.assertEqual(dict(call.initial_metadata()).get("x-request-id"), "a")


class Restricted(Case):
    INFER = {"triton-grpc-protocol-infer-key": "infer-value"}

    def refused(self, key, call, *arguments, **more):
        text = f"This protocol is restricted, expecting header 'triton-grpc-protocol-{key}'"
        with self.refusal(InferenceServerException, text) as caught:
            call(*arguments, **more)
        self.assertEqual(caught.exception.status(), "StatusCode.UNAVAILABLE")

    def test_inference(self):
        self.refused("infer-key", self.infer)
        self.refused("infer-key", self.infer, headers={"triton-grpc-protocol-infer-key": "infer-valu"})
        self.refused("infer-key", self.infer, headers={"infer-key": "infer-value"})
        self.infer(headers=self.INFER)

    def test_stream(self):
        for headers in ({}, self.INFER):
            mailbox = checks.Mailbox()
            self.client.start_stream(lambda result, error: mailbox.put(result, error), headers=headers)
            if headers:
                self.client.async_stream_infer("echo", self.tensor())
            # A refused stream ends at once.
            [(_, error)] = mailbox.take(1)
            self.client.stop_stream()
            self.assertEqual(error is None, bool(headers), error)

    def test_other_groups(self):
        self.refused("admin-key", self.client.is_server_live)
        self.assertTrue(self.client.is_server_live(headers={"triton-grpc-protocol-admin-key": "admin-value"}))
        self.refused("infer-key", self.client.get_log_settings)
        self.client.get_log_settings(headers=self.INFER)
        self.assertEqual(self.client.get_server_metadata().name, "triton")


class Forwarded(Case):
    def test_metadata(self):
        self.infer(headers={"other": "x"})
        with self.refusal(InferenceServerException, "from the metadata", whole=False):
            self.infer(headers={"fail": "from the metadata"})

    def test_stream(self):
        mailbox = checks.Mailbox()
        self.client.start_stream(lambda result, error: mailbox.put(result, error), headers={"fail": "of the stream"})
        self.client.async_stream_infer("echo", self.tensor())
        [(_, error)] = mailbox.take(1)
        self.client.stop_stream()
        self.assertIn("of the stream", error.message())


class Reflection(Case):
    def test_services(self):
        database = ProtoReflectionDescriptorDatabase(self.channel)
        services = set(database.get_services())
        self.assertTrue({"inference.GRPCInferenceService", "nvidia.inferenceserver.GRPCService",
                         "grpc.health.v1.Health"} <= services, services)

    def test_call_by_description(self):
        pool = DescriptorPool(ProtoReflectionDescriptorDatabase(self.channel))
        service = pool.FindServiceByName("inference.GRPCInferenceService")
        method = service.FindMethodByName("ServerMetadata")
        request, response = (GetMessageClass(kind) for kind in (method.input_type, method.output_type))
        call = self.channel.unary_unary(
            f"/{service.full_name}/{method.name}",
            request_serializer=lambda message: message.SerializeToString(),
            response_deserializer=response.FromString,
        )
        self.assertEqual(call(request()).name, "triton")
        self.assertIn("ModelStreamInfer", [method.name for method in service.methods])


class Compressed(Case):
    COUNT = 300_000

    def test_unary(self):
        for algorithm in (None, "gzip", "deflate"):
            for count in (2, self.COUNT):
                self.infer(count=count, compression_algorithm=algorithm)

    def test_stream(self):
        mailbox = checks.Mailbox()
        self.client.start_stream(lambda result, error: mailbox.put(result, error))
        for count in (2, self.COUNT):
            self.client.async_stream_infer("echo", self.tensor(count))
            [(result, error)] = mailbox.take(1)
            self.assertIsNone(error)
            self.assertEqual(result.as_numpy("OUTPUT0").shape, (1, count))
        with self.assertRaises(InferenceServerException):
            self.client.infer("absent", self.tensor())
        self.client.async_stream_infer("absent", self.tensor())
        [(_, error)] = mailbox.take(1)
        self.assertIn("Request for unknown model", error.message())
        self.client.stop_stream()


class Delayed(Case):
    def test_calls(self):
        begin = time.monotonic()
        self.infer()
        self.assertGreater(time.monotonic() - begin, 0.29)
        begin = time.monotonic()
        self.client.is_server_live()
        self.assertGreater(time.monotonic() - begin, 0.99)


if __name__ == "__main__":
    checks.run()

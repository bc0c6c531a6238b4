"""Rows of docs/protocol/v2.md §1 that no other check covers: messages that the v2 client's classes never send."""

import grpc
import numpy as np
from tritonclient.grpc import service_pb2, service_pb2_grpc

import checks

INVALID = grpc.StatusCode.INVALID_ARGUMENT


class Rows(checks.Case):
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

    def refused(self, call, request, code, text):
        with self.assertRaises(grpc.RpcError) as caught:
            call(request, timeout=checks.TIMEOUT)
        self.assertEqual((caught.exception.code(), caught.exception.details()), (code, text))

    def test_surplus_raw_contents_are_ignored(self):
        data = np.array([1, 2], np.float32).tobytes()
        response = self.stub.ModelInfer(self.request(raw=[data, b"more"]))
        self.assertEqual(list(response.raw_output_contents), [data])

    def test_typed_contents_of_wrong_kind(self):
        self.refused(
            self.stub.ModelInfer, self.request("identity_int32", "INT32", int_contents=[1, 2], fp32_contents=[1]), INVALID,
            "unexpected explicit tensor data for input tensor 'INPUT0' for model 'identity_int32', binary data was "
            "already supplied.")
        # Low bytes of narrow types, and no elements at all.
        response = self.stub.ModelInfer(self.request("identity_int8", "INT8", (1, 2), int_contents=[300, -300]))
        self.assertEqual(list(response.raw_output_contents), [b"\x2c\xd4"])
        response = self.stub.ModelInfer(self.request("identity_fp32", shape=(1, 0), raw=[b""]))
        self.assertEqual((list(response.outputs[0].shape), list(response.raw_output_contents)), ([1, 0], [b""]))

    def test_shared_memory_parameters(self):
        def request(output=False, contents=False, **parameters):
            request = self.request(raw=[] if not output and not contents else [bytes(8)])
            if contents:
                request = self.request(fp32_contents=[1, 2])
            tensor = request.outputs.add(name="OUTPUT0") if output else request.inputs[0]
            for key, (field, value) in parameters.items():
                setattr(tensor.parameters[key], field, value)
            return request

        region = ("string_param", "none")
        size = ("int64_param", 8)
        needs = "' can not be specified without 'shared_memory_region' parameter for tensor '"
        for output, tensor in ((False, "INPUT0"), (True, "OUTPUT0")):
            for parameters, code, text in (
                    ({"shared_memory_offset": size}, INVALID, f"'shared_memory_offset{needs}{tensor}'"),
                    ({"shared_memory_byte_size": size}, INVALID, f"'shared_memory_byte_size{needs}{tensor}'"),
                    ({"shared_memory_region": region}, INVALID,
                     "'shared_memory_byte_size' must be specified along with 'shared_memory_region' parameter for tensor "
                     f"'{tensor}'"),
                    ({"shared_memory_region": size, "shared_memory_byte_size": size}, INVALID,
                     f"invalid value type for 'shared_memory_region' parameter for tensor '{tensor}', expected string_param."),
                    ({"shared_memory_region": region, "shared_memory_byte_size": region}, INVALID,
                     f"invalid value type for 'shared_memory_byte_size' parameter for tensor '{tensor}', expected int64_param."),
                    ({"shared_memory_region": region, "shared_memory_byte_size": size}, grpc.StatusCode.NOT_FOUND,
                     "Unable to find shared memory region: 'none'")):
                with self.subTest(text):
                    self.refused(self.stub.ModelInfer, request(output, **parameters), code, text)
        self.refused(
            self.stub.ModelInfer,
            request(contents=True, shared_memory_region=region, shared_memory_byte_size=size), INVALID,
            "unexpected 'content' provided when using shared memory for input tensor 'INPUT0' for model 'echo'")
        both = request(True, shared_memory_region=region, shared_memory_byte_size=size,
                       classification=("int64_param", 1))
        self.refused(self.stub.ModelInfer, both, INVALID,
                     "output can't set both 'shared_memory_region' and 'classification'")

    def test_output_parameters(self):
        request = self.request(raw=[bytes(8)])
        parameters = request.outputs.add(name="OUTPUT0").parameters
        parameters["classification"].string_param = "2"
        self.refused(self.stub.ModelInfer, request, INVALID,
                     "invalid value type for 'classification' parameter, expected int64_param")
        # Those of HTTP mean nothing here.
        request = self.request(raw=[bytes(8)])
        request.outputs.add(name="OUTPUT0").parameters["binary_data"].bool_param = False
        self.assertEqual(list(self.stub.ModelInfer(request).raw_output_contents), [bytes(8)])

    def test_request_parameters(self):
        request = self.request(raw=[bytes(8)])
        for key, field, value in (("sequence_id", "int64_param", -5), ("sequence_start", "bool_param", True),
                                  ("priority", "uint64_param", 2**63), ("timeout", "int64_param", 5),
                                  ("mine", "double_param", 0.5)):
            setattr(request.parameters[key], field, value)
        self.assertEqual(list(self.stub.ModelInfer(request).raw_output_contents), [bytes(8)])
        for key, field, value, text in (
                ("timeout", "string_param", "5", "invalid value type for 'timeout' parameter, expected int64_param."),
                ("sequence_end", "string_param", "1", "invalid value type for 'sequence_end' parameter, expected bool_param.")):
            request = self.request(raw=[bytes(8)])
            setattr(request.parameters[key], field, value)
            with self.subTest(key):
                self.refused(self.stub.ModelInfer, request, INVALID, text)

    def test_readiness_is_no_error(self):
        for name, version in (("absent", ""), ("versions", "2"), ("versions_latest", "1")):
            request = service_pb2.ModelReadyRequest(name=name, version=version)
            self.assertFalse(self.stub.ModelReady(request).ready)
        self.refused(self.stub.ModelReady, service_pb2.ModelReadyRequest(name="echo", version="-1"), INVALID,
                     "failed to get model version from specified version string '-1', version should be an integral "
                     "value > 0")

    def test_repository_requests(self):
        unsupported = grpc.StatusCode.UNIMPLEMENTED, "'repository_name' specification is not supported"
        for call, kind in ((self.stub.RepositoryModelLoad, service_pb2.RepositoryModelLoadRequest),
                           (self.stub.RepositoryModelUnload, service_pb2.RepositoryModelUnloadRequest)):
            self.refused(call, kind(repository_name="mine", model_name="echo"), *unsupported)
        index = self.stub.RepositoryIndex(service_pb2.RepositoryIndexRequest(ready=True)).models
        self.assertEqual({model.state for model in index}, {"READY"})

    def test_log_settings(self):
        for key, field, value, code, text in (
                ("log_info", "string_param", "x", INVALID, "expect boolean for 'log_info'"),
                ("log_verbose_level", "bool_param", True, INVALID, "expect int32 for 'log_verbose_level'"),
                ("log_format", "bool_param", True, INVALID, "expect string for 'log_format'"),
                ("log_format", "string_param", "xml", INVALID, "invalid argument for log_format, got: xml"),
                ("log_file", "string_param", "/tmp/x", grpc.StatusCode.UNIMPLEMENTED,
                 "log file location can not be updated through network protocol")):
            request = service_pb2.LogSettingsRequest()
            setattr(request.settings[key], field, value)
            with self.subTest(text):
                self.refused(self.stub.LogSettings, request, code, text)

    def test_trace_settings(self):
        settings = self.stub.TraceSetting(service_pb2.TraceSettingRequest()).settings
        self.assertEqual({key: list(value.value) for key, value in settings.items()}, {
            "trace_level": ["OFF"], "trace_rate": ["1000"], "trace_count": ["-1"], "log_frequency": ["0"],
            "trace_file": [""], "trace_mode": ["triton"]})
        self.refused(self.stub.TraceSetting, service_pb2.TraceSettingRequest(model_name="absent"), INVALID,
                     "Request for unknown model : absent")

    def test_errors_on_a_stream(self):
        def named(request, id):
            request.id = id
            return request

        requests = [named(self.request("absent", raw=[bytes(8)]), "a"), named(self.request("fails", raw=[bytes(8)]), "b"),
                    named(self.request(raw=[bytes(8)]), "c")]
        early, late, good = self.stub.ModelStreamInfer(iter(requests))
        self.assertEqual(early.infer_response, service_pb2.ModelInferResponse(id="a"))
        response = late.infer_response
        self.assertEqual((response.id, response.model_name, list(response.outputs)), ("b", "fails", []))
        self.assertTrue(response.parameters["triton_final_response"].bool_param)
        self.assertEqual((good.error_message, good.infer_response.id), ("", "c"))
        self.assertTrue(good.infer_response.parameters["triton_final_response"].bool_param)

    def test_health_service_ignores_the_service(self):
        check = self.channel.unary_unary("/grpc.health.v1.Health/Check", request_serializer=bytes,
                                         response_deserializer=bytes)
        self.assertEqual(check(b"\x0a\x04else"), b"\x08\x01")
        watch = self.channel.unary_stream("/grpc.health.v1.Health/Watch", request_serializer=bytes,
                                          response_deserializer=bytes)
        with self.assertRaises(grpc.RpcError) as caught:
            list(watch(b""))
        self.assertEqual(caught.exception.code(), grpc.StatusCode.UNIMPLEMENTED)


if __name__ == "__main__":
    checks.run()

"""Rows of docs/protocol/v1.md §4 that no other check covers: messages that the v1 client's classes never send."""

import grpc

import checks
from tensorrtserver.api import grpc_service_pb2_grpc
from trtis_client import api_pb2, grpc_service_pb2 as messages, request_status_pb2 as codes, server_status_pb2


class Rows(checks.Case):
    @classmethod
    def setUpClass(cls):
        cls.channel = grpc.insecure_channel(checks.GRPC)
        cls.stub = grpc_service_pb2_grpc.GRPCServiceStub(cls.channel)

    @classmethod
    def tearDownClass(cls):
        cls.channel.close()

    def infer(self, model, version=None, data=bytes(8), **header):
        input = api_pb2.InferRequestHeader.Input(name="INPUT0", dims=[len(data) // 4])
        output = api_pb2.InferRequestHeader.Output(name="OUTPUT0")
        header = api_pb2.InferRequestHeader(batch_size=1, input=[input], output=[output], **header)
        request = messages.InferRequest(model_name=model, meta_data=header, raw_input=[data])
        if version is not None:
            request.model_version = version
        return self.stub.Infer(request)

    def test_version_of_a_request(self):
        # Omitted is 0 on the wire: version 0 if it is served, else the latest.
        for version, served in ((None, 3), (-1, 3), (-7, 3), (1, 1), (3, 3)):
            with self.subTest(version=version):
                response = self.infer("versions", version)
                self.assertEqual(response.request_status.code, codes.SUCCESS)
                self.assertEqual(response.meta_data.model_version, served)

    def test_status_of_an_unknown_model_has_the_server(self):
        response = self.stub.Status(messages.StatusRequest(model_name="absent"))
        self.assertEqual(response.request_status.code, codes.INVALID_ARG)
        self.assertEqual(response.request_status.msg, "no status available for unknown model 'absent'")
        status = response.server_status
        self.assertEqual((status.id, status.ready_state), ("inference:0", server_status_pb2.SERVER_READY))
        self.assertGreater(status.uptime_ns, 0)
        self.assertFalse(status.model_status)

    def test_one_model_without_counters_of_endpoints(self):
        status = self.stub.Status(messages.StatusRequest(model_name="echo")).server_status
        self.assertEqual(list(status.model_status), ["echo"])
        self.assertFalse(status.HasField("status_stats"))
        self.assertTrue(self.stub.Status(messages.StatusRequest()).server_status.HasField("status_stats"))

    def test_health_modes(self):
        for mode in ("live", "ready"):
            response = self.stub.Health(messages.HealthRequest(mode=mode))
            self.assertTrue(response.health)
            self.assertEqual(response.request_status.code, codes.SUCCESS)
        response = self.stub.Health(messages.HealthRequest())
        self.assertEqual((response.health, response.request_status.msg), (False, "unknown health mode ''"))

    def test_empty_shared_memory_request(self):
        response = self.stub.SharedMemoryControl(messages.SharedMemoryControlRequest())
        self.assertEqual(response.request_status.code, codes.UNKNOWN)
        self.assertEqual(response.request_status.msg, "unknown sharedmemorycontrol request type")

    def test_value_of_index_is_ignored(self):
        response = self.stub.Repository(messages.RepositoryRequest(index=False))
        self.assertEqual(response.request_status.code, codes.SUCCESS)
        self.assertIn("echo", [model.name for model in response.index.models])

    def test_omitted_control_type_is_an_unload(self):
        response = self.stub.ModelControl(messages.ModelControlRequest(model_name="echo"))
        self.assertEqual(response.request_status.code, codes.UNAVAILABLE)
        self.assertEqual(self.infer("echo").request_status.code, codes.SUCCESS)

    def test_priority_flags_and_id_without_a_scheduler(self):
        response = self.infer("echo", -1, id=2**64 - 1, flags=3, correlation_id=9)
        self.assertEqual(response.request_status.code, codes.SUCCESS)
        self.assertEqual(response.meta_data.id, 2**64 - 1)

    def test_stream_error_keeps_the_id(self):
        header = api_pb2.InferRequestHeader(id=8, batch_size=0)
        request = messages.InferRequest(model_name="echo", model_version=-1, meta_data=header)
        [response] = self.stub.StreamInfer(iter([request]))
        self.assertEqual(response.meta_data, api_pb2.InferResponseHeader(id=8))
        self.assertEqual(response.request_status.msg, "inference request batch-size must be >= 1 for 'echo'")
        self.assertFalse(response.raw_output)


if __name__ == "__main__":
    checks.run()

"""Cancellation over v1 gRPC with the plain stub: the v1 client cannot cancel."""

import grpc

import cancellation
import checks
from tensorrtserver.api import grpc_service_pb2_grpc
from trtis_client import api_pb2, grpc_service_pb2 as messages


class Stub(cancellation.Case):
    def setUp(self):
        super().setUp()
        channel = grpc.insecure_channel(checks.GRPC)
        self.addCleanup(channel.close)
        self.stub = grpc_service_pb2_grpc.GRPCServiceStub(channel)

    def request(self):
        header = api_pb2.InferRequestHeader(batch_size=1)
        header.input.add(name="INPUT0", dims=[2])
        header.output.add(name="OUTPUT0")
        return messages.InferRequest(model_name=self.MODEL, model_version=-1, meta_data=header, raw_input=[bytes(8)])

    def test_deadline(self):
        with self.assertRaises(grpc.RpcError) as caught:
            self.stub.Infer(self.request(), timeout=0.1)
        self.assertEqual(caught.exception.code(), grpc.StatusCode.DEADLINE_EXCEEDED)
        self.all_gone(1)

    def test_cancelled_calls(self):
        calls = [self.stub.Infer.future(self.request()) for _ in range(5)]
        self.until("four wait", lambda: self.waiting() == 4)
        for call in calls:
            call.cancel()
        self.all_gone(5)

    def test_cancelled_stream(self):
        responses = self.stub.StreamInfer(iter([self.request() for _ in range(5)]))
        self.until("four wait", lambda: self.waiting() == 4)
        responses.cancel()
        self.all_gone(5)

    def test_stream_deadline(self):
        responses = self.stub.StreamInfer(iter([self.request() for _ in range(3)]), timeout=1)
        with self.assertRaises(grpc.RpcError):
            next(responses)
        self.assertEqual(responses.code(), grpc.StatusCode.DEADLINE_EXCEEDED)
        self.all_gone(3)


if __name__ == "__main__":
    checks.run()

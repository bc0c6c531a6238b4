"""MLServer's clients: `mlserver infer`, which sends a file of requests over HTTP, and the stub and types of its gRPC.

Against the model `echo`, with model control by request.
"""

import asyncio
import json
import os
import tempfile

import clients  # Must come before the packages that it loads without their servers.
import grpc
import numpy as np
from mlserver.batch_processing import process_batch
from mlserver.codecs import NumpyCodec
from mlserver.grpc import converters, dataplane_pb2 as messages
from mlserver.grpc.dataplane_pb2_grpc import GRPCInferenceServiceStub
from mlserver.types import InferenceRequest, InferenceResponse

import checks


def request(number):
    values = np.array([[number, -number]], np.float32)
    return InferenceRequest(id=f"r{number}", inputs=[NumpyCodec.encode_input("INPUT0", values)])


class Infer(checks.Case):
    """`mlserver infer`, with the arguments that its command line passes on."""

    def infer(self, model, lines, **options):
        with tempfile.TemporaryDirectory() as folder:
            source, target = os.path.join(folder, "in"), os.path.join(folder, "out")
            with open(source, "w") as file:
                file.writelines(line + "\n" for line in lines)
            arguments = dict(
                model_name=model, url=checks.HTTP, workers=2, retries=1, batch_size=1, input_data_path=source,
                output_data_path=target, binary_data=False, transport="rest", request_headers=["x-test: 1"],
                timeout=checks.TIMEOUT, batch_interval=0, batch_jitter=0, use_ssl=False, insecure=False,
                verbose=False, extra_verbose=False)
            asyncio.run(process_batch(**(arguments | options)))
            with open(target) as file:
                return [json.loads(line) for line in file]

    def test_requests_of_a_file(self):
        lines = [request(number).model_dump_json() for number in range(8)]
        for options in ({}, {"binary_data": True}, {"batch_size": 4}):
            with self.subTest(**options):
                found = {}
                for answer in self.infer("echo", lines, **options):
                    response = InferenceResponse.model_validate(answer)
                    (output,) = response.outputs
                    values = NumpyCodec.decode_output(output)
                    self.assertEqual((response.model_name, output.name, values.dtype), ("echo", "OUTPUT0", np.float32))
                    found[response.parameters.batch_index] = values.tolist()
                self.assertEqual(found, {n: [[float(n), float(-n)]] for n in range(8)})

    def test_error_text_is_passed_on(self):
        (answer,) = self.infer("absent", [request(1).model_dump_json()])
        self.assertIn("Request for unknown model: 'absent' is not found", answer["error"]["msg"])


class Grpc(checks.Case):
    def setUp(self):
        channel = grpc.insecure_channel(checks.GRPC)
        self.addCleanup(channel.close)
        self.stub = GRPCInferenceServiceStub(channel)

    def test_health_and_metadata(self):
        self.assertTrue(self.stub.ServerLive(messages.ServerLiveRequest()).live)
        self.assertTrue(self.stub.ServerReady(messages.ServerReadyRequest()).ready)
        self.assertTrue(self.stub.ModelReady(messages.ModelReadyRequest(name="echo")).ready)
        server = self.stub.ServerMetadata(messages.ServerMetadataRequest())
        self.assertIn("statistics", converters.ServerMetadataResponseConverter.to_types(server).extensions)
        model = self.stub.ModelMetadata(messages.ModelMetadataRequest(name="echo"))
        model = converters.ModelMetadataResponseConverter.to_types(model)
        self.assertEqual((model.name, model.versions), ("echo", ["1"]))
        self.assertEqual([(t.name, t.datatype, t.shape) for t in model.inputs], [("INPUT0", "FP32", [-1, -1])])

    def messages(self, raw):
        for number in range(3):
            yield converters.ModelInferRequestConverter.from_types(
                request(number), model_name="echo", use_raw=raw)

    def check_response(self, number, message):
        response = converters.ModelInferResponseConverter.to_types(message)
        self.assertEqual((response.id, response.model_version), (f"r{number}", "1"))
        values = NumpyCodec.decode_output(response.outputs[0])
        np.testing.assert_array_equal(values, [[number, -number]])

    def test_infer(self):
        for raw in (False, True):
            for number, message in enumerate(self.messages(raw)):
                self.check_response(number, self.stub.ModelInfer(message))

    def test_repository(self):
        index = self.stub.RepositoryIndex(messages.RepositoryIndexRequest())
        self.assertEqual([(model.name, model.state) for model in index.models], [("echo", "READY")])
        self.stub.RepositoryModelUnload(messages.RepositoryModelUnloadRequest(model_name="echo"))
        ready = lambda: self.stub.ModelReady(messages.ModelReadyRequest(name="echo")).ready
        self.becomes(ready, False)
        self.stub.RepositoryModelLoad(messages.RepositoryModelLoadRequest(model_name="echo"))
        self.assertTrue(ready())


if __name__ == "__main__":
    checks.run()

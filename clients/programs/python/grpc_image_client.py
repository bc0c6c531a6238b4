#!/usr/bin/env python3
"""Classifies pictures like image_client, with gRPC's own package and the protocol's messages instead of the client library."""

import classification
import grpc
import program
from tensorrtserver.api import grpc_service_pb2, grpc_service_pb2_grpc, request_status_pb2

# Seconds after which a call fails.
DEADLINE = 60


def checked(response):
    """v1 reports errors in the response; the status of the call itself is OK."""
    status = response.request_status
    if status.code != request_status_pb2.SUCCESS:
        raise program.Refused(f"[{status.server_id} {status.request_id}] {status.msg}")
    return response


def requests(flags, model, batches):
    for batch in batches:
        request = grpc_service_pb2.InferRequest(model_name=flags.model_name, model_version=flags.model_version)
        request.meta_data.batch_size = flags.batch_size
        request.meta_data.input.add(name=model.input)
        request.meta_data.output.add(name=model.output).cls.count = flags.classes
        # The pictures of a batch follow one another.
        request.raw_input.append(b"".join(pixels.tobytes() for _, pixels in batch))
        yield request


def main():
    parser = program.parser(__doc__, url="localhost:8001", protocol=False)
    classification.flags_of_model(parser)
    classification.flags_of_pictures(parser)
    flags = program.parse(parser)

    stub = grpc_service_pb2_grpc.GRPCServiceStub(grpc.insecure_channel(flags.url))
    status = stub.Status(grpc_service_pb2.StatusRequest(model_name=flags.model_name), timeout=DEADLINE)
    config = classification.config_in(checked(status).server_status, flags.model_name)
    model = classification.Model(config, flags.batch_size)

    filenames = classification.filenames_in(flags.image_filename)
    pictures = [(name, classification.picture(name, model, flags.scaling)) for name in filenames]
    batches = list(classification.batches(pictures, flags.batch_size))
    if flags.streaming:
        responses = stub.StreamInfer(requests(flags, model, batches), timeout=DEADLINE)
    elif flags.at_once:
        calls = [stub.Infer.future(request, timeout=DEADLINE) for request in requests(flags, model, batches)]
        responses = (call.result() for call in calls)
    else:
        responses = (stub.Infer(request, timeout=DEADLINE) for request in requests(flags, model, batches))

    for number, (batch, response) in enumerate(zip(batches, responses)):
        [output] = checked(response).meta_data.output
        print(f"Request {number}, batch size {flags.batch_size}")
        names = [name for name, _ in batch]
        classification.show(names, [[(c.idx, c.value, c.label) for c in item.cls] for item in output.batch_classes])


if __name__ == "__main__":
    program.run(main, grpc.RpcError)

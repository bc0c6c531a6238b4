# SPDX-License-Identifier: Apache-2.0
"""The service `GRPCService` for grpcio: stub and servicer."""

import grpc

from tensorrtserver.api import _protobuf, grpc_service_pb2

_SERVICE = grpc_service_pb2.DESCRIPTOR.services_by_name["GRPCService"]


# Descriptors of protobuf 3 do not tell which methods are streams.
_STREAMS = ("StreamInfer", "InferStream")


def _shape(method):
    """The name that grpcio has for this shape of method."""
    return "stream_stream" if method.name in _STREAMS else "unary_unary"


class GRPCServiceStub(object):
    """Calls of the service: one callable per RPC, each takes and returns messages of `grpc_service_pb2`."""

    def __init__(self, channel):
        """`channel` is a `grpc.Channel`."""
        for method in _SERVICE.methods:
            request = _protobuf.message_class(method.input_type)
            response = _protobuf.message_class(method.output_type)
            call = getattr(channel, _shape(method))(
                f"/{_SERVICE.full_name}/{method.name}",
                request_serializer=request.SerializeToString,
                response_deserializer=response.FromString,
            )
            setattr(self, method.name, call)


def _unimplemented(name):
    def method(self, request, context):
        context.set_code(grpc.StatusCode.UNIMPLEMENTED)
        context.set_details("Method not implemented!")
        raise NotImplementedError("Method not implemented!")

    method.__name__ = name
    return method


#: Base class of servers: each RPC is a method `(self, request_or_iterator, context)`.
GRPCServiceServicer = type(
    "GRPCServiceServicer", (object,), {method.name: _unimplemented(method.name) for method in _SERVICE.methods}
)


def add_GRPCServiceServicer_to_server(servicer, server):
    """Serves the RPCs with `servicer`, an object of a subclass of `GRPCServiceServicer`."""
    handlers = {}
    for method in _SERVICE.methods:
        handler = getattr(grpc, _shape(method) + "_rpc_method_handler")
        handlers[method.name] = handler(
            getattr(servicer, method.name),
            request_deserializer=_protobuf.message_class(method.input_type).FromString,
            response_serializer=_protobuf.message_class(method.output_type).SerializeToString,
        )
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(_SERVICE.full_name, handlers),))

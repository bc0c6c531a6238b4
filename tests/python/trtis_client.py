"""The real client of 2020, `tensorrtserver.api`, adapted to a newer Python.

Use it in place of the package: `from trtis_client import InferContext, ProtocolType`.
The wire format is unchanged: the patch below only affects how the pure
Python protobuf reads bytes that the client's C++ part hands over as ctypes arrays.
"""

from google.protobuf.internal import api_implementation
from google.protobuf.message import Message
from tensorrtserver.api import (
    api_pb2,
    grpc_service_pb2,
    model_config_pb2,
    request_status_pb2,
    server_status_pb2,
)


def _accept_ctypes_arrays(module):
    for kind in vars(module).values():
        if not (isinstance(kind, type) and issubclass(kind, Message)):
            continue
        if "_trtis_client" in vars(kind):
            continue

        def merge(self, data, _original=kind.MergeFromString):
            return _original(self, data if isinstance(data, memoryview) else bytes(data))

        kind.MergeFromString = merge
        kind._trtis_client = True


# The compiled protobuf (Python up to 3.10) accepts such arrays.
if api_implementation.Type() == "python":
    for _module in (api_pb2, request_status_pb2, server_status_pb2):
        _accept_ctypes_arrays(_module)

from tensorrtserver import api  # noqa: E402  (after the patch, so that the import sees it)
from tensorrtserver.api import *  # noqa: E402,F401,F403

__all__ = [name for name in dir(api) if not name.startswith("_")] + [
    "api",
    "api_pb2",
    "grpc_service_pb2",
    "model_config_pb2",
    "request_status_pb2",
    "server_status_pb2",
]

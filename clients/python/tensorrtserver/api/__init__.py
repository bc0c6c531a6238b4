# SPDX-License-Identifier: Apache-2.0
"""Client for the v1 protocol of TRTIS over HTTP and gRPC, with the interface of `tensorrtserver` 1.11.0.

Scripts written for that package run unchanged. `InferContext` has the asynchronous calls of the base release as well, see
`InferContext.async_run`. Messages such as `InferRequestHeader`, and the modules whose names end in `_pb2`, need the package
protobuf; `grpc_service_pb2_grpc` needs grpcio.
"""

from __future__ import annotations

import importlib
import importlib.util
from enum import IntEnum
from typing import Any, List

from tensorrtserver.api._control import (
    ModelControlContext,
    ModelRepositoryContext,
    ServerHealthContext,
    ServerStatusContext,
    SharedMemoryControlContext,
)
from tensorrtserver.api._errors import InferenceServerException
from tensorrtserver.api._infer import InferContext
from tensorrtserver.api._tensors import serialize_string_tensor


class ProtocolType(IntEnum):
    """Protocol of a context."""

    HTTP = 0
    GRPC = 1

    @classmethod
    def from_str(cls, value: str) -> ProtocolType:
        """The protocol of a name, `http` or `grpc` in any case.

        Raises
        ------
        Exception
            The name is another.
        """
        if value.lower() == "http":
            return ProtocolType.HTTP
        if value.lower() == "grpc":
            return ProtocolType.GRPC
        raise Exception(f"unexpected protocol: {value}, expecting HTTP or gRPC")


#: Messages that the original has in this module, by their modules. They are imported on first use.
_MESSAGES = {
    "InferRequestHeader": "api_pb2",
    "InferResponseHeader": "api_pb2",
    "InferSharedMemory": "api_pb2",
    "ModelRepositoryIndex": "server_status_pb2",
    "ServerStatus": "server_status_pb2",
    "SharedMemoryStatus": "server_status_pb2",
}
_MODULES = ("api_pb2", "model_config_pb2", "request_status_pb2", "server_status_pb2")

__all__ = [
    "InferContext",
    "InferenceServerException",
    "ModelControlContext",
    "ModelRepositoryContext",
    "ProtocolType",
    "ServerHealthContext",
    "ServerStatusContext",
    "SharedMemoryControlContext",
    "serialize_string_tensor",
]
# `import *` must not fail where protobuf is not installed.
if importlib.util.find_spec("google") and importlib.util.find_spec("google.protobuf"):
    __all__ += [*_MESSAGES, *_MODULES]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"{__name__}.{name}")
    if name in _MESSAGES:
        return getattr(importlib.import_module(f"{__name__}.{_MESSAGES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> List[str]:
    return sorted({*globals(), *__all__})

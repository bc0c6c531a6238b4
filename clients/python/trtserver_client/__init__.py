# SPDX-License-Identifier: Apache-2.0
"""Client for the Open Inference Protocol (v2) with Triton's extensions, over HTTP and gRPC, with numpy arrays.

    from trtserver_client import Client

    with Client("grpc://localhost:8001") as client:
        result = client.infer("simple", {"INPUT0": array})
        print(result["OUTPUT0"])

`AsyncClient` has the same calls for asyncio. `python -m trtserver_client URL` tries a server.
"""

from trtserver_client._client import Client, Stream
from trtserver_client._errors import (
    Cancelled,
    ConnectionFailed,
    DeadlineExceeded,
    InferenceError,
    InvalidArgument,
    InvalidResponse,
    ServerError,
)
from trtserver_client._library import library as _library_functions
from trtserver_client._result import InferResult
from trtserver_client._types import (
    Class,
    Classes,
    ModelIndex,
    ModelMetadata,
    RegionInput,
    RegionOutput,
    ServerMetadata,
    Tensor,
    TensorMetadata,
)
from trtserver_client.aio import AsyncClient, AsyncStream
from trtserver_client.shared_memory import SystemRegion

__version__: str = _library_functions.version().decode()

__all__ = [
    "AsyncClient",
    "AsyncStream",
    "Cancelled",
    "Class",
    "Classes",
    "Client",
    "ConnectionFailed",
    "DeadlineExceeded",
    "InferResult",
    "InferenceError",
    "InvalidArgument",
    "InvalidResponse",
    "ModelIndex",
    "ModelMetadata",
    "RegionInput",
    "RegionOutput",
    "ServerError",
    "ServerMetadata",
    "Stream",
    "SystemRegion",
    "Tensor",
    "TensorMetadata",
]

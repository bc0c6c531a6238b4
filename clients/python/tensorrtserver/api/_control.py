# SPDX-License-Identifier: Apache-2.0
"""Contexts for health, status, models and shared memory of a v1 server."""

from __future__ import annotations

from ctypes import c_void_p
from typing import TYPE_CHECKING, Optional, Sequence

from tensorrtserver import _regions
from tensorrtserver.api._errors import raise_error
from tensorrtserver.api._native import ServerContext, Text, name, plain
from trtserver_client._library import library, received, truth

if TYPE_CHECKING:
    from tensorrtserver.api.server_status_pb2 import ModelRepositoryIndex, ServerStatus, SharedMemoryStatus

#: The default of the library.
_DEADLINE = 0


class ServerHealthContext(ServerContext):
    """Asks for the health of a server.

    Parameters
    ----------
    url : str
        Address such as `localhost:8000`.
    protocol : ProtocolType
        HTTP or GRPC.
    verbose : bool
        Prints requests and responses.
    http_headers : list of str
        Headers of HTTP requests, each `Name:Value`.
    """

    def __init__(
        self, url: Text, protocol: int, verbose: bool = False, http_headers: Optional[Sequence[str]] = None
    ) -> None:
        super().__init__(url, protocol, verbose, http_headers)

    def is_ready(self) -> bool:
        """Whether the server accepts requests for its models.

        Raises
        ------
        InferenceServerException
            The server cannot be asked.
        """
        return self._call(truth, library.v1_ready, _DEADLINE)

    def is_live(self) -> bool:
        """Whether the server runs.

        Raises
        ------
        InferenceServerException
            The server cannot be asked.
        """
        return self._call(truth, library.v1_live, _DEADLINE)


class ServerStatusContext(ServerContext):
    """Asks for the status of a server, or of one of its models.

    Parameters are those of `ServerHealthContext`, and `model_name`: None for all models.
    """

    def __init__(
        self,
        url: Text,
        protocol: int,
        model_name: Optional[Text] = None,
        verbose: bool = False,
        http_headers: Optional[Sequence[str]] = None,
    ) -> None:
        self._model = None if model_name is None else name(model_name)
        super().__init__(url, protocol, verbose, http_headers)

    def get_server_status(self) -> ServerStatus:
        """The status as a message of `server_status_pb2`. Needs the package protobuf.

        Raises
        ------
        InferenceServerException
            The server cannot be asked, or does not know the model.
        """
        from tensorrtserver.api.server_status_pb2 import ServerStatus

        data = self._call(received, library.v1_status, self._model, _DEADLINE)
        return ServerStatus.FromString(data)


class ModelRepositoryContext(ServerContext):
    """Lists the models in the repository of a server. Parameters are those of `ServerHealthContext`."""

    def __init__(
        self, url: Text, protocol: int, verbose: bool = False, http_headers: Optional[Sequence[str]] = None
    ) -> None:
        super().__init__(url, protocol, verbose, http_headers)

    def get_model_repository_index(self) -> ModelRepositoryIndex:
        """The models, loaded or not, as a message of `server_status_pb2`. Needs the package protobuf.

        Raises
        ------
        InferenceServerException
            The server cannot be asked.
        """
        from tensorrtserver.api.server_status_pb2 import ModelRepositoryIndex

        data = self._call(received, library.v1_repository_index, _DEADLINE)
        return ModelRepositoryIndex.FromString(data)


class ModelControlContext(ServerContext):
    """Loads and unloads models. Parameters are those of `ServerHealthContext`."""

    def __init__(
        self, url: Text, protocol: int, verbose: bool = False, http_headers: Optional[Sequence[str]] = None
    ) -> None:
        super().__init__(url, protocol, verbose, http_headers)

    def load(self, model_name: Text) -> None:
        """Loads a model, or loads it anew if its files have changed.

        Raises
        ------
        InferenceServerException
            The model cannot be loaded, or the server does not take such requests.
        """
        self._call(plain, library.v1_load_model, name(model_name), _DEADLINE)

    def unload(self, model_name: Text) -> None:
        """Unloads a model after its requests.

        Raises
        ------
        InferenceServerException
            The server does not take such requests.
        """
        self._call(plain, library.v1_unload_model, name(model_name), _DEADLINE)


class SharedMemoryControlContext(ServerContext):
    """Makes shared memory regions known to a server. Parameters are those of `ServerHealthContext`.

    Handles are those of `tensorrtserver.shared_memory` and `tensorrtserver.cuda_shared_memory`.
    """

    def __init__(
        self, url: Text, protocol: int, verbose: bool = False, http_headers: Optional[Sequence[str]] = None
    ) -> None:
        super().__init__(url, protocol, verbose, http_headers)

    def register(self, shm_handle: c_void_p) -> None:
        """Registers a system shared memory region.

        Raises
        ------
        InferenceServerException
            The server refuses the region, or the handle is not of such a region.
        """
        region = _regions.find(shm_handle, raise_error)
        if region.key is None:
            raise_error(f"shared memory region '{region.name}' is CUDA memory: use cuda_register")
        key = name(region.key)
        self._call(
            plain, library.v1_register_system_memory, name(region.name), key, 0, region.byte_size, _DEADLINE
        )  # fmt: skip

    def cuda_register(self, cuda_shm_handle: c_void_p) -> None:
        """Registers a CUDA shared memory region.

        Raises
        ------
        InferenceServerException
            The server refuses the region, or the handle is not of such a region.
        """
        region = _regions.find(cuda_shm_handle, raise_error)
        if region.key is not None:
            raise_error(f"shared memory region '{region.name}' is system memory: use register")
        raw = region.raw_handle
        self._call(
            plain, library.v1_register_cuda_memory, name(region.name), raw, len(raw), region.byte_size,
            region.device_id, _DEADLINE,
        )  # fmt: skip

    def unregister(self, shm_handle: c_void_p) -> None:
        """Ends the use of a region by the server.

        Raises
        ------
        InferenceServerException
            The server cannot be asked, or the handle is unknown.
        """
        region = _regions.find(shm_handle, raise_error)
        self._call(plain, library.v1_unregister_memory, name(region.name), _DEADLINE)

    def unregister_all(self) -> None:
        """Ends the use of all regions by the server.

        Raises
        ------
        InferenceServerException
            The server cannot be asked.
        """
        self._call(plain, library.v1_unregister_memory, None, _DEADLINE)

    def get_shared_memory_status(self) -> SharedMemoryStatus:
        """The registered regions as a message of `server_status_pb2`. Needs the package protobuf.

        Raises
        ------
        InferenceServerException
            The server cannot be asked.
        """
        from tensorrtserver.api.server_status_pb2 import SharedMemoryStatus

        data = self._call(received, library.v1_memory_status, _DEADLINE)
        return SharedMemoryStatus.FromString(data)

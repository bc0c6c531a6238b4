# SPDX-License-Identifier: Apache-2.0
"""The connection to a v2 server and its calls, except inference. `Client` is made of it, `AsyncClient` calls it in threads."""

from __future__ import annotations

import json
from typing import Any, Callable, Dict, List, Mapping, Optional, Tuple, TypeVar, Union

from trtserver_client import _library, _types
from trtserver_client._errors import InvalidArgument, InvalidResponse, exception
from trtserver_client._library import NativeError, V2File, library
from trtserver_client._request import header_pairs, microseconds
from trtserver_client._types import Deadline, Headers, ModelIndex, ModelMetadata, ServerMetadata

T = TypeVar("T")


def call(function: Callable[..., T], *arguments: Any) -> T:
    """Calls the library. Its errors become exceptions of this package."""
    try:
        return function(*arguments)
    except NativeError as error:
        raise exception(error) from None
    except InvalidArgument:
        raise
    except ValueError as error:
        raise InvalidArgument(str(error)) from None


_PROTOCOLS = {"http": _library.HTTP, "grpc": _library.GRPC}


def _protocol(url: str, protocol: Optional[str]) -> int:
    """The protocol that is given, or that the scheme of the URL has."""
    if protocol is None:
        protocol = "grpc" if url.partition("://")[0] in ("grpc", "grpcs") else "http"
    if protocol not in _PROTOCOLS:
        raise InvalidArgument(f"protocol is {protocol!r}, expected 'http' or 'grpc'")
    return _PROTOCOLS[protocol]


class Calls:
    """A connection to a v2 server, with blocking calls.

    Each call may have a deadline in seconds; None is the deadline of the client, `math.inf` is none. Each raises
    `InferenceError`: `ServerError` with the text of the server, `ConnectionFailed`, `DeadlineExceeded`,
    `InvalidResponse` or `InvalidArgument`.
    """

    _handle: Optional[int] = None

    def __init__(
        self,
        url: str,
        *,
        protocol: Optional[str] = None,
        headers: Optional[Headers] = None,
        deadline: Deadline = None,
        compression: Optional[str] = None,
        ca_file: Optional[str] = None,
        certificate_file: Optional[str] = None,
        key_file: Optional[str] = None,
        insecure: bool = False,
        verbose: bool = False,
    ) -> None:
        """Connects when the first call needs it.

        Parameters
        ----------
        url : str
            `http://host:8000`, `grpc://host:8001`, with TLS `https://` or `grpcs://`, or `unix:/path` of a socket.
        protocol : str
            `http` or `grpc`; None is that of the URL's scheme, without one HTTP.
        headers : mapping or list of pairs
            Headers (HTTP) or metadata (gRPC) of every request.
        deadline : float
            Seconds that a call without a deadline may take; None is the environment variable TRTSERVER_CLIENT_DEADLINE,
            without it 60, for loading and unloading models 600.
        compression : str
            `gzip` or `deflate` compresses requests. Compressed responses are always understood.
        ca_file, certificate_file, key_file : str
            PEM files for TLS: certificate authorities instead of the system's, the certificate of the client and its key.
        insecure : bool
            Accepts any certificate of the server.
        verbose : bool
            Prints requests and responses, without tensors, to standard error.
        """
        number = _protocol(url, protocol)
        if compression not in _library.COMPRESSIONS:
            raise InvalidArgument(f"compression is {compression!r}, expected None, 'gzip' or 'deflate'")
        pairs = header_pairs(headers)
        given = call(
            lambda: _library.settings(
                url, number, pairs, compression=_library.COMPRESSIONS[compression],
                deadline_us=microseconds(deadline), verbose=verbose, tls_insecure=insecure,
                tls_ca_file=ca_file, tls_certificate_file=certificate_file, tls_key_file=key_file,
            )
        )  # fmt: skip
        self._handle = call(_library.new, library.v2_client_new, given)

    def __del__(self) -> None:
        self.close()

    def close(self) -> None:
        """Closes the connection. Calls that run are cancelled."""
        handle, self._handle = self._handle, None
        if handle is not None:
            library.v2_client_free(handle)

    @property
    def _open(self) -> int:
        if self._handle is None:
            raise InvalidArgument("the client is closed")
        return self._handle

    def _truth(self, name: str, *arguments: Any) -> bool:
        return call(_library.truth, getattr(library, name), self._open, *arguments)

    def _json(self, name: str, *arguments: Any) -> Any:
        data = call(_library.received, getattr(library, name), self._open, *arguments)
        try:
            return json.loads(data)
        except ValueError as error:
            raise InvalidResponse(f"{name[3:]}: the response is not JSON: {error}") from None

    def _parsed(self, parse: Callable[[Any], T], name: str, *arguments: Any) -> T:
        given = self._json(name, *arguments)
        try:
            return parse(given)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise InvalidResponse(f"{name[3:]}: unexpected response {json.dumps(given)[:200]}: {error!r}") from None

    def _plain(self, name: str, *arguments: Any) -> None:
        call(getattr(library, name), self._open, *arguments)

    def is_live(self, deadline: Deadline = None) -> bool:
        """Whether the server runs."""
        return self._truth("v2_live", microseconds(deadline))

    def is_ready(self, deadline: Deadline = None) -> bool:
        """Whether the server accepts requests for its models."""
        return self._truth("v2_ready", microseconds(deadline))

    def is_model_ready(self, model: str, version: str = "", deadline: Deadline = None) -> bool:
        """Whether a model, or one version of it, accepts requests."""
        return self._truth("v2_model_ready", *_model(model, version), microseconds(deadline))

    def server_metadata(self, deadline: Deadline = None) -> ServerMetadata:
        """Name, version and extensions of the server."""
        return self._parsed(_types.server_metadata, "v2_server_metadata", microseconds(deadline))

    def model_metadata(self, model: str, version: str = "", deadline: Deadline = None) -> ModelMetadata:
        """Versions, inputs and outputs of a model."""
        arguments = (*_model(model, version), microseconds(deadline))
        return self._parsed(_types.model_metadata, "v2_model_metadata", *arguments)

    def model_config(self, model: str, version: str = "", deadline: Deadline = None) -> Dict[str, Any]:
        """The configuration of a model, as the server has completed it."""
        return self._parsed(dict, "v2_model_config", *_model(model, version), microseconds(deadline))

    def statistics(self, model: str = "", version: str = "", deadline: Deadline = None) -> List[Dict[str, Any]]:
        """Counts and times of a model, or of all models, with the keys of the statistics extension."""
        arguments = (*_model(model or None, version), microseconds(deadline))
        return self._parsed(lambda given: list(given["model_stats"]), "v2_statistics", *arguments)

    def repository_index(self, ready_only: bool = False, deadline: Deadline = None) -> List[ModelIndex]:
        """The models of the repository, or only those that are ready."""
        return self._parsed(_types.model_index, "v2_repository_index", ready_only, microseconds(deadline))

    def load_model(
        self,
        model: str,
        config: Union[str, Mapping[str, Any], None] = None,
        files: Optional[Mapping[str, bytes]] = None,
        deadline: Deadline = None,
    ) -> None:
        """Loads a model, or loads it anew.

        `config` replaces the configuration of the repository; `files` are the files of the model by path, such as
        `1/model.onnx`, and need `config`.
        """
        text = config if config is None or isinstance(config, str) else json.dumps(config)
        entries = []
        for path, data in (files or {}).items():
            plain = path[5:] if path.startswith("file:") else path
            entries.append((_argument(plain), data, len(data)))
        array = _library.array(V2File, entries)
        self._plain("v2_load_model", _argument(model), _argument(text), array, len(entries), microseconds(deadline))

    def unload_model(self, model: str, unload_dependents: bool = False, deadline: Deadline = None) -> None:
        """Unloads a model after its requests, and with `unload_dependents` the models of an ensemble."""
        self._plain("v2_unload_model", _argument(model), unload_dependents, microseconds(deadline))

    def register_system_memory(
        self, name: str, key: str, byte_size: int, offset: int = 0, deadline: Deadline = None
    ) -> None:
        """Registers a POSIX shared memory object as a region. See `SystemRegion`."""
        self._plain(
            "v2_register_system_memory", _argument(name), _argument(key), offset, byte_size, microseconds(deadline)
        )

    def register_cuda_memory(
        self, name: str, raw_handle: bytes, device_id: int, byte_size: int, deadline: Deadline = None
    ) -> None:
        """Registers GPU memory as a region, by its CUDA IPC handle."""
        self._plain(
            "v2_register_cuda_memory", _argument(name), raw_handle, len(raw_handle), device_id, byte_size,
            microseconds(deadline),
        )  # fmt: skip

    def unregister_system_memory(self, name: str = "", deadline: Deadline = None) -> None:
        """Ends the use of a region by the server, or of all system regions."""
        self._plain("v2_unregister_system_memory", _argument(name or None), microseconds(deadline))

    def unregister_cuda_memory(self, name: str = "", deadline: Deadline = None) -> None:
        """Ends the use of a region by the server, or of all CUDA regions."""
        self._plain("v2_unregister_cuda_memory", _argument(name or None), microseconds(deadline))

    def system_memory_status(self, name: str = "", deadline: Deadline = None) -> List[Dict[str, Any]]:
        """The registered system regions."""
        return self._parsed(_types.regions, "v2_system_memory_status", _argument(name or None), microseconds(deadline))

    def cuda_memory_status(self, name: str = "", deadline: Deadline = None) -> List[Dict[str, Any]]:
        """The registered CUDA regions."""
        return self._parsed(_types.regions, "v2_cuda_memory_status", _argument(name or None), microseconds(deadline))

    def trace_settings(
        self, model: str = "", changes: Optional[Mapping[str, Any]] = None, deadline: Deadline = None
    ) -> Dict[str, Any]:
        """The trace settings of the server or of a model, after the changes."""
        arguments = (_argument(model or None), _changes(changes), microseconds(deadline))
        return self._parsed(dict, "v2_trace_settings", *arguments)

    def log_settings(
        self, changes: Optional[Mapping[str, Any]] = None, deadline: Deadline = None
    ) -> Dict[str, Any]:
        """The log settings of the server, after the changes."""
        return self._parsed(dict, "v2_log_settings", _changes(changes), microseconds(deadline))


def _argument(value: Optional[str]) -> Optional[bytes]:
    return call(_library.optional, value)


def _model(model: Optional[str], version: str) -> Tuple[Optional[bytes], Optional[bytes]]:
    return _argument(model), _argument(version or None)


def _changes(changes: Optional[Mapping[str, Any]]) -> Optional[bytes]:
    return None if changes is None else json.dumps(changes).encode()

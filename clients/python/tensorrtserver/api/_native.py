# SPDX-License-Identifier: Apache-2.0
"""Calls of the C library whose errors are `InferenceServerException`, and the settings of v1 contexts."""

from __future__ import annotations

from typing import Any, Callable, Iterable, List, Optional, Tuple, TypeVar, Union

from tensorrtserver.api._errors import InferenceServerException, raise_error
from trtserver_client import _library
from trtserver_client._library import NativeError, library

T = TypeVar("T")
Text = Union[str, bytes]


def exception(error: NativeError) -> InferenceServerException:
    """The text of a server stays as it is; that of the client is followed by what was asked of whom."""
    text = error.message
    if error.asked and error.kind != _library.KIND_SERVER:
        text = f"{text} ({error.asked})"
    return InferenceServerException(text, error.server_id, error.request_id)


def call(function: Callable[..., T], *arguments: Any) -> T:
    """Calls the library. Its errors, and arguments that it cannot take, become exceptions of v1."""
    try:
        return function(*arguments)
    except NativeError as error:
        raise exception(error) from None
    except ValueError as error:
        raise_error(str(error))


def name(value: Text) -> bytes:
    """A name as an argument of the library."""
    try:
        return _library.encoded(value)
    except ValueError as error:
        raise_error(str(error))


def _headers(lines: Optional[Iterable[str]]) -> List[Tuple[str, str]]:
    headers = []
    for line in lines or ():
        key, colon, value = line.partition(":")
        if not colon or not key.strip():
            raise_error(f"HTTP header '{line}' must have the form 'Name:Value'")
        headers.append((key.strip(), value.strip()))
    return headers


def settings(url: Text, protocol: int, verbose: bool, http_headers: Optional[Iterable[str]]) -> Any:
    """Settings of a context. As in the original, gRPC ignores the headers."""
    headers = _headers(http_headers) if int(protocol) == _library.HTTP else []
    text = url.decode() if isinstance(url, bytes) else url
    if int(protocol) == _library.HTTP and text.strip().lower().startswith(("grpc://", "grpcs://")):
        raise_error(f"the URL '{text}' is one of gRPC, but the protocol is HTTP: expecting ProtocolType.GRPC or http://")
    try:
        return _library.settings(text, int(protocol), headers, verbose=bool(verbose))
    except ValueError as error:
        raise_error(str(error))


class Closing:
    """A context that ends with `close`, a `with` block or its last reference."""

    def close(self) -> None:
        raise NotImplementedError

    def __enter__(self) -> Any:
        return self

    def __exit__(self, type: Any, value: Any, traceback: Any) -> None:
        self.close()

    def __del__(self) -> None:
        self.close()


class ServerContext(Closing):
    """A context of calls to the server, not to a model."""

    _handle: Optional[int] = None

    def __init__(self, url: Text, protocol: int, verbose: bool, http_headers: Optional[Iterable[str]]) -> None:
        self._last_request_id: Optional[int] = 0
        given = settings(url, protocol, verbose, http_headers)
        self._handle = call(_library.new, library.v1_client_new, given)

    def _call(self, way: Callable[..., T], function: Any, *arguments: Any) -> T:
        """Calls `function` of the library by `way`, and remembers the request id."""
        self._last_request_id = None
        if self._handle is None:
            raise_error(f"{type(self).__name__} is closed")
        result = call(way, function, self._handle, *arguments)
        self._last_request_id = library.v1_client_last_request_id(self._handle)
        return result

    def close(self) -> None:
        """Closes the context. Later calls fail."""
        handle, self._handle = self._handle, None
        if handle is not None:
            library.v1_client_free(handle)

    def get_last_request_id(self) -> Optional[int]:
        """Number that the server gave the last request; None if that failed, 0 before the first."""
        return self._last_request_id


def plain(function: Any, *arguments: Any) -> None:
    """The way of functions without a result."""
    function(*arguments)

# SPDX-License-Identifier: Apache-2.0
"""Exceptions of the v2 clients."""

from __future__ import annotations

from typing import Dict, Type

from trtserver_client import _library
from trtserver_client._library import NativeError


class InferenceError(Exception):
    """A call failed. The subclasses tell what failed.

    `str()` has the reason and what was asked of whom.
    """

    #: The reason, for `ServerError` the text of the server.
    message: str
    #: What was asked of whom: method and URL; empty if nothing was asked.
    asked: str
    #: HTTP status or gRPC status code of the response; 0 if there was none.
    status: int
    #: Id that the request had, for errors on streams.
    id: str

    def __init__(self, message: str, asked: str = "", status: int = 0, id: str = "") -> None:
        super().__init__(f"{asked}: {message}" if asked else message)
        self.message = message
        self.asked = asked
        self.status = status
        self.id = id


class ServerError(InferenceError):
    """The server refused or failed the request."""


class ConnectionFailed(InferenceError):
    """There is no connection to the server, or it was lost."""


class DeadlineExceeded(InferenceError):
    """The deadline has passed. The request was cancelled."""


class Cancelled(InferenceError):
    """The call was cancelled, or its client or stream was closed."""


class InvalidResponse(InferenceError):
    """The response of the server is not what the protocol prescribes."""


class InvalidArgument(InferenceError, ValueError):
    """An argument is invalid; nothing was sent."""


_KINDS: Dict[int, Type[InferenceError]] = {
    _library.KIND_SERVER: ServerError,
    _library.KIND_CONNECTION: ConnectionFailed,
    _library.KIND_DEADLINE: DeadlineExceeded,
    _library.KIND_CANCELLED: Cancelled,
    _library.KIND_RESPONSE: InvalidResponse,
    _library.KIND_ARGUMENT: InvalidArgument,
}


def exception(error: NativeError) -> InferenceError:
    kind = _KINDS.get(error.kind, InferenceError)
    return kind(error.message, error.asked, error.status, error.id)

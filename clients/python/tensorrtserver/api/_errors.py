# SPDX-License-Identifier: Apache-2.0
"""The exception of the v1 contexts."""

from __future__ import annotations

from typing import NoReturn, Optional


class InferenceServerException(Exception):
    """A request failed, on the server or before it was sent.

    `str()` is `[SERVER_ID REQUEST_ID] MESSAGE`. Errors that are found before a request is sent have an empty server id and
    request id 0.
    """

    def __init__(self, message: Optional[str] = None, server_id: Optional[str] = None, request_id: int = 0) -> None:
        super().__init__(message)
        self._msg = message
        self._server_id = server_id
        self._request_id = request_id

    def __str__(self) -> str:
        message = super().__str__() if self._msg is None else self._msg
        if self._server_id is not None:
            return f"[{self._server_id} {self._request_id}] {message}"
        return message

    def message(self) -> Optional[str]:
        """The text of the server or of the client."""
        return self._msg

    def server_id(self) -> Optional[str]:
        """Name of the server that refused the request, such as `inference:0`."""
        return self._server_id

    def request_id(self) -> int:
        """Number that the server gave the request; 0 if it has none."""
        return self._request_id


def raise_error(message: str) -> NoReturn:
    """Raises an error of this client."""
    raise InferenceServerException(message, "", 0)

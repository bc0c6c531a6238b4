# SPDX-License-Identifier: Apache-2.0
"""`Client`: the blocking client of a v2 server."""

from __future__ import annotations

from ctypes import byref, c_bool, c_void_p
from types import TracebackType
from typing import TYPE_CHECKING, Iterator, Mapping, Optional, Type

from trtserver_client import _library
from trtserver_client._calls import Calls, call
from trtserver_client._errors import InvalidArgument
from trtserver_client._library import Callback, library
from trtserver_client._request import Request, microseconds
from trtserver_client._result import InferResult
from trtserver_client._types import Deadline, InferOptions, Input, RequestOptions

if TYPE_CHECKING:
    # Only annotations use it, which are not evaluated.
    from typing_extensions import Unpack

_NO_CALLBACK = Callback()


class Client(Calls):
    """Blocking client of a v2 server. Threads may share one."""

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        self.close()

    def infer(
        self,
        model: str,
        inputs: Mapping[str, Input],
        **options: Unpack[InferOptions],
    ) -> InferResult:
        """Runs inference and waits for the response.

        Parameters
        ----------
        model : str
            Name of the model.
        inputs : dict
            Arrays by the names of inputs, with the batch as the first dimension if the model batches. An array that is
            contiguous and little-endian is not copied. Strings are arrays of objects, `np.bytes_` or `np.str_`. Also
            `Tensor` (BF16) and `RegionInput` (shared memory).
        outputs : list
            Names of outputs, `Classes` or `RegionOutput`; None requests all outputs.
        version : str
            Version of the model; the server chooses without one.
        request_id : str
            Returned as `InferResult.id`.
        sequence_id : int or str
            Sequence of the request; 0 and "" are none.
        sequence_start, sequence_end : bool
            Whether this is the first or the last request of the sequence.
        priority : int
            1 is the highest; 0 is the model's default.
        timeout_us : int
            Time that the request may wait in the server's queue; 0 is the model's default.
        parameters : dict
            Parameters for the backend: bool, int, str or float.
        headers : mapping or list of pairs
            Headers of this request, beside those of the client.
        deadline : float
            Seconds until the request is cancelled.

        Raises
        ------
        ServerError
            The server refused or failed the request.
        ConnectionFailed, DeadlineExceeded, InvalidResponse, InvalidArgument
            See the classes.
        """
        request = Request(model, inputs, **options)
        return InferResult(call(_library.new, library.v2_infer, self._open, byref(request.structure)))

    def stream(self, *, deadline: Deadline = None) -> Stream:
        """Opens a stream (gRPC only), over which a request may have any number of responses.

        `deadline` limits the whole stream; None means no limit.
        """
        return Stream(self, deadline)

    def infer_stream(
        self,
        model: str,
        inputs: Mapping[str, Input],
        *,
        deadline: Deadline = None,
        **options: Unpack[RequestOptions],
    ) -> Iterator[InferResult]:
        """Sends one request to a decoupled model and yields its responses. Parameters are those of `infer`.

        Ending the loop early cancels the request.
        """
        with self.stream(deadline=deadline) as stream:
            stream.send(model, inputs, **options)
            stream.close_send()
            yield from stream


class Stream:
    """An open stream. Iterate over it for the responses of all its requests, in the order in which they arrive.

    A response that is an error raises; the stream goes on, and so may the iteration with `next`.
    """

    _handle: Optional[int] = None

    def __init__(self, client: Client, deadline: Deadline) -> None:
        limit = microseconds(deadline)
        self._handle = call(_library.new, library.v2_stream_open, client._open, _NO_CALLBACK, None, limit)
        self._ended = False
        self._sent = 0

    def __del__(self) -> None:
        self.close()

    def close(self) -> None:
        """Closes the stream and cancels its requests."""
        handle, self._handle = self._handle, None
        if handle is not None:
            library.v2_stream_free(handle)

    def __enter__(self) -> Stream:
        return self

    def __exit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        self.close()

    @property
    def _open(self) -> int:
        if self._handle is None:
            raise InvalidArgument("the stream is closed")
        return self._handle

    def send(
        self,
        model: str,
        inputs: Mapping[str, Input],
        **options: Unpack[RequestOptions],
    ) -> None:
        """Sends a request. Parameters are those of `Client.infer`. Waits while the send buffer is full.

        Without an id the request gets its number on the stream, from "1": only an error with an id leaves the stream open.
        """
        self._sent += 1
        request = Request.of_stream(model, inputs, self._sent, options)
        call(library.v2_stream_send, self._open, byref(request.structure))

    def close_send(self) -> None:
        """Tells the server that no more requests follow. The iteration ends after the last response."""
        call(library.v2_stream_close, self._open)

    def receive(self, deadline: Deadline = None) -> Optional[InferResult]:
        """The next response, or None after the last.

        Raises
        ------
        ServerError
            The response is an error. The stream goes on unless the server has ended it.
        DeadlineExceeded
            No response came in time. The stream goes on.
        """
        if self._ended:
            return None
        handle, ended = c_void_p(), c_bool()
        try:
            call(library.v2_stream_next, self._open, microseconds(deadline), byref(handle), byref(ended))
        finally:
            self._ended = ended.value
        if handle.value is None:
            self._ended = True
            return None
        return InferResult(handle.value)

    def __iter__(self) -> Stream:
        return self

    def __next__(self) -> InferResult:
        result = self.receive()
        if result is None:
            raise StopIteration
        return result

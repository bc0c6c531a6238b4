# SPDX-License-Identifier: Apache-2.0
"""`InferContext`: inference with a v1 model, in the forms of the base release and of 1.11.0."""

from __future__ import annotations

import itertools
from ctypes import POINTER, byref
from typing import Any, Dict, List, Mapping, Optional, Sequence

from tensorrtserver.api import _results
from tensorrtserver.api._delivery import AsyncCallback, Completed, Delivery, Sent
from tensorrtserver.api._errors import raise_error
from tensorrtserver.api._native import Closing, Text, call, name, settings
from tensorrtserver.api._prepared import Prepared, Preparing, block
from tensorrtserver.api._request import CLASS, RAW, Model, Request
from trtserver_client import _library
from trtserver_client._library import Result, V1Model, V1Statistics, library

Inputs = Mapping[str, Any]
Outputs = Mapping[str, Any]
Results = Dict[str, List[Any]]


class InferContext(Closing):
    """Runs inference with one model.

    The context asks the server for the model's configuration when it is made, and checks requests with it.

    Parameters
    ----------
    url : str
        Address such as `localhost:8000`.
    protocol : ProtocolType
        HTTP or GRPC.
    model_name : str
        Name of the model.
    model_version : int
        Version of the model; None is the newest that the server has loaded.
    verbose : bool
        Prints requests and responses.
    correlation_id : int
        Sequence of the requests; 0 is none.
    streaming : bool
        Sends all requests over one stream. Only with GRPC.
    http_headers : list of str
        Headers of HTTP requests, each `Name:Value`.

    Raises
    ------
    InferenceServerException
        The server cannot be asked, or does not know the model.
    """

    class ResultFormat:
        """What an output returns: `RAW` an array, `(CLASS, k)` the `k` highest classes."""

        RAW = RAW
        CLASS = CLASS

    _ctx: Optional[int] = None

    def __init__(
        self,
        url: Text,
        protocol: int,
        model_name: Text,
        model_version: Optional[int] = None,
        verbose: bool = False,
        correlation_id: int = 0,
        streaming: bool = False,
        http_headers: Optional[Sequence[str]] = None,
    ) -> None:
        self._correlation_id = correlation_id
        self._last_request_id: Optional[int] = None
        self._last_request_model_name: Optional[str] = None
        self._last_request_model_version: Optional[int] = None
        self._ids = itertools.count(1)
        self._delivery = Delivery()
        #: A verbose library writes while it sends, which may wait for another thread of the program.
        self._is_quick = not verbose
        if streaming and int(protocol) != _library.GRPC:
            raise_error("Streaming is only allowed with gRPC protocol")
        given = settings(url, protocol, verbose, http_headers)
        version = -1 if model_version is None else model_version
        self._ctx = call(
            _library.new, library.v1_context_new, given, name(model_name), version, correlation_id,
            bool(streaming), 0,
        )  # fmt: skip
        model = POINTER(V1Model)()
        call(library.v1_context_model, self._ctx, byref(model))
        self._model = Model.of(model.contents)
        self._preparing: Optional[Preparing] = None if streaming or correlation_id else Preparing(self._model)

    def close(self) -> None:
        """Closes the context. Requests without a response are cancelled, later calls fail."""
        self._close(True)

    def _close(self, wait: bool) -> None:
        handle, self._ctx = self._ctx, None
        self._preparing = None
        if handle is not None:
            library.v1_context_free(handle)
            self._delivery.close(wait)

    def __del__(self) -> None:
        # Without references there is no callback to wait for.
        self._close(False)

    def _open(self) -> int:
        if self._ctx is None:
            raise_error("InferContext is closed")
        return self._ctx

    def correlation_id(self) -> int:
        """The sequence of the next request that gives none."""
        return self._correlation_id

    def run(
        self,
        inputs: Inputs,
        outputs: Outputs,
        batch_size: int = 1,
        flags: int = 0,
        corr_id: int = 0,
    ) -> Results:
        """Runs inference and waits for the results.

        Parameters
        ----------
        inputs : dict
            For each input of the model a list with one numpy array per batch entry, of the model's type (or the integer
            type of its size and the other sign) and of the model's shape without the batch, all of one shape. Strings are arrays of objects or `np.bytes_`. An array that is contiguous
            and little-endian is not copied. Instead of the list: a shared memory handle, or a tuple of the handle and
            the shape.
        outputs : dict
            For each requested output `ResultFormat.RAW`, `(ResultFormat.CLASS, k)`, or `(ResultFormat.RAW, handle)`
            for a shared memory region that receives the tensor.
        batch_size : int
            Number of batch entries.
        flags : int
            Bits of `InferRequestHeader.Flag`: start and end of a sequence.
        corr_id : int
            Sequence of this request and of later ones; 0 keeps that of the context.

        Returns
        -------
        dict
            For each output a list with one value per batch entry: a numpy array with the output's shape without the
            batch, over the memory of the response, or a list of tuples (index, value, label).

        Raises
        ------
        InferenceServerException
            An input is missing, or has another size, shape or type; an output is unknown; the server fails the request.
        """
        self._last_request_id = None
        self._last_request_model_name = None
        self._last_request_model_version = None
        handle = self._open()
        preparing = self._preparing
        if corr_id:
            # From here on the context belongs to a sequence, whose id a prepared request would not
            # follow.
            self._preparing = preparing = None
        if preparing is not None:
            found = preparing.find(handle, inputs, outputs, batch_size, flags)
            if found is not None:
                prepared, arrays = found
                reply = prepared.run(arrays)
                self._last_request_id = reply.request_id
                self._last_request_model_name = self._model.name
                self._last_request_model_version = reply.model_version
                return reply.results
        request = Request(self._model, inputs, outputs, batch_size, flags, corr_id)
        result = Result(call(_library.new, library.v1_infer, handle, byref(request.structure)), library.v1_result_free)
        if corr_id:
            self._correlation_id = corr_id
        return self._read(result, outputs, batch_size)

    def async_run(self, *arguments: Any, **more: Any) -> Optional[int]:
        """Sends a request and returns at once. Two forms, told apart by the first argument:

        `async_run(callback, inputs, outputs, batch_size=1, flags=0, corr_id=0)`, the form of 1.11.0, returns None. A
        thread of the client calls `callback(context, id)` when the response has arrived; pass the id to
        `get_async_run_results`.

        `async_run(inputs, outputs, batch_size=1, flags=0, corr_id=0)`, the form of the base release, returns the id,
        for `get_async_run_results(id, wait)` and `get_ready_async_request(wait)`.

        The other parameters are those of `run`. Arrays must stay unchanged until the response has arrived.

        Raises
        ------
        InferenceServerException
            As `run`, for what is found before the request is sent. Errors of the server are raised by
            `get_async_run_results`.
        """
        if "callback" in more or (arguments and not isinstance(arguments[0], Mapping)):
            self._send(*arguments, **more)
            return None
        return self._send(None, *arguments, **more)

    def async_run_with_cb(self, callback: AsyncCallback, *arguments: Any, **more: Any) -> None:
        """`async_run` with a callback, under the name that it had in the releases between."""
        self._send(callback, *arguments, **more)

    def _send(
        self,
        callback: Optional[AsyncCallback],
        inputs: Inputs,
        outputs: Outputs,
        batch_size: int = 1,
        flags: int = 0,
        corr_id: int = 0,
    ) -> int:
        if callback is not None and not callable(callback):
            raise_error(f"the callback of async_run is a {type(callback).__name__}, expected a function")
        handle = self._open()
        if corr_id:
            self._preparing = None
        preparing = self._preparing if self._is_quick else None
        if preparing is not None:
            found = preparing.find(handle, inputs, outputs, batch_size, flags)
            if found is not None:
                prepared, arrays = found
                id = next(self._ids)
                self._delivery.send_prepared(id, Sent(self, callback, outputs, batch_size, prepared), block(arrays))
                return id
        request = Request(self._model, inputs, outputs, batch_size, flags, corr_id)
        id = next(self._ids)
        self._delivery.send(handle, id, Sent(self, callback, outputs, batch_size, request))
        if corr_id:
            self._correlation_id = corr_id
        return id

    def get_async_run_results(self, request_id: int, wait: bool = True) -> Optional[Results]:
        """The results of a request of `async_run`.

        Parameters
        ----------
        request_id : int
            The id from the callback or from `async_run`.
        wait : bool
            Parameter of the base release. True waits for the response, False returns None if it has not arrived.

        Returns
        -------
        dict
            As `run`.

        Raises
        ------
        InferenceServerException
            The server failed the request, or there is no such request.
        """
        completed = self._delivery.completed.pop(request_id, None)
        if completed is None:
            completed = self._wait_for(request_id, wait)
            if completed is None:
                return None
        sent, error, result, body, described, number, version = completed
        if error is not None:
            raise error
        if result is not None:
            return self._read(result, sent.outputs, sent.batch_size)
        assert isinstance(sent.request, Prepared)
        self._last_request_id = number
        self._last_request_model_name = self._model.name
        self._last_request_model_version = version
        return sent.request.results(memoryview(body), described)

    def _wait_for(self, request_id: int, wait: bool) -> Optional[Completed]:
        delivery = self._delivery
        with delivery.changed:
            delivery.waiting += 1
            try:
                while True:
                    # In this order, the opposite of that of the changes.
                    is_outstanding = request_id in delivery.sent and not delivery.is_over
                    completed = delivery.completed.pop(request_id, None)
                    if completed is not None:
                        return completed
                    if not is_outstanding:
                        raise_error("The request ID doesn't match any existing asynchrnous requests")
                    if not wait:
                        return None
                    delivery.changed.wait()
            finally:
                delivery.waiting -= 1

    def get_ready_async_request(self, wait: bool) -> Optional[int]:
        """The id of a completed request whose results were not taken. A call of the base release.

        Parameters
        ----------
        wait : bool
            True waits for one, False returns None if there is none.

        Raises
        ------
        InferenceServerException
            No request is outstanding or completed.
        """
        delivery = self._delivery
        with delivery.changed:
            delivery.waiting += 1
            try:
                while True:
                    is_outstanding = bool(delivery.sent) and not delivery.is_over
                    # The oldest one may be taken by another thread at any time.
                    ready: Optional[int] = next(iter(delivery.completed), None)
                    if ready is not None:
                        return ready
                    if not is_outstanding:
                        raise_error("No asynchronous requests have been sent")
                    if not wait:
                        return None
                    delivery.changed.wait()
            finally:
                delivery.waiting -= 1

    def _read(self, result: Result, outputs: Outputs, batch_size: int) -> Results:
        info, results = _results.read(result, outputs, batch_size)
        self._last_request_id = info.request_id
        self._last_request_model_name = _library.text(info.model_name)
        self._last_request_model_version = info.model_version
        return results

    def get_last_request_id(self) -> Optional[int]:
        """Number that the server gave the last request; None if that failed."""
        return self._last_request_id

    def get_last_request_model_name(self) -> Optional[str]:
        """Model of the last request; None if that failed."""
        return self._last_request_model_name

    def get_last_request_model_version(self) -> Optional[int]:
        """Version of the model that served the last request; None if that failed."""
        return self._last_request_model_version

    def get_stat(self) -> Dict[str, int]:
        """Statistics of the requests of this context.

        Returns
        -------
        dict
            `completed_request_count`, `cumulative_total_request_time_ns`, `cumulative_send_time_ns` and
            `cumulative_receive_time_ns`.
        """
        statistics = V1Statistics()
        call(library.v1_context_statistics, self._open(), byref(statistics))
        return {
            "completed_request_count": statistics.completed_request_count,
            "cumulative_total_request_time_ns": statistics.total_request_time_ns,
            "cumulative_send_time_ns": statistics.send_time_ns,
            "cumulative_receive_time_ns": statistics.receive_time_ns,
        }

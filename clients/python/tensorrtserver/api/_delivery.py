# SPDX-License-Identifier: Apache-2.0
"""Asynchronous requests of a context, and the thread that calls their callbacks.

The thread takes all responses that have arrived with one call of the library, so that it gets the interpreter's lock once for
many of them. It has no reference to the context while it waits: a context without outstanding requests may be collected.
"""

from __future__ import annotations

import _thread
import ctypes
import os
import threading
from collections import OrderedDict
from ctypes import byref, c_bool, c_size_t
from struct import Struct
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Tuple, Union

from tensorrtserver.api._errors import InferenceServerException, raise_error
from tensorrtserver.api._native import call, exception
from tensorrtserver.api._prepared import Prepared
from tensorrtserver.api._request import Request
from trtserver_client import _library
from trtserver_client._library import Result, V1Completion, library

#: Called with the context and the id of a request.
AsyncCallback = Callable[[Any, int], Any]

#: Bytes of the responses that are taken at once; the library has larger ones in results.
_CAPACITY = 64 * 1024

#: `V1Completion`: its size, user, id and error; then the reply.
_HEAD = Struct("=QQQQQQQqQ")
#: Where the reply begins. Description and tensors follow it.
_REPLY = V1Completion.reply.offset
_BODY = ctypes.sizeof(V1Completion)

_send = library.v1_prepared_infer_queued
_take = library.v1_queue_take


class Sent(NamedTuple):
    """A request without a response. It keeps the context, and the arrays that the library reads."""

    context: Any
    callback: Optional[AsyncCallback]
    outputs: Mapping[Any, Any]
    batch_size: int
    request: Union[Request, Prepared]


class Completed(NamedTuple):
    """A response that get_async_run_results has not taken."""

    sent: Sent
    error: Optional[InferenceServerException]
    result: Optional[Result]
    #: Description and tensors of the response to a prepared request, and the size of the description.
    body: bytes
    described: int
    request_id: int
    model_version: int


class Delivery:
    """The asynchronous requests of a context. The thread starts with the first."""

    def __init__(self) -> None:
        #: Requests without a response, and responses in the order in which they have arrived. A response is added to the
        #: second before its request leaves the first.
        self.sent: Dict[int, Sent] = {}
        self.completed: "OrderedDict[int, Completed]" = OrderedDict()
        #: Threads that wait for a change of these.
        self.waiting = 0
        self.changed = threading.Condition()
        #: The thread has taken its last response.
        self.is_over = False
        self._is_closed = False
        self._queue: Optional[int] = None
        self._ended = _thread.allocate_lock()
        self._thread = 0
        self._process = 0
        self._buffer = ctypes.create_string_buffer(0)
        self._view = memoryview(b"")
        self._count = c_size_t()

    def open(self) -> int:
        """The queue of the library."""
        if self._queue is None:
            with self.changed:
                if self._queue is None:
                    self._queue = self._start()
        return self._queue

    def _start(self) -> int:
        if self._is_closed:
            raise_error("InferContext is closed")
        queue = call(_library.new, library.v1_queue_new)
        self._buffer = ctypes.create_string_buffer(_CAPACITY)
        self._view = memoryview(self._buffer).cast("B")
        self._process = os.getpid()
        self._ended.acquire()
        try:
            # Of the module `threading` a thread of the library would know as little.
            self._thread = _thread.start_new_thread(self._deliver, (queue,))
        except RuntimeError as error:
            self._ended.release()
            library.v1_queue_free(queue)
            raise_error(f"the thread of callbacks cannot be started: {error}")
        return queue

    def send(self, context: Optional[int], id: int, sent: Sent) -> None:
        """Sends a request that is not prepared."""
        queue = self.open()
        # The response may arrive before the call returns.
        self.sent[id] = sent
        try:
            assert isinstance(sent.request, Request)
            call(library.v1_infer_queued, context, byref(sent.request.structure), queue, id, None)
        except BaseException:
            self.sent.pop(id, None)
            raise

    def send_prepared(self, id: int, sent: Sent, data: bytes) -> None:
        queue = self._queue or self.open()
        self.sent[id] = sent
        assert isinstance(sent.request, Prepared)
        error = _send(sent.request.handle, data, len(data), queue, id, None)
        if error:
            del self.sent[id]
            raise exception(_library.take_error(error)) from None

    def close(self, wait: bool) -> None:
        """Ends the thread after the callbacks of the requests that have completed; they all have, as the context is released.

        Waits for the thread, but not in a callback, nor in a child process, which does not have it."""
        if self._queue is not None and self._process != os.getpid():
            return
        with self.changed:
            self._is_closed = True
            if self._queue is None:
                return
        library.v1_queue_close(self._queue)
        if wait and self._thread != _thread.get_ident():
            with self._ended:
                pass

    def _deliver(self, queue: int) -> None:
        opened = c_bool()
        place, ended = byref(opened), self._ended
        try:
            while not library.v1_queue_wait(queue, place) and opened.value:
                self._deliver_some(queue)
        finally:
            library.v1_queue_free(queue)
            with self.changed:
                self.is_over = True
                self.changed.notify_all()
            ended.release()

    def _deliver_some(self, queue: int) -> None:
        _library.check(_take(queue, self._buffer, _CAPACITY, byref(self._count)))
        view, sent, completed = self._view, self.sent, self.completed
        callbacks: List[Tuple[int, Sent]] = []
        at = 0
        for _ in range(self._count.value):
            size, id, _, error, filled, result, request_id, version, described = _HEAD.unpack_from(view, at)
            request = sent[id]
            body = view[at + _BODY : at + _REPLY + filled].tobytes() if filled else b""
            completed[id] = Completed(
                request,
                exception(_library.take_error(error)) if error else None,
                Result(result, library.v1_result_free) if result else None,
                body,
                described,
                request_id,
                version,
            )
            del sent[id]
            if request.callback is not None:
                callbacks.append((id, request))
            at += size
        if self.waiting:
            with self.changed:
                self.changed.notify_all()
        for id, request in callbacks:
            try:
                request.callback(request.context, id)  # type: ignore[misc]
            except BaseException as error:
                _report(error)


def _report(error: BaseException) -> None:
    """Gives the exception of a callback to `sys.unraisablehook`, as ctypes does with those of functions that C calls."""

    def callback() -> None:
        raise error

    try:
        ctypes.CFUNCTYPE(None)(callback)()
    finally:
        # The exception has the frame of the callback, which has the exception.
        del error

# SPDX-License-Identifier: Apache-2.0
"""Completed calls of an event loop: the loop takes them in its own thread, many at a time."""

from __future__ import annotations

import asyncio
import itertools
import os
import select
import threading
import weakref
from ctypes import byref, c_int, c_size_t, c_uint64, c_void_p
from typing import Dict, NamedTuple

from trtserver_client import _library
from trtserver_client._calls import Calls, call
from trtserver_client._errors import InferenceError, exception
from trtserver_client._library import Completion, library
from trtserver_client._request import Request
from trtserver_client._result import InferResult

#: Calls that are taken at once.
_CAPACITY = 64


class Sent(NamedTuple):
    """A call that was not taken. It keeps the arrays that the library reads."""

    future: "asyncio.Future[InferResult]"
    request: Request
    client: int
    number: int


class Queue:
    """The completion queue of one event loop. Its methods are called in the thread of the loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        handle, descriptor = c_void_p(), c_int()
        call(library.completion_queue_new, byref(handle), byref(descriptor))
        self._handle, self._descriptor, self._process = handle.value, descriptor.value, os.getpid()
        self._sent: Dict[int, Sent] = {}
        self._users = itertools.count(1)
        self._completions, self._count = (Completion * _CAPACITY)(), c_size_t()
        loop.add_reader(self._descriptor, self._take)

    def send(self, calls: Calls, request: Request, future: "asyncio.Future[InferResult]") -> int:
        """Sends a request, whose response resolves the future. Returns the key for `cancel`."""
        user, number, client = next(self._users), c_uint64(), calls._open
        call(library.v2_infer_queued, client, byref(request.structure), self._handle, user, byref(number))
        self._sent[user] = Sent(future, request, client, number.value)
        return user

    def cancel(self, calls: Calls, user: int) -> None:
        """Cancels a call, unless it was taken or its client was closed, which cancels as well."""
        sent = self._sent.get(user)
        if sent is not None and calls._handle is not None:
            call(library.v2_cancel, sent.client, sent.number)

    def _take(self) -> None:
        """Resolves the futures of completed calls."""
        library.completion_queue_take(self._handle, self._completions, _CAPACITY, byref(self._count))
        for completion in self._completions[: self._count.value]:
            future = self._sent.pop(completion.user).future
            try:
                if completion.error:
                    raise exception(_library.take_error(completion.error))
                result = InferResult(completion.result)
                if not future.done():
                    future.set_result(result)
            except InferenceError as error:
                if not future.done():
                    future.set_exception(error)

    def close(self) -> None:
        """Ends the use of a queue whose loop is closed. Waits for the calls, whose arrays the library may still read."""
        for sent in self._sent.values():
            # Its client may be closed: then it has completed.
            try:
                library.v2_cancel(sent.client, sent.number)
            except _library.NativeError:
                pass
        while self._sent:
            select.select([self._descriptor], [], [])
            library.completion_queue_take(self._handle, self._completions, _CAPACITY, byref(self._count))
            for completion in self._completions[: self._count.value]:
                # Nothing waits for the future.
                del self._sent[completion.user]
                if completion.error:
                    library.error_free(completion.error)
                else:
                    library.v2_result_free(completion.result)

    def __del__(self) -> None:
        # A child process has neither the calls nor the threads of its parent.
        if getattr(self, "_process", None) == os.getpid():
            self.close()
            library.completion_queue_free(self._handle)


_QUEUES: "weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, Queue]" = weakref.WeakKeyDictionary()
_CREATING = threading.Lock()


def queue_of(loop: asyncio.AbstractEventLoop) -> Queue:
    """The queue of a loop, made when it is first asked for."""
    queue = _QUEUES.get(loop)
    if queue is not None:
        return queue
    with _CREATING:
        # A loop that was closed with outstanding calls is kept alive by their futures.
        for other in [other for other in _QUEUES if other.is_closed()]:
            _QUEUES.pop(other).close()
        queue = _QUEUES[loop] = Queue(loop)
    return queue

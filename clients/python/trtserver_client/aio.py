# SPDX-License-Identifier: Apache-2.0
"""`AsyncClient`: the client of a v2 server for asyncio."""

from __future__ import annotations

import asyncio
import functools
import itertools
import weakref
from ctypes import byref
from types import TracebackType
from typing import TYPE_CHECKING, Any, AsyncIterator, Callable, Dict, List, Mapping, Optional, Type, TypeVar, Union

from trtserver_client import _library
from trtserver_client._calls import Calls, call
from trtserver_client._completion import queue_of
from trtserver_client._errors import InferenceError, InvalidArgument, exception
from trtserver_client._library import Callback, library
from trtserver_client._request import Request, microseconds
from trtserver_client._result import InferResult
from trtserver_client._types import Deadline, InferOptions, Input, ModelIndex, ModelMetadata, RequestOptions
from trtserver_client._types import ServerMetadata, Settings

if TYPE_CHECKING:
    # Only annotations use it, which are not evaluated.
    from typing_extensions import Unpack

__all__ = ["AsyncClient", "AsyncStream"]

T = TypeVar("T")
#: A response, an error, or the end of a stream.
_Event = Union[InferResult, InferenceError, None]

_NUMBERS = itertools.count(1)
_STREAMS: "weakref.WeakValueDictionary[int, AsyncStream]" = weakref.WeakValueDictionary()


def _event(error: Optional[int], result: Optional[int]) -> _Event:
    if error:
        return exception(_library.take_error(error))
    return InferResult(result) if result else None


def _post(loop: asyncio.AbstractEventLoop, function: Callable[..., None], *arguments: Any) -> None:
    try:
        loop.call_soon_threadsafe(function, *arguments)
    except RuntimeError:
        # The loop is closed, so that nothing waits.
        pass


def _on_stream_response(user: int, number: int, error: Optional[int], result: Optional[int]) -> None:
    """Called by a thread of the library for each response of a stream."""
    stream = _STREAMS.get(user)
    event = _event(error, result)
    if stream is not None:
        _post(stream._loop, stream._events.put_nowait, event)


_streamed = Callback(_on_stream_response)


async def _in_thread(function: Callable[..., T], *arguments: Any) -> T:
    """Runs a call that waits for the server in a thread, so that the loop goes on."""
    return await asyncio.get_running_loop().run_in_executor(None, functools.partial(function, *arguments))


class AsyncClient:
    """asyncio client of a v2 server, with the calls of `Client` as coroutines.

    Cancelling the task of `infer` cancels the request. The parameters are those of `Client`.
    """

    def __init__(
        self,
        url: str,
        **settings: Unpack[Settings],
    ) -> None:
        self._calls = Calls(url, **settings)

    async def close(self) -> None:
        """Closes the connection. Calls that run are cancelled."""
        await _in_thread(self._calls.close)

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        await self.close()

    async def infer(
        self,
        model: str,
        inputs: Mapping[str, Input],
        **options: Unpack[InferOptions],
    ) -> InferResult:
        """Runs inference. Parameters and errors are those of `Client.infer`.

        Arrays must stay unchanged until the coroutine has ended.
        """
        request = Request(model, inputs, **options)
        loop = asyncio.get_running_loop()
        future: "asyncio.Future[InferResult]" = loop.create_future()
        queue = queue_of(loop)
        user = queue.send(self._calls, request, future)
        try:
            return await future
        except asyncio.CancelledError:
            queue.cancel(self._calls, user)
            raise

    def stream(self, *, deadline: Deadline = None) -> AsyncStream:
        """Opens a stream (gRPC only) as an asynchronous context manager.

        `deadline` limits the whole stream; None means no limit.
        """
        return AsyncStream(self._calls, deadline)

    async def infer_stream(
        self,
        model: str,
        inputs: Mapping[str, Input],
        *,
        deadline: Deadline = None,
        **options: Unpack[RequestOptions],
    ) -> AsyncIterator[InferResult]:
        """Sends one request to a decoupled model and yields its responses. Parameters are those of `Client.infer`."""
        async with self.stream(deadline=deadline) as stream:
            await stream.send(model, inputs, **options)
            await stream.close_send()
            async for result in stream:
                yield result

    async def is_live(self, deadline: Deadline = None) -> bool:
        """See `Client.is_live`."""
        return await _in_thread(self._calls.is_live, deadline)

    async def is_ready(self, deadline: Deadline = None) -> bool:
        """See `Client.is_ready`."""
        return await _in_thread(self._calls.is_ready, deadline)

    async def is_model_ready(self, model: str, version: str = "", deadline: Deadline = None) -> bool:
        """See `Client.is_model_ready`."""
        return await _in_thread(self._calls.is_model_ready, model, version, deadline)

    async def server_metadata(self, deadline: Deadline = None) -> ServerMetadata:
        """See `Client.server_metadata`."""
        return await _in_thread(self._calls.server_metadata, deadline)

    async def model_metadata(self, model: str, version: str = "", deadline: Deadline = None) -> ModelMetadata:
        """See `Client.model_metadata`."""
        return await _in_thread(self._calls.model_metadata, model, version, deadline)

    async def model_config(self, model: str, version: str = "", deadline: Deadline = None) -> Dict[str, Any]:
        """See `Client.model_config`."""
        return await _in_thread(self._calls.model_config, model, version, deadline)

    async def statistics(self, model: str = "", version: str = "", deadline: Deadline = None) -> List[Dict[str, Any]]:
        """See `Client.statistics`."""
        return await _in_thread(self._calls.statistics, model, version, deadline)

    async def repository_index(self, ready_only: bool = False, deadline: Deadline = None) -> List[ModelIndex]:
        """See `Client.repository_index`."""
        return await _in_thread(self._calls.repository_index, ready_only, deadline)

    async def load_model(
        self,
        model: str,
        config: Union[str, Mapping[str, Any], None] = None,
        files: Optional[Mapping[str, bytes]] = None,
        deadline: Deadline = None,
    ) -> None:
        """See `Client.load_model`."""
        await _in_thread(self._calls.load_model, model, config, files, deadline)

    async def unload_model(self, model: str, unload_dependents: bool = False, deadline: Deadline = None) -> None:
        """See `Client.unload_model`."""
        await _in_thread(self._calls.unload_model, model, unload_dependents, deadline)

    async def register_system_memory(
        self, name: str, key: str, byte_size: int, offset: int = 0, deadline: Deadline = None
    ) -> None:
        """See `Client.register_system_memory`."""
        await _in_thread(self._calls.register_system_memory, name, key, byte_size, offset, deadline)

    async def register_cuda_memory(
        self, name: str, raw_handle: bytes, device_id: int, byte_size: int, deadline: Deadline = None
    ) -> None:
        """See `Client.register_cuda_memory`."""
        await _in_thread(self._calls.register_cuda_memory, name, raw_handle, device_id, byte_size, deadline)

    async def unregister_system_memory(self, name: str = "", deadline: Deadline = None) -> None:
        """See `Client.unregister_system_memory`."""
        await _in_thread(self._calls.unregister_system_memory, name, deadline)

    async def unregister_cuda_memory(self, name: str = "", deadline: Deadline = None) -> None:
        """See `Client.unregister_cuda_memory`."""
        await _in_thread(self._calls.unregister_cuda_memory, name, deadline)

    async def system_memory_status(self, name: str = "", deadline: Deadline = None) -> List[Dict[str, Any]]:
        """See `Client.system_memory_status`."""
        return await _in_thread(self._calls.system_memory_status, name, deadline)

    async def cuda_memory_status(self, name: str = "", deadline: Deadline = None) -> List[Dict[str, Any]]:
        """See `Client.cuda_memory_status`."""
        return await _in_thread(self._calls.cuda_memory_status, name, deadline)

    async def trace_settings(
        self, model: str = "", changes: Optional[Mapping[str, Any]] = None, deadline: Deadline = None
    ) -> Dict[str, Any]:
        """See `Client.trace_settings`."""
        return await _in_thread(self._calls.trace_settings, model, changes, deadline)

    async def log_settings(
        self, changes: Optional[Mapping[str, Any]] = None, deadline: Deadline = None
    ) -> Dict[str, Any]:
        """See `Client.log_settings`."""
        return await _in_thread(self._calls.log_settings, changes, deadline)


class AsyncStream:
    """A stream of requests and responses. Enter it with `async with`, iterate over it with `async for`."""

    _handle: Optional[int] = None

    def __init__(self, calls: Calls, deadline: Deadline) -> None:
        self._calls = calls
        self._limit = microseconds(deadline)
        self._user = next(_NUMBERS)
        self._ended = False
        self._sent = 0

    async def __aenter__(self) -> AsyncStream:
        self._loop = asyncio.get_running_loop()
        self._events: "asyncio.Queue[_Event]" = asyncio.Queue()
        _STREAMS[self._user] = self
        try:
            arguments = (self._calls._open, _streamed, self._user, self._limit)
            self._handle = await _in_thread(call, _library.new, library.v2_stream_open, *arguments)
        except BaseException:
            _STREAMS.pop(self._user, None)
            raise
        return self

    async def __aexit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        await self.close()

    def __del__(self) -> None:
        if self._handle is not None:
            library.v2_stream_free(self._handle)

    async def close(self) -> None:
        """Closes the stream and cancels its requests."""
        _STREAMS.pop(self._user, None)
        handle, self._handle = self._handle, None
        if handle is not None:
            await _in_thread(library.v2_stream_free, handle)

    @property
    def _open(self) -> int:
        if self._handle is None:
            raise InvalidArgument("the stream is closed")
        return self._handle

    async def send(
        self,
        model: str,
        inputs: Mapping[str, Input],
        **options: Unpack[RequestOptions],
    ) -> None:
        """Sends a request. Parameters and ids are those of `Stream.send`."""
        self._sent += 1
        request = Request.of_stream(model, inputs, self._sent, options)
        await _in_thread(call, library.v2_stream_send, self._open, byref(request.structure))

    async def close_send(self) -> None:
        """Tells the server that no more requests follow. The iteration ends after the last response."""
        await _in_thread(call, library.v2_stream_close, self._open)

    def __aiter__(self) -> AsyncStream:
        return self

    async def __anext__(self) -> InferResult:
        if self._ended:
            raise StopAsyncIteration
        event = await self._events.get()
        if isinstance(event, InferResult):
            return event
        if event is None:
            self._ended = True
            raise StopAsyncIteration
        raise event

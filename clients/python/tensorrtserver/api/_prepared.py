# SPDX-License-Identifier: Apache-2.0
"""Requests that differ from the last one only in the bytes of their arrays.

Checking and encoding a small request costs more than sending it. A request whose description is that of the one before is
prepared by the C library; from then on its arrays are sent, and its results received, as one block of bytes each.
"""

from __future__ import annotations

import ctypes
from ctypes import byref
from struct import Struct
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Tuple

import numpy as np

from tensorrtserver.api import _results, _tensors
from tensorrtserver.api._native import call, exception
from tensorrtserver.api._request import RAW, Model, Request
from trtserver_client import _library
from trtserver_client._library import Result, library

#: Bytes of arrays that are copied rather than pointed to.
_LARGEST = 16 * 1024
#: Bytes of results that are copied out of the library; others are read in place.
_CAPACITY = 16 * 1024

#: The head of a reply: `trtc_v1_reply`.
_HEAD = Struct("=QQQqQ")
_HEAD_SIZE = _HEAD.size
#: The description of an output: type and rank, in front of the dimensions and the size.
_NUMBER = Struct("=q")

#: Types whose arrays are sent as they are.
_PLAIN = frozenset(dtype for dtype in _tensors.DTYPES.values() if not dtype.hasobject)

_infer = library.v1_prepared_infer


class _Output(NamedTuple):
    """Where the entries of an output are in a reply."""

    key: Any
    dtype: np.dtype
    shape: Tuple[int, ...]
    #: Start and end of each batch entry.
    slices: List[Tuple[int, int]]


class Reply(NamedTuple):
    """What a prepared request returns."""

    request_id: int
    model_version: int
    results: Dict[Any, List[np.ndarray]]


class _Buffer:
    """Memory for one reply."""

    __slots__ = ("address", "view", "_memory")

    def __init__(self) -> None:
        self._memory = ctypes.create_string_buffer(_CAPACITY)
        self.address = ctypes.addressof(self._memory)
        self.view = memoryview(self._memory).cast("B")


class Prepared:
    """A prepared request of a context. Threads may share it."""

    def __init__(self, context: int, request: Request, signature: List[Any], outputs: Mapping[Any, Any], batch_size: int):
        self.signature = signature
        self.outputs = dict(outputs)
        self._batch_size = batch_size
        self._buffers: List[_Buffer] = []
        #: The description of the last reply, and what it says.
        self._known: Tuple[bytes, List[_Output]] = (b"", [])
        self._free = library.v1_prepared_free
        self.handle: Optional[int] = None
        self.handle = call(_library.new, library.v1_prepare, context, byref(request.structure))

    def __del__(self) -> None:
        if self.handle is not None:
            self._free(self.handle)

    def run(self, arrays: List[np.ndarray]) -> Reply:
        """Sends the arrays and waits for the results."""
        data = block(arrays)
        try:
            buffer = self._buffers.pop()
        except IndexError:
            buffer = _Buffer()
        error = _infer(self.handle, data, len(data), buffer.address, _CAPACITY)
        if error:
            raise exception(_library.take_error(error)) from None
        view = buffer.view
        size, handle, request_id, version, described = _HEAD.unpack_from(view)
        if handle:
            result = Result(handle, library.v1_result_free)
            _, results = _results.read(result, self.outputs, self._batch_size)
        else:
            results = self.results(view[_HEAD_SIZE:size], described)
        self._buffers.append(buffer)
        return Reply(request_id, version, results)

    def results(self, body: memoryview, described: int) -> Dict[Any, List[np.ndarray]]:
        """Copies the outputs out of a reply without its head; its first bytes describe them."""
        description = body[:described].tobytes()
        known, layout = self._known
        if description != known:
            layout = self._read(description)
            self._known = (description, layout)
        results: Dict[Any, List[np.ndarray]] = {}
        for key, dtype, shape, slices in layout:
            entries = [np.frombuffer(bytearray(body[start:end]), dtype) for start, end in slices]
            results[key] = entries if len(shape) == 1 else [entry.reshape(shape) for entry in entries]
        return results

    def _read(self, description: bytes) -> List[_Output]:
        """The layout of replies with this description."""
        numbers = [number for (number,) in _NUMBER.iter_unpack(description)]
        start, at = len(description), 0
        layout = []
        for key in self.outputs:
            dtype, rank = _results.dtype_of(numbers[at]), numbers[at + 1]
            shape = tuple(numbers[at + 2 : at + 2 + rank])
            size = numbers[at + 2 + rank] // self._batch_size
            at += rank + 3
            slices = [(start + index * size, start + (index + 1) * size) for index in range(self._batch_size)]
            _results.check(size, shape, dtype)
            start += size * self._batch_size
            layout.append(_Output(key, dtype, shape, slices))
        return layout


def block(arrays: List[np.ndarray]) -> bytes:
    """The arrays, one behind the other."""
    return arrays[0].tobytes() if len(arrays) == 1 else b"".join([each.tobytes() for each in arrays])


class Preparing:
    """Decides which requests of a context are prepared: those with the description of the request before."""

    __slots__ = ("_model", "_last", "_prepared")

    def __init__(self, model: Model) -> None:
        self._model = model
        #: Description of the last request that was sent as it is.
        self._last: Optional[Tuple[List[Any], Dict[Any, Any]]] = None
        self._prepared: Optional[Prepared] = None

    def find(
        self, context: int, inputs: Mapping[Any, Any], outputs: Mapping[Any, Any], batch_size: int, flags: int
    ) -> Optional[Tuple[Prepared, List[np.ndarray]]]:
        """The prepared request and its arrays; None for a request that is sent as it is."""
        signature: List[Any] = [batch_size, flags]
        arrays: List[np.ndarray] = []
        for key, value in inputs.items():
            if type(value) is not list:
                return None
            signature.append(key)
            for array in value:
                if type(array) is not np.ndarray:
                    return None
                signature.append(array.shape)
                signature.append(array.dtype)
                arrays.append(array)
        prepared = self._prepared
        if prepared is not None and signature == prepared.signature and outputs == prepared.outputs:
            return prepared, arrays
        if not _is_plain(arrays, outputs, batch_size):
            return None
        if self._last != (signature, outputs):
            self._last = (signature, dict(outputs))
            return None
        request = Request(self._model, inputs, outputs, batch_size, flags, 0)
        self._prepared = Prepared(context, request, signature, outputs, batch_size)
        return self._prepared, arrays


def _is_plain(arrays: List[np.ndarray], outputs: Mapping[Any, Any], batch_size: Any) -> bool:
    return (
        type(outputs) is dict
        and 0 < sum(array.nbytes for array in arrays) <= _LARGEST
        and all(array.dtype in _PLAIN for array in arrays)
        and all(type(format) is tuple and format == RAW for format in outputs.values())
        and type(batch_size) is int
        and batch_size > 0
    )

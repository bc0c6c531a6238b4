# SPDX-License-Identifier: Apache-2.0
"""Inputs and outputs of `InferContext` calls as one request structure of the C library."""

from __future__ import annotations

import ctypes
from ctypes import c_int64, c_size_t, c_void_p, pointer
from typing import Any, Dict, List, Mapping, NamedTuple

import numpy as np

from tensorrtserver import _regions
from tensorrtserver.api import _tensors
from tensorrtserver.api._errors import raise_error
from tensorrtserver.api._native import name
from trtserver_client import _library
from trtserver_client._library import V1Input, V1Model, V1Options, V1Output, V1Request, array

RAW = (1,)
CLASS = 2

_OPTIONS_SIZE = ctypes.sizeof(V1Options)
_REQUEST_SIZE = ctypes.sizeof(V1Request)

#: Array types by length: making one is slower than a request.
_DIMS: Dict[int, Any] = {count: c_int64 * count for count in range(17)}
_POINTERS: Dict[int, Any] = {count: c_void_p * count for count in range(1, 17)}
_SIZES: Dict[int, Any] = {count: c_size_t * count for count in range(1, 17)}


def _dims(shape: Any) -> Any:
    kind = _DIMS.get(len(shape)) or c_int64 * len(shape)
    return kind(*shape)


def is_class(format: Any) -> bool:
    return isinstance(format, (list, tuple)) and len(format) > 1 and format[0] == CLASS


def is_region(format: Any) -> bool:
    return isinstance(format, (list, tuple)) and len(format) == 2 and format[0] == RAW


def _check_input(key: str, value: Any) -> None:
    """Raises the error of the original for a value of another type."""
    message = (
        f"input '{key}' values must be specified as a list of numpy arrays or as a single c_void_p (representing the "
        "shared memory handle) or as a tuple of c_void_p (representing the shared memory handle) and list "
        "(representing the shape of the input tensor)"
    )
    if type(value) is c_void_p:
        return
    if not isinstance(value, (list, tuple)):
        raise_error(message)
    if len(value) == 2 and type(value[0]) is c_void_p and isinstance(value[1], (list, tuple)):
        return
    if not all(isinstance(each, np.ndarray) for each in value):
        raise_error(message)


def _output(key: str, format: Any) -> Any:
    if format == RAW:
        return (name(key), 0, None, 0, 0)
    if is_region(format):
        if type(format[1]) is not c_void_p:
            raise_error("shared memory requires tuple of size 2 - output_format(RAW), shared_memory_handle(c_void_p)")
        region = _regions.find(format[1], raise_error)
        return (name(key), 0, name(region.name), 0, region.byte_size)
    if is_class(format):
        count = format[1]
        if not isinstance(count, int) or count < 1:
            raise_error(f"output '{key}' asks for {count!r} classes, expected a number from 1")
        return (name(key), count, None, 0, 0)
    raise_error("unrecognized output format")


#: The kinds of numpy types that are sent as each kind. Integers of the other sign have the same bytes for most values.
_ALIKE = {"b": "b", "i": "iu", "u": "iu", "f": "f"}


class Model(NamedTuple):
    """What requests are checked with: the model as the server has described it to the context."""

    name: str
    #: `DataType` of each input.
    types: Dict[bytes, int]

    @staticmethod
    def of(model: V1Model) -> "Model":
        inputs = [model.inputs[index] for index in range(model.input_count)]
        return Model(_library.text(model.name), {each.name: each.data_type for each in inputs})

    def check(self, key: bytes, entries: Any) -> None:
        """Raises an error for arrays that the library could not tell from the right ones: it sees bytes, whose number it
        checks, and one shape."""
        first = entries[0].shape
        expected = _tensors.DTYPES.get(self.types.get(key, 0))
        for index, entry in enumerate(entries):
            if entry.shape != first:
                raise_error(
                    f"unexpected shape for batch entry {index} of input '{_library.text(key)}' for model '{self.name}'. "
                    f"Expected {list(first)}, as of the first, got {list(entry.shape)}"
                )
            if expected is None or _is_sent_as(entry.dtype, expected):
                continue
            wanted = "strings" if expected.hasobject else expected.name
            raise_error(
                f"unexpected data type for input '{_library.text(key)}' for model '{self.name}'. "
                f"Expected {wanted}, got {entry.dtype.name}"
            )


def _is_sent_as(dtype: np.dtype, expected: np.dtype) -> bool:
    if expected.hasobject:
        # Bytes are strings that are serialized already.
        return dtype.kind in "OSU" or dtype == np.uint8
    return dtype.kind in _ALIKE[expected.kind]


class Request:
    """The structure and what it points to. Keep it until the response has arrived."""

    __slots__ = ("structure", "_kept")

    def __init__(
        self,
        model: Model,
        inputs: Mapping[str, Any],
        outputs: Mapping[str, Any],
        batch_size: int,
        flags: int,
        corr_id: int,
    ) -> None:
        for key, value in inputs.items():
            _check_input(key, value)
        requested = [_output(key, format) for key, format in outputs.items()]
        self._kept: List[Any] = []
        given = [self._input(model, name(key), value) for key, value in inputs.items()]
        try:
            options = V1Options(
                _OPTIONS_SIZE, batch_size, flags, 0, 0, corr_id, array(V1Output, requested), len(requested)
            )
        except TypeError as error:
            raise_error(f"batch_size, flags and corr_id must be integers: {error}")
        self.structure = V1Request(_REQUEST_SIZE, pointer(options), array(V1Input, given), len(given), 0, 0)

    def _input(self, model: Model, key: bytes, value: Any) -> Any:
        if type(value) is c_void_p:
            region = _regions.find(value, raise_error)
            return (key, None, 0, None, None, 0, name(region.name), 0, region.byte_size)
        if len(value) == 2 and type(value[0]) is c_void_p:
            region = _regions.find(value[0], raise_error)
            dims = _dims(value[1])
            return (key, dims, len(dims), None, None, 0, name(region.name), 0, region.byte_size)
        count = len(value)
        if count == 0:
            return (key, None, 0, None, None, 0, None, 0, 0)
        model.check(key, value)
        addresses = (_POINTERS.get(count) or c_void_p * count)()
        sizes = (_SIZES.get(count) or c_size_t * count)()
        for index, each in enumerate(value):
            if each.size:
                wire = _tensors.wire_array(each)
                self._kept.append(wire)
                addresses[index] = wire.__array_interface__["data"][0]
                sizes[index] = wire.nbytes
        dims = _dims(value[0].shape)
        return (key, dims, len(dims), addresses, sizes, count, None, 0, 0)

# SPDX-License-Identifier: Apache-2.0
"""Results of the C library as the dictionaries that `InferContext` returns."""

from __future__ import annotations

import ctypes
from typing import Any, Dict, List, Mapping, Optional, Tuple

import numpy as np

from tensorrtserver import _regions
from tensorrtserver.api import _tensors
from tensorrtserver.api._errors import raise_error
from tensorrtserver.api._request import is_region
from trtserver_client import _library
from trtserver_client._library import Result
from trtserver_client._tensors import Memory, check_size, object_array


def dtype_of(number: int) -> np.dtype:
    dtype: Optional[np.dtype] = _tensors.DTYPES.get(number)
    if dtype is None:
        raise_error(f"unknown result datatype {number}")
    return dtype


def check(size: int, shape: Tuple[int, ...], dtype: np.dtype) -> None:
    try:
        check_size(size, shape, dtype)
    except ValueError as error:
        raise_error(f"invalid tensor in the response: {error}")


def _tensor(data: int, size: int, shape: Tuple[int, ...], dtype: np.dtype, result: Result) -> np.ndarray:
    """The tensor in the memory of the result."""
    try:
        if dtype.hasobject:
            strings = _tensors.strings(ctypes.string_at(data, size) if size else b"")
            return object_array(strings, shape)
    except ValueError as error:
        raise_error(f"invalid tensor in the response: {error}")
    check(size, shape, dtype)
    if size == 0:
        return np.empty(shape, dtype)
    return np.asarray(Memory(data, shape, dtype, result, writable=True))


def _entries(output: Any, batch_size: int) -> Any:
    """One entry per batch entry; none for batch size 0, which the server takes as 1."""
    return output.entries[: min(batch_size, output.entry_count)]


def _raw(output: Any, batch_size: int, result: Result) -> List[np.ndarray]:
    dtype = dtype_of(output.data_type)
    shape = _library.dimensions(output.dims, output.dim_count)
    return [_tensor(entry.data, entry.size, shape, dtype, result) for entry in _entries(output, batch_size)]


def _classes(output: Any, batch_size: int) -> List[List[Tuple[int, float, str]]]:
    lists = []
    for entry in _entries(output, batch_size):
        classes = entry.classes[: entry.class_count]
        lists.append([(each.index, each.value, _library.text(each.label)) for each in classes])
    return lists


def _from_region(output: Any, handle: ctypes.c_void_p, batch_size: int) -> List[np.ndarray]:
    """Copies of the tensors that the server has written into a region."""
    region = _regions.find(handle, raise_error)
    dtype = dtype_of(output.data_type)
    shape = _library.dimensions(output.dims, output.dim_count)
    count = int(np.prod(shape, dtype=np.int64))
    data = region.read()
    if dtype.hasobject:
        strings = _tensors.strings(data, count * batch_size)
        return [object_array(strings[i * count : (i + 1) * count], shape) for i in range(batch_size)]
    if count * batch_size * dtype.itemsize > region.byte_size:
        raise_error(f"shared memory region '{region.name}' has {region.byte_size} bytes, too few for {batch_size} "
                    f"tensors of shape {list(shape)} and type {dtype}")  # fmt: skip
    whole = np.frombuffer(data, dtype, count * batch_size).reshape((batch_size, *shape))
    return [each.copy() for each in whole]


def read(result: Result, outputs: Mapping[str, Any], batch_size: int) -> Tuple[Any, Dict[str, Any]]:
    """The description of the result, and its outputs by name."""
    info = _library.v1_info(result)
    by_name: Dict[str, Any] = {}
    for output in info.outputs[: info.output_count]:
        by_name[_library.text(output.name)] = output
    results: Dict[str, Any] = {}
    for key, format in outputs.items():
        plain = key.decode() if isinstance(key, bytes) else key
        output = by_name.get(plain)
        if output is None:
            raise_error(f"the response has no output '{plain}'")
        if output.is_class:
            results[key] = _classes(output, batch_size)
        elif is_region(format):
            results[key] = _from_region(output, format[1], batch_size)
        else:
            results[key] = _raw(output, batch_size, result)
    return info, results

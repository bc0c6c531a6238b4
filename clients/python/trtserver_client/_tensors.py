# SPDX-License-Identifier: Apache-2.0
"""numpy arrays as bytes of the wire, and back."""

from __future__ import annotations

import math
import struct
from typing import Any, Iterable, List, Optional, Tuple

import numpy as np

_LENGTH = struct.Struct("<I")


def contiguous(array: np.ndarray) -> np.ndarray:
    """The array in C order and little-endian. A copy is made only where the array differs from that."""
    dtype = array.dtype
    if dtype.byteorder == ">" or (dtype.byteorder == "=" and not _LITTLE):
        array = array.astype(dtype.newbyteorder("<"))
    return array if array.flags.c_contiguous else np.ascontiguousarray(array)


_LITTLE = np.dtype("<i4").isnative


def join_strings(values: Iterable[bytes]) -> bytes:
    """Each string as its length in four bytes, then its bytes."""
    parts: List[bytes] = []
    for value in values:
        parts.append(_LENGTH.pack(len(value)))
        parts.append(value)
    return b"".join(parts)


def split_strings(data: Any, limit: Optional[int] = None) -> List[bytes]:
    """The strings that `join_strings` has joined, or the first of them.

    Raises
    ------
    ValueError
        The last string is incomplete.
    """
    view = memoryview(data)
    strings: List[bytes] = []
    at, end = 0, view.nbytes
    while at < end and len(strings) != limit:
        if end - at < 4:
            raise ValueError(f"string {len(strings)}: {end - at} bytes are too few for its length")
        (length,) = _LENGTH.unpack_from(view, at)
        at += 4
        if end - at < length:
            raise ValueError(f"string {len(strings)} has {length} bytes, {end - at} follow")
        strings.append(bytes(view[at : at + length]))
        at += length
    return strings


def encode_strings(array: np.ndarray) -> bytes:
    """The strings of an array: `bytes` as they are, others as the UTF-8 of their `str()`."""
    values = array.ravel().tolist()
    return join_strings(each if isinstance(each, bytes) else str(each).encode() for each in values)


def to_bf16(array: np.ndarray) -> np.ndarray:
    """The upper halves of float32, rounded to the nearest even. NaN stays NaN."""
    bits = contiguous(array).view(np.uint32)
    rounded = (bits + (0x7FFF + ((bits >> 16) & 1))) >> 16
    return np.where(np.isnan(array), (bits >> 16) | 0x40, rounded).astype("<u2")


def from_bf16(data: bytes) -> np.ndarray:
    return (np.frombuffer(data, "<u2").astype(np.uint32) << 16).view(np.float32)


def object_array(strings: List[bytes], shape: Tuple[int, ...]) -> np.ndarray:
    array = np.empty(len(strings), dtype=object)
    array[:] = strings
    return array.reshape(shape)


def check_size(size: int, shape: Tuple[int, ...], dtype: np.dtype) -> None:
    """Raises ValueError unless a tensor has the bytes that its shape and type need: it is read in place."""
    if min(shape, default=0) < 0 or math.prod(shape) * dtype.itemsize != size:
        raise ValueError(f"{size} bytes are not a tensor of shape {list(shape)} and type {dtype}")


class Memory:
    """Memory of the library that arrays read in place. An array keeps it, and it keeps the owner of the memory."""

    __slots__ = ("__array_interface__", "_owner")

    def __init__(
        self, address: int, shape: Tuple[int, ...], dtype: np.dtype, owner: object, writable: bool = False
    ) -> None:
        data = (address, not writable)
        self.__array_interface__ = {"data": data, "shape": shape, "typestr": dtype.str, "version": 3}
        self._owner = owner

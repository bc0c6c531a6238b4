# SPDX-License-Identifier: Apache-2.0
"""Shared memory regions of this process, by handle.

The handles of the original are addresses of C structures. Here they are numbers that are never used twice, so that the handle of
a destroyed region is refused instead of followed.
"""

from __future__ import annotations

import itertools
import threading
from ctypes import c_void_p
from typing import Any, Callable, Dict, NoReturn, Optional, Sequence

import numpy as np

Refuse = Callable[[str], NoReturn]

_NUMBERS = itertools.count(1)
_LOCK = threading.Lock()
_BY_HANDLE: Dict[int, "Region"] = {}


class Region:
    """A region that this process created."""

    #: Key of a system region, None for a CUDA region.
    key: Optional[str] = None
    #: Handle for other processes and device of a CUDA region.
    raw_handle: bytes = b""
    device_id: int = 0

    def __init__(self, name: str, byte_size: int) -> None:
        self.name = name
        self.byte_size = byte_size

    def write(self, offset: int, data: Any) -> None:
        raise NotImplementedError

    def read(self) -> memoryview:
        """The content. For system memory this is the region itself, for CUDA memory a copy."""
        raise NotImplementedError

    def destroy(self) -> None:
        raise NotImplementedError


def add(region: Region) -> c_void_p:
    number = next(_NUMBERS)
    with _LOCK:
        _BY_HANDLE[number] = region
    return c_void_p(number)


def _unknown(handle: c_void_p) -> str:
    return f"no shared memory region has the handle {getattr(handle, 'value', handle)!r}: it was destroyed or never created"


def find(handle: c_void_p, refuse: Refuse) -> Region:
    region = _BY_HANDLE.get(getattr(handle, "value", None) or 0)
    if region is None:
        refuse(_unknown(handle))
    return region


def remove(handle: c_void_p, refuse: Refuse) -> Region:
    with _LOCK:
        region = _BY_HANDLE.pop(getattr(handle, "value", None) or 0, None)
    if region is None:
        refuse(_unknown(handle))
    return region


def fill(handle: c_void_p, arrays: Sequence[np.ndarray], refuse: Refuse) -> None:
    """Copies arrays into a region, one after the other."""
    region = find(handle, refuse)
    total = sum(array.nbytes for array in arrays)
    if total > region.byte_size:
        refuse(f"shared memory region '{region.name}' has {region.byte_size} bytes, the input values have {total}")
    offset = 0
    for array in arrays:
        if array.nbytes == 0:
            continue
        if array.dtype.hasobject:
            refuse(f"cannot copy an array of Python objects to shared memory region '{region.name}'")
        array = np.ascontiguousarray(array)
        if not array.dtype.isnative:
            array = array.astype(array.dtype.newbyteorder("="))
        data: Any = array.reshape(-1).view(np.uint8)
        region.write(offset, memoryview(data))
        offset += data.nbytes

# SPDX-License-Identifier: Apache-2.0
"""System shared memory for the tensors of v2 requests, on the machine of the server.

    with SystemRegion("region", "/key", 128) as region:
        client.register_system_memory(region.name, region.key, region.byte_size)
        region.array((16,), "FP32")[:] = 1
        ...
        client.unregister_system_memory(region.name)
"""

from __future__ import annotations

import mmap
import os
from types import TracebackType
from typing import Optional, Sequence, Type

import numpy as np

from trtserver_client import _tensors
from trtserver_client._errors import InvalidArgument
from trtserver_client._request import DATATYPES

_BY_DATATYPE = {value.decode(): np.dtype("<" + key) for key, value in DATATYPES.items()}


def _path(key: str) -> str:
    """The file that shm_open(3) opens on Linux."""
    return "/dev/shm/" + key.lstrip("/")


def open_object(key: str) -> int:
    """Creates a POSIX shared memory object, or opens the one that exists. Returns its file descriptor."""
    return os.open(_path(key), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)


def unlink_object(key: str) -> None:
    """Removes a POSIX shared memory object. Memory that is mapped stays valid."""
    os.unlink(_path(key))


class SystemRegion:
    """A POSIX shared memory object of this process, removed by `close` or the end of a `with` block."""

    def __init__(self, name: str, key: str, byte_size: int) -> None:
        """Creates the object under `key`, or opens the one that exists, and gives it this size.

        Raises
        ------
        OSError
            The object cannot be created, resized or mapped.
        """
        self.name = name
        self.key = key
        self.byte_size = byte_size
        descriptor = open_object(key)
        try:
            os.ftruncate(descriptor, byte_size)
            self._map = mmap.mmap(descriptor, byte_size)
        finally:
            os.close(descriptor)
        self._linked = True

    def array(self, shape: Sequence[int], datatype: str, offset: int = 0) -> np.ndarray:
        """A part of the region as a writable array, in place.

        Raises
        ------
        InvalidArgument
            The region is too small, or arrays cannot have the type.
        """
        dtype = _BY_DATATYPE.get(datatype)
        if dtype is None:
            raise InvalidArgument(f"arrays in shared memory cannot have the type {datatype}")
        size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
        if offset < 0 or offset + size > self.byte_size:
            raise InvalidArgument(f"region '{self.name}' has {self.byte_size} bytes, the array needs {offset} + {size}")
        return np.frombuffer(self._map, np.uint8, size, offset).view(dtype).reshape(shape)

    def write_strings(self, strings: np.ndarray, offset: int = 0) -> int:
        """Writes an array of strings as a tensor of type BYTES. Returns its size in bytes."""
        data = _tensors.encode_strings(strings)
        if offset < 0 or offset + len(data) > self.byte_size:
            raise InvalidArgument(
                f"region '{self.name}' has {self.byte_size} bytes, the strings need {offset} + {len(data)}"
            )
        self._map[offset : offset + len(data)] = data
        return len(data)

    def read_strings(self, shape: Sequence[int], offset: int = 0) -> np.ndarray:
        """The strings of a tensor of type BYTES."""
        count = int(np.prod(shape, dtype=np.int64))
        strings = _tensors.split_strings(memoryview(self._map)[offset:], count)
        return _tensors.object_array(strings, tuple(shape))

    def close(self) -> None:
        """Removes the object. Unregister the region first; arrays of the region stay valid."""
        if self._linked:
            self._linked = False
            unlink_object(self.key)

    def __enter__(self) -> SystemRegion:
        return self

    def __exit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        self.close()

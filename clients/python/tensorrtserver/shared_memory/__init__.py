# SPDX-License-Identifier: Apache-2.0
"""System shared memory regions for the tensors of v1 requests.

A handle is a `ctypes.c_void_p`, as in PyPI's `tensorrtserver`. It is an opaque number, not an address.
`SharedMemoryControlContext.register` makes the region known to the server.
"""

from __future__ import annotations

import mmap
import os
from ctypes import c_void_p
from typing import Any, NoReturn, Sequence, Union

import numpy as np

from tensorrtserver import _regions
from trtserver_client.shared_memory import open_object, unlink_object

_DESCRIPTOR, _SIZE, _MAP, _UNLINK = -2, -3, -4, -5


class SharedMemoryException(Exception):
    """A call of this module failed; `str()` has the reason."""

    def __init__(self, err: Union[str, int]) -> None:
        self.err_code_map = {
            _DESCRIPTOR: "unable to get shared memory descriptor",
            _SIZE: "unable to initialize the size",
            _MAP: "unable to read/mmap the shared memory region",
            _UNLINK: "unable to unlink the shared memory region",
        }
        self._msg = err if isinstance(err, str) else self.err_code_map.get(err)
        super().__init__(self._msg)

    def __str__(self) -> str:
        return super().__str__() if self._msg is None else self._msg


def _raise_error(message: str) -> NoReturn:
    raise SharedMemoryException(message)


def _text(value: Union[str, bytes]) -> str:
    return value.decode() if isinstance(value, bytes) else value


class _SystemRegion(_regions.Region):
    def __init__(self, name: str, key: str, byte_size: int) -> None:
        super().__init__(name, byte_size)
        self.key: str = key
        try:
            descriptor = open_object(key)
        except (OSError, ValueError) as error:
            raise SharedMemoryException(_DESCRIPTOR) from error
        try:
            try:
                os.ftruncate(descriptor, byte_size)
            except (OSError, OverflowError) as error:
                raise SharedMemoryException(_SIZE) from error
            try:
                self._map = mmap.mmap(descriptor, byte_size)
            except (OSError, ValueError, OverflowError) as error:
                raise SharedMemoryException(_MAP) from error
        finally:
            os.close(descriptor)

    def write(self, offset: int, data: Any) -> None:
        self._map[offset : offset + len(data)] = data

    def read(self) -> memoryview:
        return memoryview(self._map)

    def destroy(self) -> None:
        # The mapping itself ends with its last array.
        try:
            unlink_object(self.key)
        except OSError as error:
            raise SharedMemoryException(_UNLINK) from error


def create_shared_memory_region(trtis_shm_name: str, shm_key: str, byte_size: int) -> c_void_p:
    """Creates a region, or opens the one that exists under the key, and gives it this size.

    Parameters
    ----------
    trtis_shm_name : str
        Name of the region on the server.
    shm_key : str
        Key of the shared memory object, such as `/input_data`.
    byte_size : int
        Size of the region in bytes.

    Returns
    -------
    c_void_p
        Handle of the region.

    Raises
    ------
    SharedMemoryException
        The object cannot be created, resized or mapped.
    """
    region = _SystemRegion(_text(trtis_shm_name), _text(shm_key), byte_size)
    return _regions.add(region)


def set_shared_memory_region(shm_handle: c_void_p, input_values: Sequence[np.ndarray]) -> None:
    """Copies arrays into the region, one after the other from its start.

    Parameters
    ----------
    shm_handle : c_void_p
        Handle of the region.
    input_values : list of np.ndarray
        Arrays of any shape. Their elements are copied in C order and in the byte order of the machine.

    Raises
    ------
    SharedMemoryException
        A value is not an array, the arrays do not fit, or the handle is unknown.
    """
    if not isinstance(input_values, (list, tuple)):
        _raise_error("input_values must be specified as a list/tuple of numpy arrays")
    for value in input_values:
        if not isinstance(value, np.ndarray):
            _raise_error("each element of input_values must be a numpy array")
    _regions.fill(shm_handle, input_values, _raise_error)


def destroy_shared_memory_region(shm_handle: c_void_p) -> None:
    """Removes the shared memory object. Unregister the region first; arrays that use the region stay valid.

    Raises
    ------
    SharedMemoryException
        The object cannot be removed, or the handle is unknown.
    """
    _regions.remove(shm_handle, _raise_error).destroy()

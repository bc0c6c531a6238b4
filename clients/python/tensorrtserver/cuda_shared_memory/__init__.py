# SPDX-License-Identifier: Apache-2.0
"""CUDA shared memory regions for the tensors of v1 requests.

Uses the CUDA driver `libcuda.so.1`. Without it, or without a GPU, each call raises `CudaSharedMemoryException` with the reason.
"""

from __future__ import annotations

from ctypes import c_void_p
from typing import Any, NoReturn, Sequence, Union

import numpy as np

from tensorrtserver import _regions
from trtserver_client import _cuda

_DEVICE, _HANDLE, _SET, _FREE = -1, -2, -3, -4


class CudaSharedMemoryException(Exception):
    """A call of this module failed; `str()` has the reason."""

    def __init__(self, err: Union[str, int]) -> None:
        self.err_code_map = {
            _DEVICE: "unable to set device successfully",
            _HANDLE: "unable to create cuda shared memory handle",
            _SET: "unable to set values in cuda shared memory",
            _FREE: "unable to free GPU device memory",
        }
        self._msg = err if isinstance(err, str) else self.err_code_map.get(err)
        super().__init__(self._msg)

    def __str__(self) -> str:
        return super().__str__() if self._msg is None else self._msg


def _raise_error(message: str) -> NoReturn:
    raise CudaSharedMemoryException(message)


class _CudaRegion(_regions.Region):
    def __init__(self, name: str, byte_size: int, device_id: int) -> None:
        super().__init__(name, byte_size)
        self.device_id = device_id
        try:
            self._device = _cuda.Device(device_id)
        except _cuda.CudaError as error:
            _raise_error(f"unable to set device successfully: {error}")
        try:
            self._memory = self._device.allocate(byte_size)
            self.raw_handle = self._memory.ipc_handle()
        except _cuda.CudaError as error:
            _raise_error(f"unable to create cuda shared memory handle: {error}")

    def write(self, offset: int, data: Any) -> None:
        try:
            self._memory.write(offset, data)
        except _cuda.CudaError as error:
            _raise_error(f"unable to set values in cuda shared memory: {error}")

    def read(self) -> memoryview:
        try:
            return self._memory.read(self.byte_size)
        except _cuda.CudaError as error:
            _raise_error(f"unable to read cuda shared memory: {error}")

    def destroy(self) -> None:
        try:
            self._memory.free()
        except _cuda.CudaError as error:
            _raise_error(f"unable to free GPU device memory: {error}")


def create_shared_memory_region(trtis_shm_name: str, byte_size: int, device_id: int) -> c_void_p:
    """Allocates a region in the memory of a GPU.

    Parameters
    ----------
    trtis_shm_name : str
        Name of the region on the server.
    byte_size : int
        Size of the region in bytes.
    device_id : int
        Number of the GPU.

    Returns
    -------
    c_void_p
        Handle of the region.

    Raises
    ------
    CudaSharedMemoryException
        There is no driver, no such GPU or not enough memory.
    """
    return _regions.add(_CudaRegion(trtis_shm_name, byte_size, device_id))


def set_shared_memory_region(cuda_shm_handle: c_void_p, input_values: Sequence[np.ndarray]) -> None:
    """Copies arrays into the region, one after the other from its start.

    Parameters
    ----------
    cuda_shm_handle : c_void_p
        Handle of the region.
    input_values : list of np.ndarray
        Arrays of any shape. Their elements are copied in C order and in the byte order of the machine.

    Raises
    ------
    CudaSharedMemoryException
        A value is not an array, the arrays do not fit, or the handle is unknown.
    """
    if not isinstance(input_values, (list, tuple)):
        _raise_error("input_values must be specified as a numpy array")
    for value in input_values:
        if not isinstance(value, np.ndarray):
            _raise_error("input_values must be specified as a list/tuple of numpy arrays")
    _regions.fill(cuda_shm_handle, input_values, _raise_error)


def destroy_shared_memory_region(cuda_shm_handle: c_void_p) -> None:
    """Frees the memory of a region. Unregister the region first.

    Raises
    ------
    CudaSharedMemoryException
        The memory cannot be freed, or the handle is unknown.
    """
    _regions.remove(cuda_shm_handle, _raise_error).destroy()

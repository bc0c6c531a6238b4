# SPDX-License-Identifier: Apache-2.0
"""Device memory through the CUDA driver, for shared memory regions."""

from __future__ import annotations

import ctypes
import functools
import threading
from ctypes import byref, c_char, c_char_p, c_int, c_size_t, c_uint64, c_void_p
from typing import Any

#: The driver that a process of the server would load.
LIBRARY = "libcuda.so.1"
_LOCK = threading.Lock()


class CudaError(Exception):
    """A call of the driver failed, or there is no driver."""


class _IpcHandle(ctypes.Structure):
    _fields_ = [("reserved", c_char * 64)]


@functools.lru_cache(maxsize=None)
def _driver() -> Any:
    try:
        driver = ctypes.CDLL(LIBRARY)
    except OSError as error:
        raise CudaError(f"no CUDA driver: {error}") from None
    _check(driver, "cuInit", 0)
    return driver


def _check(driver: Any, name: str, *arguments: Any) -> None:
    status = getattr(driver, name)(*arguments)
    if status == 0:
        return
    text = c_char_p()
    driver.cuGetErrorString(status, byref(text))
    reason = text.value.decode() if text.value else "unknown error"
    raise CudaError(f"{name} failed with {status}: {reason}")


class Device:
    """A GPU, with its primary context as CUDA's runtime uses it."""

    def __init__(self, number: int) -> None:
        self._driver = _driver()
        device, context = c_int(), c_void_p()
        _check(self._driver, "cuDeviceGet", byref(device), c_int(number))
        _check(self._driver, "cuDevicePrimaryCtxRetain", byref(context), device)
        self._context = context

    def call(self, name: str, *arguments: Any) -> None:
        """Calls the driver with this device as the current one of the thread."""
        with _LOCK:
            _check(self._driver, "cuCtxPushCurrent_v2", self._context)
            try:
                _check(self._driver, name, *arguments)
            finally:
                _check(self._driver, "cuCtxPopCurrent_v2", byref(c_void_p()))

    def allocate(self, size: int) -> Memory:
        address = c_uint64()
        self.call("cuMemAlloc_v2", byref(address), c_size_t(size))
        return Memory(self, address)


class Memory:
    """An allocation on a device."""

    def __init__(self, device: Device, address: c_uint64) -> None:
        self._device = device
        self._address = address

    def ipc_handle(self) -> bytes:
        handle = _IpcHandle()
        self._device.call("cuIpcGetMemHandle", byref(handle), self._address)
        return bytes(handle)

    def write(self, offset: int, data: Any) -> None:
        source = bytes(data)
        self._device.call("cuMemcpyHtoD_v2", c_uint64(self._address.value + offset), source, c_size_t(len(source)))

    def read(self, size: int) -> memoryview:
        data = (c_char * size)()
        self._device.call("cuMemcpyDtoH_v2", data, self._address, c_size_t(size))
        return memoryview(data).cast("B")

    def free(self) -> None:
        self._device.call("cuMemFree_v2", self._address)

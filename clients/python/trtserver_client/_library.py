# SPDX-License-Identifier: Apache-2.0
"""ctypes declarations of `trtserver_client.h`, whose comments explain the functions. The only module that calls the C library.

The name without its prefix is the name here: `library.v1_infer` is `trtc_v1_infer`, `V1Request` is `trtc_v1_request`. Functions
that can fail raise `NativeError`.
"""

from __future__ import annotations

import ctypes
import os
from ctypes import POINTER, Structure, byref, c_bool, c_char_p, c_double, c_float, c_int, c_int32, c_int64, c_size_t
from ctypes import c_uint32, c_uint64, c_void_p
from typing import Any, Dict, List, Optional, Sequence, Tuple, Type

NO_DEADLINE = 2**64 - 1
HTTP, GRPC = 0, 1
KIND_SERVER, KIND_CONNECTION, KIND_DEADLINE, KIND_CANCELLED = 0, 1, 2, 3
KIND_RESPONSE, KIND_ARGUMENT, KIND_FILE, KIND_INTERNAL = 4, 5, 6, 7
COMPRESSIONS = {None: 0, "deflate": 1, "gzip": 2}
COPY_INPUTS = 1
PARAMETER_BOOL, PARAMETER_INT64, PARAMETER_STRING, PARAMETER_DOUBLE, PARAMETER_UINT64 = range(5)


class ErrorInfo(Structure):
    _fields_ = [
        ("code", c_int32),
        ("kind", c_int32),
        ("status", c_int32),
        ("request_id", c_uint64),
        ("message", c_char_p),
        ("server_id", c_char_p),
        ("asked", c_char_p),
        ("id", c_char_p),
    ]


class Header(Structure):
    _fields_ = [("name", c_char_p), ("value", c_char_p)]


class Settings(Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("url", c_char_p),
        ("protocol", c_int32),
        ("compression", c_int32),
        ("headers", POINTER(Header)),
        ("header_count", c_size_t),
        ("deadline_us", c_uint64),
        ("verbose", c_bool),
        ("tls", c_bool),
        ("tls_insecure", c_bool),
        ("tls_ca_file", c_char_p),
        ("tls_certificate_file", c_char_p),
        ("tls_key_file", c_char_p),
    ]


class Buffer(Structure):
    _fields_ = [("data", c_void_p), ("size", c_size_t), ("owner", c_void_p)]


class V1Tensor(Structure):
    _fields_ = [
        ("name", c_char_p),
        ("dims", POINTER(c_int64)),
        ("dim_count", c_size_t),
        ("data_type", c_int32),
        ("format", c_int32),
        ("is_shape_tensor", c_bool),
        ("byte_size", c_int64),
    ]


class V1Model(Structure):
    _fields_ = [
        ("name", c_char_p),
        ("version", c_int64),
        ("correlation_id", c_uint64),
        ("max_batch_size", c_uint64),
        ("inputs", POINTER(V1Tensor)),
        ("input_count", c_size_t),
        ("outputs", POINTER(V1Tensor)),
        ("output_count", c_size_t),
        ("config", c_void_p),
        ("config_size", c_size_t),
    ]


class V1Output(Structure):
    _fields_ = [
        ("name", c_char_p),
        ("class_count", c_uint64),
        ("region", c_char_p),
        ("region_offset", c_uint64),
        ("region_byte_size", c_uint64),
    ]


class V1Options(Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("batch_size", c_uint64),
        ("flags", c_uint32),
        ("priority", c_uint32),
        ("timeout_us", c_uint64),
        ("correlation_id", c_uint64),
        ("outputs", POINTER(V1Output)),
        ("output_count", c_size_t),
    ]


class V1Input(Structure):
    _fields_ = [
        ("name", c_char_p),
        ("dims", POINTER(c_int64)),
        ("dim_count", c_size_t),
        ("data", POINTER(c_void_p)),
        ("sizes", POINTER(c_size_t)),
        ("count", c_size_t),
        ("region", c_char_p),
        ("region_offset", c_uint64),
        ("region_byte_size", c_uint64),
    ]


class V1Request(Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("options", POINTER(V1Options)),
        ("inputs", POINTER(V1Input)),
        ("input_count", c_size_t),
        ("flags", c_uint32),
        ("deadline_us", c_uint64),
    ]


class V1Reply(Structure):
    _fields_ = [
        ("size", c_uint64),
        ("result", c_void_p),
        ("request_id", c_uint64),
        ("model_version", c_int64),
        ("description_size", c_uint64),
    ]


class V1Completion(Structure):
    _fields_ = [("size", c_uint64), ("user", c_void_p), ("id", c_uint64), ("error", c_void_p), ("reply", V1Reply)]


class V1Statistics(Structure):
    _fields_ = [
        ("completed_request_count", c_uint64),
        ("total_request_time_ns", c_uint64),
        ("send_time_ns", c_uint64),
        ("receive_time_ns", c_uint64),
    ]


class Class(Structure):
    _fields_ = [("index", c_uint64), ("value", c_float), ("label", c_char_p)]


class V1Entry(Structure):
    _fields_ = [("data", c_void_p), ("size", c_size_t), ("classes", POINTER(Class)), ("class_count", c_size_t)]


class V1ResultOutput(Structure):
    _fields_ = [
        ("name", c_char_p),
        ("data_type", c_int32),
        ("is_class", c_bool),
        ("in_region", c_bool),
        ("dims", POINTER(c_int64)),
        ("dim_count", c_size_t),
        ("data", c_void_p),
        ("size", c_size_t),
        ("entries", POINTER(V1Entry)),
        ("entry_count", c_size_t),
    ]


class V1ResultInfo(Structure):
    _fields_ = [
        ("model_name", c_char_p),
        ("model_version", c_int64),
        ("batch_size", c_uint64),
        ("server_id", c_char_p),
        ("request_id", c_uint64),
        ("outputs", POINTER(V1ResultOutput)),
        ("output_count", c_size_t),
    ]


class V2File(Structure):
    _fields_ = [("path", c_char_p), ("data", c_char_p), ("size", c_size_t)]


class Parameter(Structure):
    _fields_ = [
        ("name", c_char_p),
        ("type", c_int32),
        ("int_value", c_int64),
        ("double_value", c_double),
        ("string_value", c_char_p),
    ]


class V2Input(Structure):
    _fields_ = [
        ("name", c_char_p),
        ("datatype", c_char_p),
        ("shape", POINTER(c_int64)),
        ("rank", c_size_t),
        ("data", c_void_p),
        ("size", c_size_t),
        ("region", c_char_p),
        ("region_offset", c_uint64),
        ("region_byte_size", c_uint64),
    ]


#: The same fields.
V2Output = V1Output


class V2Request(Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("model", c_char_p),
        ("version", c_char_p),
        ("id", c_char_p),
        ("inputs", POINTER(V2Input)),
        ("input_count", c_size_t),
        ("outputs", POINTER(V2Output)),
        ("output_count", c_size_t),
        ("parameters", POINTER(Parameter)),
        ("parameter_count", c_size_t),
        ("sequence_id", c_uint64),
        ("sequence_id_text", c_char_p),
        ("sequence_start", c_bool),
        ("sequence_end", c_bool),
        ("priority", c_uint64),
        ("timeout_us", c_uint64),
        ("headers", POINTER(Header)),
        ("header_count", c_size_t),
        ("flags", c_uint32),
        ("deadline_us", c_uint64),
    ]


class V2ResultOutput(Structure):
    _fields_ = [
        ("name", c_char_p),
        ("datatype", c_char_p),
        ("shape", POINTER(c_int64)),
        ("rank", c_size_t),
        ("data", c_void_p),
        ("size", c_size_t),
        ("in_region", c_bool),
    ]


class V2ResultInfo(Structure):
    _fields_ = [
        ("model_name", c_char_p),
        ("model_version", c_char_p),
        ("id", c_char_p),
        ("is_final", c_bool),
        ("outputs", POINTER(V2ResultOutput)),
        ("output_count", c_size_t),
        ("parameters", POINTER(Parameter)),
        ("parameter_count", c_size_t),
    ]


class Completion(Structure):
    _fields_ = [("user", c_void_p), ("call", c_uint64), ("error", c_void_p), ("result", c_void_p)]


#: `trtc_v2_callback`: user, number of the call, error, result.
Callback = ctypes.CFUNCTYPE(None, c_void_p, c_uint64, c_void_p, c_void_p)


class NativeError(Exception):
    """A `trtc_error`."""

    def __init__(self, info: ErrorInfo) -> None:
        self.code: int = info.code
        self.kind: int = info.kind
        self.status: int = info.status
        self.request_id: int = info.request_id
        self.message = text(info.message)
        self.server_id = text(info.server_id)
        self.asked = text(info.asked)
        self.id = text(info.id)
        super().__init__(self.message)


def text(data: Optional[bytes]) -> str:
    return (data or b"").decode("utf-8", "replace")


def encoded(value: Any) -> bytes:
    """A string argument. C strings end at a zero byte, so one within the text would cut it off."""
    data = value if isinstance(value, bytes) else str(value).encode()
    if b"\0" in data:
        raise ValueError(f"{value!r} contains a zero byte")
    return data


def optional(value: Any) -> Optional[bytes]:
    return None if value is None else encoded(value)


def _take_error(error: int) -> NativeError:
    info = ErrorInfo()
    _error_get(error, byref(info))
    raised = NativeError(info)
    _error_free(error)
    return raised


def take_error(error: int) -> NativeError:
    """The error as an exception; releases it."""
    return _take_error(error)


def check(error: Optional[int]) -> None:
    """Raises the error, if it is one."""
    if error:
        raise _take_error(error)


def _check(error: Any, function: Any, arguments: Any) -> Any:
    """`errcheck` of functions that return a `trtc_error *`."""
    if error:
        raise _take_error(error)


_CLIENT = _CONTEXT = _PREPARED = _QUEUE = _RESULT = _STREAM = _USER = c_void_p
_DEADLINE = c_uint64
_NEW, _BOOL, _BYTES, _NUMBER = POINTER(c_void_p), POINTER(c_bool), POINTER(Buffer), POINTER(c_uint64)

#: Functions that return an error.
_FALLIBLE: Dict[str, Tuple[Any, ...]] = {
    "v1_client_new": (POINTER(Settings), _NEW),
    "v1_live": (_CLIENT, _DEADLINE, _BOOL),
    "v1_ready": (_CLIENT, _DEADLINE, _BOOL),
    "v1_status": (_CLIENT, c_char_p, _DEADLINE, _BYTES),
    "v1_repository_index": (_CLIENT, _DEADLINE, _BYTES),
    "v1_load_model": (_CLIENT, c_char_p, _DEADLINE),
    "v1_unload_model": (_CLIENT, c_char_p, _DEADLINE),
    "v1_register_system_memory": (_CLIENT, c_char_p, c_char_p, c_uint64, c_uint64, _DEADLINE),
    "v1_register_cuda_memory": (_CLIENT, c_char_p, c_char_p, c_size_t, c_uint64, c_int64, _DEADLINE),
    "v1_unregister_memory": (_CLIENT, c_char_p, _DEADLINE),
    "v1_memory_status": (_CLIENT, _DEADLINE, _BYTES),
    "v1_context_new": (POINTER(Settings), c_char_p, c_int64, c_uint64, c_bool, _DEADLINE, _NEW),
    "v1_context_model": (_CONTEXT, POINTER(POINTER(V1Model))),
    "v1_infer": (_CONTEXT, POINTER(V1Request), _NEW),
    "v1_infer_queued": (_CONTEXT, POINTER(V1Request), _QUEUE, _USER, _NUMBER),
    "v1_queue_new": (_NEW,),
    "v1_prepare": (_CONTEXT, POINTER(V1Request), _NEW),
    "v1_context_statistics": (_CONTEXT, POINTER(V1Statistics)),
    "v1_result_get": (_RESULT, POINTER(POINTER(V1ResultInfo))),
    "v2_client_new": (POINTER(Settings), _NEW),
    "v2_live": (_CLIENT, _DEADLINE, _BOOL),
    "v2_ready": (_CLIENT, _DEADLINE, _BOOL),
    "v2_model_ready": (_CLIENT, c_char_p, c_char_p, _DEADLINE, _BOOL),
    "v2_server_metadata": (_CLIENT, _DEADLINE, _BYTES),
    "v2_model_metadata": (_CLIENT, c_char_p, c_char_p, _DEADLINE, _BYTES),
    "v2_model_config": (_CLIENT, c_char_p, c_char_p, _DEADLINE, _BYTES),
    "v2_statistics": (_CLIENT, c_char_p, c_char_p, _DEADLINE, _BYTES),
    "v2_repository_index": (_CLIENT, c_bool, _DEADLINE, _BYTES),
    "v2_load_model": (_CLIENT, c_char_p, c_char_p, POINTER(V2File), c_size_t, _DEADLINE),
    "v2_unload_model": (_CLIENT, c_char_p, c_bool, _DEADLINE),
    "v2_register_system_memory": (_CLIENT, c_char_p, c_char_p, c_uint64, c_uint64, _DEADLINE),
    "v2_register_cuda_memory": (_CLIENT, c_char_p, c_char_p, c_size_t, c_int64, c_uint64, _DEADLINE),
    "v2_unregister_system_memory": (_CLIENT, c_char_p, _DEADLINE),
    "v2_unregister_cuda_memory": (_CLIENT, c_char_p, _DEADLINE),
    "v2_system_memory_status": (_CLIENT, c_char_p, _DEADLINE, _BYTES),
    "v2_cuda_memory_status": (_CLIENT, c_char_p, _DEADLINE, _BYTES),
    "v2_trace_settings": (_CLIENT, c_char_p, c_char_p, _DEADLINE, _BYTES),
    "v2_log_settings": (_CLIENT, c_char_p, _DEADLINE, _BYTES),
    "v2_infer": (_CLIENT, POINTER(V2Request), _NEW),
    "v2_infer_async": (_CLIENT, POINTER(V2Request), Callback, _USER, _NUMBER),
    "v2_infer_queued": (_CLIENT, POINTER(V2Request), _QUEUE, _USER, _NUMBER),
    "v2_cancel": (_CLIENT, c_uint64),
    "completion_queue_new": (_NEW, POINTER(c_int)),
    "completion_queue_take": (_QUEUE, POINTER(Completion), c_size_t, POINTER(c_size_t)),
    "v2_stream_open": (_CLIENT, Callback, _USER, _DEADLINE, _NEW),
    "v2_stream_send": (_STREAM, POINTER(V2Request)),
    "v2_stream_next": (_STREAM, _DEADLINE, _NEW, _BOOL),
    "v2_stream_close": (_STREAM,),
    "v2_result_get": (_RESULT, POINTER(POINTER(V2ResultInfo))),
}

#: Other functions, with the type that they return.
_OTHERS: Dict[str, Tuple[Any, Tuple[Any, ...]]] = {
    "version": (c_char_p, ()),
    "live_handles": (c_size_t, ()),
    "descriptors": (c_void_p, (POINTER(c_size_t),)),
    "error_get": (None, (c_void_p, POINTER(ErrorInfo))),
    "error_free": (None, (c_void_p,)),
    "buffer_free": (None, (POINTER(Buffer),)),
    "v1_client_free": (None, (_CLIENT,)),
    "v1_client_last_request_id": (c_uint64, (_CLIENT,)),
    "v1_context_free": (None, (_CONTEXT,)),
    "v1_result_free": (None, (_RESULT,)),
    # An error or None: the caller checks, because a function in Python would cost as much as the
    # call.
    "v1_prepared_infer": (c_void_p, (_PREPARED, c_char_p, c_size_t, c_void_p, c_size_t)),
    "v1_prepared_free": (None, (_PREPARED,)),
    "v1_queue_wait": (c_void_p, (_QUEUE, _BOOL)),
    "v1_queue_close": (None, (_QUEUE,)),
    "v1_queue_free": (None, (_QUEUE,)),
    "v2_client_free": (None, (_CLIENT,)),
    "completion_queue_free": (None, (_QUEUE,)),
    "v2_stream_free": (None, (_STREAM,)),
    "v2_result_free": (None, (_RESULT,)),
}

#: Functions that neither wait nor call back: they keep the interpreter's lock, which another thread might not give back for long.
#: They return an error or None.
_QUICK: Dict[str, Tuple[Any, ...]] = {
    "v1_prepared_infer_queued": (_PREPARED, c_char_p, c_size_t, _QUEUE, _USER, _NUMBER),
    "v1_queue_take": (_QUEUE, c_void_p, c_size_t, POINTER(c_size_t)),
}


class _Library:
    """The functions as attributes, without their prefix."""

    def __init__(self) -> None:
        path = os.path.join(os.path.dirname(__file__), "libtrtserver_client.so")
        # TRTSERVER_CLIENT_LIBRARY names a build of the library that is not installed.
        path = os.environ.get("TRTSERVER_CLIENT_LIBRARY") or path
        loaded, quick = ctypes.CDLL(path), ctypes.PyDLL(path)
        for name, arguments in _FALLIBLE.items():
            function = loaded["trtc_" + name]
            function.restype, function.argtypes = c_void_p, arguments
            function.errcheck = _check
            setattr(self, name, function)
        for name, (returned, arguments) in _OTHERS.items():
            function = loaded["trtc_" + name]
            function.restype, function.argtypes = returned, arguments
            setattr(self, name, function)
        for name, arguments in _QUICK.items():
            function = quick["trtc_" + name]
            function.restype, function.argtypes = c_void_p, arguments
            setattr(self, name, function)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"trtc_{name} is not declared in _library.py")


library = _Library()
_error_get, _error_free = library.error_get, library.error_free


def descriptors() -> bytes:
    """The `FileDescriptorSet` of the messages of both protocols."""
    size = c_size_t()
    return ctypes.string_at(library.descriptors(byref(size)), size.value)


def settings(
    url: str,
    protocol: int,
    headers: Sequence[Tuple[str, str]] = (),
    *,
    compression: int = 0,
    deadline_us: int = 0,
    verbose: bool = False,
    tls: bool = False,
    tls_insecure: bool = False,
    tls_ca_file: Optional[str] = None,
    tls_certificate_file: Optional[str] = None,
    tls_key_file: Optional[str] = None,
) -> Settings:
    made = Settings(
        ctypes.sizeof(Settings), encoded(url), protocol, compression, None, len(headers), deadline_us, verbose, tls,
        tls_insecure, optional(tls_ca_file), optional(tls_certificate_file), optional(tls_key_file),
    )  # fmt: skip
    if headers:
        made.headers = header_array(headers)
    return made


def header_array(headers: Sequence[Tuple[str, str]]) -> Any:
    return array(Header, [(encoded(name), encoded(value)) for name, value in headers])


#: ctypes makes a type for each length, which costs more than a request, and forgets it with its last array.
_ARRAYS: Dict[Tuple[Type[Any], int], Any] = {}


def array(kind: Type[Any], values: Sequence[Any]) -> Any:
    """An array of structures; None, which is NULL, if there are no values."""
    count = len(values)
    if not count:
        return None
    if count > 64:
        return (kind * count)(*values)
    made = _ARRAYS.get((kind, count))
    if made is None:
        made = _ARRAYS[kind, count] = kind * count
    return made(*values)


def new(function: Any, *arguments: Any) -> int:
    """Calls a function whose last argument receives a handle."""
    handle = c_void_p()
    function(*arguments, byref(handle))
    return handle.value or 0


def truth(function: Any, *arguments: Any) -> bool:
    """Calls a function whose last argument receives a bool."""
    answer = c_bool()
    function(*arguments, byref(answer))
    return answer.value


def received(function: Any, *arguments: Any) -> bytes:
    """Calls a function whose last argument receives a buffer."""
    buffer = Buffer()
    function(*arguments, byref(buffer))
    try:
        return ctypes.string_at(buffer.data, buffer.size) if buffer.size else b""
    finally:
        library.buffer_free(byref(buffer))


class Result:
    """A result handle, released with the last array that reads its memory."""

    __slots__ = ("handle", "_free")

    def __init__(self, handle: int, free: Any) -> None:
        self.handle = handle
        self._free = free

    def __del__(self) -> None:
        self._free(self.handle)


def v1_info(result: Result) -> V1ResultInfo:
    info = POINTER(V1ResultInfo)()
    library.v1_result_get(result.handle, byref(info))
    return info.contents


def v2_info(result: Result) -> V2ResultInfo:
    info = POINTER(V2ResultInfo)()
    library.v2_result_get(result.handle, byref(info))
    return info.contents


def dimensions(pointer: Any, count: int) -> Tuple[int, ...]:
    return tuple(pointer[:count])


def parameter(name: str, value: Any) -> Parameter:
    """A request parameter of the type of its value.

    Raises
    ------
    TypeError
        The value is not a bool, int, str or float.
    """
    if isinstance(value, bool):
        return Parameter(encoded(name), PARAMETER_BOOL, int(value), 0.0, None)
    if isinstance(value, int):
        if not -(2**63) <= value < 2**64:
            raise ValueError(f"parameter '{name}' has the value {value}, which does not fit 64 bits")
        if value >= 2**63:
            return Parameter(encoded(name), PARAMETER_UINT64, value - 2**64, 0.0, None)
        return Parameter(encoded(name), PARAMETER_INT64, value, 0.0, None)
    if isinstance(value, str):
        return Parameter(encoded(name), PARAMETER_STRING, 0, 0.0, encoded(value))
    if isinstance(value, float):
        return Parameter(encoded(name), PARAMETER_DOUBLE, 0, value, None)
    raise TypeError(f"parameter '{name}' has type {type(value).__name__}, expected bool, int, float or str")


def parameter_value(given: Parameter) -> Any:
    if given.type == PARAMETER_BOOL:
        return bool(given.int_value)
    if given.type == PARAMETER_INT64:
        return given.int_value
    if given.type == PARAMETER_UINT64:
        return given.int_value % 2**64
    return given.double_value if given.type == PARAMETER_DOUBLE else text(given.string_value)



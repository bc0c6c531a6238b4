# SPDX-License-Identifier: Apache-2.0
"""The arguments of `infer` as one request structure of the C library."""

from __future__ import annotations

import ctypes
from ctypes import c_int64
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple, Union

import numpy as np

from trtserver_client import _tensors
from trtserver_client._errors import InvalidArgument
from trtserver_client._library import COPY_INPUTS, NO_DEADLINE, V2Input, V2Output, V2Request, array, encoded, header_array, optional
from trtserver_client._library import Parameter as NativeParameter
from trtserver_client._library import parameter
from trtserver_client._types import Classes, Deadline, Headers, Input, Output, Parameter, RegionInput, RegionOutput
from trtserver_client._types import RequestOptions, Tensor

#: Types of the protocol by the character and size of a numpy type.
DATATYPES: Dict[str, bytes] = {
    "b1": b"BOOL",
    "u1": b"UINT8",
    "u2": b"UINT16",
    "u4": b"UINT32",
    "u8": b"UINT64",
    "i1": b"INT8",
    "i2": b"INT16",
    "i4": b"INT32",
    "i8": b"INT64",
    "f2": b"FP16",
    "f4": b"FP32",
    "f8": b"FP64",
}
_BY_DTYPE: Dict[np.dtype, bytes] = {np.dtype(key): value for key, value in DATATYPES.items()}

_REQUEST_SIZE = ctypes.sizeof(V2Request)
_SHAPES: Dict[int, Any] = {rank: c_int64 * rank for rank in range(17)}


def microseconds(deadline: Deadline) -> int:
    """A deadline in seconds as the library takes it: 0 is that of the client, infinity is none."""
    if deadline is None:
        return 0
    if not deadline > 0:
        raise InvalidArgument(f"the deadline is {deadline} s, expected more than 0")
    return NO_DEADLINE if deadline > 1e9 else max(1, int(deadline * 1e6))


def _shape(shape: Sequence[int]) -> Any:
    return (_SHAPES.get(len(shape)) or c_int64 * len(shape))(*shape)


def _wire(name: str, value: np.ndarray, datatype: Optional[str]) -> Tuple[bytes, np.ndarray]:
    """Type and data of an array."""
    kind = value.dtype.kind
    if kind in "OSU":
        if datatype not in (None, "BYTES"):
            raise InvalidArgument(f"input '{name}' has strings, which cannot be sent as {datatype}")
        return b"BYTES", np.frombuffer(_tensors.encode_strings(value), np.uint8)
    if datatype == "BF16":
        if value.dtype != np.float32:
            raise InvalidArgument(f"input '{name}' has type {value.dtype}, BF16 is sent from float32")
        return b"BF16", _tensors.to_bf16(value)
    expected = _BY_DTYPE.get(value.dtype) or DATATYPES.get(value.dtype.str[1:])
    if expected is None:
        raise InvalidArgument(f"input '{name}' has type {value.dtype}, which the protocol does not have")
    if datatype is not None and datatype.encode() != expected:
        raise InvalidArgument(f"input '{name}' has type {value.dtype}, which cannot be sent as {datatype}")
    return expected, _tensors.contiguous(value)


def _output(given: Output) -> Any:
    if isinstance(given, str):
        return (encoded(given), 0, None, 0, 0)
    if isinstance(given, Classes):
        if given.count < 1:
            raise InvalidArgument(f"output '{given.name}' asks for {given.count} classes, expected a number from 1")
        return (encoded(given.name), given.count, None, 0, 0)
    if isinstance(given, RegionOutput):
        return (encoded(given.name), 0, encoded(given.region), given.offset, given.byte_size)
    raise InvalidArgument(f"an output is a {type(given).__name__}, expected a name, Classes or RegionOutput")


def header_pairs(headers: Optional[Headers]) -> List[Tuple[str, str]]:
    return list(headers.items() if isinstance(headers, Mapping) else headers or ())


class Request:
    """The structure and what it points to. Keep it until the response has arrived."""

    __slots__ = ("structure", "_kept")

    def __init__(
        self,
        model: str,
        inputs: Mapping[str, Input],
        *,
        outputs: Optional[Sequence[Output]] = None,
        version: str = "",
        request_id: str = "",
        sequence_id: Union[int, str] = 0,
        sequence_start: bool = False,
        sequence_end: bool = False,
        priority: int = 0,
        timeout_us: int = 0,
        parameters: Optional[Mapping[str, Parameter]] = None,
        headers: Optional[Headers] = None,
        deadline: Deadline = None,
    ) -> None:
        deadline_us = microseconds(deadline)
        self._kept: List[Any] = []
        try:
            given = [self._input(name, value) for name, value in inputs.items()]
            requested = [_output(each) for each in outputs or ()]
            extra = [parameter(name, value) for name, value in (parameters or {}).items()]
            pairs = header_pairs(headers)
            number, name = (0, sequence_id) if isinstance(sequence_id, str) else (sequence_id, None)
            self.structure = V2Request(
                _REQUEST_SIZE, encoded(model), optional(version or None), optional(request_id or None),
                array(V2Input, given), len(given), array(V2Output, requested), len(requested),
                array(NativeParameter, extra), len(extra), number, optional(name or None), sequence_start,
                sequence_end, priority, timeout_us, header_array(pairs), len(pairs), 0, deadline_us,
            )  # fmt: skip
        except InvalidArgument:
            raise
        except (TypeError, ValueError) as error:
            raise InvalidArgument(str(error)) from None

    @staticmethod
    def of_stream(model: str, inputs: Mapping[str, Input], number: int, options: RequestOptions) -> Request:
        """The request with this number on a stream. Its arrays are copied, as the stream sends them later."""
        for name in ("headers", "deadline"):
            if name in options:
                raise InvalidArgument(f"a request on a stream has no {name} of its own")
        given = options.copy()
        given["request_id"] = options.get("request_id") or str(number)
        request = Request(model, inputs, **given)
        request.structure.flags = COPY_INPUTS
        return request

    def _input(self, name: str, value: Input) -> Any:
        if isinstance(value, RegionInput):
            shape = _shape(value.shape)
            return (
                encoded(name), encoded(value.datatype), shape, len(shape), None, 0, encoded(value.region),
                value.offset, value.byte_size,
            )  # fmt: skip
        datatype = None
        if isinstance(value, Tensor):
            datatype, value = value.datatype, value.data
        if not isinstance(value, np.ndarray):
            raise InvalidArgument(f"input '{name}' is a {type(value).__name__}, expected a numpy array")
        shape = _shape(value.shape)
        kind, wire = _wire(name, value, datatype)
        self._kept.append(wire)
        address = wire.__array_interface__["data"][0]
        return (encoded(name), kind, shape, len(shape), address, wire.nbytes, None, 0, 0)

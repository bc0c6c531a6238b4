# SPDX-License-Identifier: Apache-2.0
"""numpy arrays as tensors of v1 requests, and the bytes of responses as arrays."""

from __future__ import annotations

from typing import Any, Dict, List, Optional

import numpy as np

from tensorrtserver.api._errors import raise_error
from trtserver_client import _tensors

#: numpy types by the numbers of `DataType`.
DTYPES: Dict[int, Any] = {
    1: np.dtype(np.bool_),
    2: np.dtype(np.uint8),
    3: np.dtype(np.uint16),
    4: np.dtype(np.uint32),
    5: np.dtype(np.uint64),
    6: np.dtype(np.int8),
    7: np.dtype(np.int16),
    8: np.dtype(np.int32),
    9: np.dtype(np.int64),
    10: np.dtype(np.float16),
    11: np.dtype(np.float32),
    12: np.dtype(np.float64),
    13: np.dtype(object),
}


def serialize_string_tensor(input_tensor: np.ndarray) -> np.ndarray:
    """Serializes strings: each is its length in four bytes, then its bytes, in C order.

    Parameters
    ----------
    input_tensor : np.ndarray
        Array of `np.bytes_`, `np.str_` or objects. An object is sent as the UTF-8 of its `str()`, even one of type `bytes`.

    Returns
    -------
    np.ndarray
        The serialized bytes; `size * itemsize` is their number.

    Raises
    ------
    InferenceServerException
        The value is not an array, is empty, or has another type.
    """
    if not isinstance(input_tensor, np.ndarray):
        raise_error("input must be a numpy array")
    if input_tensor.size == 0:
        raise_error("input cannot be empty")
    if not is_string(input_tensor):
        raise_error("cannot serialize string tensor: invalid datatype")
    return np.asarray(string_bytes(input_tensor))


def is_string(array: np.ndarray) -> bool:
    return array.dtype.kind in "OSU"


def string_bytes(array: np.ndarray) -> bytes:
    if array.dtype.kind == "S":
        # Of the C order, without the zeros at the end of each, as numpy has them.
        return _tensors.join_strings(array.ravel().tolist())
    return _tensors.join_strings([str(each).encode() for each in array.ravel().tolist()])


def wire_array(array: np.ndarray) -> np.ndarray:
    """The array as it is sent: in C order and little-endian. A copy is made only where the array differs from that."""
    if is_string(array):
        return np.frombuffer(string_bytes(array), np.uint8)
    return _tensors.contiguous(array)


def strings(data: Any, limit: Optional[int] = None) -> List[bytes]:
    """The first strings of a serialized tensor, or all of them."""
    try:
        return _tensors.split_strings(data, limit)
    except ValueError as error:
        raise_error(f"invalid string tensor in the response: {error}")

# SPDX-License-Identifier: Apache-2.0
"""Responses of a v2 server."""

from __future__ import annotations

import ctypes
from typing import Any, Dict, List, Tuple

import numpy as np

from trtserver_client import _library, _tensors
from trtserver_client._errors import InvalidResponse
from trtserver_client._library import Result, library
from trtserver_client._request import DATATYPES
from trtserver_client._types import Class, Parameter

_DTYPES: Dict[bytes, np.dtype] = {value: np.dtype("<" + key) for key, value in DATATYPES.items()}


class InferResult:
    """A response. Its arrays read the memory of the response in place and are read-only."""

    __slots__ = ("_info", "_outputs", "_result")

    def __init__(self, handle: int) -> None:
        self._result = Result(handle, library.v2_result_free)
        self._info = _library.v2_info(self._result)
        self._outputs: Dict[str, Any] = {}
        for output in self._info.outputs[: self._info.output_count]:
            self._outputs[_library.text(output.name)] = output

    @property
    def model_name(self) -> str:
        """The model that has executed the request."""
        return _library.text(self._info.model_name)

    @property
    def model_version(self) -> str:
        """The version that has executed the request."""
        return _library.text(self._info.model_version)

    @property
    def id(self) -> str:
        """The id that the request had."""
        return _library.text(self._info.id)

    @property
    def is_final(self) -> bool:
        """Whether no more responses to the request follow."""
        return bool(self._info.is_final)

    @property
    def parameters(self) -> Dict[str, Parameter]:
        """What the model has added to the response."""
        given = self._info.parameters[: self._info.parameter_count]
        return {_library.text(each.name): _library.parameter_value(each) for each in given}

    @property
    def outputs(self) -> List[str]:
        """Names of the outputs, in the order of the response."""
        return list(self._outputs)

    def __contains__(self, name: str) -> bool:
        return name in self._outputs

    def _output(self, name: str) -> Any:
        output = self._outputs.get(name)
        if output is None:
            raise KeyError(f"the response of model '{self.model_name}' has no output '{name}', it has {self.outputs}")
        return output

    def shape(self, name: str) -> Tuple[int, ...]:
        """Shape of an output, with the batch. Works for outputs in shared memory as well."""
        output = self._output(name)
        return _library.dimensions(output.shape, output.rank)

    def datatype(self, name: str) -> str:
        """Type of an output in the protocol, such as `FP32`."""
        return _library.text(self._output(name).datatype)

    def __getitem__(self, name: str) -> np.ndarray:
        """The array of an output: `BYTES` as an array of objects of type `bytes`, `BF16` as float32.

        Raises
        ------
        KeyError
            The response has no such output, or it is in shared memory.
        InvalidResponse
            The data does not have the size of shape and type.
        """
        output = self._output(name)
        if output.in_region:
            raise KeyError(f"output '{name}' is in shared memory, not in the response")
        shape = _library.dimensions(output.shape, output.rank)
        dtype = _DTYPES.get(output.datatype)
        try:
            if dtype is not None:
                _tensors.check_size(output.size, shape, dtype)
                if output.size == 0:
                    return np.empty(shape, dtype)
                return np.asarray(_tensors.Memory(output.data, shape, dtype, self._result))
            data = ctypes.string_at(output.data, output.size) if output.size else b""
            if output.datatype == b"BYTES":
                return _tensors.object_array(_tensors.split_strings(data), shape)
            if output.datatype == b"BF16":
                return _tensors.from_bf16(data).reshape(shape)
        except ValueError as error:
            raise InvalidResponse(f"output '{name}' of model '{self.model_name}': {error}") from None
        raise InvalidResponse(f"output '{name}' of model '{self.model_name}' has the unknown type {self.datatype(name)}")

    def classes(self, name: str) -> Any:
        """The classes of an output that was requested as `Classes`.

        Returns
        -------
        list
            `Class` objects with the highest value first; for a model that batches one such list per batch entry.
        """
        array = self[name]
        try:
            return _classes(array.tolist())
        except (AttributeError, ValueError) as error:
            raise InvalidResponse(f"output '{name}' of model '{self.model_name}' has no classes: {error}") from None


def _classes(given: Any) -> Any:
    if isinstance(given, list):
        return [_classes(each) for each in given]
    value, index, *label = given.decode("utf-8", "replace").split(":", 2)
    return Class(float(value), int(index), label[0] if label else "")

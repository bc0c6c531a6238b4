# SPDX-License-Identifier: Apache-2.0
"""What the v2 clients take and return beside arrays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple, TypedDict, Union

import numpy as np


@dataclass(frozen=True)
class ServerMetadata:
    """Name, version and protocol extensions of a server."""

    name: str
    version: str
    extensions: Tuple[str, ...]


@dataclass(frozen=True)
class TensorMetadata:
    """An input or output of a model. -1 in the shape is variable; the batch is the first dimension."""

    name: str
    datatype: str
    shape: Tuple[int, ...]


@dataclass(frozen=True)
class ModelMetadata:
    """Versions and tensors of a model."""

    name: str
    versions: Tuple[str, ...]
    platform: str
    inputs: Tuple[TensorMetadata, ...]
    outputs: Tuple[TensorMetadata, ...]


@dataclass(frozen=True)
class ModelIndex:
    """A model of the repository, with one entry per version that is or was loaded.

    The state is `READY`, `UNAVAILABLE`, `LOADING` or `UNLOADING`; it is empty for a model that was never loaded.
    """

    name: str
    version: str = ""
    state: str = ""
    reason: str = ""


@dataclass(frozen=True)
class Classes:
    """Requests the `count` highest classes of an output instead of the tensor."""

    name: str
    count: int


@dataclass(frozen=True)
class RegionInput:
    """An input that is in a registered shared memory region."""

    region: str
    shape: Sequence[int]
    #: Type of the protocol, such as `FP32`.
    datatype: str
    byte_size: int
    offset: int = 0


@dataclass(frozen=True)
class RegionOutput:
    """An output that the server writes into a registered shared memory region."""

    name: str
    region: str
    byte_size: int
    offset: int = 0


@dataclass(frozen=True)
class Tensor:
    """An array whose type in the protocol is not that of numpy: `BF16` from an array of float32."""

    data: np.ndarray
    datatype: str


@dataclass(frozen=True)
class Class:
    """One class of an output requested as `Classes`. The label is empty if the model has none."""

    value: float
    index: int
    label: str


#: An input of `infer`.
Input = Union[np.ndarray, Tensor, RegionInput]
#: A requested output of `infer`; a name requests the tensor.
Output = Union[str, Classes, RegionOutput]
#: Headers of HTTP requests, metadata of gRPC requests.
Headers = Union[Mapping[str, str], Sequence[Tuple[str, str]]]
#: A request parameter.
Parameter = Union[bool, int, str, float]
#: Seconds; None is the default.
Deadline = Optional[float]


class Settings(TypedDict, total=False):
    """Keyword arguments of clients. `Client.__init__` explains them."""

    protocol: Optional[str]
    headers: Optional[Headers]
    deadline: Deadline
    compression: Optional[str]
    ca_file: Optional[str]
    certificate_file: Optional[str]
    key_file: Optional[str]
    insecure: bool
    verbose: bool


class RequestOptions(TypedDict, total=False):
    """Keyword arguments of every request. `Client.infer` explains them."""

    outputs: Optional[Sequence[Output]]
    version: str
    request_id: str
    sequence_id: Union[int, str]
    sequence_start: bool
    sequence_end: bool
    priority: int
    timeout_us: int
    parameters: Optional[Mapping[str, Parameter]]


class InferOptions(RequestOptions, total=False):
    """Keyword arguments of requests that are not sent over a stream."""

    headers: Optional[Headers]
    deadline: Deadline


def _tensors(given: List[Mapping[str, Any]]) -> Tuple[TensorMetadata, ...]:
    return tuple(TensorMetadata(each["name"], each["datatype"], tuple(map(int, each["shape"]))) for each in given)


def server_metadata(given: Mapping[str, Any]) -> ServerMetadata:
    return ServerMetadata(given["name"], given["version"], tuple(given.get("extensions", ())))


def model_metadata(given: Mapping[str, Any]) -> ModelMetadata:
    return ModelMetadata(
        given["name"],
        tuple(given.get("versions", ())),
        given.get("platform", ""),
        _tensors(given.get("inputs", [])),
        _tensors(given.get("outputs", [])),
    )


def model_index(given: Sequence[Mapping[str, str]]) -> List[ModelIndex]:
    keys = ("name", "version", "state", "reason")
    return [ModelIndex(*(each.get(key, "") for key in keys)) for each in given]


def regions(given: Mapping[str, Any]) -> List[Dict[str, Any]]:
    return list(given["regions"].values())

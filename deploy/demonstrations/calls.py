"""Requests of a demonstration, as bytes.

Messages of gRPC are written by hand: they have six fields, and no generated code is needed.
"""

import json
import struct
from typing import NamedTuple

from fleet import MODEL


class Call(NamedTuple):
    """A request that is sent again and again."""

    protocol: str
    method: str
    path: str
    headers: tuple
    body: bytes


def varint(number):
    parts = []
    while number > 127:
        parts.append(number & 127 | 128)
        number >>= 7
    return bytes([*parts, number])


def field(number, content):
    """A field of a protobuf message: bytes, or a number."""
    if isinstance(content, int):
        return varint(number << 3) + varint(content)
    return varint(number << 3 | 2) + varint(len(content)) + content


def inference(protocol, headers=(), parameters=None, value=1.0, data_type="FP32"):
    """An inference with one value, FP32 or INT32. `parameters`: integers and booleans by name."""
    parameters, headers = parameters or {}, tuple(headers)
    if protocol == "http":
        tensor = {"name": "INPUT0", "datatype": data_type, "shape": [1, 1], "data": [value]}
        body = json.dumps({"parameters": parameters, "inputs": [tensor]}).encode()
        return Call("http", "POST", f"/v2/models/{MODEL}/infer", headers, body)
    tensor = field(1, b"INPUT0") + field(2, data_type.encode()) + field(3, bytes([1, 1]))
    message = field(1, MODEL.encode())
    for name, content in parameters.items():
        number = 1 if isinstance(content, bool) else 2
        message += field(4, field(1, name.encode()) + field(2, field(number, int(content))))
    message += field(5, tensor) + field(7, struct.pack("<f" if data_type == "FP32" else "<i", value))
    return Call("grpc", "POST", "/inference.GRPCInferenceService/ModelInfer", headers, message)

# SPDX-License-Identifier: Apache-2.0
"""Builds the protobuf modules from the descriptors in the C library, with the protobuf package that is installed.

The descriptors have a pool of their own: other packages in the process may register files and messages of the same names.
"""

from __future__ import annotations

from typing import Any, Dict, Iterator

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory  # type: ignore[import-untyped,unused-ignore]
from google.protobuf.internal import enum_type_wrapper  # type: ignore[import-untyped,unused-ignore]

from trtserver_client._library import descriptors

PACKAGE = "nvidia.inferenceserver"
#: The server's files have the model configuration in the package of v2; the clients of v1 know it in theirs.
_V2 = "inference"
_FOLDER = "nvidia/inferenceserver/"
_MODEL_CONFIG = "inference/model_config.proto"


def _name(path: str) -> str:
    """Name of a file in the original package: without its folder."""
    return path.rsplit("/", 1)[-1]


def _rename_types(messages: Any) -> None:
    for message in messages:
        for field in message.field:
            if field.type_name.startswith(f".{_V2}."):
                field.type_name = f".{PACKAGE}{field.type_name[len(_V2) + 1 :]}"
        _rename_types(message.nested_type)


def _files() -> Iterator[Any]:
    """The files of v1, each after those it imports."""
    everything = descriptor_pb2.FileDescriptorSet.FromString(descriptors())
    for file in everything.file:
        if file.name != _MODEL_CONFIG and not file.name.startswith(_FOLDER):
            continue
        file.name = _name(file.name)
        file.package = PACKAGE
        file.dependency[:] = [_name(path) for path in file.dependency]
        _rename_types(file.message_type)
        yield file


def _build() -> Any:
    pool = descriptor_pool.DescriptorPool()
    for file in _files():
        pool.AddSerializedFile(file.SerializeToString())
    return pool


_POOL = _build()

if hasattr(message_factory, "GetMessageClass"):
    _message_class = message_factory.GetMessageClass
else:  # protobuf 3
    _message_class = message_factory.MessageFactory(_POOL).GetPrototype


def file_descriptor(name: str) -> Any:
    return _POOL.FindFileByName(name)


def fill(module: Dict[str, Any], name: str) -> None:
    """Gives a module the names that protoc generates for a file: messages, enums, and the values of enums."""
    file = file_descriptor(name)
    module["DESCRIPTOR"] = file
    for message, descriptor in file.message_types_by_name.items():
        module[message] = _message_class(descriptor)
    for enum, descriptor in file.enum_types_by_name.items():
        module[enum] = enum_type_wrapper.EnumTypeWrapper(descriptor)
        for value in descriptor.values:
            module[value.name] = value.number
    module["__all__"] = [each for each in module if not each.startswith("_")]


def message_class(descriptor: Any) -> Any:
    return _message_class(descriptor)

"""Reads the tensors of PyTorch's first file format and of safetensors, with the standard library alone.

Both functions return {name: (dims, bytes of little-endian FP32)}. Unlike `pickle.load` nothing in a file is executed:
only the four names below are known.
"""

import array
import collections
import io
import itertools
import json
import pickle
import struct

SIZES = {"FloatStorage": 4, "LongStorage": 8}


class Storage:
    """Numbers of a .pth file, which follow the descriptions of the tensors."""

    def __init__(self, size):
        self.size, self.data = size, b""


class TensorReader(pickle.Unpickler):
    def __init__(self, file, storages):
        super().__init__(file)
        self.storages = storages

    def find_class(self, module, name):
        if (module, name) == ("collections", "OrderedDict"):
            return collections.OrderedDict
        if (module, name) == ("torch._utils", "_rebuild_tensor_v2"):
            return lambda storage, offset, dims, strides, *_: (storage, offset, dims, strides)
        if module == "torch" and name in SIZES:
            return SIZES[name]
        raise pickle.UnpicklingError(f"the file refers to {module}.{name}, which a file of weights has no use for")

    def persistent_load(self, key):
        kind, size, name = key[0], key[1], key[2]
        if kind != "storage":
            raise pickle.UnpicklingError(f"the file has a {kind!r} where weights are expected")
        return self.storages.setdefault(name, Storage(size))


def read_pth(content):
    file, storages = io.BytesIO(content), {}
    for _ in range(3):  # magic number, version, sizes of the machine's types
        TensorReader(file, storages).load()
    tensors = TensorReader(file, storages).load()
    for name in TensorReader(file, storages).load():
        (count,) = struct.unpack("<q", file.read(8))
        storages[name].data = file.read(count * storages[name].size)
    found = {}
    for name, (storage, offset, dims, strides) in tensors.items():
        if storage.size == SIZES["FloatStorage"]:
            found[name] = (list(dims), row_major(storage.data, offset, dims, strides))
    return found


def row_major(content, offset, dims, strides):
    """The numbers of a tensor that may be a transposed view, in the order of its own dims."""
    steps, count = [], 1
    for size in reversed(dims):
        steps.insert(0, count)
        count *= size
    numbers = array.array("f", content)
    if tuple(strides) == tuple(steps):
        return numbers[offset:offset + count].tobytes()
    # Along the longest axis whole slices are copied.
    axis = max(range(len(dims)), key=lambda one: dims[one])
    result = array.array("f", bytes(4 * count))
    for index in itertools.product(*(range(1 if one == axis else size) for one, size in enumerate(dims))):
        here = sum(a * b for a, b in zip(index, steps))
        there = offset + sum(a * b for a, b in zip(index, strides))
        last = there + (dims[axis] - 1) * strides[axis]
        result[here:here + (dims[axis] - 1) * steps[axis] + 1:steps[axis]] = numbers[there:last + 1:strides[axis]]
    return result.tobytes()


def read_safetensors(content):
    (length,) = struct.unpack("<Q", content[:8])
    header, start = json.loads(content[8:8 + length]), 8 + length
    found = {}
    for name, entry in header.items():
        if name != "__metadata__" and entry["dtype"] == "F32":
            first, last = entry["data_offsets"]
            found[name] = (entry["shape"], content[start + first:start + last])
    return found

"""Writes ONNX files with the standard library alone: the few messages of onnx.proto that a network needs.

Weights are bytes as they lie in other files, so that nothing here computes with them.
"""

import struct

OPSET = 17
IR_VERSION = 8
FLOAT, INT64 = 1, 7


def varint(value):
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def number(field, value):
    return varint(field << 3) + varint(value)


def data(field, value):
    value = value.encode() if isinstance(value, str) else value
    return varint(field << 3 | 2) + varint(len(value)) + value


def tensor(name, kind, dims, raw):
    """A TensorProto."""
    head = b"".join(number(1, size) for size in dims) + number(2, kind)
    return head + data(8, name) + data(9, raw)


def attribute(name, value):
    """An AttributeProto: of an int, a float, a text, or a list of ints."""
    if isinstance(value, float):
        body = varint(2 << 3 | 5) + struct.pack("<f", value) + number(20, 1)
    elif isinstance(value, int):
        body = number(3, value) + number(20, 2)
    elif isinstance(value, str):
        body = data(4, value) + number(20, 3)
    else:
        body = b"".join(number(8, item) for item in value) + number(20, 7)
    return data(1, name) + body


def value_info(name, kind, dims):
    """A ValueInfoProto; a size that is a text is a variable one."""
    def size(dim):
        return data(1, data(2, dim) if isinstance(dim, str) else number(1, dim))
    shape = b"".join(size(dim) for dim in dims)
    return data(1, name) + data(2, data(1, number(1, kind) + data(2, shape)))


class OnnxGraph:
    """A graph that grows node by node. A method returns the name of the tensor that it adds."""

    def __init__(self, name):
        self.name, self.parts, self.inputs, self.outputs, self.count = name, [], [], [], 0

    def input(self, name, kind, dims):
        self.inputs.append(value_info(name, kind, dims))
        return name

    def output(self, name, kind, dims):
        self.outputs.append(value_info(name, kind, dims))

    def weight(self, name, dims, raw, kind=FLOAT):
        self.parts.append(data(5, tensor(name, kind, dims, raw)))
        return name

    def floats(self, values, dims=None):
        values = list(values)
        raw = struct.pack(f"<{len(values)}f", *values)
        return self.weight(self.fresh("c"), [len(values)] if dims is None else dims, raw)

    def ints(self, values, dims=None):
        values = list(values)
        raw = struct.pack(f"<{len(values)}q", *values)
        return self.weight(self.fresh("c"), [len(values)] if dims is None else dims, raw, INT64)

    def fresh(self, prefix):
        self.count += 1
        return f"{prefix}{self.count}"

    def node(self, kind, *inputs, result=None, **attributes):
        """`to_` stands for the attribute `to`, which is also a Python word elsewhere."""
        result = result or self.fresh(kind.lower())
        body = b"".join(data(1, name) for name in inputs) + data(2, result) + data(4, kind)
        body += b"".join(data(5, attribute(name.rstrip("_"), value)) for name, value in attributes.items())
        self.parts.append(data(1, body))
        return result

    def write(self, path):
        graph = b"".join(self.parts) + data(2, self.name)
        graph += b"".join(data(11, one) for one in self.inputs)
        graph += b"".join(data(12, one) for one in self.outputs)
        opset = data(1, "") + number(2, OPSET)
        model = number(1, IR_VERSION) + data(2, "trtserver examples") + data(7, graph) + data(8, opset)
        path.write_bytes(model)


def fields(message):
    """Numbers, contents and whole encodings of the fields of a message."""
    at = 0
    while at < len(message):
        start = at
        key, at = read_varint(message, at)
        kind = key & 7
        if kind == 0:
            value, at = read_varint(message, at)
        elif kind == 2:
            length, at = read_varint(message, at)
            value, at = message[at:at + length], at + length
        else:
            value, at = None, at + {1: 8, 5: 4}[kind]
        yield key >> 3, value, message[start:at]


def read_varint(message, at):
    value, shift = 0, 0
    while True:
        byte = message[at]
        value, shift, at = value | (byte & 0x7F) << shift, shift + 7, at + 1
        if byte < 0x80:
            return value, at


def metadata(model):
    """The texts that the author of a model has added to its file."""
    pairs = ({number: value for number, value, _ in fields(entry)} for number, entry, _ in fields(model) if number == 14)
    return {pair[1].decode(): pair[2].decode() for pair in pairs}


def counts(number, field):
    """Whether it is a counter of PyTorch among the weights, which no node uses."""
    return number == 5 and any(part == 8 and name.endswith(b".num_batches_tracked") for part, name, _ in fields(field))


def with_interface(model, front, back):
    """The model with the inputs and outputs of two graphs in place of its own: the nodes of `front` come before its
    nodes and compute its inputs, those of `back` come after them.
    """
    parts = []
    for number, value, whole in fields(model):
        if number != 7:
            parts.append(whole)
            continue
        kept = b"".join(field for inner, entry, field in fields(value) if inner not in (11, 12) and not counts(inner, entry))
        graph = b"".join(front.parts) + kept + b"".join(back.parts)
        graph += b"".join(data(11, one) for one in front.inputs) + b"".join(data(12, one) for one in back.outputs)
        parts.append(data(7, graph))
    return b"".join(parts)

#!/usr/bin/env python3
"""Writes models in OpenVINO's own format and in those of TensorFlow Lite and Paddle to tests/models/openvino.
Needs openvino 2026.4.1, tflite 2.18.0, flatbuffers and numpy.

    one_row    [1, 4] in, the product with a matrix [1, 3] out: exported for one row, batches after a reshape
    baked      [1, 4] in, [1, 2, 2] out: the 1 is a constant of the graph, so that it cannot batch
    lite       INPUT0 [-1, 4] plus 0, 1, 2, 3
    paddle     INPUT0 [-1, 4], negative numbers become 0
"""

import pathlib

import flatbuffers
import numpy as np
import openvino as ov
import tflite
from openvino import opset13 as op

HERE = pathlib.Path(__file__).parent / "openvino"


def place(name, file):
    folder = HERE / name / "1"
    folder.mkdir(parents=True, exist_ok=True)
    return folder / file


def save(name, function):
    x = op.parameter([1, 4], np.float32, name="x")
    x.output(0).set_names({"x"})
    result = op.result(function(x))
    result.output(0).set_names({"y"})
    path = place(name, "model.xml")
    ov.save_model(ov.Model([result], [x], name), path, compress_to_fp16=False)


def ir():
    matrix = np.arange(12, dtype=np.float32).reshape(4, 3) / 8
    save("one_row", lambda x: op.matmul(x, op.constant(matrix), False, False))
    save("baked", lambda x: op.reshape(x, op.constant(np.array([1, 2, 2])), False))


class Lite:
    """A file of TensorFlow Lite, whose parts are written from the inside out."""

    def __init__(self):
        self.builder = flatbuffers.Builder(1024)

    def offsets(self, start, items):
        start(self.builder, len(items))
        for item in reversed(items):
            self.builder.PrependUOffsetTRelative(item)
        return self.builder.EndVector()

    def numbers(self, values):
        return self.builder.CreateNumpyVector(np.array(values, np.int32))

    def table(self, kind, **fields):
        getattr(tflite, kind + "Start")(self.builder)
        for name, value in fields.items():
            getattr(tflite, kind + "Add" + name)(self.builder, value)
        return getattr(tflite, kind + "End")(self.builder)

    def tensor(self, name, buffer, shape, signature):
        fields = {"Shape": self.numbers(shape), "Type": tflite.TensorType.FLOAT32, "Buffer": buffer,
                  "Name": self.builder.CreateString(name), "ShapeSignature": self.numbers(signature)}
        return self.table("Tensor", **fields)

    def file(self):
        amount = self.builder.CreateByteVector(np.arange(4, dtype=np.float32).tobytes())
        buffers = [self.table("Buffer"), self.table("Buffer", Data=amount)]
        tensors = [self.tensor("INPUT0", 0, [1, 4], [-1, 4]), self.tensor("amount", 1, [4], [4]),
                   self.tensor("OUTPUT0", 0, [1, 4], [-1, 4])]
        options = self.table("AddOptions", FusedActivationFunction=tflite.ActivationFunctionType.NONE)
        add = self.table("Operator", OpcodeIndex=0, Inputs=self.numbers([0, 1]), Outputs=self.numbers([2]),
                         BuiltinOptionsType=tflite.BuiltinOptions.AddOptions, BuiltinOptions=options)
        graph = self.table("SubGraph", Tensors=self.offsets(tflite.SubGraphStartTensorsVector, tensors),
                           Inputs=self.numbers([0]), Outputs=self.numbers([2]),
                           Operators=self.offsets(tflite.SubGraphStartOperatorsVector, [add]))
        code = self.table("OperatorCode", DeprecatedBuiltinCode=tflite.BuiltinOperator.ADD, Version=1,
                          BuiltinCode=tflite.BuiltinOperator.ADD)
        model = self.table("Model", Version=3,
                           OperatorCodes=self.offsets(tflite.ModelStartOperatorCodesVector, [code]),
                           Subgraphs=self.offsets(tflite.ModelStartSubgraphsVector, [graph]),
                           Buffers=self.offsets(tflite.ModelStartBuffersVector, buffers))
        self.builder.Finish(model, b"TFL3")
        return bytes(self.builder.Output())


def field(number, value):
    """A field of a protobuf message: a number, a text or a message."""
    if isinstance(value, int):
        return bytes([number << 3]) + varint(value)
    value = value.encode() if isinstance(value, str) else value
    return bytes([number << 3 | 2]) + varint(len(value)) + value


def varint(value):
    value &= (1 << 64) - 1
    out = []
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def variable(name, kind, dims=()):
    """FP32 is 5; a dense tensor is 7, the ends of a graph are 9 and 10."""
    tensor = field(1, 5) + b"".join(field(2, dim) for dim in dims)
    described = field(1, kind) + (field(3, field(1, tensor)) if kind == 7 else b"")
    return field(3, field(1, name) + field(2, described) + (b"" if kind == 7 else field(3, 1)))


def operator(kind, take, give, column=False):
    ends = field(1, field(1, "X") + field(2, take)) + field(2, field(1, "Out") + field(2, give))
    return field(4, ends + field(3, kind) + (field(4, field(1, "col") + field(2, 0) + field(3, 0)) if column else b""))


def paddle():
    shape = [-1, 4]
    variables = [variable("feed", 9), variable("fetch", 10), variable("INPUT0", 7, shape), variable("OUTPUT0", 7, shape)]
    operators = [operator("feed", "feed", "INPUT0", True), operator("relu", "INPUT0", "OUTPUT0"),
                 operator("fetch", "OUTPUT0", "fetch", True)]
    block = field(1, 0) + field(2, -1) + b"".join(variables + operators)
    return field(1, block) + field(4, field(1, 2_004_000))


if __name__ == "__main__":
    ir()
    place("lite", "model.tflite").write_bytes(Lite().file())
    place("paddle", "model.pdmodel").write_bytes(paddle())

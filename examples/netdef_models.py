"""Caffe2 models (NetDef) from ONNX ones: the same tensors, operators and weights.

tests/models/make_netdef.py uses it. As a script it writes examples/models-caffe2: `digits`. Needs requirements.txt; Caffe2
itself is not needed.
"""

import pathlib
import shutil

import numpy
import onnx
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from onnx import numpy_helper

HERE = pathlib.Path(__file__).resolve().parent
PLATFORM = "caffe2_netdef"

# The fields of caffe2.proto that are used: message -> name, number, type, repeated.
FIELDS = {
    "Argument": [("name", 1, "string", 0), ("f", 2, "float", 0), ("i", 3, "int64", 0), ("s", 4, "bytes", 0),
                 ("floats", 5, "float", 1), ("ints", 6, "int64", 1), ("strings", 7, "bytes", 1)],
    "OperatorDef": [("input", 1, "string", 1), ("output", 2, "string", 1), ("name", 3, "string", 0),
                    ("type", 4, "string", 0), ("arg", 5, "Argument", 1)],
    "NetDef": [("name", 1, "string", 0), ("op", 2, "OperatorDef", 1), ("external_input", 7, "string", 1),
               ("external_output", 8, "string", 1)],
}
# TensorProto.DataType of Caffe2, by the types of ONNX.
TYPES = {"FLOAT": 1, "INT32": 2, "STRING": 4, "BOOL": 5, "UINT8": 6, "INT8": 7, "UINT16": 8, "INT16": 9, "INT64": 10,
         "FLOAT16": 12, "DOUBLE": 13}
FILLS = {numpy.dtype("float32"): "GivenTensorFill", numpy.dtype("int32"): "GivenTensorIntFill",
         numpy.dtype("int64"): "GivenTensorInt64Fill"}


def messages():
    file = descriptor_pb2.FileDescriptorProto(name="netdef.proto", package="caffe2", syntax="proto2")
    for message, fields in FIELDS.items():
        added = file.message_type.add(name=message)
        for name, number, kind, repeated in fields:
            field = added.field.add(name=name, number=number, label=3 if repeated else 1)
            if kind in FIELDS:
                field.type, field.type_name = field.TYPE_MESSAGE, f".caffe2.{kind}"
            else:
                field.type = getattr(field, f"TYPE_{kind.upper()}")
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("caffe2.NetDef"))


NetDef = messages()


def add(net, kind, inputs, outputs, **arguments):
    operator = net.op.add(type=kind, input=inputs, output=outputs)
    for name, value in arguments.items():
        argument = operator.arg.add(name=name)
        if isinstance(value, int):
            argument.i = value
        else:
            (argument.floats if isinstance(value[0], float) else argument.ints).extend(value)


def cast_to(kind):
    return TYPES[onnx.TensorProto.DataType.Name(kind)]


class Unsupported(Exception):
    """The model has no counterpart in Caffe2."""


def nets_of(model):
    """The net, and the net that fills its constants."""
    net, init, constants = NetDef(name=model.graph.name), NetDef(name=f"init_{model.graph.name}"), {}
    for info in (*model.graph.input, *model.graph.output):
        kind = onnx.TensorProto.DataType.Name(info.type.tensor_type.elem_type)
        if kind not in TYPES or kind == "STRING":
            raise Unsupported(f"{info.name} is {kind}")
    for weight in model.graph.initializer:
        constants[weight.name] = numpy_helper.to_array(weight)
    for node in model.graph.node:
        inputs, outputs = list(node.input), list(node.output)
        attributes = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
        if node.op_type == "Constant":
            [value] = attributes.values()
            value = numpy_helper.to_array(value) if isinstance(value, onnx.TensorProto) else numpy.array(value)
            constants[outputs[0]] = value.astype(numpy.float32) if value.dtype.kind == "f" else value
        elif node.op_type in ("Add", "Sub", "Mul", "Relu"):
            add(net, node.op_type, inputs, outputs)
        elif node.op_type == "Identity":
            add(net, "Copy", inputs, outputs)
        elif node.op_type == "Cast":
            add(net, "Cast", inputs, outputs, to=cast_to(attributes["to"]))
        elif node.op_type == "ReduceSum":
            axes = [int(axis) for axis in constants.pop(inputs[1])]
            add(net, "ReduceSum", inputs[:1], outputs, axes=axes, keepdims=attributes["keepdims"])
        elif node.op_type in ("Flatten", "Softmax"):
            add(net, node.op_type, inputs, outputs, axis=attributes["axis"])
        elif node.op_type == "Gemm":
            # FC has the weights of each output in a row.
            constants[inputs[1]] = constants[inputs[1]].T
            add(net, "FC", inputs, outputs)
        else:
            raise Unsupported(node.op_type)
    for name, value in constants.items():
        add(init, FILLS[value.dtype], [], [name], shape=list(value.shape), values=value.flatten().tolist())
    init.external_output.extend(constants)
    net.external_input.extend([i.name for i in model.graph.input] + list(constants))
    net.external_output.extend(o.name for o in model.graph.output)
    return net, init


def convert(source, target):
    """Writes the model directory `target` like the ONNX model's directory `source`."""
    shutil.rmtree(target, ignore_errors=True)
    files = {}
    for file in source.rglob("*"):
        at = target / file.relative_to(source)
        if file.name == "model.onnx":
            net, init = nets_of(onnx.load(file))
            files[at.with_name("model.netdef")] = net.SerializeToString(deterministic=True)
            files[at.with_name("init_model.netdef")] = init.SerializeToString(deterministic=True)
        elif file.name == "config.pbtxt":
            text = file.read_text().replace(f'name: "{source.name}"', f'name: "{target.name}"', 1)
            files[at] = text.replace("onnxruntime_onnx", PLATFORM).encode()
        elif file.is_file():
            files[at] = file.read_bytes()
    for file, contents in files.items():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(contents)


if __name__ == "__main__":
    convert(HERE / "models" / "digits", HERE / "models-caffe2" / "digits_netdef")

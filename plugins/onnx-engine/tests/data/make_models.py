#!/usr/bin/env python3
"""Writes the small models of these tests to its own directory. Needs the packages onnx and numpy."""

import pathlib

import numpy as np
import onnx
from onnx import TensorProto as T
from onnx import helper as h
from onnx import numpy_helper

HERE = pathlib.Path(__file__).parent
TYPES = {
    "bool": T.BOOL, "uint8": T.UINT8, "uint16": T.UINT16, "uint32": T.UINT32, "uint64": T.UINT64,
    "int8": T.INT8, "int16": T.INT16, "int32": T.INT32, "int64": T.INT64, "fp16": T.FLOAT16,
    "fp32": T.FLOAT, "fp64": T.DOUBLE, "string": T.STRING, "bf16": T.BFLOAT16,
}


def save(name, nodes, inputs, outputs, initializers=()):
    graph = h.make_graph(nodes, name, inputs, outputs, list(initializers))
    model = h.make_model(graph, producer_name="", opset_imports=[h.make_opsetid("", 17)])
    model.ir_version = 8
    onnx.checker.check_model(model)
    (HERE / f"{name}.onnx").write_bytes(model.SerializeToString())


def value(name, kind, shape):
    return h.make_tensor_value_info(name, kind, shape)


# Two inputs, two outputs, a batch dimension.
save(
    "addsub",
    [h.make_node("Add", ["INPUT0", "INPUT1"], ["OUTPUT0"]),
     h.make_node("Sub", ["INPUT0", "INPUT1"], ["OUTPUT1"])],
    [value("INPUT0", T.FLOAT, ["batch", 16]), value("INPUT1", T.FLOAT, ["batch", 16])],
    [value("OUTPUT0", T.FLOAT, ["batch", 16]), value("OUTPUT1", T.FLOAT, ["batch", 16])],
)

# One pair of tensors per element type, any number of elements, no batch dimension.
save(
    "types",
    [h.make_node("Identity", [f"in_{t}"], [f"out_{t}"]) for t in TYPES],
    [value(f"in_{t}", k, ["n"]) for t, k in TYPES.items()],
    [value(f"out_{t}", k, ["n"]) for t, k in TYPES.items()],
)

# Shapes known only after the run, a scalar, an output that is the input, an input with a default.
save(
    "shapes",
    [h.make_node("NonZero", ["x"], ["where"]),
     h.make_node("ReduceSum", ["x"], ["sum"], keepdims=0),
     h.make_node("Mul", ["x", "factor"], ["scaled"]),
     h.make_node("Mul", ["s", "s"], ["square"])],
    [value("x", T.FLOAT, ["n"]), value("s", T.FLOAT, []), value("factor", T.FLOAT, [1])],
    [value("where", T.INT64, [1, "found"]), value("sum", T.FLOAT, []), value("scaled", T.FLOAT, ["n"]),
     value("square", T.FLOAT, []), value("x", T.FLOAT, ["n"])],
    [numpy_helper.from_array(np.array([2.0], np.float32), "factor")],
)

# The file declares four columns, the graph produces as many as the input has.
save(
    "undeclared_width",
    [h.make_node("Neg", ["x"], ["middle"]), h.make_node("Shape", ["x"], ["shape"]),
     h.make_node("Reshape", ["middle", "shape"], ["y"])],
    [value("x", T.FLOAT, ["batch", "n"])],
    [value("y", T.FLOAT, ["batch", 4])],
)

# One step of a sequence: a control, a state that is read and written, and an output that is the
# input.
save(
    "step",
    [h.make_node("Not", ["START"], ["go"]), h.make_node("Cast", ["go"], ["keep"], to=T.FLOAT),
     h.make_node("Mul", ["STATE", "keep"], ["old"]), h.make_node("Add", ["old", "IN"], ["SUM"])],
    [value("IN", T.FLOAT, ["batch", 1]), value("START", T.BOOL, ["batch", 1]),
     value("STATE", T.FLOAT, ["batch", 1])],
    [value("SUM", T.FLOAT, ["batch", 1]), value("IN", T.FLOAT, ["batch", 1])],
)

# Two inputs of any width, which must be equal at run time.
save(
    "pair",
    [h.make_node("Add", ["a", "b"], ["c"])],
    [value("a", T.FLOAT, ["batch", "n"]), value("b", T.FLOAT, ["batch", "m"])],
    [value("c", T.FLOAT, ["batch", "k"])],
)

# Fails at run time for indices outside the table.
save(
    "lookup",
    [h.make_node("Gather", ["table", "places"], ["found"], axis=0)],
    [value("places", T.INT64, ["batch", 1])],
    [value("found", T.FLOAT, ["batch", 1])],
    [numpy_helper.from_array(np.array([10, 11, 12, 13], np.float32), "table")],
)

# The file declares four indices, the graph returns as many as there are non-zero values. A weight
# is an output.
save(
    "undeclared_count",
    [h.make_node("NonZero", ["x"], ["where"])],
    [value("x", T.FLOAT, ["n"])],
    [value("where", T.INT64, [1, 4]), value("weight", T.FLOAT, [2])],
    [numpy_helper.from_array(np.array([1.5, 2.5], np.float32), "weight")],
)

# Fixed shapes, an input with a default, an unused input, and an unused input with a default.
save(
    "tuned",
    [h.make_node("Mul", ["x", "factor"], ["scaled"])],
    [value("x", T.FLOAT, [2]), value("factor", T.FLOAT, [1]), value("idle", T.FLOAT, [2]),
     value("spare", T.FLOAT, [1])],
    [value("scaled", T.FLOAT, [2])],
    [numpy_helper.from_array(np.array([2.0], np.float32), "factor"),
     numpy_helper.from_array(np.array([3.0], np.float32), "spare")],
)

#!/usr/bin/env python3
"""Runs each operator with Caffe2 and writes inputs and outputs to `golden/`, a file per operator.

Needs Caffe2, which PyTorch contained last in release 1.10: Python 3.8, torch==1.8.1, numpy<1.24, protobuf==3.20.3, future, six.
The format of the files is in `src/tests/golden.rs`. Nothing is random: running it again writes the same files.
"""

import pathlib
import struct

import numpy as np
from caffe2.proto import caffe2_pb2
from caffe2.python import core, workspace

GOLDEN = pathlib.Path(__file__).parent / "golden"
# Numbers of the interface's types.
DTYPES = {
    "bool": 1, "uint8": 2, "uint16": 3, "int8": 6, "int16": 7, "int32": 8, "int64": 9, "float16": 10,
    "float32": 11, "float64": 12,
}
cases = {}


# A protobuf writer for five messages, so that no generated code is needed.
def varint(number):
    number &= (1 << 64) - 1
    out = b""
    while number > 127:
        out += bytes([number & 127 | 128])
        number >>= 7
    return out + bytes([number])


def field(number, contents):
    return varint(number << 3 | 2) + varint(len(contents)) + contents


def number_field(number, value):
    return varint(number << 3) + varint(value)


def tensor(name, array):
    array = np.asarray(array)
    dims = b"".join(number_field(3, dim) for dim in array.shape)
    head = field(1, name.encode()) + number_field(2, DTYPES[array.dtype.name])
    return head + dims + field(4, array.tobytes())


def lcg(seed, count):
    """The same numbers as `uniform` in src/tests/golden.rs: in [-1, 1), exact in float32."""
    state, out = seed, np.empty(count, np.float32)
    for i in range(count):
        state = (state * 6364136223846793005 + 1442695040888963407) & (1 << 64) - 1
        out[i] = ((state >> 40) - (1 << 23)) / (1 << 23)
    return out


def data(*shape, seed=None):
    """Small numbers that differ."""
    seed = sum(shape) * 31 + len(shape) if seed is None else seed
    return lcg(seed, int(np.prod(shape))).reshape(shape)


def fill(name, array):
    """An operator of an initialization net."""
    array = np.asarray(array)
    kinds = {
        "float32": "GivenTensorFill", "int32": "GivenTensorIntFill", "int64": "GivenTensorInt64Fill",
        "bool": "GivenTensorBoolFill",
    }
    return core.CreateOperator(
        kinds[array.dtype.name], [], [name], shape=list(array.shape), values=array.flatten().tolist())


def run_case(of, name, ops, inputs, outputs, weights=None, made=None, init_ops=None):
    """`weights` are written by the initialization net, `made` are made by the test: name -> (shape, seed, scale, offset)."""
    weights, made = weights or {}, made or {}
    init = caffe2_pb2.NetDef(name="init")
    init.op.extend([fill(key, value) for key, value in weights.items()])
    init.op.extend(init_ops or [])
    net = caffe2_pb2.NetDef(name=name)
    net.op.extend(ops)
    # Nets that Caffe2 saves list their weights as inputs too.
    written = [output for op in init.op for output in op.output]
    net.external_input.extend([*inputs, *written, *made])
    net.external_output.extend(outputs)
    workspace.ResetWorkspace()
    for key, value in inputs.items():
        workspace.FeedBlob(key, np.asarray(value))
    for key, (shape, seed, scale, offset) in made.items():
        values = lcg(seed, int(np.prod(shape))) * np.float32(scale) + np.float32(offset)
        workspace.FeedBlob(key, values.reshape(shape).astype(np.float32))
    workspace.RunNetOnce(init)
    # Inputs that the net overwrites.
    before = {key: np.array(value) for key, value in inputs.items()}
    if not workspace.RunNetOnce(net):
        raise RuntimeError(f"{of}: {name}")
    case = field(1, name.encode()) + field(2, init.SerializeToString()) + field(3, net.SerializeToString())
    for key, value in before.items():
        case += field(4, tensor(key, value))
    for key in outputs:
        case += field(5, tensor(key, workspace.FetchBlob(key)))
    for key, (shape, seed, scale, offset) in made.items():
        dims = b"".join(number_field(2, dim) for dim in shape)
        numbers = number_field(3, seed) + b"\x25" + struct.pack("<f", scale) + b"\x2d" + struct.pack("<f", offset)
        case += field(6, field(1, key.encode()) + dims + numbers)
    cases.setdefault(of, []).append(case)


def op(kind, inputs, outputs, name="", **arguments):
    """One operator in a case of its own. Inputs and weights are dictionaries in the order of the operator's inputs."""
    weights = arguments.pop("weights", {})
    order = arguments.pop("inputs_order", [*inputs, *weights])
    outputs = outputs.split()
    kept = arguments.pop("kept", outputs)
    text = ", ".join(f"{key}={value}" for key, value in arguments.items())
    operator = core.CreateOperator(kind, order, outputs, **arguments)
    run_case(kind, name or f"{kind} {text}", [operator], inputs, kept, weights)


def unary(kind, array, **arguments):
    op(kind, {"x": array}, "y", **arguments)


def elementwise():
    x = data(2, 3, 4) * 3
    for kind in ["Abs", "Ceil", "Cos", "Cosh", "Erf", "Exp", "Floor", "Negative", "Relu", "Sigmoid", "Sign", "Sin",
                 "Sinh", "Softplus", "Softsign", "Tan", "Tanh", "Swish", "Sqr", "Cube"]:
        unary(kind, x)
    for kind in ["Acos", "Asin", "Atan"]:
        unary(kind, data(2, 5))
    for kind in ["Log", "Sqrt", "Rsqrt", "Reciprocal"]:
        unary(kind, np.abs(data(2, 5)) + np.float32(0.1))
    for kind, argument, value in [("Elu", "alpha", 0.5), ("LeakyRelu", "alpha", 0.2), ("ReluN", "n", 2.0),
                                  ("ThresholdedRelu", "alpha", 0.7), ("Scale", "scale", 2.5)]:
        unary(kind, x)
        unary(kind, x, **{argument: value})
    unary("Gelu", x)
    unary("FloatToHalf", x)
    unary("HalfToFloat", x.astype(np.float16))
    unary("Selu", x)
    unary("Selu", x, alpha=1.5, scale=1.2)
    unary("HardSigmoid", x)
    unary("HardSigmoid", x, alpha=0.3, beta=0.4)
    unary("Clip", x)
    unary("Clip", x, min=-0.5, max=1.0)
    unary("Clip", x, min=0.5)
    unary("Not", np.array([True, False]))
    image = data(2, 3, 4, 5)
    op("PRelu", {"x": image}, "y", weights={"slope": data(3)}, name="a slope per channel")
    op("PRelu", {"x": image}, "y", weights={"slope": np.array([0.3], np.float32)}, name="one slope")
    op("PRelu", {"x": data(2, 4, 5, 3)}, "y", weights={"slope": data(3)}, order="NHWC")
    op("PRelu", {"x": data(4, 3)}, "y", weights={"slope": data(3)}, name="a matrix")
    for shape in [(3, 5), (2, 3, 4)]:
        unary("Softmax", data(*shape) * 3, name=f"default axis of {len(shape)} dimensions")
    unary("Softmax", data(2, 3, 4), axis=2)
    unary("Softmax", data(2, 3, 4), axis=-1)
    unary("Softmax", data(2, 3, 4), axis=0)
    for kind in ["Alias", "Copy", "EnsureCPUOutput", "CopyFromCPUInput", "StopGradient"]:
        unary(kind, data(2, 3))
    op("CopyOnDeviceLike", {"x": data(2, 3)}, "y", weights={"like": data(1)})
    op("Dropout", {"x": data(2, 3)}, "y mask", kept=["y"], is_test=1, ratio=0.3)
    for kind, name in [(1, "FLOAT"), (2, "INT32"), (5, "BOOL"), (6, "UINT8"), (10, "INT64"), (13, "DOUBLE")]:
        positive = np.array([0, 1.7, 2.2], np.float32)
        unary("Cast", positive, to=kind)
        unary("Cast", positive, to=name.lower())
    unary("Cast", np.array([-3, 0, 7], np.int64), to=1)
    unary("Cast", np.array([1, 0, 7], np.int32), to=5)


def arithmetic():
    a, b = data(2, 3, 4), data(2, 3, 4, seed=5) + np.float32(2)
    for kind in ["Add", "Sub", "Mul", "Div"]:
        op(kind, {"a": a, "b": b}, "y", name="equal shapes")
        op(kind, {"a": a, "b": b[:, :1, :]}, "y", name="numpy's rule")
        op(kind, {"a": a, "b": b[0, 0]}, "y", name="fewer dimensions")
        op(kind, {"a": a}, "y", weights={"b": b[0, 0]}, broadcast=1)
        op(kind, {"a": a}, "y", weights={"b": b[0, :, 0]}, broadcast=1, axis=1)
        op(kind, {"a": a}, "y", weights={"b": b[:, :, 0]}, broadcast=1, axis=0)
        op(kind, {"a": a}, "y", weights={"b": np.array([3], np.float32)}, broadcast=1, name="a number")
        op(kind, {"a": np.array([7, -8], np.int32), "b": np.array([2, 3], np.int32)}, "y", name="int32")
        op(kind, {"a": np.array([7, -8], np.int64), "b": np.array([2, 3], np.int64)}, "y", name="int64")
    op("Add", {"a": data(2, 3, 4, 5)}, "y", weights={"b": data(3)}, broadcast=1, axis_str="C")
    op("Add", {"a": data(2, 4, 5, 3)}, "y", weights={"b": data(3)}, broadcast=1, axis_str="C", order="NHWC")
    run_case("Add", "the first input is overwritten", [core.CreateOperator("Add", ["a", "b"], ["a"]),
             core.CreateOperator("Copy", ["a"], ["y"])], {"a": a, "b": b}, ["y"])
    for kind in ["Sum", "Max", "Min", "Mean"]:
        op(kind, {"a": a}, "y", name="one")
        op(kind, {"a": a, "b": b, "c": data(2, 3, 4, seed=9)}, "y", name="three")
    op("Sum", {"a": np.array([7, -8], np.int32), "b": np.array([2, 3], np.int32)}, "y", name="int32")
    op("Pow", {"a": np.abs(a)}, "y", exponent=2.5)
    op("Pow", {"a": np.abs(a), "b": b}, "y", name="two inputs")
    op("Pow", {"a": np.abs(a)}, "y", weights={"b": b[0, :, 0]}, broadcast=1, axis=1)
    integers = {"a": np.array([[1, 2], [3, 4]], np.int32), "b": np.array([[1, 3], [2, 4]], np.int32)}
    for kind in ["EQ", "NE", "LT", "LE", "GT", "GE"]:
        op(kind, integers, "y", name="int32")
        if kind != "NE":
            op(kind, {"a": a}, "y", weights={"b": np.array([0.1], np.float32)}, broadcast=1)
    op("EQ", {"a": np.array([True, False]), "b": np.array([True, True])}, "y", name="bool")
    bits = {"a": np.array([True, True, False, False]), "b": np.array([True, False, True, False])}
    for kind in ["And", "Or", "Xor"]:
        op(kind, bits, "y")
        op(kind, {"a": np.array([[True], [False]]), "b": np.array([True, False])}, "y", name="numpy's rule")
    op("Where", {"c": np.array([True, False]), "a": data(2), "b": data(2, seed=4)}, "y")


def matrices():
    weights, bias = data(5, 12), data(5, seed=3)
    op("FC", {"x": data(2, 12)}, "y", weights={"w": weights, "b": bias}, name="a matrix")
    op("FC", {"x": data(2, 3, 4)}, "y", weights={"w": weights, "b": bias}, name="an image")
    op("FC", {"x": data(2, 3, 2, 2)}, "y", weights={"w": data(5, 3, 2, 2), "b": bias}, name="weights of an image")
    op("FC", {"x": data(2, 3, 12)}, "y", weights={"w": weights, "b": bias}, axis=2)
    op("FC", {"x": data(2, 3, 4, 3)}, "y", weights={"w": weights, "b": bias}, axis=2, name="axis=2 of four")
    op("FC", {"x": data(2, 3, 12)}, "y", weights={"w": weights, "b": bias}, axis=-1)
    op("FC", {"x": data(2, 12)}, "y", weights={"w": data(5, 3, 4).reshape(1, 5, 12), "b": bias}, axis_w=2)
    op("FCTransposed", {"x": data(2, 12)}, "y", weights={"w": data(12, 5), "b": bias})
    op("FCTransposed", {"x": data(2, 3, 12)}, "y", weights={"w": data(12, 5), "b": bias}, axis=2)
    op("MatMul", {"a": data(2, 3), "b": data(3, 4)}, "y")
    op("MatMul", {"a": data(3, 2), "b": data(3, 4)}, "y", trans_a=1)
    op("MatMul", {"a": data(2, 3), "b": data(4, 3)}, "y", trans_b=1)
    op("MatMul", {"a": data(2, 2, 3), "b": data(3, 4)}, "y", axis_a=2)
    op("BatchMatMul", {"a": data(2, 3, 4), "b": data(2, 4, 5)}, "y")
    op("BatchMatMul", {"a": data(2, 4, 3), "b": data(2, 5, 4)}, "y", trans_a=1, trans_b=1)
    op("BatchMatMul", {"a": data(2, 3, 4), "b": data(4, 5)}, "y", broadcast=1)
    op("BatchMatMul", {"a": data(6, 2, 3, 4), "b": data(2, 4, 5)}, "y", broadcast=1, name="numpy's rule")


def convolutions():
    x, w, b = data(1, 4, 7, 6), data(6, 4, 3, 3), data(6, seed=2)
    for kind in ["Conv", "Conv2D"]:
        op(kind, {"x": x}, "y", weights={"w": w, "b": b}, kernel=3)
    for arguments in [{"kernel": 3, "pad": 1}, {"kernel": 3, "stride": 2}, {"kernel": 3, "dilation": 2},
                      {"kernels": [3, 3], "pads": [1, 0, 2, 1]}, {"kernel_h": 3, "kernel_w": 3, "stride_h": 2, "stride_w": 1},
                      {"kernel": 3, "pad_t": 1, "pad_l": 2, "pad_b": 0, "pad_r": 1}, {"kernel": 3, "strides": [1, 2]},
                      {"kernel": 3, "legacy_pad": 1}, {"kernel": 3, "legacy_pad": 2, "stride": 2},
                      {"kernel": 3, "legacy_pad": 2}, {"kernel": 3, "dilation_h": 2, "dilation_w": 1}]:
        op("Conv", {"x": x}, "y", weights={"w": w, "b": b}, **arguments)
    op("Conv", {"x": x}, "y", weights={"w": w}, kernel=3, name="no bias")
    op("Conv", {"x": x}, "y", weights={"w": data(6, 2, 3, 3), "b": b}, kernel=3, group=2)
    op("Conv", {"x": x}, "y", weights={"w": data(4, 1, 3, 3), "b": b[:4]}, kernel=3, group=4, pad=1)
    op("Conv", {"x": data(1, 7, 6, 4)}, "y", weights={"w": data(6, 3, 3, 4), "b": b}, kernel=3, order="NHWC", pad=1)
    op("Conv", {"x": data(1, 7, 6, 4)}, "y", weights={"w": data(6, 3, 3, 2), "b": b}, kernel=3, order="NHWC", group=2)
    op("Conv1D", {"x": data(1, 4, 9)}, "y", weights={"w": data(6, 4, 3), "b": b}, kernels=[3], strides=[2], pads=[1, 1])
    op("Conv3D", {"x": data(1, 2, 4, 5, 4)}, "y", weights={"w": data(3, 2, 2, 3, 2), "b": b[:3]}, kernels=[2, 3, 2])
    w = data(4, 3, 3, 3)
    for arguments in [{"kernel": 3}, {"kernel": 3, "stride": 2}, {"kernel": 3, "stride": 2, "adj": 1, "pad": 1},
                      {"kernel": 3, "stride": 2, "adj_h": 1, "adj_w": 0}]:
        op("ConvTranspose", {"x": data(1, 4, 3, 4)}, "y", weights={"w": w, "b": b[:3]}, **arguments)
    op("ConvTranspose", {"x": data(1, 4, 3, 4)}, "y", weights={"w": data(4, 2, 3, 3), "b": b[:4]}, kernel=3, group=2)
    op("ConvTranspose", {"x": data(1, 3, 4, 4)}, "y", weights={"w": data(4, 3, 3, 3), "b": b[:3]}, kernel=3, order="NHWC")


def pooling():
    for kind in ["MaxPool", "AveragePool"]:
        x = data(1, 2, 7, 6)
        for arguments in [{"kernel": 2, "stride": 2}, {"kernel": 3, "stride": 2}, {"kernel": 3, "stride": 2, "pad": 1},
                          {"kernel": 3, "stride": 2, "legacy_pad": 3}, {"kernel": 2, "stride": 2, "legacy_pad": 3},
                          {"kernel": 3, "stride": 2, "legacy_pad": 3, "pad": 1}, {"kernel": 3, "stride": 2, "legacy_pad": 1},
                          {"kernel": 3, "stride": 2, "legacy_pad": 2}, {"kernels": [2, 3], "strides": [1, 2]},
                          {"kernel": 3, "pad_t": 1, "pad_l": 2, "pad_b": 0, "pad_r": 1}, {"global_pooling": 1},
                          {"kernel": 5, "stride": 3, "pad": 2, "legacy_pad": 3}]:
            op(kind, {"x": x}, "y", **arguments)
        channels_last = data(1, 7, 6, 2)
        op(kind, {"x": channels_last}, "y", kernel=3, stride=2, pad=1, order="NHWC")
        op(kind, {"x": channels_last}, "y", global_pooling=1, order="NHWC")
        op(kind + "1D", {"x": data(1, 2, 9)}, "y", kernels=[3], strides=[2])
        op(kind + "2D", {"x": x}, "y", kernel=3)
        op(kind + "3D", {"x": data(1, 2, 4, 5, 4)}, "y", kernels=[2, 2, 2], strides=[2, 2, 2])
        op(kind + "3D", {"x": data(1, 2, 3, 2, 4)}, "y", global_pooling=1)
    op("AveragePool", {"x": data(1, 2, 7, 6)}, "y", kernel=3, stride=2, pad=1, count_include_pad=1)


def normalization():
    x = data(2, 3, 4, 5)
    positive = np.abs(data(3, seed=8)) + np.float32(0.5)
    weights = {"scale": data(3), "bias": data(3, seed=2), "mean": data(3, seed=3), "var": positive}
    op("SpatialBN", {"x": x}, "y", weights=weights, is_test=1)
    op("SpatialBN", {"x": x}, "y", weights=weights, is_test=1, epsilon=0.01)
    op("SpatialBN", {"x": data(2, 4, 5, 3)}, "y", weights=weights, is_test=1, order="NHWC")
    weights = {"scale": data(3), "bias": data(3, seed=2)}
    op("InstanceNorm", {"x": x}, "y", weights=weights)
    op("InstanceNorm", {"x": x}, "y", weights=weights, epsilon=0.1)
    op("InstanceNorm", {"x": data(2, 4, 5, 3)}, "y", weights=weights, order="NHWC")
    op("AffineChannel", {"x": x}, "y", weights=weights)
    op("AffineChannel", {"x": data(2, 4, 5, 3)}, "y", weights=weights, order="NHWC")
    image = data(1, 7, 3, 2) * 2
    op("LRN", {"x": image}, "y scale", kept=["y"], size=5, alpha=0.1, beta=0.75, bias=2.0)
    op("LRN", {"x": image}, "y scale", kept=["y"], size=3, alpha=0.5, beta=0.5)
    op("LRN", {"x": data(1, 3, 2, 7)}, "y scale", kept=["y"], size=5, alpha=0.1, beta=0.75, bias=1.0, order="NHWC")
    weights = {"scale": data(6), "bias": data(6, seed=2)}
    op("GroupNorm", {"x": data(2, 6, 2, 3)}, "y mean std", kept=["y"], weights=weights, group=2)
    op("GroupNorm", {"x": data(2, 2, 3, 6)}, "y mean std", kept=["y"], weights=weights, group=3, epsilon=0.1, order="NHWC")
    for arguments in [{}, {"axis": 2}, {"axis": -1, "epsilon": 0.1}]:
        op("LayerNorm", {"x": data(2, 3, 4)}, "y mean std", kept=["y"], **arguments)
    weights = {"scale": data(3, 4), "bias": data(3, 4, seed=2)}
    op("LayerNorm", {"x": data(2, 3, 4)}, "y mean std", kept=["y"], weights=weights, elementwise_affine=True)
    for kind in ["Normalize", "NormalizeL1"]:
        unary(kind, data(3, 4))
        unary(kind, data(3, 4, 2), axis=1)
    unary("Normalize", np.zeros((1, 3), np.float32), name="length zero")


def shapes():
    x = data(2, 3, 4)
    op("Concat", {"a": x, "b": x[:, :2]}, "y sizes", kept=["y"])
    op("Concat", {"a": x, "b": x[:, :, :1]}, "y sizes", kept=["y"], axis=2)
    op("Concat", {"a": x, "b": x[:, :, :1]}, "y sizes", kept=["y"], axis=-1)
    op("Concat", {"a": x, "b": x}, "y sizes", kept=["y"], axis=1, add_axis=1)
    op("Concat", {"a": data(1, 2, 2, 3), "b": data(1, 2, 2, 1)}, "y sizes", kept=["y"], order="NHWC")
    op("DepthConcat", {"a": data(1, 3, 2, 2), "b": data(1, 1, 2, 2)}, "y sizes", kept=["y"])
    op("Split", {"x": data(2, 6)}, "a b c", axis=1)
    op("Split", {"x": data(2, 6)}, "a b", axis=1, split=[2, 4])
    op("Split", {"x": data(2, 6)}, "a b", axis=-1, split=[1, 5])
    op("Split", {"x": data(2, 6)}, "a b", weights={"sizes": np.array([4, 2], np.int32)}, axis=1, name="sizes by input")
    op("Split", {"x": data(1, 2, 2, 4)}, "a b", order="NHWC")
    op("Split", {"x": x}, "a b c", axis=1, add_axis=1)
    op("Reshape", {"x": x}, "y old", shape=[6, 4])
    op("Reshape", {"x": x}, "y old", shape=[0, -1])
    op("Reshape", {"x": x}, "y old", shape=[0, 0, 2, -1], kept=["y"])
    op("Reshape", {"x": x}, "y old", weights={"shape": np.array([4, -1], np.int64)}, kept=["y"], name="shape by input")
    op("Reshape", {"x": x}, "y old", weights={"shape": np.array([4, -1], np.int32)}, kept=["y"], name="shape by int32 input")
    run_case("Reshape", "a computed shape", [core.CreateOperator("Shape", ["like"], ["shape"]),
             core.CreateOperator("Reshape", ["x", "shape"], ["y", "old"])], {"x": data(6, 4), "like": data(3, 8)}, ["y"])
    unary("Flatten", x)
    unary("Flatten", x, axis=2)
    unary("Flatten", x, axis=0)
    unary("FlattenToVec", x)
    unary("Squeeze", data(2, 1, 3, 1), dims=[1, 3])
    unary("Squeeze", data(1, 2, 3, 1), dims=[3, 0])
    unary("ExpandDims", x, dims=[0, 2])
    unary("ExpandDims", x, dims=[3, 1])
    unary("Transpose", x)
    unary("Transpose", x, axes=[1, 2, 0])
    unary("NCHW2NHWC", data(1, 2, 3, 4))
    unary("NHWC2NCHW", data(1, 2, 3, 4))
    unary("NCHW2NHWC", data(1, 2, 3))
    unary("NHWC2NCHW", data(1, 2, 3))
    unary("Shape", x)
    unary("Shape", x, axes=[2, 0])
    unary("Size", x)
    unary("Tile", x, tiles=2, axis=1)
    unary("Tile", x, tiles=3, axis=0)
    unary("Tile", x, tiles=2, axis=-1)


def selection():
    x = data(4, 5)
    unary("Slice", x, starts=[1, 0], ends=[3, -1])
    unary("Slice", x, starts=[0, 1], ends=[-1, -2])
    unary("Slice", x, starts=[0, -3], ends=[-1, -1])
    unary("Slice", x, starts=[0, -4], ends=[-1, -2])
    unary("Slice", x, starts=[2, 0], ends=[100, -1])
    unary("Slice", data(2, 3, 4), starts=[0, 1], ends=[-1, 2])
    op("Slice", {"x": x}, "y", weights={"starts": np.array([0, 2], np.int32), "ends": np.array([-1, -1], np.int32)},
       name="positions by input")
    op("Gather", {"x": x, "i": np.array([3, 0, 3], np.int32)}, "y")
    op("Gather", {"x": x, "i": np.array([[3, 0], [1, 2]], np.int64)}, "y")
    op("Gather", {"x": x, "i": np.array([3, 0, 3], np.int32)}, "y", axis=1)
    op("Gather", {"i": np.array([2, 1], np.int64)}, "y", weights={"table": x}, inputs_order=["table", "i"], name="a table")
    op("BatchGather", {"x": data(2, 3, 2), "i": np.array([2, 0], np.int32)}, "y")
    op("TopK", {"x": data(3, 5)}, "values indices", k=2)
    op("TopK", {"x": data(3, 5)}, "values indices", k=2, axis=0)
    op("TopK", {"x": data(3, 5)}, "values indices flat", kept=["values", "indices"], k=5)
    for kind in ["ArgMax", "ArgMin"]:
        unary(kind, x)
        unary(kind, x, axis=0)
        unary(kind, x, axis=1, keepdims=0)


def reductions():
    x = data(2, 3, 4)
    for kind in ["ReduceL1", "ReduceL2", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceSum"]:
        unary(kind, x)
        unary(kind, x, axes=[1])
        unary(kind, x, axes=[0, 2], keepdims=0)
        unary(kind, x, keepdims=0)
    for end in ["Front", "Back"]:
        for kind in ["Max", "Mean", "Sum"]:
            unary(f"Reduce{end}{kind}", x)
            unary(f"Reduce{end}{kind}", x, num_reduce_dim=2)
    for kind in ["SumElements", "SumSqrElements"]:
        unary(kind, x)
        unary(kind, x, average=1)


def recurrent():
    hidden, cell = data(1, 3, 4), data(1, 3, 4, seed=6)
    lengths, step = np.array([3, 1, 2], np.int32), np.array([1], np.int32)
    inputs = {"hidden": hidden, "cell": cell, "gates": data(1, 3, 16), "lengths": lengths, "step": step}
    for arguments in [{}, {"forget_bias": 1.0}, {"drop_states": 1}]:
        op("LSTMUnit", inputs, "h c", **arguments)
    op("LSTMUnit", {"hidden": hidden, "cell": cell, "gates": data(1, 3, 16), "step": step}, "h c", sequence_lengths=0)
    inputs = {"hidden": hidden, "gates": data(1, 3, 12), "lengths": lengths, "step": step}
    for arguments in [{}, {"drop_states": 1}]:
        op("GRUUnit", inputs, "h", **arguments)
    op("GRUUnit", {"hidden": hidden, "gates": data(1, 3, 12), "step": step}, "h", sequence_lengths=0)
    # Three steps of a layer, as `rnn_cell.UnrolledCell` writes them.
    ops = [core.CreateOperator("Split", ["x"], ["x0", "x1", "x2"], axis=0)]
    state = ("h0", "c0")
    for at in range(3):
        new = (f"h{at + 1}", f"c{at + 1}")
        ops += [
            core.CreateOperator("FC", [f"x{at}", "wx", "bx"], [f"gx{at}"], axis=2),
            core.CreateOperator("FC", [state[0], "wh", "bh"], [f"gh{at}"], axis=2),
            core.CreateOperator("Sum", [f"gx{at}", f"gh{at}"], [f"g{at}"]),
            core.CreateOperator("ConstantFill", [], [f"t{at}"], shape=[1], value=at, dtype=2),
            core.CreateOperator("LSTMUnit", [*state, f"g{at}", "lengths", f"t{at}"], list(new)),
        ]
        state = new
    ops.append(core.CreateOperator("Concat", ["h1", "h2", "h3"], ["y", "sizes"], axis=0))
    run_case("LSTMUnit", "an unrolled layer", ops, {"x": data(3, 2, 5), "lengths": np.array([3, 2], np.int32)},
             ["y", "c3"], {"wx": data(16, 5), "bx": data(16), "wh": data(16, 4), "bh": data(16, seed=1),
                           "h0": np.zeros((1, 2, 4), np.float32), "c0": np.zeros((1, 2, 4), np.float32)})


def fills():
    def filled(kind, name, inputs=None, weights=None, **arguments):
        inputs = inputs or {"x": data(2)}
        source = [key for key in [*inputs, *(weights or {})] if key != "x"]
        operator = core.CreateOperator(kind, source, ["w"], **arguments)
        ops = [] if not source else [operator]
        ops.append(core.CreateOperator("Copy", ["w"], ["y"]))
        init_ops = [] if source else [operator]
        run_case(kind, name, ops, inputs, ["y"], weights, init_ops=init_ops)

    filled("GivenTensorFill", "a matrix", shape=[2, 2], values=[1.5, -2.0, 0.25, 3.0])
    filled("GivenTensorFill", "a number", shape=[], values=[1.5])
    filled("GivenTensorDoubleFill", "a vector", shape=[2], values=[1.5, -2.0])
    filled("GivenTensorIntFill", "a vector", shape=[2], values=[7, -2])
    filled("GivenTensorInt16Fill", "a vector", shape=[2], values=[7, -2])
    filled("GivenTensorInt64Fill", "a vector", shape=[2], values=[1 << 40, -2])
    filled("GivenTensorBoolFill", "a vector", shape=[2], values=[True, False])
    filled("ConstantFill", "default", shape=[2, 3])
    filled("ConstantFill", "value", shape=[2, 3], value=1.5)
    filled("ConstantFill", "int32", shape=[2], value=3, dtype=2)
    filled("ConstantFill", "int64", shape=[2], value=3, dtype=10)
    filled("ConstantFill", "bool", shape=[2], value=True, dtype=5)
    filled("ConstantFill", "shape of the input", inputs={"like": data(2, 3)}, value=2.0)
    filled("ConstantFill", "shape of a weight", inputs={"x": data(1)}, weights={"like": data(2, 3)}, value=2.0)
    filled("ConstantFill", "the input is the shape", inputs={"shape": np.array([2, 3], np.int64)}, value=2.0, input_as_shape=1)


def images():
    for shape, order in [((1, 6, 2, 3), "NCHW"), ((1, 2, 3, 6), "NHWC")]:
        unary("ChannelShuffle", data(*shape), group=3, kernel=1, order=order)
        unary("ChannelShuffle", data(*shape), group=2, kernel=1, order=order)
    x = data(1, 2, 3, 4)
    unary("ResizeNearest", x, width_scale=2.0, height_scale=2.0)
    unary("ResizeNearest", x, width_scale=1.5, height_scale=0.7)
    op("ResizeNearest", {"x": x}, "y", weights={"scales": np.array([2, 3], np.float32)}, name="scales by input")
    unary("ResizeNearest", data(1, 3, 4, 2), width_scale=2.0, height_scale=2.0, order="NHWC")
    unary("UpsampleBilinear", x, width_scale=2.0, height_scale=2.0)
    unary("UpsampleBilinear", x, width_scale=1.5, height_scale=3.0)
    for mode in ["constant", "reflect", "edge"]:
        unary("PadImage", data(1, 2, 4, 4), pad=2, mode=mode)
        unary("PadImage", data(1, 4, 4, 2), pad_t=1, pad_l=2, pad_b=0, pad_r=1, mode=mode, order="NHWC")
    unary("PadImage", data(1, 2, 3, 3), pad=1, value=1.5)


class Network:
    """A whole network, whose weights the test makes."""

    def __init__(self):
        self.ops, self.made, self.seed = [], {}, 100

    def weight(self, name, shape, scale, offset=0.0):
        self.seed += 1
        self.made[name] = (shape, self.seed, scale, offset)
        return name

    def add(self, kind, inputs, output, **arguments):
        outputs = output if isinstance(output, list) else [output]
        self.ops.append(core.CreateOperator(kind, inputs, outputs, **arguments))
        return outputs[0]

    def conv(self, x, name, c_in, c_out, kernel, bias=True, **arguments):
        inputs = [x, self.weight(name + "_w", [c_out, c_in, kernel, kernel], (3 / (c_in * kernel * kernel)) ** 0.5)]
        if bias:
            inputs.append(self.weight(name + "_b", [c_out], 0.1))
        return self.add("Conv", inputs, name, kernel=kernel, order="NCHW", **arguments)

    def fc(self, x, name, n_in, n_out):
        inputs = [x, self.weight(name + "_w", [n_out, n_in], (3 / n_in) ** 0.5), self.weight(name + "_b", [n_out], 0.1)]
        return self.add("FC", inputs, name)

    def run(self, name, shape, output):
        run_case(name, name, self.ops, {"data": data(*shape)}, [output], made=self.made)


def lenet():
    net = Network()
    x = net.conv("data", "conv1", 1, 20, 5)
    x = net.add("MaxPool", [x], "pool1", kernel=2, stride=2)
    x = net.conv(x, "conv2", 20, 50, 5)
    x = net.add("MaxPool", [x], "pool2", kernel=2, stride=2)
    x = net.fc(x, "fc3", 50 * 4 * 4, 500)
    x = net.add("Relu", [x], x)
    x = net.fc(x, "pred", 500, 10)
    net.run("LeNet", (2, 1, 28, 28), net.add("Softmax", [x], "softmax"))


def squeezenet():
    net = Network()

    def relu(x):
        return net.add("Relu", [x], x)

    def fire(x, name, c_in, squeezed, expanded):
        x = relu(net.conv(x, f"{name}/squeeze1x1", c_in, squeezed, 1))
        both = [relu(net.conv(x, f"{name}/expand1x1", squeezed, expanded, 1)),
                relu(net.conv(x, f"{name}/expand3x3", squeezed, expanded, 3, pad=1))]
        return net.add("Concat", both, [f"{name}/concat", f"{name}/sizes"])

    def pool(x, name):
        return net.add("MaxPool", [x], name, kernel=3, stride=2, legacy_pad=3)

    x = pool(relu(net.conv("data", "conv1", 3, 16, 3, stride=2)), "pool1")
    x = fire(x, "fire2", 16, 4, 16)
    x = pool(fire(x, "fire3", 32, 4, 16), "pool3")
    x = fire(x, "fire4", 32, 8, 32)
    x = pool(fire(x, "fire5", 64, 8, 32), "pool5")
    x = fire(x, "fire6", 64, 12, 48)
    x = net.add("Dropout", [x], [x, "mask"], is_test=1, ratio=0.5)
    x = relu(net.conv(x, "conv10", 96, 20, 1))
    x = net.add("AveragePool", [x], "pool10", global_pooling=1)
    net.run("SqueezeNet", (1, 3, 67, 67), net.add("Softmax", [x], "softmaxout"))


def resnet():
    net = Network()

    def bn(x, name, channels):
        weights = [net.weight(f"{name}_{kind}", [channels], scale, offset)
                   for kind, scale, offset in [("s", 0.2, 1.0), ("b", 0.1, 0.0), ("rm", 0.1, 0.0), ("riv", 0.2, 1.0)]]
        return net.add("SpatialBN", [x, *weights], name, is_test=1, epsilon=1e-5, order="NCHW")

    def unit(x, name, c_in, c_out, stride, relu):
        x = bn(net.conv(x, name, c_in, c_out, 3, bias=False, stride=stride, pad=1), name + "_spatbn", c_out)
        return net.add("Relu", [x], x) if relu else x

    def block(x, name, c_in, c_out, stride):
        y = unit(x, name + "_conv_1", c_in, c_out, stride, True)
        y = unit(y, name + "_conv_2", c_out, c_out, 1, False)
        if c_in != c_out:
            x = net.conv(x, name + "_shortcut", c_in, c_out, 1, bias=False, stride=stride)
            x = bn(x, name + "_shortcut_spatbn", c_out)
        return net.add("Relu", [net.add("Sum", [y, x], name + "_sum")], name + "_sum")

    x = net.conv("data", "conv1", 3, 8, 7, bias=False, stride=2, pad=3)
    x = net.add("Relu", [bn(x, "res_conv1_bn", 8)], "res_conv1_bn")
    x = net.add("MaxPool", [x], "pool1", kernel=3, stride=2, pad=1)
    channels = 8
    for stage, c_out in enumerate([8, 16, 32, 64]):
        for nth in range(2):
            stride = 2 if stage > 0 and nth == 0 else 1
            x = block(x, f"comp_{stage}_{nth}", channels, c_out, stride)
            channels = c_out
    x = net.add("AveragePool", [x], "final_avg", global_pooling=1)
    net.run("ResNet18", (1, 3, 64, 64), net.add("Softmax", [net.fc(x, "last_out", 64, 30)], "softmax"))


def main():
    for make in [elementwise, arithmetic, matrices, convolutions, pooling, normalization, shapes, selection, reductions,
                 recurrent, fills, images, lenet, squeezenet, resnet]:
        make()
    GOLDEN.mkdir(exist_ok=True)
    for old in GOLDEN.iterdir():
        old.unlink()
    for name, of_operator in cases.items():
        contents = b"".join(field(1, case) for case in of_operator)
        (GOLDEN / f"{name}.bin").write_bytes(contents)
    total = sum(file.stat().st_size for file in GOLDEN.iterdir())
    print(f"{sum(map(len, cases.values()))} cases of {len(cases)} operators and networks, {total} bytes")


if __name__ == "__main__":
    main()

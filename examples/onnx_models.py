"""Small ONNX models and their config.pbtxt, each generated from a short description.

The scripts beside this file and tests/models/make.py use it. Needs `onnx` and `numpy` (see README.md here).
"""

import pathlib
import shutil

from onnx import TensorProto, checker, helper

OPSET = 13
IR_VERSION = 8

# config.pbtxt's name of a type -> ONNX's.
TYPES = {
    "BOOL": TensorProto.BOOL,
    "UINT8": TensorProto.UINT8,
    "UINT16": TensorProto.UINT16,
    "UINT32": TensorProto.UINT32,
    "UINT64": TensorProto.UINT64,
    "INT8": TensorProto.INT8,
    "INT16": TensorProto.INT16,
    "INT32": TensorProto.INT32,
    "INT64": TensorProto.INT64,
    "FP16": TensorProto.FLOAT16,
    "FP32": TensorProto.FLOAT,
    "FP64": TensorProto.DOUBLE,
    "STRING": TensorProto.STRING,
    "BF16": TensorProto.BFLOAT16,
}


class Tensor:
    """An input or output: `dims` as in the config (no batch dimension, -1 for any size).

    `reshape`, when given, is the shape the ONNX graph sees; `more` is further text of the config entry.
    """

    def __init__(self, name, kind, dims, reshape=None, more=()):
        self.name, self.kind, self.dims, self.reshape = name, kind, list(dims), reshape
        self.more = list(more)

    def value_info(self, batched):
        shape = [f"{self.name}_{i}" if d == -1 else d
                 for i, d in enumerate(self.dims if self.reshape is None else self.reshape)]
        return helper.make_tensor_value_info(
            self.name, TYPES[self.kind], (["batch"] if batched else []) + shape)

    def config(self):
        lines = [f'name: "{self.name}"', f"data_type: TYPE_{self.kind}", f"dims: {numbers(self.dims)}"]
        if self.reshape is not None:
            lines.append(f"reshape: {{ shape: {numbers(self.reshape)} }}")
        return lines + self.more


def numbers(values):
    return f"[ {', '.join(map(str, values))} ]" if values else "[ ]"


def model_bytes(name, inputs, outputs, nodes, batched, initializers=()):
    graph = helper.make_graph(
        nodes, name, [t.value_info(batched) for t in inputs], [t.value_info(batched) for t in outputs],
        initializer=list(initializers))
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)])
    model.ir_version = IR_VERSION
    checker.check_model(model, full_check=True)
    return model.SerializeToString(deterministic=True)


def config_text(name, inputs, outputs, max_batch_size, more="", platform="onnxruntime_onnx"):
    def section(key, tensors):
        entries = ",\n".join(
            "  {\n" + "".join(f"    {line}\n" for line in t.config()) + "  }" for t in tensors)
        return f"{key} [\n{entries}\n]\n"

    return (f'name: "{name}"\nplatform: "{platform}"\nmax_batch_size: {max_batch_size}\n'
            + section("input", inputs) + section("output", outputs) + more)


def write(repository, name, inputs, outputs, versions, max_batch_size, more="", initializers=()):
    """Writes one model's directory. `versions` maps a version number to its list of nodes."""
    folder = pathlib.Path(repository) / name
    shutil.rmtree(folder, ignore_errors=True)
    for version, nodes in versions.items():
        (folder / str(version)).mkdir(parents=True)
        (folder / str(version) / "model.onnx").write_bytes(
            model_bytes(name, inputs, outputs, nodes, max_batch_size > 0, initializers))
    (folder / "config.pbtxt").write_text(config_text(name, inputs, outputs, max_batch_size, more))
    return folder


def addsub(repository, name, kind, max_batch_size, dims=(16,), compute=None, more=""):
    """OUTPUT0 = INPUT0 + INPUT1, OUTPUT1 = INPUT0 - INPUT1.

    `compute`: the type to calculate in, where ONNX Runtime has no kernel for `kind` itself.
    """
    inputs = [Tensor(n, kind, dims) for n in ("INPUT0", "INPUT1")]
    outputs = [Tensor(n, kind, dims) for n in ("OUTPUT0", "OUTPUT1")]
    if compute is None:
        nodes = [helper.make_node("Add", ["INPUT0", "INPUT1"], ["OUTPUT0"]),
                 helper.make_node("Sub", ["INPUT0", "INPUT1"], ["OUTPUT1"])]
    else:
        nodes = [
            helper.make_node("Cast", ["INPUT0"], ["a"], to=TYPES[compute]),
            helper.make_node("Cast", ["INPUT1"], ["b"], to=TYPES[compute]),
            helper.make_node("Add", ["a", "b"], ["sum"]),
            helper.make_node("Sub", ["a", "b"], ["difference"]),
            helper.make_node("Cast", ["sum"], ["OUTPUT0"], to=TYPES[kind]),
            helper.make_node("Cast", ["difference"], ["OUTPUT1"], to=TYPES[kind]),
        ]
    return write(repository, name, inputs, outputs, {1: nodes}, max_batch_size, more)


def identity(repository, name, kind, max_batch_size, dims=(-1,), more=""):
    """OUTPUT0 = INPUT0."""
    return write(repository, name, [Tensor("INPUT0", kind, dims)], [Tensor("OUTPUT0", kind, dims)],
                 {1: [helper.make_node("Identity", ["INPUT0"], ["OUTPUT0"])]}, max_batch_size, more)

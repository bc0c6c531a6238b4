"""TensorFlow models from ONNX ones: the same tensors, operators and weights, as GraphDef and as SavedModel.

tests/models/make_tensorflow.py uses it. As a script it writes examples/models-tensorflow: `digits` twice.
Needs requirements-tensorflow.txt.
"""

import os
import pathlib
import shutil

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import onnx  # noqa: E402
import tensorflow as tf  # noqa: E402
from onnx import numpy_helper  # noqa: E402
from tensorflow.core.protobuf import saved_model_pb2  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
GRAPHDEF, SAVEDMODEL = "tensorflow_graphdef", "tensorflow_savedmodel"


def numpy_type(kind):
    return tf.string if kind == onnx.TensorProto.STRING else tf.as_dtype(onnx.helper.tensor_dtype_to_np_dtype(kind))


def constant(attributes):
    [(key, value)] = attributes.items()
    kind = {"value_ints": tf.int64, "value_floats": tf.float32}.get(key)
    return numpy_helper.to_array(value) if kind is None else tf.make_ndarray(tf.make_tensor_proto(value, kind))


def gemm(x, w, b, name):
    return tf.nn.bias_add(tf.linalg.matmul(x, w), b, name=name)


def flatten(x, name):
    return tf.reshape(x, [-1, x.shape[1:].num_elements()], name=name)


# ONNX operator -> function of inputs, attributes and name.
OPERATORS = {
    "Add": lambda i, a, n: tf.raw_ops.AddV2(x=i[0], y=i[1], name=n),
    "Sub": lambda i, a, n: tf.raw_ops.Sub(x=i[0], y=i[1], name=n),
    "Mul": lambda i, a, n: tf.raw_ops.Mul(x=i[0], y=i[1], name=n),
    "Cast": lambda i, a, n: tf.raw_ops.Cast(x=i[0], DstT=numpy_type(a["to"]), name=n),
    "Identity": lambda i, a, n: tf.identity(i[0], name=n),
    "Constant": lambda i, a, n: tf.constant(constant(a), name=n),
    "ReduceSum": lambda i, a, n: tf.raw_ops.Sum(input=i[0], axis=i[1], keep_dims=bool(a["keepdims"]), name=n),
    "NonZero": lambda i, a, n: tf.transpose(tf.where(tf.not_equal(i[0], 0)), name=n),
    "Flatten": lambda i, a, n: flatten(i[0], n),
    "Gemm": lambda i, a, n: gemm(*i, n),
    "Relu": lambda i, a, n: tf.nn.relu(i[0], name=n),
    "Softmax": lambda i, a, n: tf.nn.softmax(i[0], axis=a["axis"], name=n),
}


def graph_of(model, prefix=""):
    """The graph, and its inputs and outputs by their names in the ONNX model; operations have these names behind `prefix`."""
    graph, tensors = tf.Graph(), {}
    with graph.as_default():
        for weight in model.graph.initializer:
            tensors[weight.name] = tf.constant(numpy_helper.to_array(weight), name=weight.name)
        for info in model.graph.input:
            dims = info.type.tensor_type.shape.dim
            shape = [d.dim_value if d.HasField("dim_value") else None for d in dims]
            tensors[info.name] = tf.compat.v1.placeholder(
                numpy_type(info.type.tensor_type.elem_type), shape, prefix + info.name)
        for node in model.graph.node:
            attributes = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
            name = prefix + node.output[0]
            tensors[node.output[0]] = OPERATORS[node.op_type]([tensors[i] for i in node.input], attributes, name)
    return graph, {i.name: tensors[i.name] for i in model.graph.input}, {
        o.name: tensors[o.name] for o in model.graph.output}


def graph_def(graph):
    """Without what is derived on import."""
    made = graph.as_graph_def()
    for node in made.node:
        node.attr.pop("_output_shapes", None)
    return made


def write_graphdef(model, folder):
    graph, inputs, outputs = graph_of(model)
    for name, tensor in (inputs | outputs).items():
        assert tensor.name == f"{name}:0", tensor.name
    (folder / "model.graphdef").write_bytes(graph_def(graph).SerializeToString(deterministic=True))


def signature(inputs, outputs):
    info = tf.compat.v1.saved_model.build_tensor_info
    return tf.compat.v1.saved_model.build_signature_def(
        {key: info(tensor) for key, tensor in inputs.items()},
        {key: info(tensor) for key, tensor in outputs.items()}, "tensorflow/serving/predict")


def write_savedmodel_of(graph, signatures, folder, tags=("serve",)):
    """A SavedModel as TensorFlow 1 wrote it: no variables, no functions."""
    made = saved_model_pb2.SavedModel(saved_model_schema_version=1)
    meta = made.meta_graphs.add()
    meta.meta_info_def.tags.extend(tags)
    meta.graph_def.CopyFrom(graph_def(graph))
    for name, value in signatures.items():
        meta.signature_def[name].CopyFrom(value)
    (folder / "model.savedmodel").mkdir()
    (folder / "model.savedmodel" / "saved_model.pb").write_bytes(made.SerializeToString(deterministic=True))


def write_savedmodel(model, folder):
    # Operations are not named like tensors of the signature, so that the signature is needed.
    graph, inputs, outputs = graph_of(model, "graph/")
    with graph.as_default():
        default = signature(inputs, outputs)
    write_savedmodel_of(graph, {"serving_default": default}, folder)


WRITERS = {GRAPHDEF: write_graphdef, SAVEDMODEL: write_savedmodel}


def convert(source, platform, target):
    """Writes the model directory `target` like the ONNX model's directory `source`."""
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    for file in source.rglob("*"):
        at = target / file.relative_to(source)
        if file.name == "model.onnx":
            at.parent.mkdir(exist_ok=True)
            WRITERS[platform](onnx.load(file), at.parent)
        elif file.name == "config.pbtxt":
            text = file.read_text().replace(f'name: "{source.name}"', f'name: "{target.name}"', 1)
            at.write_text(text.replace("onnxruntime_onnx", platform))
        elif file.is_file():
            at.parent.mkdir(exist_ok=True)
            shutil.copyfile(file, at)


def main():
    for platform in WRITERS:
        kind = platform.removeprefix("tensorflow_")
        convert(HERE / "models" / "digits", platform, HERE / "models-tensorflow" / f"digits_{kind}")


if __name__ == "__main__":
    main()

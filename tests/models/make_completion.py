"""ONNX files whose declarations mislead, for the completion of configurations: no config.pbtxt beside them.

make.py writes them. Each shows what exporters do:

    detector          scores in, a row for each positive one out; first dimensions 'batch' and 'num_dets'
    detector_unnamed  the same, dimensions without names
    first_row         the first row of any number of rows, declared as a batch
    running_sum       the sums of each row and those before it in the batch
    embedding         tokens in, a sum over them out: a batch, dynamic beside it
    window            samples in, sums over windows of 400 out: a batch that needs 400 samples
    label             a label for each row, declared as one label
    pages             [ 15, rows, 4 ], declared as [ 1, -1 ]
    narrowed          the optimised graph knows a dimension that the file leaves open
    zipmap            a label and a map of probabilities for each row
"""

import pathlib
import shutil

import numpy
from onnx import TensorProto, checker, helper, numpy_helper

HERE = pathlib.Path(__file__).resolve().parent / "completion"
FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64


def value(name, kind, shape):
    return helper.make_tensor_value_info(name, kind, shape)


def constants(**values):
    return [numpy_helper.from_array(numpy.array(values[name]), name) for name in values]


def write(name, nodes, inputs, outputs, initializers=(), ml=False):
    graph = helper.make_graph(nodes, name, inputs, outputs, list(initializers))
    opsets = [helper.make_opsetid("", 13)] + ([helper.make_opsetid("ai.onnx.ml", 1)] if ml else [])
    model = helper.make_model(graph, opset_imports=opsets)
    model.ir_version = 8
    checker.check_model(model)
    folder = HERE / name / "1"
    folder.mkdir(parents=True)
    (folder / "model.onnx").write_bytes(model.SerializeToString(deterministic=True))


def detector(name, batch, found):
    node = helper.make_node
    write(name,
          [node("Greater", ["scores", "zero"], ["positive"]), node("NonZero", ["positive"], ["where"]),
           node("Transpose", ["where"], ["pairs"], perm=[1, 0]),
           node("Gather", ["pairs", "second"], ["boxes"], axis=1)],
          [value("scores", FLOAT, [batch, 8])], [value("boxes", INT64, [found, 2])],
          constants(zero=numpy.float32(0), second=numpy.array([0, 1], numpy.int64)))


def make():
    node = helper.make_node
    shutil.rmtree(HERE, ignore_errors=True)
    detector("detector", "batch", "num_dets")
    detector("detector_unnamed", None, None)
    write("first_row",
          [node("Slice", ["x", "from", "to"], ["y"])],
          [value("x", FLOAT, ["batch", 4])], [value("y", FLOAT, ["batch", 4])],
          [numpy_helper.from_array(numpy.array([bound], numpy.int64), name)
           for name, bound in (("from", 0), ("to", 1))])
    write("running_sum",
          [node("CumSum", ["x", "axis"], ["y"])],
          [value("x", FLOAT, ["batch", 4])], [value("y", FLOAT, ["batch", 4])],
          constants(axis=numpy.int64(0)))
    write("embedding",
          [node("Gather", ["table", "tokens"], ["vectors"]),
           node("ReduceSum", ["vectors", "axis"], ["sum"], keepdims=0)],
          [value("tokens", INT64, ["batch", "tokens"])], [value("sum", FLOAT, ["batch", 3])],
          constants(table=numpy.arange(30, dtype=numpy.float32).reshape(10, 3),
                    axis=numpy.array([1], numpy.int64)))
    write("window",
          [node("Unsqueeze", ["audio", "axis"], ["channel"]),
           node("Conv", ["channel", "kernel"], ["sums"], strides=[200])],
          [value("audio", FLOAT, ["batch", "samples"])], [value("sums", FLOAT, ["batch", 1, "frames"])],
          constants(axis=numpy.array([1], numpy.int64), kernel=numpy.ones((1, 1, 400), numpy.float32)))
    write("label",
          [node("ArgMax", ["x"], ["best"], axis=1, keepdims=0),
           node("Gather", ["names", "best"], ["label"])],
          [value("x", FLOAT, ["batch", 3])], [value("label", INT64, [1])],
          constants(names=numpy.array([10, 20, 30], numpy.int64)))
    write("pages",
          [node("Expand", ["x", "shape"], ["many"]), node("Shape", ["many"], ["size"]),
           node("Reshape", ["many", "size"], ["y"])],
          [value("x", FLOAT, ["rows", 4])], [value("y", FLOAT, [1, "any"])],
          constants(shape=numpy.array([15, 1, 1], numpy.int64)))
    write("narrowed",
          [node("Concat", ["one", "one", "four"], ["shape"], axis=0),
           node("Mul", ["shape", "one"], ["sizes"]), node("Reshape", ["x", "sizes"], ["hn"])],
          [value("x", FLOAT, [1, 4])], [value("hn", FLOAT, [1, "layers", 4])],
          constants(one=numpy.array([1], numpy.int64), four=numpy.array([4], numpy.int64)))
    write("zipmap",
          [node("ArgMax", ["x"], ["label"], axis=1, keepdims=0),
           node("ZipMap", ["x"], ["probabilities"], domain="ai.onnx.ml", classlabels_int64s=[7, 8])],
          [value("x", FLOAT, ["rows", 2])],
          [value("label", INT64, ["rows"]),
           helper.make_value_info("probabilities", helper.make_sequence_type_proto(
               helper.make_map_type_proto(INT64, helper.make_tensor_type_proto(FLOAT, []))))],
          ml=True)


if __name__ == "__main__":
    make()

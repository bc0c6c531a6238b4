"""Writes the model repository of the wire tests: many tiny models, one directory each, beside this file.

`make.py` writes them; `make.py --check` runs each once in ONNX Runtime instead and compares.
Needs examples/requirements.txt.

    addsub_<type>        sum and difference of two [16], up to 8 a batch
    addsub_*_nobatch     the same without a batch dimension
    addsub_fp32_dynamic  the same behind the dynamic batcher
    addsub_fp32_twice    the same with two instances
    sum_fp32             the sum of any [-1], up to 8 a batch, behind the dynamic batcher
    identity_<type>      any [-1], up to 8 a batch; every type there is
    identity_*_nobatch   any shape of one dimension (a size of 0 included), no batch dimension
    classes              scores in, scores out, with labels for the first three of five
    nonzero              how many outputs there are depends on the values
    scalar               tensors without any dimension, in a config that has to say [ 1 ]
    reshape              [ 2, 3 ] for clients, [ 6 ] for the graph
    versions             version 1 adds 1, version 3 adds 3; both are served
    versions_latest      the same files, default policy: only 3 is served
    sequences/           models with a sequence batcher: see make_sequences.py
    ragged/              files for ragged and batch inputs: see make_ragged.py
    onnx_operators/      ONNX's own operator tests with empty tensors: see make_operators.py
    completion/          files whose declarations mislead, without configurations: see make_completion.py
"""

import pathlib
import sys

import numpy
from onnx import helper, numpy_helper

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent.parent / "examples"))
import make_completion  # noqa: E402
import make_operators  # noqa: E402
import make_ragged  # noqa: E402
import make_sequences  # noqa: E402
from onnx_models import TYPES, Tensor, addsub, identity, write  # noqa: E402

# Types for which ONNX Runtime has no Add on a CPU calculate in another one.
ADDSUB = {
    "INT8": "INT32", "INT16": "INT32", "INT32": None, "INT64": None,
    "UINT8": "INT32", "UINT16": "INT32", "UINT32": "INT64", "UINT64": "INT64",
    "FP16": "FP32", "FP32": None, "FP64": None,
}


def constant(name, values, kind):
    return numpy_helper.from_array(numpy.array(values, kind), name)


def plus(amount):
    return [helper.make_node("Constant", [], ["amount"],
                             value=constant("amount", [amount], numpy.float32)),
            helper.make_node("Add", ["INPUT0", "amount"], ["OUTPUT0"])]


def make():
    for kind, compute in ADDSUB.items():
        addsub(HERE, f"addsub_{kind.lower()}", kind, 8, compute=compute)
    for kind in ("FP32", "INT32"):
        addsub(HERE, f"addsub_{kind.lower()}_nobatch", kind, 0)
    addsub(HERE, "addsub_fp32_dynamic", "FP32", 8, more=(
        "dynamic_batching {\n  preferred_batch_size: [ 4, 8 ]\n  max_queue_delay_microseconds: 5000\n}\n"))
    addsub(HERE, "addsub_fp32_twice", "FP32", 8, more="instance_group [ { count: 2 } ]\n")
    for kind in TYPES:
        identity(HERE, f"identity_{kind.lower()}", kind, 8)
    for kind in ("FP32", "INT32", "STRING"):
        identity(HERE, f"identity_{kind.lower()}_nobatch", kind, 0)

    def one(name, max_batch_size, input, output, versions, **more):
        return write(HERE, name, [input], [output], versions, max_batch_size, **more)

    folder = one("classes", 4, Tensor("INPUT0", "FP32", [5]),
                 Tensor("OUTPUT0", "FP32", [5], more=['label_filename: "labels.txt"']),
                 {1: [helper.make_node("Identity", ["INPUT0"], ["OUTPUT0"])]})
    (folder / "labels.txt").write_text("red\ngreen\nblue\n")
    one("sum_fp32", 8, Tensor("INPUT0", "FP32", [-1]), Tensor("OUTPUT0", "FP32", [1]),
        {1: [helper.make_node("Constant", [], ["axis"], value_ints=[1]),
             helper.make_node("ReduceSum", ["INPUT0", "axis"], ["OUTPUT0"], keepdims=1)]},
        more="dynamic_batching {\n  max_queue_delay_microseconds: 2000\n}\n")
    one("nonzero", 0, Tensor("INPUT0", "FP32", [-1, -1]), Tensor("OUTPUT0", "INT64", [2, -1]),
        {1: [helper.make_node("NonZero", ["INPUT0"], ["OUTPUT0"])]})
    one("scalar", 0, Tensor("INPUT0", "FP32", [1], reshape=[]), Tensor("OUTPUT0", "FP32", [1], reshape=[]),
        {1: [helper.make_node("Add", ["INPUT0", "INPUT0"], ["OUTPUT0"])]})
    one("reshape", 4, Tensor("INPUT0", "FP32", [2, 3], reshape=[6]),
        Tensor("OUTPUT0", "FP32", [2, 3], reshape=[6]),
        {1: [helper.make_node("Add", ["INPUT0", "INPUT0"], ["OUTPUT0"])]})
    for name, policy in (("versions", "version_policy: { all { } }\n"), ("versions_latest", "")):
        one(name, 8, Tensor("INPUT0", "FP32", [-1]), Tensor("OUTPUT0", "FP32", [-1]),
            {1: plus(1), 3: plus(3)}, more=policy)
    make_sequences.make()
    make_ragged.make()
    make_operators.make()
    make_completion.make()


def check():
    import ml_dtypes
    import onnxruntime

    numpy_types = {
        "bool": bool, "string": object, "fp16": numpy.float16, "fp32": numpy.float32,
        "fp64": numpy.float64, "bf16": ml_dtypes.bfloat16,
    }

    def run(model, version=1, **inputs):
        session = onnxruntime.InferenceSession(HERE / model / str(version) / "model.onnx")
        return session.run(None, inputs)

    def same(got, expected):
        numpy.testing.assert_array_equal(got, expected)
        assert numpy.asarray(got).shape == numpy.asarray(expected).shape

    for folder in sorted(path.parent for path in HERE.glob("*/config.pbtxt")):
        name = folder.name
        parts = name.split("_")
        batched = "nobatch" not in parts
        kind = numpy_types.get(parts[-1 if len(parts) == 2 else 1] if len(parts) > 1 else "", None)
        if kind is None and len(parts) > 1 and hasattr(numpy, parts[1]):
            kind = getattr(numpy, parts[1])
        if parts[0] == "addsub":
            a = numpy.arange(16, 32).astype(kind).reshape((1, 16) if batched else (16,))
            b = numpy.arange(16).astype(kind).reshape(a.shape)
            total, difference = run(name, INPUT0=a, INPUT1=b)
            same(total, a + b)
            same(difference, a - b)
        elif parts[0] == "identity" and parts[1] == "bf16":
            onnxruntime.InferenceSession(folder / "1" / "model.onnx")  # Python cannot feed this type
        elif parts[0] == "identity":
            for size in (3, 0):
                shape = (2, size) if batched else (size,)
                x = numpy.zeros(shape, kind)
                if kind is object:
                    x[...] = "text"
                same(run(name, INPUT0=x)[0], x)
        elif name == "classes":
            x = numpy.array([[1, 5, 2, 4, 3]], numpy.float32)
            same(run(name, INPUT0=x)[0], x)
        elif name == "sum_fp32":
            same(run(name, INPUT0=numpy.array([[1, 2, 3], [4, 5, 6]], numpy.float32))[0], [[6], [15]])
        elif name == "nonzero":
            same(run(name, INPUT0=numpy.array([[0, 7], [0, 0]], numpy.float32))[0], [[0], [1]])
            same(run(name, INPUT0=numpy.zeros((2, 2), numpy.float32))[0], numpy.zeros((2, 0)))
        elif name == "scalar":
            same(run(name, INPUT0=numpy.array(4, numpy.float32))[0], numpy.float32(8))
        elif name == "reshape":
            x = numpy.ones((1, 6), numpy.float32)
            same(run(name, INPUT0=x)[0], x * 2)
        elif parts[0] == "versions":
            for version in (1, 3):
                x = numpy.ones((1, 2), numpy.float32)
                same(run(name, version, INPUT0=x)[0], x + version)
        else:
            sys.exit(f"{name}: it has no check")
        print(f"{name}: right")
    make_sequences.check()


if __name__ == "__main__":
    check() if sys.argv[1:] == ["--check"] else make()

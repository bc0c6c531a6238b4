"""Writes the TensorFlow models of the wire tests: `graphdef/` and `savedmodel/` have the models of make.py under their names,
converted from the ONNX files; `tensorflow/` has what only a SavedModel can be.

`make_tensorflow.py` writes them; `make_tensorflow.py --check` runs each once in TensorFlow instead and compares.
Needs examples/requirements-tensorflow.txt.

    tensorflow/scale           as TensorFlow 2 saves it: a variable and a function; OUTPUT0 = 3 INPUT0
    tensorflow/table           the same with a table from an asset: the position of a word in words.txt, -1 for others
    tensorflow/two_signatures  `plus` and `minus`, no `serving_default`
    tensorflow/no_serve_tag    tagged `train` only
"""

import pathlib
import shutil
import sys

import numpy
import onnx
from onnx.reference import ReferenceEvaluator

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent.parent / "examples"))
from onnx_models import Tensor, config_text  # noqa: E402
from tensorflow_models import (  # noqa: E402
    GRAPHDEF, SAVEDMODEL, convert, signature, tf, write_savedmodel_of)

FOLDERS = {GRAPHDEF: HERE / "graphdef", SAVEDMODEL: HERE / "savedmodel"}
SPECIAL = HERE / "tensorflow"
# A configuration of `scalar` is refused, whatever the platform.
LEFT_OUT = {"scalar"}


def sources():
    """Directories of the ONNX models, relative to this one."""
    for pattern in ("*/config.pbtxt", "sequences/*/config.pbtxt"):
        for file in sorted(HERE.glob(pattern)):
            if file.parent.name not in LEFT_OUT:
                yield file.parent.relative_to(HERE)


def special(name, inputs, outputs, max_batch_size=8):
    """Makes the directory with its configuration; returns that of version 1."""
    folder = SPECIAL / name
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "1").mkdir(parents=True)
    (folder / "config.pbtxt").write_text(config_text(name, inputs, outputs, max_batch_size, platform=SAVEDMODEL))
    return folder / "1"


def save(module, function, folder):
    """As TensorFlow 2 does, without the file that only identifies the bytes and without an empty folder."""
    folder = folder / "model.savedmodel"
    tf.saved_model.save(module, folder, {"serving_default": function})
    (folder / "fingerprint.pb").unlink()
    if not any((folder / "assets").iterdir()):
        (folder / "assets").rmdir()


class Scale(tf.Module):
    def __init__(self):
        self.factor = tf.Variable(3.0, name="factor")

    @tf.function(input_signature=[tf.TensorSpec([None, None], tf.float32, "INPUT0")])
    def call(self, INPUT0):
        return {"OUTPUT0": INPUT0 * self.factor}


class Table(tf.Module):
    def __init__(self, words):
        self.words = tf.saved_model.Asset(str(words))
        self.table = tf.lookup.StaticHashTable(tf.lookup.TextFileInitializer(
            self.words, tf.string, tf.lookup.TextFileIndex.WHOLE_LINE, tf.int64,
            tf.lookup.TextFileIndex.LINE_NUMBER), -1)

    @tf.function(input_signature=[tf.TensorSpec([None, None], tf.string, "INPUT0")])
    def call(self, INPUT0):
        return {"OUTPUT0": self.table.lookup(INPUT0)}


def make_special():
    numbers = lambda name: Tensor(name, "FP32", [-1])
    scale = Scale()
    save(scale, scale.call, special("scale", [numbers("INPUT0")], [numbers("OUTPUT0")]))

    folder = special("table", [Tensor("INPUT0", "STRING", [-1])], [Tensor("OUTPUT0", "INT64", [-1])])
    words = folder / "words.txt"
    words.write_text("zero\none\ntwo\n")
    table = Table(words)
    save(table, table.call, folder)
    words.unlink()

    for name in ("two_signatures", "no_serve_tag"):
        with tf.Graph().as_default() as graph:
            x = tf.compat.v1.placeholder(tf.float32, [None, None], "x")
            plus, minus = [signature({"INPUT0": x}, {"OUTPUT0": y}) for y in (x + 1.0, x - 1.0)]
        folder = special(name, [numbers("INPUT0")], [numbers("OUTPUT0")])
        if name == "two_signatures":
            write_savedmodel_of(graph, {"plus": plus, "minus": minus}, folder)
        else:
            write_savedmodel_of(graph, {"serving_default": plus}, folder, tags=["train"])


def make():
    for platform, folder in FOLDERS.items():
        shutil.rmtree(folder, ignore_errors=True)
        for source in sources():
            convert(HERE / source, platform, folder / source)
    make_special()


def run_graphdef(file, inputs, outputs):
    with tf.Graph().as_default() as graph:
        definition = graph.as_graph_def()
        definition.ParseFromString(file.read_bytes())
        tf.import_graph_def(definition, name="")
        with tf.compat.v1.Session() as session:
            return session.run([f"{o}:0" for o in outputs], {f"{k}:0": v for k, v in inputs.items()})


def run_savedmodel(folder, inputs, outputs):
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        signature = tf.compat.v1.saved_model.load(session, ["serve"], str(folder)).signature_def["serving_default"]
        return session.run([signature.outputs[o].name for o in outputs],
                           {signature.inputs[k].name: v for k, v in inputs.items()})


def samples(model):
    """Values for each input; sizes that may vary are 2 (batch) or 3."""
    random = numpy.random.default_rng(7)
    for info in model.graph.input:
        tensor = info.type.tensor_type
        shape = [d.dim_value or (2 if d.dim_param == "batch" else 3) for d in tensor.shape.dim]
        kind = onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type)
        values = random.integers(0, 2 if kind == bool else 50, shape)
        yield info.name, values.astype(str).astype(object) if kind == object else values.astype(kind)


def check():
    for source in sources():
        for file in sorted((HERE / source).glob("*/model.onnx")):
            model = onnx.load(file)
            inputs, outputs = dict(samples(model)), [o.name for o in model.graph.output]
            expected = ReferenceEvaluator(str(file)).run(None, inputs)
            version = source / file.parent.name
            for got in (run_graphdef(FOLDERS[GRAPHDEF] / version / "model.graphdef", inputs, outputs),
                        run_savedmodel(FOLDERS[SAVEDMODEL] / version / "model.savedmodel", inputs, outputs)):
                for value, right in zip(got, expected, strict=True):
                    assert value.shape == right.shape, (source, value.shape, right.shape)
                    if value.dtype == object:
                        assert [v.decode() for v in value.flat] == list(right.flat), source
                    else:
                        numpy.testing.assert_array_equal(value, right, str(source))
        print(f"{source}: right")
    folder = lambda name: SPECIAL / name / "1" / "model.savedmodel"
    [scaled] = run_savedmodel(folder("scale"), {"INPUT0": numpy.ones((2, 3), numpy.float32)}, ["OUTPUT0"])
    numpy.testing.assert_array_equal(scaled, numpy.full((2, 3), 3.0))
    [found] = run_savedmodel(folder("table"), {"INPUT0": numpy.array([["two", "six"]], object)}, ["OUTPUT0"])
    assert found.tolist() == [[2, -1]]
    print("tensorflow: right")


if __name__ == "__main__":
    check() if sys.argv[1:] == ["--check"] else make()

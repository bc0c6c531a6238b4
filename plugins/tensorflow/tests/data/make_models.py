"""Writes the models beside this file: python3 make_models.py, with the package tensorflow-cpu."""

import os

import tensorflow as tf

HERE = os.path.dirname(os.path.abspath(__file__))
v1 = tf.compat.v1


def graph_def(name, build):
    graph = tf.Graph()
    with graph.as_default():
        build()
    with open(os.path.join(HERE, name), "wb") as file:
        file.write(graph.as_graph_def().SerializeToString())


def strings():
    text = v1.placeholder(tf.string, [None, 2], name="TEXT")
    tf.identity(text, name="SAME")
    tf.strings.join([text, text], name="TWICE")
    tf.strings.to_number(text, out_type=tf.float32, name="NUMBER")


def shapes():
    x = v1.placeholder(tf.float32, [None, None], name="X")
    shape = v1.placeholder(tf.int64, [None], name="SHAPE")
    tf.reshape(x, shape, name="RESHAPED")
    tf.identity(x, name="SAME")
    tf.add(x, 1.0, name="PLUS")
    tf.reduce_sum(x, name="SUM")
    tf.split(x, 2, axis=0, name="HALVES")


class Keep(tf.Module):
    """Returns the input of the run before, which a variable has kept."""

    def __init__(self):
        self.last = tf.Variable(tf.zeros([1, 4]), shape=tf.TensorShape([None, 4]))

    @tf.function
    def step(self, X):
        last = self.last.read_value()
        self.last.assign(X)
        return {"Y": last}


graph_def("strings.graphdef", strings)
graph_def("shapes.graphdef", shapes)
keep = Keep()
step = keep.step.get_concrete_function(tf.TensorSpec([None, 4], tf.float32, name="X"))
tf.saved_model.save(
    keep,
    os.path.join(HERE, "keep.savedmodel"),
    signatures={"serving_default": step},
    options=tf.saved_model.SaveOptions(save_debug_info=False),
)
os.remove(os.path.join(HERE, "keep.savedmodel", "fingerprint.pb"))

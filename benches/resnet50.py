"""Writes a SavedModel of ResNet-50's shape with random weights, 100 MB, into a model repository; measures it without a server.

    resnet50.py write REPOSITORY          makes REPOSITORY/resnet50: INPUT0 FP32 [224, 224, 3], OUTPUT0 FP32 [1000]
    resnet50.py direct REPOSITORY THREADS runs it in a loop in this process, and prints images per second and CPU time

Needs examples/requirements-tensorflow.txt.
"""

import pathlib
import resource
import shutil
import sys
import time

import numpy

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "examples"))
from onnx_models import Tensor, config_text  # noqa: E402
from tensorflow_models import SAVEDMODEL, signature, tf, write_savedmodel_of  # noqa: E402

# Blocks and width of each stage; the first block of a stage halves the image, except in the first.
STAGES = ((3, 64), (4, 128), (6, 256), (3, 512))
SECONDS = 20


class Network:
    def __init__(self):
        self.random = numpy.random.default_rng(7)

    def convolution(self, x, kernel, width, stride=1, relu=True):
        shape = (kernel, kernel, int(x.shape[-1]), width)
        deviation = (2 / (kernel * kernel * shape[2])) ** 0.5
        weights = (self.random.standard_normal(shape) * deviation).astype(numpy.float32)
        y = tf.nn.conv2d(x, tf.constant(weights), stride, "SAME")
        # A trained model's normalisation, folded as its exporters do.
        y = tf.nn.bias_add(y, tf.zeros(width))
        return tf.nn.relu(y) if relu else y

    def block(self, x, width, stride):
        shortcut = x
        if stride > 1 or x.shape[-1] != 4 * width:
            shortcut = self.convolution(x, 1, 4 * width, stride, relu=False)
        y = self.convolution(self.convolution(x, 1, width, stride), 3, width)
        return tf.nn.relu(shortcut + self.convolution(y, 1, 4 * width, relu=False) * 0.5)

    def scores(self, x):
        x = tf.nn.max_pool2d(self.convolution(x, 7, 64, 2), 3, 2, "SAME")
        for stage, (blocks, width) in enumerate(STAGES):
            for block in range(blocks):
                x = self.block(x, width, 2 if stage > 0 and block == 0 else 1)
        weights = (self.random.standard_normal((2048, 1000)) * 0.01).astype(numpy.float32)
        return tf.nn.softmax(tf.linalg.matmul(tf.reduce_mean(x, [1, 2]), tf.constant(weights)))


def write(repository):
    folder = pathlib.Path(repository) / "resnet50"
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "1").mkdir(parents=True)
    with tf.Graph().as_default() as graph:
        image = tf.compat.v1.placeholder(tf.float32, [None, 224, 224, 3], "image")
        default = signature({"INPUT0": image}, {"OUTPUT0": Network().scores(image)})
    write_savedmodel_of(graph, {"serving_default": default}, folder / "1")
    inputs, outputs = [Tensor("INPUT0", "FP32", [224, 224, 3])], [Tensor("OUTPUT0", "FP32", [1000])]
    (folder / "config.pbtxt").write_text(config_text("resnet50", inputs, outputs, 8, platform=SAVEDMODEL))


def direct(repository, threads):
    config = tf.compat.v1.ConfigProto(intra_op_parallelism_threads=threads, inter_op_parallelism_threads=1)
    with tf.Graph().as_default(), tf.compat.v1.Session(config=config) as session:
        folder = str(pathlib.Path(repository) / "resnet50" / "1" / "model.savedmodel")
        found = tf.compat.v1.saved_model.load(session, ["serve"], folder).signature_def["serving_default"]
        run = session.make_callable(found.outputs["OUTPUT0"].name, [found.inputs["INPUT0"].name])
        image = numpy.random.default_rng(1).random((1, 224, 224, 3), numpy.float32)
        for _ in range(5):
            run(image)
        used = lambda: sum(resource.getrusage(resource.RUSAGE_SELF)[:2])
        count, begin, cpu = 0, time.monotonic(), used()
        while time.monotonic() - begin < SECONDS:
            run(image)
            count += 1
        seconds = time.monotonic() - begin
        print(f"{count / seconds:.2f} images/s, {1000 * (used() - cpu) / count:.1f} ms CPU each")


if __name__ == "__main__":
    if sys.argv[1:2] == ["write"]:
        write(*sys.argv[2:])
    elif sys.argv[1:2] == ["direct"]:
        direct(sys.argv[2], int(sys.argv[3]))
    else:
        sys.exit(__doc__)

"""Networks as ONNX files: EfficientNet-Lite0 and MiniLM with weights out of packages, ResNet-50 and Inception v3 with
arbitrary ones, which have the cost of the real ones and say nothing about a picture.
"""

import random
import struct

from onnx_file import FLOAT, INT64, OnnxGraph

# EfficientNet-Lite0: blocks, kernel, stride of the first block, expansion, channels.
LITE0 = (
    (1, 3, 1, 1, 16), (2, 3, 2, 6, 24), (2, 5, 2, 6, 40), (3, 3, 2, 6, 80), (3, 5, 1, 6, 112), (4, 5, 2, 6, 192),
    (1, 3, 1, 6, 320),
)


def write_efficientnet(tensors, path):
    """Input `image` FP32 [3, 224, 224], (pixel - 127) / 128; output `probabilities` FP32 [1000]."""
    graph = OnnxGraph("efficientnet_lite0")
    zero, six = graph.floats([0.0], []), graph.floats([6.0], [])

    def convolve(x, name, norm, stride=1, groups=1, clip=True):
        dims, raw = tensors[name + ".weight"]
        weight = graph.weight(name, dims, raw)
        y = graph.node("Conv", x, weight, auto_pad="SAME_UPPER", strides=[stride, stride], group=groups)
        parts = [graph.weight(norm + part, *tensors[norm + part])
                 for part in (".weight", ".bias", ".running_mean", ".running_var")]
        y = graph.node("BatchNormalization", y, *parts, epsilon=0.001)
        return graph.node("Clip", y, zero, six) if clip else y

    x = graph.input("image", FLOAT, ["batch", 3, 224, 224])
    x = convolve(x, "_conv_stem", "_bn0", 2)
    index, channels = 0, 32
    for blocks, _kernel, first, expansion, width in LITE0:
        for block in range(blocks):
            at, stride, y = f"_blocks.{index}.", first if block == 0 else 1, x
            if expansion > 1:
                y = convolve(y, at + "_expand_conv", at + "_bn0")
            y = convolve(y, at + "_depthwise_conv", at + "_bn1", stride, channels * expansion)
            y = convolve(y, at + "_project_conv", at + "_bn2", clip=False)
            x = graph.node("Add", x, y) if stride == 1 and channels == width else y
            index, channels = index + 1, width
    x = convolve(x, "_conv_head", "_bn1")
    x = graph.node("Flatten", graph.node("GlobalAveragePool", x), axis=1)
    scores = graph.node("Gemm", x, graph.weight("_fc", *tensors["_fc.weight"]),
                        graph.weight("_fc_bias", *tensors["_fc.bias"]), transB=1)
    graph.node("Softmax", scores, result="probabilities", axis=1)
    graph.output("probabilities", FLOAT, ["batch", 1000])
    graph.write(path)


class ArbitraryNetwork:
    """Convolutions with random weights and a trained model's normalisation, folded as exporters do."""

    def __init__(self, name, size):
        self.graph = OnnxGraph(name)
        self.random = random.Random(7)
        self.block = [self.random.gauss(0, 1) for _ in range(8191)]
        self.x = self.graph.input("image", FLOAT, ["batch", 3, size, size])

    def weights(self, dims, deviation):
        """The same numbers again and again, scaled: a network has too many to draw each."""
        count = 1
        for size in dims:
            count *= size
        raw = struct.pack(f"<{len(self.block)}f", *(deviation * number for number in self.block))
        raw = (raw * (4 * count // len(raw) + 1))[:4 * count]
        return self.graph.weight(self.graph.fresh("w"), dims, raw)

    def convolve(self, x, channels, width, kernel=1, stride=1, relu=True, valid=False):
        """`kernel`: a size, or height and width. Returns the tensor; its channels are `width`."""
        height, breadth = kernel if isinstance(kernel, tuple) else (kernel, kernel)
        weight = self.weights([width, channels, height, breadth], (2 / (channels * height * breadth)) ** 0.5)
        bias = self.graph.weight(self.graph.fresh("b"), [width], bytes(4 * width))
        pad = "VALID" if valid else "SAME_UPPER"
        y = self.graph.node("Conv", x, weight, bias, auto_pad=pad, strides=[stride, stride])
        return self.graph.node("Relu", y) if relu else y

    def pool(self, kind, x, size, stride, valid=False):
        pad = "VALID" if valid else "SAME_UPPER"
        return self.graph.node(kind, x, auto_pad=pad, kernel_shape=[size, size], strides=[stride, stride])

    def write(self, x, channels, path):
        graph = self.graph
        x = graph.node("Flatten", graph.node("GlobalAveragePool", x), axis=1)
        scores = graph.node("MatMul", x, self.weights([channels, 1000], 0.01))
        graph.node("Softmax", scores, result="probabilities", axis=1)
        graph.output("probabilities", FLOAT, ["batch", 1000])
        graph.write(path)


def write_resnet50(path):
    net = ArbitraryNetwork("resnet50", 224)
    x, channels = net.pool("MaxPool", net.convolve(net.x, 3, 64, 7, 2), 3, 2), 64
    half = net.graph.floats([0.5], [])
    for stage, (blocks, width) in enumerate(((3, 64), (4, 128), (6, 256), (3, 512))):
        for block in range(blocks):
            stride = 2 if stage and not block else 1
            short = x if block else net.convolve(x, channels, 4 * width, 1, stride, relu=False)
            y = net.convolve(net.convolve(x, channels, width), width, width, 3, stride)
            y = net.graph.node("Mul", net.convolve(y, width, 4 * width, relu=False), half)
            x, channels = net.graph.node("Relu", net.graph.node("Add", short, y)), 4 * width
    net.write(x, channels, path)


def write_inception(path):
    """The blocks A to E of Inception v3; a branch is a list of (width, kernel)."""
    net = ArbitraryNetwork("inception_v3", 299)

    def chain(x, channels, steps, stride=1):
        for at, (width, kernel) in enumerate(steps):
            last = stride > 1 and at == len(steps) - 1
            x, channels = net.convolve(x, channels, width, kernel, stride if last else 1, valid=last), width
        return x, channels

    def join(branches):
        return net.graph.node("Concat", *(x for x, _ in branches), axis=1), sum(width for _, width in branches)

    def mixed(x, channels, branches, pooled):
        pool = net.pool("AveragePool", x, 3, 1)
        return join([chain(x, channels, steps) for steps in branches] + [chain(pool, channels, [(pooled, 1)])])

    def reduced(x, channels, branches):
        pool = net.pool("MaxPool", x, 3, 2, valid=True)
        return join([chain(x, channels, steps, 2) for steps in branches] + [(pool, channels)])

    x = net.convolve(net.x, 3, 32, 3, 2, valid=True)
    x = net.convolve(net.convolve(x, 32, 32, 3, valid=True), 32, 64, 3)
    x = net.convolve(net.convolve(net.pool("MaxPool", x, 3, 2, valid=True), 64, 80), 80, 192, 3, valid=True)
    x, channels = net.pool("MaxPool", x, 3, 2, valid=True), 192
    for pooled in (32, 64, 64):
        x, channels = mixed(x, channels, [[(64, 1)], [(48, 1), (64, 5)], [(64, 1), (96, 3), (96, 3)]], pooled)
    x, channels = reduced(x, channels, [[(384, 3)], [(64, 1), (96, 3), (96, 3)]])
    row, column = (1, 7), (7, 1)
    for width in (128, 160, 160, 192):
        x, channels = mixed(x, channels, [
            [(192, 1)], [(width, 1), (width, row), (192, column)],
            [(width, 1), (width, column), (width, row), (width, column), (192, row)]], 192)
    x, channels = reduced(x, channels, [[(192, 1), (320, 3)], [(192, 1), (192, row), (192, column), (192, 3)]])
    for _ in range(2):
        pool = net.pool("AveragePool", x, 3, 1)
        middle, deep = chain(x, channels, [(384, 1)]), chain(x, channels, [(448, 1), (384, 3)])
        x, channels = join([chain(x, channels, [(320, 1)])]
                           + [chain(*part, [(384, kernel)]) for part in (middle, deep) for kernel in ((1, 3), (3, 1))]
                           + [chain(pool, channels, [(192, 1)])])
    net.write(x, channels, path)

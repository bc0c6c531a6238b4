"""A convolutional network with random weights, written as ONNX, Caffe2 NetDef or TensorFlow GraphDef. Standard library only.

A network is a list of layers; each method adds one and returns the name of its output. Weights depend on the network's name
alone, so that the files of one network compute the same in every format.
"""

import array
import random

from wire import number, numbers, real, text, texts


class Layer:
    def __init__(self, kind, name, inputs, **values):
        self.kind, self.name, self.inputs = kind, name, inputs
        self.__dict__.update(values)


def padding(layer):
    """Half the kernel where the size is kept, none where the stride reduces it: so all frameworks agree."""
    return 0 if layer.stride > 1 else layer.size // 2


class Network:
    def __init__(self, name):
        self.random, self.name = random.Random(name), name
        self.layers, self.channels = [], {"data": 3}

    def add(self, kind, inputs, channels, **values):
        name = f"{kind}_{len(self.layers)}"
        self.layers.append(Layer(kind, name, inputs, **values))
        self.channels[name] = channels
        return name

    def weights(self, count, fan_in, gain):
        """Uniform with a variance of `gain` / `fan_in`, so that values neither grow nor vanish from layer to layer."""
        limit = (3 * gain / fan_in) ** 0.5
        return array.array("f", (self.random.uniform(-limit, limit) for _ in range(count)))

    def convolution(self, source, channels, size, stride=1, relu=True):
        fan_in = self.channels[source] * size * size
        weights = self.weights(channels * fan_in, fan_in, 2)
        name = self.add("conv", [source], channels, size=size, stride=stride, weights=weights,
                        shape=[channels, self.channels[source], size, size])
        return self.relu(name) if relu else name

    def relu(self, source):
        return self.add("relu", [source], self.channels[source])

    def pool(self, source, stride):
        return self.add("pool", [source], self.channels[source], size=3, stride=stride)

    def sum(self, *sources):
        return self.add("sum", list(sources), self.channels[sources[0]])

    def concat(self, *sources):
        return self.add("concat", list(sources), sum(self.channels[s] for s in sources))

    def classes(self, source, count):
        """Mean over the picture, a fully connected layer, softmax. The gain spreads the classes apart."""
        mean = self.add("mean", [source], self.channels[source])
        fan_in = self.channels[mean]
        dense = self.add("dense", [mean], count, weights=self.weights(count * fan_in, fan_in, 20), shape=[count, fan_in])
        return self.add("softmax", [dense], count)


def resnet50(classes=1000):
    """ResNet's shape with few channels: a stem, stages of blocks with a shortcut each, classes."""
    net = Network("resnet50")
    at = net.pool(net.convolution("data", 8, 7, stride=2), stride=2)
    for stage in range(4):
        channels = 8 << stage // 2
        if stage:
            reduced = net.convolution(net.convolution(at, channels, 3, stride=2), channels, 3, relu=False)
            shortcut = net.convolution(at, channels, 3, stride=2, relu=False)
            at = net.relu(net.sum(reduced, shortcut))
        inner = net.convolution(net.convolution(net.convolution(at, 8, 1), 8, 3), channels, 1, relu=False)
        at = net.relu(net.sum(inner, at))
    return net, net.classes(at, classes)


def inception(classes=1001):
    """Inception's shape with few channels: a stem, and modules whose branches are concatenated."""
    net = Network("inception")
    at = net.pool(net.convolution(net.convolution("data", 8, 3, stride=2), 8, 3), stride=2)
    for _ in range(3):
        at = net.concat(
            net.convolution(at, 4, 1),
            net.convolution(net.convolution(at, 4, 1), 8, 3),
            net.convolution(net.convolution(net.convolution(at, 4, 1), 8, 3), 8, 3),
            net.convolution(net.pool(at, stride=1), 4, 1))
        at = net.concat(net.convolution(net.convolution(at, 4, 1), 8, 3, stride=2), net.pool(at, stride=2))
    return net, net.classes(at, classes)


# ONNX (onnx.proto)

FLOAT, INT32, STRING = 1, 6, 8


def onnx_node(operator, inputs, outputs, **attributes):
    node = texts(1, inputs) + texts(2, outputs) + text(3, outputs[0]) + text(4, operator)
    for name, value in attributes.items():
        if isinstance(value, list):
            node += text(5, text(1, name) + numbers(8, value) + number(20, 7))
        else:
            node += text(5, text(1, name) + number(3, value) + number(20, 2))
    return text(1, node)


def onnx_value(name, kind, dims):
    """A tensor of the graph; its first dimension is the batch."""
    shape = text(1, text(2, "batch")) + b"".join(text(1, number(1, dim)) for dim in dims)
    return text(1, name) + text(2, text(1, number(1, kind) + text(2, shape)))


def onnx_model(name, nodes, inputs, outputs, weights=()):
    """`inputs` and `outputs`: (name, type, dims). `weights`: (name, array of floats, shape)."""
    graph = b"".join(nodes) + text(2, name)
    for tensor, values, shape in weights:
        graph += text(5, numbers(1, shape) + number(2, FLOAT) + text(8, tensor) + text(9, values.tobytes()))
    graph += b"".join(text(11, onnx_value(*value)) for value in inputs)
    graph += b"".join(text(12, onnx_value(*value)) for value in outputs)
    return number(1, 8) + text(8, number(2, 13)) + text(7, graph)


def onnx(net, output, names, dims):
    """`names`: of input and output. `dims`: of the input; channels are last if they are 3."""
    nodes, weights = [], []
    if dims[-1] == 3:
        nodes.append(onnx_node("Transpose", [names[0]], ["data"], perm=[0, 3, 1, 2]))
    else:
        nodes.append(onnx_node("Identity", [names[0]], ["data"]))
    for layer in net.layers:
        outputs = [names[1] if layer.name == output else layer.name]
        if layer.kind in ("conv", "dense"):
            weights.append((f"{layer.name}_w", layer.weights, layer.shape))
        if layer.kind in ("conv", "pool"):
            window = {"kernel_shape": [layer.size] * 2, "strides": [layer.stride] * 2, "pads": [padding(layer)] * 4}
        if layer.kind == "conv":
            nodes.append(onnx_node("Conv", layer.inputs + [f"{layer.name}_w"], outputs, **window))
        elif layer.kind == "pool":
            nodes.append(onnx_node("MaxPool", layer.inputs, outputs, **window))
        elif layer.kind == "mean":
            nodes.append(onnx_node("ReduceMean", layer.inputs, outputs, axes=[2, 3], keepdims=0))
        elif layer.kind == "dense":
            nodes.append(onnx_node("Gemm", layer.inputs + [f"{layer.name}_w"], outputs, transB=1))
        elif layer.kind in ("concat", "softmax"):
            nodes.append(onnx_node(layer.kind.capitalize(), layer.inputs, outputs, axis=1))
        else:
            nodes.append(onnx_node({"relu": "Relu", "sum": "Add"}[layer.kind], layer.inputs, outputs))
    return onnx_model(net.name, nodes, [(names[0], FLOAT, dims)], [(names[1], FLOAT, [net.channels[output]])], weights)


# Caffe2 NetDef (caffe2.proto)


def caffe2_operator(kind, inputs, outputs, arguments=()):
    """`arguments`: (name, value), where a value is an integer, a list of integers or an array of floats."""
    operator = texts(1, inputs) + texts(2, outputs) + text(4, kind)
    for name, value in arguments:
        if isinstance(value, array.array):
            operator += text(5, text(1, name) + b"".join(real(5, v) for v in value))
        elif isinstance(value, list):
            operator += text(5, text(1, name) + b"".join(number(6, v) for v in value))
        else:
            operator += text(5, text(1, name) + number(3, value))
    return text(2, operator)


def netdef(net, output, names):
    """The net and the net that fills its weights."""
    rename = {"data": names[0], output: names[1]}
    body, fills, blobs = b"", b"", []

    def fill(blob, values, shape):
        nonlocal fills
        blobs.append(blob)
        fills += caffe2_operator("GivenTensorFill", [], [blob], [("shape", shape), ("values", values)])
        return blob

    for layer in net.layers:
        inputs = [rename.get(i, i) for i in layer.inputs]
        outputs = [rename.get(layer.name, layer.name)]
        kind, arguments = {"relu": "Relu", "sum": "Sum", "concat": "Concat", "softmax": "Softmax"}.get(layer.kind), []
        if layer.kind in ("conv", "pool"):
            arguments = [("kernel", layer.size), ("stride", layer.stride), ("pad", padding(layer))]
        if layer.kind == "conv":
            kind = "Conv"
            inputs.append(fill(f"{layer.name}_w", layer.weights, layer.shape))
        elif layer.kind == "pool":
            kind = "MaxPool"
        elif layer.kind == "mean":
            kind, arguments = "AveragePool", [("global_pooling", 1)]
        elif layer.kind == "dense":
            kind = "FC"
            inputs.append(fill(f"{layer.name}_w", layer.weights, layer.shape))
            inputs.append(fill(f"{layer.name}_b", array.array("f", [0] * layer.shape[0]), [layer.shape[0]]))
        elif layer.kind == "concat":
            outputs.append(f"{layer.name}_sizes")
            arguments = [("axis", 1)]
        body += caffe2_operator(kind, inputs, outputs, arguments)
    predict = text(1, net.name) + body + texts(7, [names[0]] + blobs) + text(8, names[1])
    return predict, text(1, f"{net.name}_init") + fills + texts(8, blobs)


# TensorFlow GraphDef (graph.proto)

DT_FLOAT, DT_INT32 = 1, 3
KIND, NUMBER, STRINGS = 6, 3, 2


def tensorflow_node(operator, name, inputs, **attributes):
    node = text(1, name) + text(2, operator) + texts(3, inputs)
    for key, value in attributes.items():
        node += text(5, text(1, key) + text(2, value))
    return text(1, node)


def shape_proto(dims):
    return b"".join(text(2, number(1, dim)) for dim in dims)


def constant(name, kind, dims, values):
    tensor = number(1, kind) + text(2, shape_proto(dims)) + text(4, values.tobytes())
    return tensorflow_node("Const", name, [], dtype=number(KIND, kind), value=text(8, tensor))


def reordered(values, shape, order):
    """The values of a tensor of this shape with its dimensions in another order."""
    strides = [1]
    for dim in reversed(shape[1:]):
        strides.insert(0, strides[0] * dim)
    offsets = [0]
    for axis in order:
        offsets = [offset + i * strides[axis] for offset in offsets for i in range(shape[axis])]
    return array.array("f", (values[offset] for offset in offsets)), [shape[axis] for axis in order]


def graphdef(net, output, names, dims):
    """Channels are last, as `dims` of the input must have them."""
    kind = {"T": number(KIND, DT_FLOAT)}
    nodes = tensorflow_node("Placeholder", names[0], [], dtype=number(KIND, DT_FLOAT), shape=text(7, shape_proto([-1] + dims)))
    rename = {"data": names[0], output: names[1]}
    for layer in net.layers:
        inputs = [rename.get(i, i) for i in layer.inputs]
        name = rename.get(layer.name, layer.name)
        if layer.kind in ("conv", "dense"):
            order = (2, 3, 1, 0) if layer.kind == "conv" else (1, 0)
            values, shape = reordered(layer.weights, layer.shape, order)
            nodes += constant(f"{layer.name}_w", DT_FLOAT, shape, values)
            inputs.append(f"{layer.name}_w")
        if layer.kind in ("conv", "pool"):
            window = {"strides": text(1, numbers(3, [1, layer.stride, layer.stride, 1])),
                      "padding": text(STRINGS, "SAME" if padding(layer) else "VALID"), **kind}
            if layer.kind == "pool":
                window["ksize"] = text(1, numbers(3, [1, layer.size, layer.size, 1]))
            nodes += tensorflow_node({"conv": "Conv2D", "pool": "MaxPool"}[layer.kind], name, inputs, **window)
        elif layer.kind in ("mean", "concat"):
            axes = array.array("i", [1, 2] if layer.kind == "mean" else [3])
            nodes += constant(f"{layer.name}_axes", DT_INT32, [2] if layer.kind == "mean" else [], axes)
            inputs.append(f"{layer.name}_axes")
            kinds = dict(kind, Tidx=number(KIND, DT_INT32))
            if layer.kind == "concat":
                kinds["N"] = number(NUMBER, len(layer.inputs))
            nodes += tensorflow_node({"mean": "Mean", "concat": "ConcatV2"}[layer.kind], name, inputs, **kinds)
        else:
            operator = {"relu": "Relu", "sum": "AddV2", "dense": "MatMul", "softmax": "Softmax"}[layer.kind]
            nodes += tensorflow_node(operator, name, inputs, **kind)
    return nodes + text(4, number(1, 1482))

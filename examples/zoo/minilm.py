"""The sentence encoder all-MiniLM-L6-v2 as an ONNX file, and the model of the Python backend that tokenizes for it."""

from onnx_file import FLOAT, INT64, OnnxGraph

LAYERS, HEADS, WIDTH = 6, 12, 384


class Encoder:
    def __init__(self, tensors):
        self.tensors, self.graph = tensors, OnnxGraph("minilm")

    def weight(self, name):
        return self.graph.weight(name, *self.tensors[name])

    def dense(self, x, name):
        graph = self.graph
        turned = graph.node("Transpose", self.weight(name + ".weight"), perm=[1, 0])
        return graph.node("Add", graph.node("MatMul", x, turned), self.weight(name + ".bias"))

    def normalize(self, x, name):
        scale, bias = self.weight(name + ".weight"), self.weight(name + ".bias")
        return self.graph.node("LayerNormalization", x, scale, bias, axis=-1, epsilon=1e-12)

    def heads(self, x, name, perm):
        shape = self.graph.ints([0, 0, HEADS, WIDTH // HEADS])
        return self.graph.node("Transpose", self.graph.node("Reshape", self.dense(x, name), shape), perm=perm)

    def attend(self, x, at, bias):
        graph = self.graph
        query = self.heads(x, at + "self.query", [0, 2, 1, 3])
        key = self.heads(x, at + "self.key", [0, 2, 3, 1])
        value = self.heads(x, at + "self.value", [0, 2, 1, 3])
        scores = graph.node("Mul", graph.node("MatMul", query, key), graph.floats([(WIDTH // HEADS) ** -0.5], []))
        shares = graph.node("Softmax", graph.node("Add", scores, bias), axis=-1)
        mixed = graph.node("Transpose", graph.node("MatMul", shares, value), perm=[0, 2, 1, 3])
        mixed = graph.node("Reshape", mixed, graph.ints([0, 0, WIDTH]))
        return self.normalize(graph.node("Add", x, self.dense(mixed, at + "output.dense")), at + "output.LayerNorm")

    def gelu(self, x):
        graph = self.graph
        error = graph.node("Erf", graph.node("Mul", x, graph.floats([0.5 ** 0.5], [])))
        half = graph.node("Mul", x, graph.floats([0.5], []))
        return graph.node("Mul", half, graph.node("Add", error, graph.floats([1.0], [])))

    def embed(self, ids):
        graph = self.graph
        length = graph.node("Gather", graph.node("Shape", ids), graph.ints([1], []), axis=0)
        places = graph.node("Range", graph.ints([0], []), length, graph.ints([1], []))
        words = graph.node("Gather", self.weight("embeddings.word_embeddings.weight"), ids, axis=0)
        places = graph.node("Gather", self.weight("embeddings.position_embeddings.weight"), places, axis=0)
        kinds = self.weight("embeddings.token_type_embeddings.weight")
        kind = graph.node("Gather", kinds, graph.ints([0], []), axis=0)
        return self.normalize(graph.node("Add", graph.node("Add", words, places), kind), "embeddings.LayerNorm")

    def pool(self, x, mask):
        """The mean of the tokens' vectors, of length 1."""
        graph = self.graph
        counted = graph.node("Unsqueeze", mask, graph.ints([2]))
        total = graph.node("ReduceSum", graph.node("Mul", x, counted), graph.ints([1]), keepdims=0)
        mean = graph.node("Div", total, graph.node("ReduceSum", mask, graph.ints([1]), keepdims=1))
        length = graph.node("ReduceL2", mean, axes=[1], keepdims=1)
        graph.node("Div", mean, length, result="embedding")

    def write(self, path):
        graph = self.graph
        ids = graph.input("input_ids", INT64, ["batch", "tokens"])
        mask = graph.node("Cast", graph.input("attention_mask", INT64, ["batch", "tokens"]), to_=FLOAT)
        absent = graph.node("Sub", mask, graph.floats([1.0], []))
        bias = graph.node("Unsqueeze", graph.node("Mul", absent, graph.floats([10000.0], [])), graph.ints([1, 2]))
        x = self.embed(ids)
        for layer in range(LAYERS):
            at = f"encoder.layer.{layer}."
            x = self.attend(x, at + "attention.", bias)
            inner = self.gelu(self.dense(x, at + "intermediate.dense"))
            x = self.normalize(graph.node("Add", x, self.dense(inner, at + "output.dense")), at + "output.LayerNorm")
        self.pool(x, mask)
        graph.output("embedding", FLOAT, ["batch", WIDTH])
        graph.write(path)

"""Libraries of the legacy custom interface with the v2 client."""

import itertools

import numpy as np
import tritonclient.grpc as grpc
import tritonclient.http as http
from tritonclient.utils import InferenceServerException, np_to_triton_dtype

import checks

GENERATIONS = ("a", "b11", "b", "c", "v2a", "v2b")
KINDS = {"int32": np.int32, "fp32": np.float32}
TYPES = {
    "bool": np.bool_, "int8": np.int8, "int16": np.int16, "int32": np.int32, "int64": np.int64, "uint8": np.uint8,
    "uint16": np.uint16, "uint32": np.uint32, "uint64": np.uint64, "fp16": np.float16, "fp32": np.float32,
    "fp64": np.float64,
}
SEQUENCES = ("sequence_b11", "sequence_b", "sequence_c", "sequence_v2a", "sequence_v2b", "sequence_two", "sequence_single",
             "sequence_oldest")
ids = itertools.count(10000)


def samples(kind, shape):
    random, count = np.random.default_rng(3), int(np.prod(shape))
    if kind == np.bool_:
        return (random.random(count) < 0.5).reshape(shape)
    return np.frombuffer(random.bytes(count * np.dtype(kind).itemsize), kind).reshape(shape)


class Custom(checks.Case):
    MODULE, INTERNAL = None, None

    def setUp(self):
        self.client = self.MODULE.InferenceServerClient(checks.HTTP if self.MODULE is http else checks.GRPC)
        self.addCleanup(self.client.close)

    def infer(self, model, inputs, outputs=(), **more):
        tensors = []
        for name, values in inputs.items():
            tensor = self.MODULE.InferInput(name, values.shape, np_to_triton_dtype(values.dtype))
            tensor.set_data_from_numpy(values)
            tensors.append(tensor)
        requested = [self.MODULE.InferRequestedOutput(name) for name in outputs] or None
        return self.client.infer(model, tensors, outputs=requested, **more)

    def addsub(self, model, kind, shape):
        a, b = np.arange(np.prod(shape)).astype(kind).reshape(shape), np.full(shape, 3, kind)
        got = self.infer(model, {"INPUT1": b, "INPUT0": a})
        np.testing.assert_array_equal(got.as_numpy("OUTPUT0"), a + b)
        np.testing.assert_array_equal(got.as_numpy("OUTPUT1"), a - b)
        self.assertEqual(got.as_numpy("OUTPUT0").shape, shape)

    def test_addsub_of_every_generation(self):
        for generation, (name, kind) in itertools.product(GENERATIONS, KINDS.items()):
            for shape in ((1, 16), (5, 16)):
                with self.subTest(generation, kind=name, shape=shape):
                    self.addsub(f"addsub_{generation}_{name}", kind, shape)
            with self.subTest(generation, kind=name, shape=(16,)):
                self.addsub(f"addsub_{generation}_{name}_nobatch", kind, (16,))

    def test_only_requested_output(self):
        for generation in GENERATIONS:
            with self.subTest(generation):
                ones = np.ones((2, 16), np.int32)
                got = self.infer(f"addsub_{generation}_int32", {"INPUT0": ones, "INPUT1": ones}, ["OUTPUT1"])
                np.testing.assert_array_equal(got.as_numpy("OUTPUT1"), ones - ones)
                self.assertIsNone(got.as_numpy("OUTPUT0"))

    def test_library_lookup(self):
        for model in ("addsub_other_file", "addsub_says_1"):
            with self.subTest(model):
                self.addsub(model, np.int32, (2, 16))

    def test_types_are_unchanged(self):
        for name, kind in TYPES.items():
            for shape in ((1, 1), (2, 21), (3, 0)):
                with self.subTest(name, shape=shape):
                    values = samples(kind, shape)
                    got = self.infer(f"identity_{name}", {"INPUT0": values}).as_numpy("OUTPUT0")
                    self.assertEqual((got.tobytes(), got.shape), (values.tobytes(), shape))

    def test_strings_are_unchanged(self):
        texts = [b"", b"a", "grüezi".encode(), b"\0\0", b"x" * 3000, b"\xff"]
        values = np.array([texts, texts[::-1]], object)
        got = self.infer("identity_string", {"INPUT0": values}).as_numpy("OUTPUT0")
        self.assertEqual(got.tolist(), values.tolist())

    def test_large_tensor(self):
        values = samples(np.uint8, (1, 5_000_000))
        got = self.infer("identity_uint8", {"INPUT0": values}).as_numpy("OUTPUT0")
        self.assertEqual(got.tobytes(), values.tobytes())

    def test_every_input_block_size(self):
        for generation, hint in itertools.product(GENERATIONS, (1, 3, 7, 1000, 1001, 1 << 20, 0)):
            if generation == "a" and hint == 0:
                continue  # has no sizes
            with self.subTest(generation, hint=hint):
                values = samples(np.uint8, (1, 1000))
                got = self.infer(f"chunks_{generation}", {"INPUT0": values, "HINT": np.array([[hint]], np.int32)})
                np.testing.assert_array_equal(got.as_numpy("OUTPUT0"), values)
                self.assertGreaterEqual(got.as_numpy("BLOCKS").item(), 1)

    def test_sequences_in_every_slot(self):
        for model in SEQUENCES:
            with self.subTest(model):
                # Interleaved, so that some batches have empty slots below the busy one.
                some = [next(ids) for _ in range(1 if model == "sequence_single" else 4)]
                sums = dict.fromkeys(some, 0)
                for at in range(4):
                    for i, id in enumerate(some):
                        value = np.array([(i + 1) * 10 ** at], np.int32)
                        value = value if model == "sequence_single" else value[None]
                        sums[id] += value.item()
                        got = self.infer(model, {"INPUT": value}, sequence_id=id, sequence_start=at == 0,
                                         sequence_end=at == 3)
                        self.assertEqual(got.as_numpy("OUTPUT").item(), sums[id])

    def test_error_messages_of_the_interface(self):
        expected = {
            "execute_error": "execute error for 'INST': (7) out of ink",
            "execute_silent_error": "execute error for 'INST': (8) <no error string>",
            "payload_error": "payload error for 'INST': (9) out of paper",
            "payload_silent_error": "payload error for 'INST': (8) <no error string>",
        }
        for generation, (command, text) in itertools.product(GENERATIONS, expected.items()):
            model = f"faulty_{generation}"
            inputs = {"COMMAND": np.array([[command]], object), "INPUT0": np.array([[4]], np.int32)}
            with self.subTest(generation, command=command):
                with self.refusal(InferenceServerException, text.replace("INST", f"{model}_0_0_cpu")) as caught:
                    self.infer(model, inputs)
                self.assertEqual(caught.exception.status(), self.INTERNAL)
                inputs["COMMAND"] = np.array([["good"]], object)
                self.assertEqual(self.infer(model, inputs).as_numpy("OUTPUT0").item(), 5)


class Http(Custom):
    MODULE, INTERNAL = http, "500"


class Grpc(Custom):
    MODULE, INTERNAL = grpc, "StatusCode.INTERNAL"


# Not run itself: it has no client.
del Custom

if __name__ == "__main__":
    checks.run()

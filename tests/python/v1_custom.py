"""Libraries of the legacy custom interface with the v1 client, over each of its protocols."""

import itertools

import numpy as np

import checks
from trtis_client import InferContext, InferenceServerException, ProtocolType

RAW = InferContext.ResultFormat.RAW
CLASS = InferContext.ResultFormat.CLASS
NONE, START, END = 0, 1, 2
GENERATIONS = ("a", "b11", "b", "c", "v2a", "v2b")
KINDS = {"int32": np.int32, "fp32": np.float32}
TYPES = {
    "bool": np.bool_, "int8": np.int8, "int16": np.int16, "int32": np.int32, "int64": np.int64, "uint8": np.uint8,
    "uint16": np.uint16, "uint32": np.uint32, "uint64": np.uint64, "fp16": np.float16, "fp32": np.float32,
    "fp64": np.float64,
}
SEQUENCES = ("sequence_b11", "sequence_b", "sequence_c", "sequence_v2a", "sequence_v2b", "sequence_two", "sequence_single",
             "sequence_oldest")
ids = itertools.count(1)


def samples(kind, count):
    random = np.random.RandomState(3)
    if kind == np.bool_:
        return random.rand(count) < 0.5
    return np.frombuffer(random.bytes(count * np.dtype(kind).itemsize), kind)


class Custom(checks.Case):
    PROTOCOL, STREAMING, OFFSET = None, False, 0

    def context(self, model, id=0):
        url = checks.HTTP if self.PROTOCOL == ProtocolType.HTTP else checks.GRPC
        return InferContext(url, self.PROTOCOL, model, correlation_id=id, streaming=self.STREAMING)

    def addsub(self, model, kind, rows):
        a = [np.arange(i, i + 16).astype(kind) for i in range(rows)]
        b = [np.full(16, 3, kind)] * rows
        got = self.context(model).run({"INPUT1": b, "INPUT0": a}, {"OUTPUT1": RAW, "OUTPUT0": RAW}, rows)
        for i in range(rows):
            self.assertEqual(got["OUTPUT0"][i].dtype, kind)
            np.testing.assert_array_equal(got["OUTPUT0"][i], a[i] + b[i])
            np.testing.assert_array_equal(got["OUTPUT1"][i], a[i] - b[i])

    def test_addsub_of_every_generation(self):
        for generation, (name, kind) in itertools.product(GENERATIONS, KINDS.items()):
            for rows in (1, 5):
                with self.subTest(generation, kind=name, rows=rows):
                    self.addsub(f"addsub_{generation}_{name}", kind, rows)
            with self.subTest(generation, kind=name, rows=0):
                self.addsub(f"addsub_{generation}_{name}_nobatch", kind, 1)

    def test_only_requested_output(self):
        for generation in GENERATIONS:
            with self.subTest(generation):
                ones = [np.ones(16, np.int32)]
                context = self.context(f"addsub_{generation}_int32")
                got = context.run({"INPUT0": ones, "INPUT1": ones}, {"OUTPUT1": RAW})
                self.assertEqual(list(got), ["OUTPUT1"])
                np.testing.assert_array_equal(got["OUTPUT1"][0], np.zeros(16, np.int32))

    def test_classification(self):
        for generation in GENERATIONS:
            with self.subTest(generation):
                values, ones = np.arange(16, dtype=np.float32), np.ones(16, np.float32)
                got = self.context(f"addsub_{generation}_fp32").run(
                    {"INPUT0": [values], "INPUT1": [ones]}, {"OUTPUT0": (CLASS, 2), "OUTPUT1": RAW})
                self.assertEqual(got["OUTPUT0"][0], [(15, 16.0, ""), (14, 15.0, "")])
                np.testing.assert_array_equal(got["OUTPUT1"][0], values - ones)

    def test_library_lookup(self):
        for model in ("addsub_other_file", "addsub_says_1"):
            with self.subTest(model):
                self.addsub(model, np.int32, 2)

    def test_types_are_unchanged(self):
        for name, kind in TYPES.items():
            for count in (1, 21):
                with self.subTest(name, count=count):
                    values = samples(kind, count)
                    got = self.context(f"identity_{name}").run({"INPUT0": [values]}, {"OUTPUT0": RAW})
                    self.assertEqual(got["OUTPUT0"][0].tobytes(), values.tobytes())
                    self.assertEqual(got["OUTPUT0"][0].shape, (count,))

    def test_strings_are_unchanged(self):
        texts = ["", "a", "grüezi", "\0\0", "x" * 3000, "last"]
        batch = [np.array(texts, object), np.array(texts[::-1], object)]
        got = self.context("identity_string").run({"INPUT0": batch}, {"OUTPUT0": RAW}, 2)
        for i in range(2):
            self.assertEqual([text.decode() for text in got["OUTPUT0"][i]], list(batch[i]))

    def test_every_input_block_size(self):
        for generation, hint in itertools.product(GENERATIONS, (1, 3, 7, 1000, 1001, 1 << 20, 0)):
            if generation == "a" and hint == 0:
                continue  # has no sizes
            with self.subTest(generation, hint=hint):
                values = samples(np.uint8, 1000)
                inputs = {"INPUT0": [values], "HINT": [np.array([hint], np.int32)]}
                got = self.context(f"chunks_{generation}").run(inputs, {"OUTPUT0": RAW, "BLOCKS": RAW})
                np.testing.assert_array_equal(got["OUTPUT0"][0], values)
                self.assertGreaterEqual(got["BLOCKS"][0][0], 1)

    def step(self, model, id, value, flags):
        got = self.context(model, id).run({"INPUT": [np.array([value], np.int32)]}, {"OUTPUT": RAW}, flags=flags)
        return int(got["OUTPUT"][0][0])

    def test_sequences_in_every_slot(self):
        for model in SEQUENCES:
            with self.subTest(model):
                # Interleaved, so that some batches have empty slots below the busy one.
                some = [self.OFFSET + next(ids) for _ in range(1 if model == "sequence_single" else 4)]
                sums = dict.fromkeys(some, 0)
                for at, flags in enumerate((START, NONE, NONE, END)):
                    for i, id in enumerate(some):
                        value = (i + 1) * 10 ** at
                        sums[id] += value
                        self.assertEqual(self.step(model, id, value, flags), sums[id])

    def test_error_messages_of_the_interface(self):
        expected = {
            "execute_error": "execute error for 'INST': (7) out of ink",
            "execute_silent_error": "execute error for 'INST': (8) <no error string>",
            "payload_error": "payload error for 'INST': (9) out of paper",
            "payload_silent_error": "payload error for 'INST': (8) <no error string>",
        }
        for generation, (command, text) in itertools.product(GENERATIONS, expected.items()):
            model = f"faulty_{generation}"
            inputs = {"COMMAND": [np.array([command], object)], "INPUT0": [np.array([4], np.int32)]}
            with self.subTest(generation, command=command):
                with self.refusal(InferenceServerException, text.replace("INST", f"{model}_0_0_cpu")):
                    self.context(model).run(inputs, {"OUTPUT0": RAW})
                inputs["COMMAND"] = [np.array(["good"], object)]
                got = self.context(model).run(inputs, {"OUTPUT0": RAW})
                self.assertEqual(got["OUTPUT0"][0][0], 5)


class Http(Custom):
    PROTOCOL = ProtocolType.HTTP


class Grpc(Custom):
    PROTOCOL, OFFSET = ProtocolType.GRPC, 1000


class GrpcStream(Custom):
    PROTOCOL, STREAMING, OFFSET = ProtocolType.GRPC, True, 2000


# Not run itself: it has no protocol.
del Custom

if __name__ == "__main__":
    checks.run()

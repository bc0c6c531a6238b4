"""Requests to models of tests/triton/free_outputs.py, which send outputs that their configurations do not declare. The same checks pass
against Triton itself. `--without` leaves out where the two differ on purpose:

- impossible-shapes: Triton sends shapes that contradict the bytes."""

import json

import numpy as np
import tritonclient.grpc
import tritonclient.http
import tritonclient.utils.shared_memory as shm
from tritonclient.utils import InferenceServerException

import checks

# Declared: INT32 of shape [2].
WISHES = [("float64", [2]), ("int64", [3]), ("int32", [2, 3]), ("bool", []), ("float16", [0]), ("text", [3]), ("int32", [2])]


def wish(responses, module=tritonclient.http, rows=()):
    values = np.array(json.dumps(responses).encode(), np.object_).reshape([*rows, 1])
    given = module.InferInput("WISH", values.shape, "BYTES")
    given.set_data_from_numpy(values)
    return [given]


def expected(kind, shape):
    values = np.arange(np.prod(shape, dtype=np.int64)).reshape(shape)
    return values.astype(str).astype("S").astype(object) if kind == "text" else values.astype(kind)


class Free(checks.Case):
    def setUp(self):
        self.http = tritonclient.http.InferenceServerClient(checks.HTTP, concurrency=4)
        self.addCleanup(self.http.close)
        self.grpc = tritonclient.grpc.InferenceServerClient(checks.GRPC)
        self.addCleanup(self.grpc.close)

    def same(self, result, kind, shape):
        got, wanted = result.as_numpy("OUT"), expected(kind, shape)
        self.assertEqual((got.dtype, got.shape), (wanted.dtype, wanted.shape))
        self.assertEqual(got.tolist(), wanted.tolist())

    def test_binary(self):
        for kind, shape in WISHES:
            with self.subTest(kind):
                self.same(self.http.infer("any", wish([[(kind, shape)]])), kind, shape)

    def test_json(self):
        for kind, shape in WISHES:
            # JSON has no FP16.
            if kind == "float16":
                continue
            with self.subTest(kind):
                outputs = [tritonclient.http.InferRequestedOutput("OUT", binary_data=False)]
                result = self.http.infer("any", wish([[(kind, shape)]]), outputs=outputs)
                got, wanted = result.as_numpy("OUT"), expected(kind, shape)
                self.assertEqual((got.dtype, got.shape), (wanted.dtype, wanted.shape))
                texts = [each.encode() if kind == "text" else each for each in got.tolist()] if shape else got.tolist()
                self.assertEqual(texts, wanted.tolist())

    def test_grpc(self):
        for kind, shape in WISHES:
            with self.subTest(kind):
                self.same(self.grpc.infer("any", wish([[(kind, shape)]], tritonclient.grpc)), kind, shape)

    def test_rows(self):
        """Fewer and more than the request has."""
        for kind, shape in (("int32", [2, 2]), ("int32", [0, 2]), ("float32", [7, 3]), ("text", [2]), ("int8", [])):
            with self.subTest(kind):
                self.same(self.http.infer("rows", wish([[(kind, shape)]], rows=[1])), kind, shape)
                self.same(self.grpc.infer("rows", wish([[(kind, shape)]], tritonclient.grpc, [1])), kind, shape)

    def test_batch(self):
        """Two requests that are executed together."""
        pair = ("float32", [3, 1]), ("text", [1, 4])
        calls = [self.http.async_infer("batch", wish([[each]], rows=[1])) for each in pair]
        for call, each in zip(calls, pair):
            self.same(call.get_result(), *each)

    def test_stream(self):
        mailbox = checks.Mailbox()
        self.grpc.start_stream(lambda result, error: mailbox.put((result, error)))
        self.addCleanup(self.grpc.stop_stream)
        self.grpc.async_stream_infer("stream", wish([[each] for each in WISHES], tritonclient.grpc))
        for each, (result, error) in zip(WISHES, mailbox.take(len(WISHES))):
            self.assertIsNone(error)
            self.same(result, *each)

    def test_no_output(self):
        result = self.http.infer("any", wish([[]]))
        self.assertEqual(result.get_response().get("outputs", []), [])
        result = self.grpc.infer("any", wish([[]], tritonclient.grpc))
        self.assertEqual(len(result.get_response().outputs), 0)

    def test_no_output_that_was_asked_for(self):
        outputs = [tritonclient.http.InferRequestedOutput("OUT", binary_data=True)]
        result = self.http.infer("any", wish([[]]), outputs=outputs)
        self.assertEqual(result.get_response().get("outputs", []), [])
        outputs = [tritonclient.grpc.InferRequestedOutput("OUT")]
        result = self.grpc.infer("any", wish([[]], tritonclient.grpc), outputs=outputs)
        self.assertEqual(len(result.get_response().outputs), 0)

    def test_classes(self):
        best = [[b"2.000000:2", b"1.000000:1"], [b"5.000000:2", b"4.000000:1"]]
        for model, shape, rows, classes in (("any", [3], [], best[0]), ("rows", [2, 3], [1], best)):
            outputs = [tritonclient.http.InferRequestedOutput("OUT", class_count=2)]
            result = self.http.infer(model, wish([[("float32", shape)]], rows=rows), outputs=outputs)
            self.assertEqual(result.as_numpy("OUT").tolist(), classes)
        outputs = [tritonclient.http.InferRequestedOutput("OUT", class_count=2)]
        with self.refusal(InferenceServerException, "unsupported type 'BOOL'", whole=False):
            self.http.infer("any", wish([[("bool", [2])]]), outputs=outputs)

    def test_shared_memory(self):
        """Large enough for the declared output."""
        region = shm.create_shared_memory_region("free", "/free_outputs_of_trtserver", 8)
        self.addCleanup(shm.destroy_shared_memory_region, region)
        self.http.register_system_shared_memory("free", "/free_outputs_of_trtserver", 8)
        self.addCleanup(self.http.unregister_system_shared_memory, "free")
        output = tritonclient.http.InferRequestedOutput("OUT")
        output.set_shared_memory("free", 8)
        result = self.http.infer("any", wish([[("int16", [4])]]), outputs=[output])
        [told] = result.get_response()["outputs"]
        self.assertEqual((told["datatype"], told["shape"]), ("INT16", [4]))
        self.assertEqual(shm.get_contents_as_numpy(region, np.int16, [4]).tolist(), [0, 1, 2, 3])
        text = "shared memory size specified with the request for output 'OUT' (8 bytes) should be at least 16 bytes"
        with self.refusal(InferenceServerException, text, whole=False):
            self.http.infer("any", wish([[("int64", [2])]]), outputs=[output])

    def test_reshaped(self):
        """Configured with dims [2] and the shape [1, 2] for the model."""
        for kind in ("int32", "int64"):
            self.same(self.http.infer("reshaped", wish([[(kind, [1, 2])]])), kind, [2])

    @checks.needs("impossible-shapes")
    def test_reshaped_wrongly(self):
        """The response tells the configured shape, which does not fit its bytes."""
        [output] = self.http.infer("reshaped", wish([[("int32", [3])]])).get_response()["outputs"]
        self.assertEqual((output["shape"], output["parameters"]), ([2], {"binary_data_size": 12}))

    def test_ensemble(self):
        for kind, shape in WISHES:
            with self.subTest(kind):
                self.same(self.http.infer("passed", wish([[(kind, shape)]])), kind, shape)

    def test_next_step(self):
        self.same(self.http.infer("chain", wish([[("int32", [2])]])), "int32", [2])
        for each, text in (
            (("int64", [2]), "inference input 'IN' data-type is 'INT64', but model 'reader' expects 'INT32'"),
            (("int32", [3]), "unexpected shape for input 'IN' for model 'reader'. Expected [2], got [3]"),
            (("int32", []), "unexpected shape for input 'IN' for model 'reader'. Expected [2], got []"),
        ):
            with self.subTest(text), self.refusal(InferenceServerException, text, whole=False):
                self.http.infer("chain", wish([[each]]))


if __name__ == "__main__":
    checks.run()

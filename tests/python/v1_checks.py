"""Checks with the v1 client that apply to each of its protocols.

A script gives each of these classes a protocol by a subclass; see v1_http.py and v1_grpc.py.
"""

import numpy as np

import checks
from trtis_client import (
    InferContext,
    InferenceServerException,
    ModelControlContext,
    ModelRepositoryContext,
    ProtocolType,
    ServerHealthContext,
    ServerStatusContext,
    server_status_pb2,
)

RAW = InferContext.ResultFormat.RAW
CLASS = InferContext.ResultFormat.CLASS

ADDSUB = {
    "int8": np.int8, "int16": np.int16, "int32": np.int32, "int64": np.int64,
    "uint8": np.uint8, "uint16": np.uint16, "uint32": np.uint32, "uint64": np.uint64,
    "fp16": np.float16, "fp32": np.float32, "fp64": np.float64,
}
FIXED = dict(ADDSUB, bool=np.bool_)


def samples(kind, count):
    """Values that use the whole width of a type."""
    random = np.random.RandomState(7)
    if kind == np.bool_:
        return random.rand(count) < 0.5
    if np.issubdtype(kind, np.floating):
        return (random.randn(count) * 100).astype(kind)
    return np.frombuffer(random.bytes(count * np.dtype(kind).itemsize), kind)


class Protocol(checks.Case):
    """`PROTOCOL` and `STREAMING` are a subclass's."""

    PROTOCOL = None
    STREAMING = False

    @property
    def url(self):
        return checks.HTTP if self.PROTOCOL == ProtocolType.HTTP else checks.GRPC

    def context(self, model, version=None, **more):
        return InferContext(self.url, self.PROTOCOL, model, version, streaming=self.STREAMING, **more)

    def status(self, model=None):
        return ServerStatusContext(self.url, self.PROTOCOL, model).get_server_status()


class Infer(Protocol):
    def same(self, got, expected):
        self.assertEqual(got.dtype, expected.dtype)
        np.testing.assert_array_equal(got, expected)

    def addsub(self, context, kind, batch, seed=0):
        a = [np.arange(i + seed, i + seed + 16).astype(kind) for i in range(batch)]
        b = [np.arange(16).astype(kind) for _ in range(batch)]
        got = context.run({"INPUT0": a, "INPUT1": b}, {"OUTPUT0": RAW, "OUTPUT1": RAW}, batch)
        for i in range(batch):
            self.same(got["OUTPUT0"][i], a[i] + b[i])
            self.same(got["OUTPUT1"][i], a[i] - b[i])

    def test_addsub_of_every_type(self):
        for name, kind in checks.present(ADDSUB).items():
            for batch in (1, 3, 8):
                with self.subTest(name, batch=batch):
                    self.addsub(self.context(f"addsub_{name}"), kind, batch)

    def test_fixed_size_types_are_unchanged(self):
        for name, kind in checks.present(FIXED).items():
            with self.subTest(name):
                values = samples(kind, 21)
                got = self.context(f"identity_{name}").run({"INPUT0": [values]}, {"OUTPUT0": RAW})
                self.assertEqual(got["OUTPUT0"][0].tobytes(), values.tobytes())
                self.assertEqual(got["OUTPUT0"][0].shape, (21,))

    @checks.needs("string")
    def test_strings_are_unchanged(self):
        # The client encodes objects as text, and takes an array of bytes as it is.
        texts = ["", "a", "grüezi", "\0\0", "x" * 3000, "last"]
        batch = [np.array(texts, object), np.array(texts[::-1], object)]
        got = self.context("identity_string").run({"INPUT0": batch}, {"OUTPUT0": RAW}, 2)
        for i in range(2):
            self.assertEqual([text.decode() for text in got["OUTPUT0"][i]], list(batch[i]))
        bytes = np.array([b"\xff\xfe", b"\x80"])
        got = self.context("identity_string").run({"INPUT0": [bytes]}, {"OUTPUT0": RAW})
        self.assertEqual(list(got["OUTPUT0"][0]), list(bytes))

    def test_non_batching_models(self):
        for name, kind in (("fp32", np.float32), ("int32", np.int32)):
            with self.subTest(name):
                self.addsub(self.context(f"addsub_{name}_nobatch"), kind, 1)

    @checks.needs("string")
    def test_strings_of_a_non_batching_model(self):
        values = np.array([b"one", b"two"])
        got = self.context("identity_string_nobatch").run({"INPUT0": [values]}, {"OUTPUT0": RAW})
        self.assertEqual(list(got["OUTPUT0"][0]), [b"one", b"two"])

    def test_context_with_changing_shapes(self):
        context = self.context("identity_fp32")
        for size in (5, 1, 700, 2):
            values = samples(np.float32, size)
            got = context.run({"INPUT0": [values]}, {"OUTPUT0": RAW})
            self.same(got["OUTPUT0"][0], values)

    def test_large_tensor(self):
        values = samples(np.float32, 3_000_000)
        got = self.context("identity_fp32").run({"INPUT0": [values]}, {"OUTPUT0": RAW})
        self.assertEqual(got["OUTPUT0"][0].tobytes(), values.tobytes())

    def test_very_large_tensor(self):
        values = np.zeros(20_000_000, np.float32)
        values[-1] = 1
        got = self.context("echo").run({"INPUT0": [values]}, {"OUTPUT0": RAW})
        self.assertEqual((got["OUTPUT0"][0].size, got["OUTPUT0"][0][-1]), (values.size, 1))

    def test_only_requested_outputs(self):
        ones = np.ones(16, np.int32)
        got = self.context("addsub_int32").run({"INPUT0": [ones], "INPUT1": [ones]}, {"OUTPUT1": RAW})
        self.assertEqual(list(got), ["OUTPUT1"])
        self.same(got["OUTPUT1"][0], ones - ones)

    @checks.needs("nonzero")
    def test_data_dependent_output_shape(self):
        context = self.context("nonzero")
        got = context.run({"INPUT0": [np.array([[0, 7], [5, 0]], np.float32)]}, {"OUTPUT0": RAW})
        self.same(got["OUTPUT0"][0], np.array([[0, 1], [1, 0]], np.int64))
        got = context.run({"INPUT0": [np.zeros((2, 3), np.float32)]}, {"OUTPUT0": RAW})
        self.assertEqual(got["OUTPUT0"][0].size, 0)

    def test_reshaped_tensor_has_configured_shape(self):
        values = [np.arange(i, i + 6, dtype=np.float32).reshape(2, 3) for i in range(3)]
        got = self.context("reshape").run({"INPUT0": values}, {"OUTPUT0": RAW}, 3)
        for i in range(3):
            self.same(got["OUTPUT0"][i], values[i] * 2)

    def test_classification_with_labels(self):
        scores = [np.array(s, np.float32) for s in ([1, 5, 2, 4, 3], [0.5, -1, 0.25, -2, 0])]
        got = self.context("classes").run({"INPUT0": scores}, {"OUTPUT0": (CLASS, 3)}, 2)
        self.assertEqual(got["OUTPUT0"][0], [(1, 5.0, "green"), (3, 4.0, ""), (4, 3.0, "")])
        self.assertEqual(got["OUTPUT0"][1], [(0, 0.5, "red"), (2, 0.25, "blue"), (4, 0.0, "")])

    def test_more_classes_than_elements(self):
        scores = np.array([1, 5, 2, 4, 3], np.float32)
        got = self.context("classes").run({"INPUT0": [scores]}, {"OUTPUT0": (CLASS, 99)})
        self.assertEqual([index for index, _, _ in got["OUTPUT0"][0]], [1, 3, 4, 2, 0])

    def test_raw_and_class_output_of_one_request(self):
        a, b = np.arange(16, dtype=np.int32), np.ones(16, np.int32)
        got = self.context("addsub_int32").run(
            {"INPUT0": [a], "INPUT1": [b]}, {"OUTPUT0": (CLASS, 2), "OUTPUT1": RAW})
        self.assertEqual(got["OUTPUT0"][0], [(15, 16.0, ""), (14, 15.0, "")])
        self.same(got["OUTPUT1"][0], a - b)

    def test_classes_of_every_numeric_type(self):
        kinds = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "fp32", "fp64")
        for name in checks.present(kinds):
            with self.subTest(name):
                values = np.array([3, 9, 1], FIXED[name])
                got = self.context(f"identity_{name}").run({"INPUT0": [values]}, {"OUTPUT0": (CLASS, 1)})
                self.assertEqual(got["OUTPUT0"][0], [(1, 9.0, "")])

    def test_no_classes_of_strings(self):
        with self.refusal(InferenceServerException, "class result not available for output 'OUTPUT0' "
                          "due to unsupported type 'TYPE_STRING'"):
            self.context("identity_string").run(
                {"INPUT0": [np.array([b"x"], object)]}, {"OUTPUT0": (CLASS, 1)})

    def test_versions(self):
        one = np.ones(2, np.float32)
        for version, expected in ((None, 3), (1, 1), (3, 3)):
            with self.subTest(version=version):
                context = self.context("versions", version)
                got = context.run({"INPUT0": [one]}, {"OUTPUT0": RAW})
                self.same(got["OUTPUT0"][0], one + expected)
                self.assertEqual(context.get_last_request_model_name(), "versions")
                self.assertEqual(context.get_last_request_model_version(), expected)
        got = self.context("versions_latest").run({"INPUT0": [one]}, {"OUTPUT0": RAW})
        self.same(got["OUTPUT0"][0], one + 3)

    def test_unknown_version(self):
        for model, version in (("versions", 2), ("versions_latest", 1)):
            with self.subTest(model):
                with self.refusal(InferenceServerException, f"Inference request for unknown model '{model}'"):
                    self.context(model, version).run({"INPUT0": [np.ones(2, np.float32)]}, {"OUTPUT0": RAW})

    def test_unknown_model(self):
        with self.refusal(InferenceServerException, "no status available for unknown model 'absent'"):
            self.context("absent")

    def test_backend_error_reaches_the_client(self):
        with self.refusal(InferenceServerException, "the probe was told to fail") as caught:
            self.context("fails").run({"INPUT0": [np.ones(2, np.float32)]}, {"OUTPUT0": RAW})
        self.assertEqual(caught.exception.server_id(), "inference:0")

    def test_context_works_after_a_failure(self):
        context = self.context("identity_fp32")
        with self.assertRaises(InferenceServerException):
            context.run({"INPUT0": [np.ones(2, np.float32)] * 9}, {"OUTPUT0": RAW}, 9)
        got = context.run({"INPUT0": [np.ones(2, np.float32)]}, {"OUTPUT0": RAW})
        self.same(got["OUTPUT0"][0], np.ones(2, np.float32))

    def test_concurrent_requests(self):
        mailbox = checks.Mailbox()
        context = self.context("addsub_int32")
        sent = {}
        for i in range(40):
            a, b = np.full(16, i, np.int32), np.arange(16, dtype=np.int32)
            sent[i] = (a, b)
            context.async_run(lambda ctx, id: mailbox.put(id), {"INPUT0": [a], "INPUT1": [b]},
                              {"OUTPUT0": RAW, "OUTPUT1": RAW})
        seen = set()
        for id in mailbox.take(40):
            got = context.get_async_run_results(id)
            i = int(got["OUTPUT0"][0][0])
            a, b = sent[i]
            self.same(got["OUTPUT0"][0], a + b)
            self.same(got["OUTPUT1"][0], a - b)
            seen.add(i)
        self.assertEqual(seen, set(sent))

    def test_asynchronous_failure(self):
        mailbox = checks.Mailbox()
        context = self.context("fails")
        context.async_run(lambda ctx, id: mailbox.put(id),
                          {"INPUT0": [np.ones(2, np.float32)]}, {"OUTPUT0": RAW})
        [id] = mailbox.take(1)
        with self.refusal(InferenceServerException, "the probe was told to fail"):
            context.get_async_run_results(id)

    def test_stateless_model_ignores_correlation_id(self):
        context = self.context("identity_fp32", correlation_id=42)
        got = context.run({"INPUT0": [np.ones(1, np.float32)]}, {"OUTPUT0": RAW}, flags=3)
        self.same(got["OUTPUT0"][0], np.ones(1, np.float32))

    def test_request_ids_increase(self):
        context = self.context("identity_fp32")
        ids = []
        for _ in range(3):
            context.run({"INPUT0": [np.ones(1, np.float32)]}, {"OUTPUT0": RAW})
            ids.append(context.get_last_request_id())
        self.assertEqual(ids, sorted(set(ids)))
        self.assertGreater(ids[0], 0)


class Control(Protocol):
    """Health, status, and what does not change models here."""

    def test_health(self):
        health = ServerHealthContext(self.url, self.PROTOCOL)
        self.assertTrue(health.is_live())
        self.assertTrue(health.is_ready())

    def test_request_ids_are_consecutive(self):
        status = ServerStatusContext(self.url, self.PROTOCOL)
        status.get_server_status()
        first = status.get_last_request_id()
        status.get_server_status()
        self.assertEqual(status.get_last_request_id(), first + 1)

    def test_server_status(self):
        status = self.status()
        self.assertEqual(status.id, "inference:0")
        self.assertEqual(status.ready_state, server_status_pb2.SERVER_READY)
        self.assertLess(status.uptime_ns, self.status().uptime_ns)
        self.assertIn("addsub_fp32", status.model_status)
        self.assertIn("echo", status.model_status)

    def test_model_status(self):
        status = self.status("versions")
        self.assertEqual(list(status.model_status), ["versions"])
        model = status.model_status["versions"]
        self.assertEqual(model.config.name, "versions")
        self.assertEqual(model.config.platform, "onnxruntime_onnx")
        self.assertEqual(model.config.max_batch_size, 8)
        self.assertEqual([i.name for i in model.config.input], ["INPUT0"])
        self.assertEqual(list(model.config.output[0].dims), [-1])
        self.assertEqual(sorted(model.version_status), [1, 3])
        for version in model.version_status.values():
            self.assertEqual(version.ready_state, server_status_pb2.MODEL_READY)

    def test_status_has_selected_versions_only(self):
        self.assertEqual(list(self.status("versions_latest").model_status["versions_latest"].version_status), [3])

    def test_status_of_an_unknown_model(self):
        context = ServerStatusContext(self.url, self.PROTOCOL, "absent")
        with self.refusal(InferenceServerException, "no status available for unknown model 'absent'"):
            context.get_server_status()

    def test_status_counts(self):
        model = "addsub_fp64"
        inputs = {n: [np.ones(16, np.float64)] * 3 for n in ("INPUT0", "INPUT1")}
        context = InferContext(self.url, self.PROTOCOL, model, streaming=self.STREAMING)

        def numbers():
            version = self.status(model).model_status[model].version_status[1]
            stats = version.infer_stats[3]
            return (version.model_inference_count, version.model_execution_count, stats.success.count,
                    stats.queue.count, stats.compute.count, stats.failed.count), stats

        before, _ = numbers()
        for _ in range(2):
            context.run(inputs, {"OUTPUT0": RAW}, 3)
        after, stats = numbers()
        self.assertEqual([a - b for a, b in zip(after, before)], [6, 2, 2, 2, 2, 0])
        self.assertGreaterEqual(stats.success.total_time_ns,
                                stats.queue.total_time_ns + stats.compute.total_time_ns)
        self.assertGreater(stats.compute.total_time_ns, 0)

    def test_failures_are_counted(self):
        def failed():
            return self.status("fails").model_status["fails"].version_status[1].infer_stats[1].failed.count

        before = failed()
        with self.assertRaises(InferenceServerException):
            self.context("fails").run({"INPUT0": [np.ones(1, np.float32)]}, {"OUTPUT0": RAW})
        self.assertEqual(failed(), before + 1)

    def test_status_calls_are_counted(self):
        before = self.status().status_stats.success.count
        self.status()
        self.assertEqual(self.status().status_stats.success.count, before + 2)

    def test_repository_index(self):
        index = ModelRepositoryContext(self.url, self.PROTOCOL).get_model_repository_index()
        names = [model.name for model in index.models]
        self.assertEqual(len(names), len(set(names)))
        self.assertLessEqual({"addsub_fp32", "echo", "versions"}, set(names))

    def test_models_are_not_loaded_on_request(self):
        control = ModelControlContext(self.url, self.PROTOCOL)
        text = "explicit model load / unload is not allowed if polling is enabled"
        for call in (control.load, control.unload):
            with self.refusal(InferenceServerException, text):
                call("echo")

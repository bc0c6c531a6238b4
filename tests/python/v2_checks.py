"""Checks with the v2 client that apply to HTTP and gRPC, blocking and asynchronous.

A script gives each of these classes its client modules by a subclass; see v2_http.py and v2_grpc.py.
"""

import asyncio

import ml_dtypes
import numpy as np
from tritonclient.utils import InferenceServerException

import checks

TYPES = {
    "bool": np.bool_, "int8": np.int8, "int16": np.int16, "int32": np.int32, "int64": np.int64,
    "uint8": np.uint8, "uint16": np.uint16, "uint32": np.uint32, "uint64": np.uint64,
    "fp16": np.float16, "fp32": np.float32, "fp64": np.float64,
}
NUMBERS = [name for name in TYPES if name != "bool"]
EXTENSIONS = [
    "classification", "sequence", "model_repository", "model_repository(unload_dependents)", "schedule_policy",
    "model_configuration", "binary_tensor_data", "parameters", "statistics", "trace", "logging",
]


def samples(kind, shape):
    """Values that use the whole width of a type."""
    random = np.random.default_rng(7)
    count = int(np.prod(shape))
    if kind == np.bool_:
        return (random.random(count) < 0.5).reshape(shape)
    if np.issubdtype(kind, np.floating):
        return (random.standard_normal(count) * 100).astype(kind).reshape(shape)
    return np.frombuffer(random.bytes(count * np.dtype(kind).itemsize), kind).reshape(shape)


def counted(stats):
    """The one entry of get_inference_statistics, gRPC's numbers (text in JSON) and HTTP's alike."""
    [entry] = stats["model_stats"]
    durations = entry["inference_stats"]
    number = lambda value: int(value or 0)
    counts = {key: number(value.get("count")) for key, value in durations.items()}
    return {"inferences": number(entry.get("inference_count")),
            "executions": number(entry.get("execution_count")), **counts}


class Protocol(checks.Case):
    MODULE = None  # tritonclient.http or .grpc
    PREFIX = {}  # what str() of an error begins with, by status

    @property
    def url(self):
        return checks.HTTP if self.MODULE.__name__.endswith("http") else checks.GRPC

    def setUp(self):
        self.client = self.MODULE.InferenceServerClient(self.url)
        self.addCleanup(self.client.close)

    def input(self, name, values, datatype, **more):
        tensor = self.MODULE.InferInput(name, values.shape, datatype)
        tensor.set_data_from_numpy(values, **more)
        return tensor

    def fp32(self, count=2, rows=1):
        return self.input("INPUT0", np.ones((rows, count), np.float32), "FP32")

    def identity(self, model, values, datatype, **more):
        return self.client.infer(model, [self.input("INPUT0", values, datatype)], **more)

    def echo(self, **more):
        return self.client.infer("echo", [self.fp32()], **more)

    def failing(self, status, text):
        """The block must fail with this status and text, as the client shows them."""
        check = self

        class Block:
            def __enter__(self):
                self.raised = check.assertRaises(InferenceServerException)
                self.caught = self.raised.__enter__()
                return self.caught

            def __exit__(self, *what):
                if what[0] is None or not self.raised.__exit__(*what):
                    return self.raised.__exit__(*what)
                check.assertEqual(self.caught.exception.message(), text)
                check.assertEqual(self.caught.exception.status(), check.STATUS[status])
                return True

        return Block()


class Server(Protocol):
    def test_health(self):
        self.assertTrue(self.client.is_server_live())
        self.assertTrue(self.client.is_server_ready())

    def test_model_readiness(self):
        for model, version, ready in (
                ("echo", "", True), ("echo", "1", True), ("versions", "1", True), ("versions", "3", True),
                ("versions", "2", False), ("versions_latest", "1", False), ("absent", "", False)):
            with self.subTest(model, version=version):
                self.assertEqual(self.client.is_model_ready(model, version), ready)

    def test_server_metadata(self):
        metadata = self.json(self.client.get_server_metadata)
        self.assertEqual(metadata["name"], "triton")
        self.assertTrue(metadata["version"])
        self.assertEqual(metadata["extensions"], EXTENSIONS)

    def test_model_metadata(self):
        metadata = self.json(self.client.get_model_metadata, "versions")
        self.assertEqual(metadata["versions"], ["1", "3"])
        self.assertEqual(metadata["platform"], "onnxruntime_onnx")
        [input] = metadata["inputs"]
        self.assertEqual((input["name"], input["datatype"], [int(d) for d in input["shape"]]),
                         ("INPUT0", "FP32", [-1, -1]))
        [output] = self.json(self.client.get_model_metadata, "nonzero")["outputs"]
        self.assertEqual((output["datatype"], [int(d) for d in output["shape"]]), ("INT64", [2, -1]))

    def test_version_metadata(self):
        self.assertEqual(self.json(self.client.get_model_metadata, "versions", "1")["versions"], ["1"])

    def test_platform_defaults_to_backend(self):
        self.assertEqual(self.json(self.client.get_model_metadata, "echo")["platform"], "probe")

    def test_metadata_of_unknown_model(self):
        for call in (self.client.get_model_metadata, self.client.get_model_config):
            with self.failing(404, "Request for unknown model: 'absent' is not found"):
                call("absent")
            with self.failing(404, "Request for unknown model: 'versions' version 2 is not found"):
                call("versions", "2")

    def test_config(self):
        config = self.json(self.client.get_model_config, "addsub_fp32")
        config = config.get("config", config)
        self.assertEqual(config["name"], "addsub_fp32")
        self.assertEqual(config["max_batch_size"], 8)
        self.assertEqual([i["name"] for i in config["input"]], ["INPUT0", "INPUT1"])
        self.assertEqual([int(d) for d in config["output"][0]["dims"]], [16])
        # What the file leaves out is filled in.
        self.assertEqual(config["version_policy"], {"latest": {"num_versions": 1}})
        [group] = config["instance_group"]
        self.assertEqual((group["name"], group["kind"]), ("addsub_fp32", "KIND_CPU"))
        self.assertEqual(config["backend"], "onnxruntime")

    def test_statistics(self):
        def numbers():
            return counted(self.json(self.client.get_inference_statistics, "addsub_uint8"))

        before = numbers()
        tensors = [self.input(n, np.ones((3, 16), np.uint8), "UINT8") for n in ("INPUT0", "INPUT1")]
        for _ in range(2):
            self.client.infer("addsub_uint8", tensors)
        after = numbers()
        changes = {key: after[key] - before[key] for key in after}
        self.assertEqual(changes, {
            "inferences": 6, "executions": 2, "success": 2, "fail": 0, "queue": 2, "compute_input": 2,
            "compute_infer": 2, "compute_output": 2, "cache_hit": 0, "cache_miss": 0})

    def test_statistics_of_failures(self):
        before = counted(self.json(self.client.get_inference_statistics, "fails"))
        with self.assertRaises(InferenceServerException):
            self.client.infer("fails", [self.fp32()])
        after = counted(self.json(self.client.get_inference_statistics, "fails"))
        self.assertEqual({k: after[k] - before[k] for k in after if after[k] != before[k]}, {"fail": 1})

    def test_statistics_of_all_models(self):
        stats = self.json(self.client.get_inference_statistics)["model_stats"]
        entries = {(entry["name"], entry["version"]) for entry in stats}
        self.assertLessEqual({("versions", "1"), ("versions", "3"), ("echo", "1")}, entries)
        self.assertNotIn(("versions_latest", "1"), entries)

    def test_statistics_of_unknown_model(self):
        with self.failing(400, "requested model 'absent' is not available"):
            self.client.get_inference_statistics("absent")
        with self.failing(400, "requested model version is not available for model 'echo'"):
            self.client.get_inference_statistics("echo", "7")

    def test_repository_index(self):
        index = self.json(self.client.get_model_repository_index)
        index = index["models"] if isinstance(index, dict) else index
        found = [(m["name"], m.get("version"), m.get("state")) for m in index]
        self.assertEqual(len(found), len(set(found)))
        self.assertLessEqual({("versions", "1", "READY"), ("versions", "3", "READY")}, set(found))

    def test_models_are_not_loaded_on_request(self):
        text = "explicit model load / unload is not allowed if polling is enabled"
        for call in (self.client.load_model, self.client.unload_model):
            with self.failing(503, text):
                call("echo")

    def test_shared_memory_is_disabled(self):
        text = ("Client shared memory is disabled. Start the server with '--allow-client-shm=true' to enable.")
        with self.failing(501, text):
            self.client.register_system_shared_memory("region", "/trtserver-test", 64)
        with self.failing(501, text):
            self.client.unregister_system_shared_memory("region")
        self.client.get_system_shared_memory_status()


class Infer(Protocol):
    def test_fixed_size_types_are_unchanged(self):
        for name, kind in checks.present(TYPES).items():
            for shape in ((1, 1), (3, 7), (8, 100), (1, 0)):
                with self.subTest(name, shape=shape):
                    values = samples(kind, shape)
                    got = self.identity(f"identity_{name}", values, name.upper()).as_numpy("OUTPUT0")
                    self.assertEqual((got.dtype, got.shape), (values.dtype, values.shape))
                    self.assertEqual(got.tobytes(), values.tobytes())

    @checks.needs("bf16")
    def test_bf16(self):
        values = np.array([[1.0, -2.5, 0.0, float("inf"), 3.0e38]], ml_dtypes.bfloat16)
        got = self.identity("identity_bf16", values, "BF16").as_numpy("OUTPUT0")
        np.testing.assert_array_equal(got.astype(np.float32), values.astype(np.float32))

    @checks.needs("string")
    def test_bytes(self):
        texts = [b"", b"a", "grüezi".encode(), b"\0\0", b"\xff\xfe", b"x" * 3000]
        values = np.array([texts, texts[::-1]], object)
        got = self.identity("identity_string", values, "BYTES").as_numpy("OUTPUT0")
        self.assertEqual(got.tolist(), values.tolist())
        got = self.identity("identity_string", np.empty((1, 0), object), "BYTES").as_numpy("OUTPUT0")
        self.assertEqual(got.shape, (1, 0))

    def test_addsub_of_every_type(self):
        for name in checks.present(NUMBERS):
            for rows in (1, 8):
                with self.subTest(name, rows=rows):
                    a = np.arange(rows * 16).reshape(rows, 16).astype(TYPES[name])
                    b = np.ones((rows, 16), TYPES[name])
                    got = self.client.infer(f"addsub_{name}", [
                        self.input("INPUT0", a, name.upper()), self.input("INPUT1", b, name.upper())])
                    np.testing.assert_array_equal(got.as_numpy("OUTPUT0"), a + b)
                    np.testing.assert_array_equal(got.as_numpy("OUTPUT1"), a - b)

    def test_input_order_is_free(self):
        a, b = np.full((1, 16), 5, np.int32), np.full((1, 16), 3, np.int32)
        got = self.client.infer("addsub_int32", [
            self.input("INPUT1", b, "INT32"), self.input("INPUT0", a, "INT32")])
        np.testing.assert_array_equal(got.as_numpy("OUTPUT1"), a - b)

    def test_non_batching_models(self):
        values = samples(np.float32, (5,))
        np.testing.assert_array_equal(
            self.identity("identity_fp32_nobatch", values, "FP32").as_numpy("OUTPUT0"), values)

    @checks.needs("nonzero")
    def test_data_dependent_output_shape(self):
        got = self.identity("nonzero", np.array([[0, 7], [5, 0]], np.float32), "FP32")
        np.testing.assert_array_equal(got.as_numpy("OUTPUT0"), [[0, 1], [1, 0]])
        got = self.identity("nonzero", np.zeros((2, 3), np.float32), "FP32")
        self.assertEqual(got.as_numpy("OUTPUT0").shape, (2, 0))

    def test_reshaped_tensor_has_configured_shape(self):
        values = samples(np.float32, (3, 2, 3))
        np.testing.assert_array_equal(
            self.identity("reshape", values, "FP32").as_numpy("OUTPUT0"), values * 2)

    def test_large_tensor(self):
        values = samples(np.float32, (1, 3_000_000))
        got = self.identity("identity_fp32", values, "FP32").as_numpy("OUTPUT0")
        self.assertEqual(got.tobytes(), values.tobytes())

    def test_binary_tensor_above_json_limit(self):
        # --http-max-input-size is 64 MiB and does not concern binary tensors; gRPC allows messages
        # of 2 GiB.
        values = np.zeros((1, 20_000_000), np.float32)
        values[0, -1] = 1
        got = self.identity("echo", values, "FP32").as_numpy("OUTPUT0")
        self.assertEqual((got.shape, got[0, -1]), (values.shape, 1))

    def test_response_has_id_name_and_version(self):
        response = self.response(self.echo(request_id="my id"))
        self.assertEqual((response["id"], response["model_name"], response["model_version"]),
                         ("my id", "echo", "1"))

    def test_versions(self):
        one = np.ones((1, 2), np.float32)
        for version, expected in (("", 3), ("1", 1), ("3", 3)):
            with self.subTest(version=version):
                got = self.identity("versions", one, "FP32", model_version=version)
                np.testing.assert_array_equal(got.as_numpy("OUTPUT0"), one + expected)
                self.assertEqual(self.response(got)["model_version"], str(expected))

    def test_only_requested_outputs(self):
        tensors = [self.input(n, np.ones((1, 16), np.int32), "INT32") for n in ("INPUT0", "INPUT1")]
        got = self.client.infer("addsub_int32", tensors,
                                outputs=[self.MODULE.InferRequestedOutput("OUTPUT1")])
        self.assertEqual([o["name"] for o in self.response(got)["outputs"]], ["OUTPUT1"])
        self.assertIsNone(got.as_numpy("OUTPUT0"))

    def test_classes(self):
        scores = np.array([[1, 5, 2, 4, 3], [0.5, -1, 0.25, -2, 0]], np.float32)
        for count in (2, 99):
            requested = self.MODULE.InferRequestedOutput("OUTPUT0", class_count=count)
            got = self.identity("classes", scores, "FP32", outputs=[requested]).as_numpy("OUTPUT0")
            self.assertEqual(got.shape, (2, min(count, 5)))
            self.assertEqual(got[:, :2].tolist(), [[b"5.000000:1:green", b"4.000000:3"],
                                                   [b"0.500000:0:red", b"0.250000:2:blue"]])

    def test_classes_of_integers_and_non_batching_models(self):
        requested = self.MODULE.InferRequestedOutput("OUTPUT0", class_count=2)
        got = self.identity("identity_int32_nobatch", np.array([3, -9, 7], np.int32), "INT32", outputs=[requested])
        self.assertEqual(got.as_numpy("OUTPUT0").tolist(), [b"7:2", b"3:0"])

    def test_types_without_classification(self):
        for model, values, datatype in (("identity_bool", np.ones((1, 2), bool), "BOOL"),
                                        ("identity_fp16", np.ones((1, 2), np.float16), "FP16"),
                                        ("identity_string", np.array([[b"a"]], object), "BYTES")):
            requested = self.MODULE.InferRequestedOutput("OUTPUT0", class_count=2)
            with self.subTest(datatype), self.failing(
                    400, f"class result not available for output due to unsupported type '{datatype}'"):
                self.identity(model, values, datatype, outputs=[requested])

    def test_parameters_reach_the_model(self):
        # The test plugin takes its orders from them.
        with self.failing(500, "as the parameter says"):
            self.echo(parameters={"fail": "as the parameter says"})
        self.echo(parameters={"text": "a", "truth": True, "number": 7, "fraction": 0.5})

    def test_schedule_and_sequence_parameters_are_accepted(self):
        self.echo(priority=1, timeout=1_000_000)
        self.echo(sequence_id=5, sequence_start=True, sequence_end=True)
        self.echo(sequence_id="text", sequence_start=True, sequence_end=True)

    def test_errors(self):
        ones = np.ones((1, 16), np.float32)
        a, b = self.input("INPUT0", ones, "FP32"), self.input("INPUT1", ones, "FP32")
        wide = self.input("INPUT0", np.ones((1, 17), np.float32), "FP32")
        other = self.input("INPUT0", np.ones((2, 16), np.float32), "FP32")
        many = [self.input(n, np.ones((9, 16), np.float32), "FP32") for n in ("INPUT0", "INPUT1")]
        integers = self.input("INPUT0", np.ones((1, 16), np.int32), "INT32")
        unknown = self.input("INPUT9", ones, "FP32")
        output = self.MODULE.InferRequestedOutput
        note = (
            " NOTE: Setting a non-zero max_batch_size in the model config requires a batch dimension to be prepended "
            "to each input shape. If you want to specify the full shape including the batch dim in your input dims "
            "config, try setting max_batch_size to zero. See the model configuration docs for more info on "
            "max_batch_size.")
        m, id = "addsub_fp32", "[request id: mine] "
        cases = [
            (404, "Request for unknown model: 'absent' is not found", "absent", [a, b], {}),
            (404, f"Request for unknown model: '{m}' version 9 is not found", m, [a, b], {"model_version": "9"}),
            (400, f"{id}expected 2 inputs but got 1 inputs for model '{m}'. Got input(s) ['INPUT0'], but missing "
             "required input(s) ['INPUT1']. Please provide all required input(s).", m, [a], {}),
            (400, f"{id}input 'INPUT0' already exists in request", m, [a, a], {}),
            (400, f"unexpected inference input 'INPUT9' for model '{m}'", m, [a, unknown], {}),
            (400, f"{id}expected 2 inputs but got 3 inputs for model '{m}'. Got input(s) ['INPUT0','INPUT1','INPUT9'], "
             "but missing required input(s) ]. Please provide all required input(s).", m, [a, b, unknown], {}),
            (400, f"unexpected inference output 'OUTPUT9' for model '{m}'", m, [a, b],
             {"outputs": [output("OUTPUT9")]}),
            (400, f"{id}unexpected shape for input 'INPUT0' for model '{m}'. Expected [-1,16], got [1,17].{note}",
             m, [wide, b], {}),
            (400, f"{id}input 'INPUT1' batch size does not match other inputs for '{m}'", m, [other, b], {}),
            (400, f"{id}inference request batch-size must be <= 8 for '{m}'", m, many, {}),
            (400, f"{id}inference input 'INPUT0' data-type is 'INT32', but model '{m}' expects 'FP32'",
             m, [integers, b], {}),
        ]
        for status, text, model, inputs, more in cases:
            with self.subTest(text), self.failing(status, text):
                self.client.infer(model, inputs, request_id="mine", **more)
        with self.failing(400, "[request id: <id_unknown>] input 'INPUT0' already exists in request"):
            self.client.infer(m, [a, a])

    def test_duplicated_outputs(self):
        twice = [self.MODULE.InferRequestedOutput("OUTPUT0")] * 2
        response = self.response(self.echo(outputs=twice))
        self.assertEqual([o["name"] for o in response["outputs"]], ["OUTPUT0"])
        classes = self.MODULE.InferRequestedOutput("OUTPUT0", class_count=1)
        with self.refusal(InferenceServerException, "output 'OUTPUT0' already exists in request", whole=False):
            self.echo(outputs=[twice[0], classes])

    def test_wrong_byte_size(self):
        tensor = self.MODULE.InferInput("INPUT0", [1, 4], "FP32")
        tensor.set_data_from_numpy(np.ones((1, 4), np.float32))
        tensor.set_shape([1, 5])
        with self.refusal(InferenceServerException, "input byte size mismatch for input 'INPUT0' for model 'echo'. "
                          "Expected 20, got 16", whole=False):
            self.client.infer("echo", [tensor])


class Asynchronous(checks.Case):
    """The asyncio client: the same wire, so only what is its own."""

    AIO = None

    @property
    def url(self):
        return checks.HTTP if ".http" in self.AIO.__name__ else checks.GRPC

    def run_with_client(self, work):
        async def whole():
            async with self.AIO.InferenceServerClient(self.url) as client:
                await work(client)
        asyncio.run(whole())

    def fp32(self, values):
        tensor = self.AIO.InferInput("INPUT0", values.shape, "FP32")
        tensor.set_data_from_numpy(values)
        return [tensor]

    def test_concurrent_endpoints(self):
        async def work(client):
            self.assertTrue(await client.is_server_live())
            self.assertTrue(await client.is_server_ready())
            self.assertTrue(await client.is_model_ready("echo"))
            values = [np.full((1, 3), i, np.float32) for i in range(30)]
            responses = await asyncio.gather(*(client.infer("echo", self.fp32(v)) for v in values))
            for value, response in zip(values, responses):
                np.testing.assert_array_equal(response.as_numpy("OUTPUT0"), value)
        self.run_with_client(work)

    def test_slow_model_does_not_block_another(self):
        async def work(client):
            slow = asyncio.ensure_future(client.infer("slow", self.fp32(np.ones((1, 1), np.float32))))
            await client.infer("echo", self.fp32(np.ones((1, 1), np.float32)))
            self.assertFalse(slow.done())
            await slow
        self.run_with_client(work)

    def test_errors(self):
        async def work(client):
            with self.refusal(InferenceServerException, "Request for unknown model: 'absent' is not found"):
                await client.infer("absent", self.fp32(np.ones((1, 1), np.float32)))
        self.run_with_client(work)

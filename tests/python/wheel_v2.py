"""The v2 package of our wheel: `Client` and `AsyncClient` over HTTP and gRPC."""

import asyncio
import concurrent.futures
import gc
import os
import subprocess
import sys

import numpy as np

import checks
from trtserver_client import (
    AsyncClient,
    Cancelled,
    Classes,
    Client,
    InferenceError,
    InvalidArgument,
    RegionInput,
    RegionOutput,
    ServerError,
    SystemRegion,
    Tensor,
)
from trtserver_client._library import library

KINDS = ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32",
         "float64")
SHORT = {"float16": "fp16", "float32": "fp32", "float64": "fp64"}


def ones(*shape):
    return np.ones(shape, np.int32)


def add(a, b):
    return {"INPUT0": a, "INPUT1": b}


class Wire(checks.Case):
    """`SCHEME` is a subclass's."""

    SCHEME = None

    @property
    def url(self):
        return f"{self.SCHEME}://{checks.HTTP if self.SCHEME == 'http' else checks.GRPC}"

    def setUp(self):
        if self.SCHEME is None:
            self.skipTest("for subclasses")
        self.client = Client(self.url, deadline=checks.TIMEOUT)
        self.addCleanup(self.client.close)

    def refused(self, kind, text, call, *arguments, **more):
        with self.assertRaises(kind) as caught:
            call(*arguments, **more)
        self.assertIn(text, str(caught.exception))
        return caught.exception


class Server(Wire):
    def test_health_and_metadata(self):
        self.assertTrue(self.client.is_live() and self.client.is_ready())
        self.assertTrue(self.client.is_model_ready("versions", "3"))
        self.assertFalse(self.client.is_model_ready("absent"))
        server = self.client.server_metadata()
        self.assertEqual(server.name, "triton")
        self.assertIn("binary_tensor_data", server.extensions)
        model = self.client.model_metadata("addsub_int32")
        self.assertEqual([(t.name, t.datatype, t.shape) for t in model.inputs],
                         [("INPUT0", "INT32", (-1, 16)), ("INPUT1", "INT32", (-1, 16))])
        self.assertEqual(self.client.model_metadata("versions").versions, ("1", "3"))
        self.assertEqual(self.client.model_config("addsub_int32")["max_batch_size"], 8)

    def test_statistics(self):
        def count():
            [version] = self.client.statistics("addsub_fp64")
            return int(version["inference_stats"]["success"]["count"])

        before = count()
        values = np.ones((1, 16))
        self.client.infer("addsub_fp64", add(values, values))
        self.becomes(count, before + 1)
        self.assertGreater(len(self.client.statistics()), 10)

    def test_models_are_loaded_and_unloaded(self):
        states = {entry.name: entry.state for entry in self.client.repository_index()}
        self.assertEqual(states["echo"], "READY")
        self.client.load_model("echo")
        config = self.client.model_config("echo")
        name = f"loaded_{self.SCHEME}"
        self.client.load_model(name, dict(config, name=name), {"1/model": b"\0\1"})
        self.assertTrue(self.client.is_model_ready(name))
        self.client.unload_model(name)
        self.becomes(lambda: self.client.is_model_ready(name), False)
        error = self.refused(ServerError, "failed to load 'absent'", self.client.load_model, "absent")
        self.assertIn(self.url.partition("://")[2], error.asked)

    def test_settings(self):
        self.assertIn("trace_level", self.client.trace_settings())
        before = self.client.log_settings()
        self.assertEqual(int(self.client.log_settings({"log_verbose_level": 0})["log_verbose_level"]), 0)
        self.assertEqual(set(self.client.log_settings()), set(before))


class Infer(Wire):
    def test_every_type(self):
        for kind in KINDS:
            with self.subTest(kind):
                values = np.frombuffer(np.random.RandomState(7).bytes(64), "u1")[:48] % 2
                values = values.astype(kind).reshape(2, 24)
                result = self.client.infer(f"identity_{SHORT.get(kind, kind)}", {"INPUT0": values})
                got = result["OUTPUT0"]
                self.assertEqual((got.dtype, got.shape), (values.dtype, values.shape))
                np.testing.assert_array_equal(got, values)

    def test_strings(self):
        values = np.array([[b"", b"\xff\0", "gr\u00fcezi", "x" * 3000]], object)
        got = self.client.infer("identity_string", {"INPUT0": values})["OUTPUT0"]
        self.assertEqual(got.tolist(), [[b"", b"\xff\0", "gr\u00fcezi".encode(), b"x" * 3000]])

    def test_bf16_is_float32(self):
        values = np.array([[1, -2.5, np.inf, 3.0e38]], np.float32)
        result = self.client.infer("identity_bf16", {"INPUT0": Tensor(values, "BF16")})
        self.assertEqual(result.datatype("OUTPUT0"), "BF16")
        np.testing.assert_allclose(result["OUTPUT0"], values, rtol=0.01)
        values[0, 0] = np.nan
        self.assertTrue(np.isnan(self.client.infer("identity_bf16", {"INPUT0": Tensor(values, "BF16")})["OUTPUT0"][0, 0]))

    def test_unusual_arrays(self):
        whole = np.arange(64, dtype=np.int32)
        for array in (whole[::2].reshape(2, 16), whole[:32].reshape(16, 2).T, whole[:32].reshape(2, 16).astype(">i4")):
            result = self.client.infer("addsub_int32", add(array, ones(2, 16)))
            np.testing.assert_array_equal(result["OUTPUT0"], array + 1)
        empty = np.empty((1, 0), np.float32)
        self.assertEqual(self.client.infer("echo", {"INPUT0": empty})["OUTPUT0"].shape, (1, 0))

    def test_result(self):
        result = self.client.infer("versions", {"INPUT0": np.ones((1, 2), np.float32)}, request_id="seven", version="1")
        self.assertEqual((result.model_name, result.model_version, result.id, result.is_final),
                         ("versions", "1", "seven", True))
        self.assertEqual((result.outputs, result.shape("OUTPUT0"), result.datatype("OUTPUT0")),
                         (["OUTPUT0"], (1, 2), "FP32"))
        self.assertIn("OUTPUT0", result)
        array = result["OUTPUT0"]
        del result
        self.assertEqual(array.tolist(), [[2, 2]])
        self.assertFalse(array.flags.writeable)

    def test_requested_outputs(self):
        result = self.client.infer("addsub_int32", add(ones(1, 16), ones(1, 16)), outputs=["OUTPUT1"])
        self.assertEqual(result.outputs, ["OUTPUT1"])
        with self.assertRaisesRegex(KeyError, "OUTPUT0"):
            result["OUTPUT0"]

    def test_classes(self):
        scores = np.array([[1, 5, 2, 4, 3], [0.5, -1, 0.25, -2, 0]], np.float32)
        result = self.client.infer("classes", {"INPUT0": scores}, outputs=[Classes("OUTPUT0", 2)])
        first, second = result.classes("OUTPUT0")
        self.assertEqual([(c.index, c.value, c.label) for c in first], [(1, 5, "green"), (3, 4, "")])
        self.assertEqual([c.index for c in second], [0, 2])

    def test_large_array(self):
        values = np.zeros((1, 4 << 20), np.float32)
        values[0, -1] = 1
        got = self.client.infer("echo", {"INPUT0": values})["OUTPUT0"]
        self.assertEqual((got.shape, got[0, -1]), (values.shape, 1))

    def test_sequence(self):
        for id in (7001, f"{self.SCHEME} text"):
            sums = [
                int(self.client.infer("sums", {"INPUT0": np.full((1, 1), value, np.int32)}, sequence_id=id,
                                      sequence_start=value == 1, sequence_end=value == 4)["OUTPUT0"][0, 0])
                for value in range(1, 5)
            ]
            self.assertEqual(sums, [1, 3, 6, 10])

    def test_shared_memory(self):
        key = f"/wheel{os.getpid()}{self.SCHEME}"
        with SystemRegion(key[1:], key, 4096) as region:
            self.client.register_system_memory(region.name, key, region.byte_size)
            region.array((1, 16), "INT32")[:] = 5
            source = RegionInput(region.name, (1, 16), "INT32", 64)
            outputs = [RegionOutput("OUTPUT0", region.name, 64, offset=1024), "OUTPUT1"]
            result = self.client.infer("addsub_int32", add(source, ones(1, 16)), outputs=outputs)
            np.testing.assert_array_equal(region.array((1, 16), "INT32", 1024), np.full((1, 16), 6))
            np.testing.assert_array_equal(result["OUTPUT1"], np.full((1, 16), 4))
            with self.assertRaisesRegex(KeyError, "shared memory"):
                result["OUTPUT0"]
            texts = np.array([[b"a", b"bc"]], object)
            size = region.write_strings(texts)
            outputs = [RegionOutput("OUTPUT0", region.name, 1024, offset=2048)]
            self.client.infer("identity_string", {"INPUT0": RegionInput(region.name, (1, 2), "BYTES", size)},
                              outputs=outputs)
            self.assertEqual(region.read_strings((1, 2), 2048).tolist(), texts.tolist())
            self.assertIn(region.name, str(self.client.system_memory_status()))
            self.client.unregister_system_memory(region.name)
            self.assertNotIn(region.name, str(self.client.system_memory_status()))
            self.refused(InvalidArgument, "4096 bytes", region.array, (1025,), "INT32")

    def test_errors_of_the_server(self):
        call = self.client.infer
        error = self.refused(ServerError, "absent", call, "absent", {"INPUT0": ones(1, 1)})
        self.assertGreater(error.status, 0)
        self.refused(ServerError, "the probe was told to fail", call, "fails", {"INPUT0": np.ones((1, 2), np.float32)})
        self.refused(ServerError, "[1,3]", call, "addsub_int32", add(ones(1, 3), ones(1, 16)))
        self.refused(ServerError, "INPUT0", call, "addsub_int32", add(ones(1, 16).astype(np.int64), ones(1, 16)))
        self.refused(ServerError, "INPUT9", call, "addsub_int32", {"INPUT9": ones(1, 16)})

    def test_errors_before_sending(self):
        call, good = self.client.infer, add(ones(1, 16), ones(1, 16))
        for text, inputs, more in (
            ("'INPUT0' is a list", {"INPUT0": [1]}, {}),
            ("complex64", {"INPUT0": np.ones(1, np.complex64)}, {}),
            ("float64, BF16 is sent from float32", {"INPUT0": Tensor(np.ones(1), "BF16")}, {}),
            ("cannot be sent as FP32", {"INPUT0": Tensor(ones(1), "FP32")}, {}),
            ("0 classes", good, {"outputs": [Classes("OUTPUT0", 0)]}),
            ("an output is a int", good, {"outputs": [1]}),
            ("parameter 'p' has type list", good, {"parameters": {"p": []}}),
            ("64 bits", good, {"parameters": {"p": 2**64}}),
            ("deadline is -1", good, {"deadline": -1}),
            ("zero byte", {"IN\0": ones(1)}, {}),
        ):
            with self.subTest(text):
                self.refused(InvalidArgument, text, call, "addsub_int32", inputs, **more)
        self.refused(InvalidArgument, "compression", Client, self.url, compression="lzma")
        self.refused(InvalidArgument, "protocol", Client, self.url, protocol="udp")
        client = Client(self.url)
        client.close()
        self.refused(InvalidArgument, "closed", client.is_live)

    def test_compression(self):
        for kind in ("gzip", "deflate"):
            with Client(self.url, compression=kind) as client:
                values = np.zeros((1, 100_000), np.float32)
                self.assertEqual(client.infer("echo", {"INPUT0": values})["OUTPUT0"].shape, values.shape)

    def test_module_tries_a_server(self):
        def run(*arguments):
            command = [sys.executable, "-m", "trtserver_client", *arguments]
            return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8")

        done = run(self.url, "addsub_int32")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("ready: true", done.stdout)
        self.assertIn("output OUTPUT0 INT32 [1, 16]", done.stdout)
        done = run(self.url, "absent")
        self.assertEqual(done.returncode, 1)
        self.assertIn("error: ", done.stderr)


class Async(Wire):
    def run_async(self, body):
        async def run():
            async with AsyncClient(self.url, deadline=checks.TIMEOUT) as client:
                await body(client)

        asyncio.run(asyncio.wait_for(run(), 4 * checks.TIMEOUT))

    def test_calls(self):
        async def body(client):
            self.assertTrue(await client.is_live() and await client.is_ready())
            self.assertEqual((await client.server_metadata()).name, "triton")
            self.assertEqual((await client.model_metadata("echo")).name, "echo")
            self.assertEqual((await client.model_config("echo"))["name"], "echo")
            self.assertTrue(await client.is_model_ready("echo"))
            self.assertTrue(await client.repository_index() and await client.statistics("echo"))
            await client.load_model("echo")
            self.assertIn("trace_level", await client.trace_settings())
            self.assertTrue(await client.log_settings())
            self.assertIsInstance(await client.system_memory_status(), list)

        self.run_async(body)

    def test_concurrent_requests(self):
        async def body(client):
            results = await asyncio.gather(
                *(client.infer("addsub_int32", add(np.full((1, 16), i, np.int32), ones(1, 16))) for i in range(40)))
            self.assertEqual([int(result["OUTPUT0"][0, 0]) for result in results], list(range(1, 41)))

        self.run_async(body)

    def test_errors(self):
        async def body(client):
            for text, model in (("absent", "absent"), ("told to fail", "fails")):
                with self.assertRaisesRegex(ServerError, text):
                    await client.infer(model, {"INPUT0": np.ones((1, 2), np.float32)})
            with self.assertRaises(InvalidArgument):
                await client.infer("echo", {"INPUT0": [1]})

        self.run_async(body)

    def test_cancelled_task_cancels_the_request(self):
        async def body(client):
            value = np.ones((1, 2), np.float32)
            task = asyncio.ensure_future(client.infer("slow", {"INPUT0": value}))
            await asyncio.sleep(0)
            task.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await task
            self.assertEqual((await client.infer("echo", {"INPUT0": value}))["OUTPUT0"].tolist(), [[1, 1]])

        self.run_async(body)

    def test_closed_client_cancels_requests(self):
        async def body(client):
            task = asyncio.ensure_future(client.infer("slow", {"INPUT0": np.ones((1, 2), np.float32)}))
            await asyncio.sleep(0)
            await client.close()
            with self.assertRaises(Cancelled):
                await task

        self.run_async(body)

    def test_more_requests_than_are_taken_at_once(self):
        async def body(client):
            inputs = [np.full((1, 2), i, np.float32) for i in range(300)]
            results = await asyncio.gather(*(client.infer("echo", {"INPUT0": each}) for each in inputs))
            self.assertEqual([result["OUTPUT0"][0, 0] for result in results], list(range(300)))

        self.run_async(body)

    def test_loops_of_several_threads(self):
        async def body(client):
            for i in range(50):
                result = await client.infer("echo", {"INPUT0": np.full((1, 2), i, np.float32)})
                self.assertEqual(result["OUTPUT0"][0, 0], i)

        with concurrent.futures.ThreadPoolExecutor(4) as threads:
            for done in [threads.submit(self.run_async, body) for _ in range(8)]:
                done.result()

    def test_loop_that_is_closed_with_outstanding_requests(self):
        value = np.ones((1, 2), np.float32)
        client = AsyncClient(self.url, deadline=checks.TIMEOUT)
        loop = asyncio.new_event_loop()
        task = loop.create_task(client.infer("slow", {"INPUT0": value}))
        loop.run_until_complete(asyncio.sleep(0))
        loop.close()
        # asyncio says that the task will never be done.
        task._log_destroy_pending = False

        # The next loop ends the use of that one: its request is cancelled, and the client serves
        # on.
        async def body():
            return (await client.infer("echo", {"INPUT0": value}))["OUTPUT0"].tolist()

        self.assertEqual(asyncio.run(body()), [[1, 1]])
        del task, loop
        asyncio.run(client.close())


class HttpServer(Server):
    SCHEME = "http"


class GrpcServer(Server):
    SCHEME = "grpc"


class HttpInfer(Infer):
    SCHEME = "http"


class GrpcInfer(Infer):
    SCHEME = "grpc"


class HttpAsync(Async):
    SCHEME = "http"


class GrpcAsync(Async):
    SCHEME = "grpc"


class Streams(Wire):
    SCHEME = "grpc"

    @staticmethod
    def numbers(count):
        return {"INPUT0": np.array([[float(count)]], np.float32)}

    def test_decoupled_responses(self):
        results = list(self.client.infer_stream("many", self.numbers(3), parameters={"responses": 3}, request_id="a"))
        self.assertEqual([(r.id, float(r["OUTPUT0"][0, 0]), r.is_final) for r in results],
                         [("a", 3, False), ("a", 3, False), ("a", 3, True)])
        for result in self.client.infer_stream("many", self.numbers(1), parameters={"responses": 5}):
            break

    def test_requests_on_one_stream(self):
        with self.client.stream() as stream:
            for i in range(5):
                stream.send("echo", self.numbers(i), request_id=str(i))
            self.assertEqual([stream.receive().id for _ in range(5)], list("01234"))
            stream.send("absent", self.numbers(1), request_id="x")
            with self.assertRaisesRegex(ServerError, "absent"):
                next(stream)
            stream.send("echo", self.numbers(9))
            self.assertEqual(float(next(stream)["OUTPUT0"][0, 0]), 9)
            self.refused(InvalidArgument, "no deadline of its own", stream.send, "echo", self.numbers(1), deadline=1)
            stream.close_send()
            self.assertEqual(list(stream), [])
        self.refused(InvalidArgument, "closed", stream.send, "echo", self.numbers(1))

    def test_asynchronous_stream(self):
        async def body():
            async with AsyncClient(self.url) as client:
                values = [float(r["OUTPUT0"][0, 0]) async for r in
                          client.infer_stream("many", self.numbers(2), parameters={"responses": 4})]
                self.assertEqual(values, [2] * 4)
                async with client.stream() as stream:
                    for i in range(3):
                        await stream.send("echo", self.numbers(i))
                    await stream.send("absent", self.numbers(1))
                    await stream.close_send()
                    got = []
                    while True:
                        try:
                            async for result in stream:
                                got.append(float(result["OUTPUT0"][0, 0]))
                            break
                        except ServerError as error:
                            got.append(str(error.message))
                    self.assertEqual(sorted(map(str, got))[:3], ["0.0", "1.0", "2.0"])
                    self.assertEqual(len(got), 4)

        asyncio.run(asyncio.wait_for(body(), 4 * checks.TIMEOUT))

    def test_streams_need_grpc(self):
        with Client("http://" + checks.HTTP) as client:
            with self.assertRaisesRegex(InferenceError, "(?i)grpc"):
                client.stream()


def tearDownModule():
    """Every client, context, stream and result was released."""
    gc.collect()
    assert library.live_handles() == 0, library.live_handles()


if __name__ == "__main__":
    checks.run()

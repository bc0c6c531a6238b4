"""Requests to the models of tests/triton/models, which Triton's Python backend runs. The same checks pass against Triton itself,
which proves what they expect. `--without` leaves out where the two differ on purpose or for now:

- restarts: Triton never starts the process of a model again.
- errors-in-streams: an error ends a stream of this server."""

import json
import os
import signal
import tempfile
import urllib.request

import numpy as np
import tritonclient.grpc
import tritonclient.http
from tritonclient.utils import InferenceServerException

import checks


def sample(name):
    """The value of a metric, or none."""
    page = urllib.request.urlopen(f"http://{checks.METRICS}/metrics", timeout=checks.TIMEOUT).read().decode()
    values = [line.rpartition(" ")[2] for line in page.splitlines() if line.rpartition(" ")[0] == name]
    return float(values[0]) if values else None


def tensor(name, values, kind, module=tritonclient.http):
    values = np.array(values, kind)
    given = module.InferInput(name, values.shape, tritonclient.utils.np_to_triton_dtype(values.dtype))
    given.set_data_from_numpy(values)
    return given


class Http(checks.Case):
    def setUp(self):
        self.client = tritonclient.http.InferenceServerClient(checks.HTTP, concurrency=8)
        self.addCleanup(self.client.close)

    def infer(self, model, *inputs, **more):
        return self.client.infer(model, list(inputs), **more)

    def breaks(self, value):
        return self.infer("breaks", tensor("INPUT0", [value], np.int32))

    def process(self):
        return int(self.breaks(0).as_numpy("OUTPUT0")[0])


class Values(Http):
    def test_add_sub(self):
        inputs = tensor("INPUT0", [1, 2, 3, 4], np.float32), tensor("INPUT1", [4, 3, 2, 0.5], np.float32)
        result = self.infer("add_sub", *inputs)
        self.assertEqual(result.as_numpy("OUTPUT0").tolist(), [5, 5, 5, 4.5])
        self.assertEqual(result.as_numpy("OUTPUT1").tolist(), [-3, -1, 1, 3.5])
        wanted = [tritonclient.http.InferRequestedOutput("OUTPUT1", binary_data=False)]
        [output] = self.infer("add_sub", *inputs, outputs=wanted).get_response()["outputs"]
        self.assertEqual((output["name"], output["data"]), ("OUTPUT1", [-3, -1, 1, 3.5]))

    def test_strings(self):
        texts = [["a", "", "zwölf"], ["x" * 70_000, "b\0c", "d"]]
        result = self.infer("strings", tensor("TEXT", [[t.encode() for t in row] for row in texts], np.object_))
        self.assertEqual(result.as_numpy("BYTES").tolist(), [[len(t.encode()) for t in row] for row in texts])
        expected = [[t.encode().upper() for t in row] for row in texts]
        self.assertEqual(result.as_numpy("UPPER").tolist(), expected)

    def test_empty_tensor(self):
        result = self.infer("strings", tensor("TEXT", np.zeros((2, 0)), np.object_))
        self.assertEqual(result.as_numpy("BYTES").shape, (2, 0))

    def test_large_tensor(self):
        """More than the shared memory with which the stub begins."""
        text = b"long" * 1_000_000
        result = self.infer("strings", tensor("TEXT", [[text] * 3], np.object_))
        self.assertEqual(result.as_numpy("UPPER").tolist(), [[text.upper()] * 3])

    def test_parameters(self):
        result = self.infer("parameters", tensor("INPUT0", [1], np.int32), request_id="p-1", timeout=60_000_000,
                            sequence_id=9, sequence_start=True, parameters={"word": "text", "number": -5, "truth": True})
        seen = json.loads(result.as_numpy("SEEN")[0])
        # This server's names of instances end with the kind of device.
        seen["instance"] = seen["instance"].removesuffix("_cpu")
        expected = {
            "colour": 'blue "sea"', "name": "parameters", "version": "1", "instance": "parameters_0_0", "kind": "CPU",
            "device": "0", "id": "p-1", "correlation": 9, "flags": 1, "timeout": 60_000_000, "outputs": ["SEEN"],
            "parameters": {"word": "text", "number": -5, "truth": True},
        }
        seen["parameters"] = {k: v for k, v in seen["parameters"].items() if k in expected["parameters"]}
        self.assertEqual(seen, expected)

    def test_metrics(self):
        def put(value):
            result = self.infer("metrics", tensor("INPUT0", [value], np.float32))
            return result.as_numpy("VALUES").tolist()
        labels = '{model="metrics",text="a \\"quoted\\" one"}'
        before = put(0)[0]
        self.assertEqual(put(2.5), [before + 2.5, 2.5])
        self.assertEqual(put(1), [before + 3.5, 1])
        # The page shows them as soon as the response is there.
        for value in range(20):
            sum, last = put(value)
            self.assertEqual(sample(f"python_sum_total{labels}"), sum)
            self.assertEqual(sample(f"python_last{labels}"), last)


class Together(Http):
    def test_one_request_of_a_batch_is_refused(self):
        """Two requests in one call: one has a response, the other an error."""
        good = self.client.async_infer("batch", [tensor("INPUT0", [[7]], np.int32)])
        bad = self.client.async_infer("batch", [tensor("INPUT0", [[-7]], np.int32)])
        self.assertEqual(good.get_result().as_numpy("TOGETHER").tolist(), [[2]])
        with self.refusal(InferenceServerException, "-7 is negative", whole=False):
            bad.get_result()

    def test_instances_execute_in_parallel(self):
        with tempfile.TemporaryDirectory() as folder:
            given = [tensor("FOLDER", [folder], np.object_)]
            calls = [self.client.async_infer("pair", given) for _ in range(2)]
            names = {call.get_result().as_numpy("INSTANCE")[0].removesuffix(b"_cpu") for call in calls}
        self.assertEqual(names, {b"pair_0_0", b"pair_0_1"})


class Errors(Http):
    def test_errors_of_execute(self):
        process = self.process()
        for value, text in ((1, "no ink in execute"), (2, "do not match the number"), (3, "'InferenceResponse'")):
            with self.subTest(text), self.refusal(InferenceServerException, text, whole=False):
                self.breaks(value)
        self.assertEqual(self.process(), process)

    @checks.needs("restarts")
    def test_ended_process_is_started_again(self):
        """The request whose process ends fails; those after it are served by another process."""
        for value in (5, 6):
            process = self.process()
            with self.refusal(InferenceServerException, "breaks", whole=False):
                self.breaks(value)
            self.assertEqual(self.add(), [2, 2, 2, 2])
            self.becomes(self.answers, True)
            self.assertNotEqual(self.process(), process)

    @checks.needs("restarts")
    def test_killed_process(self):
        """Killed between requests."""
        process = self.process()
        os.kill(process, signal.SIGKILL)
        self.becomes(self.answers, True)
        self.assertNotEqual(self.process(), process)
        self.assertEqual(self.add(), [2, 2, 2, 2])

    def add(self):
        ones = np.ones(4)
        inputs = (tensor(name, ones, np.float32) for name in ("INPUT0", "INPUT1"))
        return self.infer("add_sub", *inputs).as_numpy("OUTPUT0").tolist()

    def answers(self):
        try:
            self.process()
        except InferenceServerException:
            return False
        return True


class Streams(checks.Case):
    def setUp(self):
        self.client = tritonclient.grpc.InferenceServerClient(checks.GRPC)
        self.addCleanup(self.client.close)
        self.mailbox = checks.Mailbox()
        self.client.start_stream(lambda result, error: self.mailbox.put((result, error)))
        self.addCleanup(self.client.stop_stream)

    def send(self, model, values, name):
        given = [tensor("IN", values, np.int32, tritonclient.grpc)]
        self.client.async_stream_infer(model, given, request_id=name, enable_empty_final_response=True)

    def take(self, count):
        """What each response says, and whether it is the last."""
        taken = []
        for result, error in self.mailbox.take(count):
            if error is not None:
                taken.append((error.message(), None))
                continue
            response = result.get_response()
            last = response.parameters["triton_final_response"].bool_param
            out = result.as_numpy("OUT") if response.outputs else None
            taken.append((None if out is None else int(out[0]), last))
        return taken

    def test_repeat(self):
        self.send("repeat", [4, 2, 0, 1], "r")
        self.assertEqual(self.take(5), [(4, False), (2, False), (0, False), (1, False), (None, True)])
        self.send("repeat", np.zeros(0), "none")
        self.assertEqual(self.take(1), [(None, True)])

    @checks.needs("errors-in-streams")
    def test_error_within_a_stream(self):
        """Responses after an error still arrive."""
        self.send("repeat", [4, -2, 1], "e")
        first, error, after, last = self.take(4)
        self.assertEqual((first, after, last), ((4, False), (1, False), (None, True)))
        self.assertIn("element 1 is negative", error[0])

    def test_square(self):
        for count in (3, 1):
            self.send("square", [count], "s")
            self.assertEqual(self.take(count), [(count, n == count) for n in range(1, count + 1)])
        self.send("square", [0], "s")
        self.assertEqual(self.take(1), [(None, True)])

    def test_many_requests_at_once(self):
        for n in range(16):
            self.send("repeat", [n] * 20, str(n))
        taken = self.take(16 * 21)
        self.assertEqual(taken.count((None, True)), 16)
        for n in range(16):
            self.assertEqual(taken.count((n, False)), 20)


class Cancellation(checks.Case):
    def test_model_sees_it(self):
        state = 'python_cancelled{model="cancelled"}'
        seen = checks.Mailbox()
        with tritonclient.grpc.InferenceServerClient(checks.GRPC) as client:
            given = [tensor("INPUT0", [1], np.int32, tritonclient.grpc)]
            call = client.async_infer("cancelled", given, lambda result, error: seen.put(error))
            self.becomes(lambda: sample(state), 1)
            call.cancel()
            [error] = seen.take(1)
        self.assertIn("CANCELLED", str(error).upper())
        self.becomes(lambda: sample(state), 2)


if __name__ == "__main__":
    checks.run()

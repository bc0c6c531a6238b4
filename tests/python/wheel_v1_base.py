"""What the v1 package of our wheel has beside that of 2020: calls of the base release, arrays of other forms, clear errors."""

import gc
import multiprocessing
import subprocess
import sys
import threading
import weakref

import numpy as np

import checks
import tensorrtserver.shared_memory as shm
from tensorrtserver.api import InferContext, InferenceServerException, ModelControlContext, ProtocolType
from tensorrtserver.api import ServerHealthContext, ServerStatusContext, SharedMemoryControlContext
from trtserver_client._library import library

RAW = InferContext.ResultFormat.RAW
CLASS = InferContext.ResultFormat.CLASS
ONES = np.ones(16, np.int32)


class Wire(checks.Case):
    """`PROTOCOL` and `STREAMING` are a subclass's."""

    PROTOCOL = None
    STREAMING = False

    def setUp(self):
        if self.PROTOCOL is None:
            self.skipTest("for subclasses")
        self.url = checks.HTTP if self.PROTOCOL == ProtocolType.HTTP else checks.GRPC

    def made(self, model="addsub_int32", **more):
        return InferContext(self.url, self.PROTOCOL, model, streaming=self.STREAMING, **more)

    def context(self, model="addsub_int32", **more):
        context = self.made(model, **more)
        self.addCleanup(context.close)
        return context

    def test_polling(self):
        context = self.context()
        with self.refusal(InferenceServerException, "No asynchronous requests have been sent"):
            context.get_ready_async_request(True)
        ids = [context.async_run({"INPUT0": [ONES * i], "INPUT1": [ONES]}, {"OUTPUT0": RAW}) for i in range(5)]
        self.assertEqual(ids, [1, 2, 3, 4, 5])
        got = {}
        while len(got) < 5:
            id = context.get_ready_async_request(True)
            got[id] = int(context.get_async_run_results(id, True)["OUTPUT0"][0][0])
        self.assertEqual(got, {id: id for id in ids})
        with self.refusal(InferenceServerException, "No asynchronous requests have been sent"):
            context.get_ready_async_request(False)
        with self.assertRaises(InferenceServerException):
            context.get_async_run_results(1, False)

    def test_polling_without_waiting(self):
        context = self.context("slow")
        id = context.async_run(inputs={"INPUT0": [np.ones(2, np.float32)]}, outputs={"OUTPUT0": RAW})
        # The model takes 0.3 s; whether a poll comes before the end is not checked.
        self.assertIn(context.get_ready_async_request(False), (None, id))
        while (got := context.get_async_run_results(id, False)) is None:
            threading.Event().wait(0.01)
        self.assertEqual(got["OUTPUT0"][0].tolist(), [1, 1])

    def test_failure_by_polling(self):
        context = self.context("fails")
        id = context.async_run({"INPUT0": [np.ones(2, np.float32)]}, {"OUTPUT0": RAW})
        self.assertEqual(context.get_ready_async_request(True), id)
        with self.refusal(InferenceServerException, "the probe was told to fail"):
            context.get_async_run_results(id, True)

    def test_callback_under_its_older_name(self):
        mailbox, context = checks.Mailbox(), self.context()
        context.async_run_with_cb(lambda ctx, id: mailbox.put((ctx is context, id)), {"INPUT0": [ONES], "INPUT1": [ONES]},
                                  {"OUTPUT0": (CLASS, 1)})
        [(same, id)] = mailbox.take(1)
        self.assertTrue(same)
        self.assertEqual(context.get_async_run_results(id)["OUTPUT0"], [[(0, 2.0, "")]])

    def test_results_within_the_callback(self):
        mailbox, context = checks.Mailbox(), self.context()
        context.async_run(lambda ctx, id: mailbox.put(ctx.get_async_run_results(id)["OUTPUT0"][0]),
                          {"INPUT0": [ONES], "INPUT1": [ONES]}, {"OUTPUT0": RAW})
        np.testing.assert_array_equal(mailbox.take(1)[0], 2 * ONES)

    def test_calls_within_callbacks(self):
        """Callbacks run one at a time, and may make every call; from the third request on they are prepared."""
        context, done, seen, running = self.context(), threading.Event(), [], threading.Lock()
        refused = []

        def arrived(ctx, id):
            alone = running.acquire(blocking=False)
            number = len(seen)
            values = ctx.get_async_run_results(id)
            seen.append((alone, int(values["OUTPUT0"][0][3] - values["OUTPUT1"][0][3]) // 2))
            if number % 10 == 0:
                got = ctx.run({"INPUT0": [ONES * number], "INPUT1": [ONES]}, {"OUTPUT1": RAW})
                seen[-1] = (alone and got["OUTPUT1"][0].tolist() == [number - 1] * 16, seen[-1][1])
            try:
                if number < 192:
                    send(number + 8)
                elif number == 199:
                    ctx.close()
                    send(0)
            except InferenceServerException as error:
                refused.append(error.message())
                done.set()
            running.release()

        def send(number):
            context.async_run(arrived, {"INPUT0": [ONES], "INPUT1": [np.full(16, number, np.int32)]},
                              {"OUTPUT0": RAW, "OUTPUT1": RAW})

        for number in range(8):
            send(number)
        self.assertTrue(done.wait(60))
        self.assertEqual(sorted(seen), [(True, number) for number in range(200)])
        self.assertEqual(refused, ["InferContext is closed"])

    def test_results_of_repeated_requests_by_polling(self):
        context = self.context()
        for count in range(1, 10):
            values = np.arange(16, dtype=np.int32) * count
            ids = [context.async_run({"INPUT0": [values, values + 1], "INPUT1": [ONES, ONES * i]},
                                     {"OUTPUT1": RAW, "OUTPUT0": RAW}, 2) for i in range(count)]
            for i in reversed(range(count)):
                got = context.get_async_run_results(ids[i], True)
                self.assertEqual(list(got), ["OUTPUT1", "OUTPUT0"])
                np.testing.assert_array_equal(got["OUTPUT0"], [values + 1, values + 1 + i])
                np.testing.assert_array_equal(got["OUTPUT1"], [values - 1, values + 1 - i])
                self.assertTrue(got["OUTPUT0"][1].flags.writeable)
        self.assertGreater(context.get_last_request_id(), 0)
        self.assertEqual(context.get_last_request_model_name(), "addsub_int32")
        self.assertEqual(context.get_last_request_model_version(), 1)

    def test_repeated_asynchronous_requests_of_any_size(self):
        """Small responses are copied, many at a time; large ones are read in place."""
        context = self.context("identity_fp32")
        for length in (3, 3, 3, 3, 4000, 4000, 4000, 4000, 4000, 4000, 4000, 20_000, 20_000, 20_000, 0, 0, 0):
            values = np.arange(length, dtype=np.float32)
            ids = [context.async_run({"INPUT0": [values + i]}, {"OUTPUT0": RAW}) for i in range(6)]
            for i, id in enumerate(ids):
                np.testing.assert_array_equal(context.get_async_run_results(id)["OUTPUT0"][0], values + i)

    def test_exceptions_of_callbacks(self):
        mailbox, context = checks.Mailbox(), self.context()

        def arrived(ctx, id):
            mailbox.put(id)
            raise KeyError("of the callback")

        reported = []
        before, sys.unraisablehook = sys.unraisablehook, lambda given: reported.append(given.exc_value.args)
        try:
            for _ in range(4):
                context.async_run(arrived, {"INPUT0": [ONES], "INPUT1": [ONES]}, {"OUTPUT0": RAW})
            mailbox.take(4)
            context.close()
        finally:
            sys.unraisablehook = before
        self.assertEqual(reported, [("of the callback",)] * 4)

    def test_close_waits_for_callbacks(self):
        context, seen = self.context("slow"), []

        def arrived(ctx, id):
            try:
                ctx.get_async_run_results(id)
            except InferenceServerException as error:
                seen.append(error.message())

        for _ in range(6):
            context.async_run(arrived, {"INPUT0": [np.ones(2, np.float32)]}, {"OUTPUT0": RAW})
        context.close()
        self.assertEqual(len(seen), 6)
        self.assertIn("cancelled", seen[0])

    def test_thread_that_waits_while_the_context_is_closed(self):
        context, texts = self.context("slow"), []
        id = context.async_run({"INPUT0": [np.ones(2, np.float32)]}, {"OUTPUT0": RAW})

        def wait():
            try:
                context.get_async_run_results(id, True)
            except InferenceServerException as error:
                texts.append(error.message())

        thread = threading.Thread(target=wait)
        thread.start()
        while not context._delivery.waiting:
            threading.Event().wait(0.001)
        context.close()
        thread.join()
        self.assertIn("cancelled", texts[0])

    def test_contexts_without_references_end(self):
        context = self.made()
        for _ in range(3):
            id = context.async_run({"INPUT0": [ONES], "INPUT1": [ONES]}, {"OUTPUT0": RAW})
            context.get_async_run_results(id, True)
        ended, gone = context._delivery._ended, weakref.ref(context)
        del context
        gc.collect()
        self.assertIsNone(gone())
        self.assertTrue(ended.acquire(timeout=60))
        mailbox = checks.Mailbox()
        # The request keeps the context.
        self.made().async_run(lambda ctx, id: mailbox.put(ctx.get_async_run_results(id)["OUTPUT0"][0]),
                              {"INPUT0": [ONES], "INPUT1": [ONES]}, {"OUTPUT0": RAW})
        gc.collect()
        np.testing.assert_array_equal(mailbox.take(1)[0], 2 * ONES)

    def test_interpreter_that_ends_with_requests_in_flight(self):
        """Whether callbacks run, wait for the interpreter, or have not begun."""
        program = (
            "import sys\n"
            "import numpy as np\n"
            "from tensorrtserver.api import InferContext\n"
            "url, protocol, streaming, model = sys.argv[1], int(sys.argv[2]), sys.argv[3] == 'True', sys.argv[4]\n"
            "context = InferContext(url, protocol, model, streaming=streaming)\n"
            "for _ in range(50):\n"
            "    context.async_run(lambda ctx, id: None, {'INPUT0': [np.ones(2, np.float32)]}, {'OUTPUT0': (1,)})\n"
        )
        for model in ("slow", "identity_fp32", "identity_fp32", "identity_fp32"):
            command = [sys.executable, "-c", program, self.url, str(int(self.PROTOCOL)), str(self.STREAMING), model]
            done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8", timeout=60)
            self.assertEqual((done.returncode, done.stdout), (0, ""))

    def test_arrays_outlive_context_and_result(self):
        context = self.context()
        got = context.run({"INPUT0": [ONES], "INPUT1": [ONES]}, {"OUTPUT0": RAW})["OUTPUT0"][0]
        context.close()
        self.assertEqual(got.tolist(), [2] * 16)
        with self.refusal(InferenceServerException, "InferContext is closed"):
            context.run({"INPUT0": [ONES], "INPUT1": [ONES]}, {"OUTPUT0": RAW})

    def test_big_endian_and_transposed_arrays(self):
        values = np.arange(32, dtype=np.int32).reshape(16, 2)
        for array in (values[:, 0], values[:, 1].astype(">i4")):
            got = self.context().run({"INPUT0": [array], "INPUT1": [ONES]}, {"OUTPUT0": RAW})
            np.testing.assert_array_equal(got["OUTPUT0"][0], array + 1)

    def test_missing_inputs(self):
        context = self.context()
        text = "expecting 1 invocations of SetRaw for input 'INPUT1', have 0"
        with self.refusal(InferenceServerException, text):
            context.run({"INPUT0": [ONES]}, {"OUTPUT0": RAW})
        text = "expecting 2 invocations of SetRaw for input 'INPUT0', have 1"
        with self.refusal(InferenceServerException, text):
            context.run({"INPUT0": [ONES], "INPUT1": [ONES] * 2}, {"OUTPUT0": RAW}, 2)

    def test_arrays_of_another_type(self):
        """Arrays whose bytes would be read as other values, on the way of single and of repeated requests."""
        for model, wrong, expected in (
            ("addsub_int32", np.float32, "Expected int32, got float32"),
            ("addsub_fp32", np.int32, "Expected float32, got int32"),
            ("addsub_int8", np.bool_, "Expected int8, got bool"),
            ("identity_bool", np.uint8, "Expected bool, got uint8"),
            ("identity_string", np.float32, "Expected strings, got float32"),
            ("addsub_int32", object, "Expected int32, got object"),
        ):
            context = self.context(model)
            names = ("INPUT0", "INPUT1") if model.startswith("addsub") else ("INPUT0",)
            text = f"unexpected data type for input 'INPUT0' for model '{model}'. {expected}"
            for _ in range(3):
                with self.subTest(text), self.refusal(InferenceServerException, text):
                    context.run({name: [np.ones(16, wrong)] for name in names}, {"OUTPUT0": RAW})
        context = self.context()
        for _ in range(3):
            got = context.run({"INPUT0": [ONES.astype(np.uint32)], "INPUT1": [ONES]}, {"OUTPUT0": RAW})
            self.assertEqual(got["OUTPUT0"][0].tolist(), [2] * 16)
        with self.refusal(InferenceServerException, "invalid size 128 bytes for input 'INPUT0', expects 64 bytes"):
            context.run({"INPUT0": [ONES.astype(np.int64)], "INPUT1": [ONES]}, {"OUTPUT0": RAW})

    def test_entries_of_another_shape(self):
        context = self.context("identity_fp32")
        entries = [np.ones(shape, np.float32) for shape in ((6,), (2, 3))]
        text = ("unexpected shape for batch entry 1 of input 'INPUT0' for model 'identity_fp32'. "
                "Expected [6], as of the first, got [2, 3]")
        for _ in range(3):
            with self.refusal(InferenceServerException, text):
                context.run({"INPUT0": entries}, {"OUTPUT0": RAW}, 2)

    def test_url_of_the_other_protocol(self):
        for make in (lambda url: InferContext(url, ProtocolType.HTTP, "addsub_int32"),
                     lambda url: ServerHealthContext(url, ProtocolType.HTTP)):
            with self.refusal(InferenceServerException, "is one of gRPC, but the protocol is HTTP", whole=False):
                make("grpc://" + checks.GRPC)

    def test_arguments(self):
        context, inputs = self.context(), {"INPUT0": [ONES], "INPUT1": [ONES]}
        for text, call in (
            ("output 'OUTPUT0' asks for 0 classes", lambda: context.run(inputs, {"OUTPUT0": (CLASS, 0)})),
            ("must be integers", lambda: context.run(inputs, {"OUTPUT0": RAW}, "two")),
            ("zero byte", lambda: context.run({"IN\0": [ONES]}, {"OUTPUT0": RAW})),
            ("expected a function", lambda: context.async_run(7, inputs, {"OUTPUT0": RAW})),
            ("zero byte", lambda: self.context("addsub\0")),
        ):
            with self.subTest(text), self.refusal(InferenceServerException, text, whole=False):
                call()


    def test_repeated_requests(self):
        """From the third on, requests like the one before are sent prepared; what differs is noticed."""
        context, refused = self.context(), InferenceServerException
        for number in range(1, 5):
            for names in (("INPUT0", "INPUT1"), ("INPUT1", "INPUT0")):
                for batch in (1, 2):
                    arrays = [[ONES * (number + entry) for entry in range(batch)], [ONES * 2] * batch]
                    if names[0] == "INPUT1":
                        arrays.reverse()
                    for _ in range(3):
                        got = context.run(dict(zip(names, arrays)), {"OUTPUT1": RAW, "OUTPUT0": RAW}, batch)
                        self.assertEqual(list(got), ["OUTPUT1", "OUTPUT0"])
                        for entry in range(batch):
                            expected = number + entry
                            self.assertEqual(got["OUTPUT0"][entry].tolist(), [expected + 2] * 16)
                            self.assertEqual(got["OUTPUT1"][entry].tolist(), [expected - 2] * 16)
                        self.assertEqual(len(got["OUTPUT0"]), batch)
                        self.assertTrue(got["OUTPUT0"][0].flags.writeable)
        last = context.get_last_request_id()
        inputs = {"INPUT0": [ONES], "INPUT1": [ONES]}
        for _ in range(3):
            context.run(inputs, {"OUTPUT0": RAW})
        self.assertGreater(context.get_last_request_id(), last)
        self.assertEqual((context.get_last_request_model_name(), context.get_last_request_model_version()),
                         ("addsub_int32", 1))
        self.assertEqual(context.get_stat()["completed_request_count"], 51)
        for _ in range(3):
            with self.refusal(refused, "unexpected shape for input 'INPUT0' for model 'addsub_int32'. Expected [16], got [15]"):
                context.run({"INPUT0": [ONES[1:]], "INPUT1": [ONES]}, {"OUTPUT0": RAW})
            with self.refusal(refused, "unknown output 'NONE' for 'addsub_int32'"):
                context.run(inputs, {"NONE": RAW})
            self.assertEqual(context.run(inputs, {"OUTPUT0": (CLASS, 1)})["OUTPUT0"], [[(0, 2.0, "")]])
        for name, text in (("fails", "the probe was told to fail"), ("identity_string", None)):
            value = np.array(["a", "bc"], object) if text is None else np.ones(2, np.float32)
            context = self.context(name)
            for _ in range(4):
                if text is None:
                    self.assertEqual(context.run({"INPUT0": [value]}, {"OUTPUT0": RAW})["OUTPUT0"][0].tolist(), [b"a", b"bc"])
                else:
                    with self.refusal(refused, text):
                        context.run({"INPUT0": [value]}, {"OUTPUT0": RAW})

    def test_repeated_requests_of_any_shape(self):
        context = self.context("identity_fp32")
        for length in (3, 3, 3, 4, 4, 4, 20_000, 20_000, 20_000, 2500, 2500, 2500, 2500):
            values = np.arange(length, dtype=np.float32)
            got = context.run({"INPUT0": [values[::-1]]}, {"OUTPUT0": RAW})["OUTPUT0"][0]
            np.testing.assert_array_equal(got, values[::-1])

    def test_threads_with_a_context_each(self):
        failures = []

        def work(number):
            try:
                context = self.context()
                for step in range(50):
                    array = np.full(16, number * 1000 + step, np.int32)
                    got = context.run({"INPUT0": [array], "INPUT1": [ONES]}, {"OUTPUT0": RAW})
                    np.testing.assert_array_equal(got["OUTPUT0"][0], array + 1)
            except BaseException as error:
                failures.append(error)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(failures, [])

    def test_child_process_is_refused_after_fork(self):
        context, inputs = self.context(), {"INPUT0": [ONES], "INPUT1": [ONES]}
        for _ in range(3):
            context.run(inputs, {"OUTPUT0": RAW})
        texts = multiprocessing.get_context("fork").SimpleQueue()
        for call in (run_in_child, send_in_child):
            context.async_run(lambda ctx, id: ctx.get_async_run_results(id), inputs, {"OUTPUT0": RAW})
            child = multiprocessing.get_context("fork").Process(target=call, args=(context, inputs, texts))
            child.start()
            self.assertIn("the client library was used before fork()", texts.get())
            child.join()
            self.assertEqual(child.exitcode, 0)
        # The child has closed its copies of the connections only.
        self.assertEqual(context.run(inputs, {"OUTPUT0": RAW})["OUTPUT0"][0].tolist(), [2] * 16)


def run_in_child(context, inputs, texts):
    try:
        context.run(inputs, {"OUTPUT0": RAW})
        texts.put("no error")
    except InferenceServerException as error:
        texts.put(str(error))


def send_in_child(context, inputs, texts):
    try:
        context.async_run(inputs, {"OUTPUT0": RAW})
        texts.put("no error")
    except InferenceServerException as error:
        texts.put(str(error))
    context.close()


class Http(Wire):
    PROTOCOL = ProtocolType.HTTP


class Grpc(Wire):
    PROTOCOL = ProtocolType.GRPC


class Stream(Wire):
    PROTOCOL = ProtocolType.GRPC
    STREAMING = True


class Regions(checks.Case):
    def test_handles_of_destroyed_regions_are_refused(self):
        handle = shm.create_shared_memory_region("gone", "/wheel_gone", 64)
        shm.destroy_shared_memory_region(handle)
        for call in (lambda: shm.destroy_shared_memory_region(handle),
                     lambda: shm.set_shared_memory_region(handle, [ONES])):
            with self.assertRaisesRegex(shm.SharedMemoryException, "destroyed"):
                call()
        control = SharedMemoryControlContext(checks.HTTP, ProtocolType.HTTP)
        with self.refusal(InferenceServerException, "destroyed", whole=False):
            control.register(handle)

    def test_bad_regions(self):
        for key, size, text in (("/no/such/folder", 64, "unable to get shared memory descriptor"),
                                ("/wheel_size", -1, "unable to initialize the size"),
                                ("/wheel_size", 0, "unable to read/mmap the shared memory region")):
            with self.assertRaisesRegex(shm.SharedMemoryException, text):
                shm.create_shared_memory_region("bad", key, size)
        shm.destroy_shared_memory_region(shm.create_shared_memory_region("bad", "/wheel_size", 8))
        handle = shm.create_shared_memory_region("small", "/wheel_small", 8)
        self.addCleanup(shm.destroy_shared_memory_region, handle)
        for text, values in (("has 8 bytes, the input values have 64", [ONES]),
                             ("Python objects", [np.array([None], object)])):
            with self.assertRaisesRegex(shm.SharedMemoryException, text):
                shm.set_shared_memory_region(handle, values)


class Headers(checks.Case):
    def test_header_without_name(self):
        for kind in (ServerHealthContext, ServerStatusContext, ModelControlContext):
            with self.refusal(InferenceServerException, "must have the form 'Name:Value'", whole=False):
                kind(checks.HTTP, ProtocolType.HTTP, http_headers=["nonsense"])


def tearDownModule():
    """Every client, context, stream and result was released."""
    gc.collect()
    assert library.live_handles() == 0, library.live_handles()


if __name__ == "__main__":
    checks.run()

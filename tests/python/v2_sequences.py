"""Sequence batching with the v2 client.

The accumulators of the test plugin sum up the values of one batch position (`acc_*`) or of one correlation id
(`corrid_*`, `old*`); the ONNX ones return their control tensors or have implicit state only.

`Free`: without the delay hook. `Held`: it waits for twelve requests of each model. `Backlog`: for eight in the slots and four
in the backlog.
"""

import itertools
import random
import time

import numpy as np
import tritonclient.grpc as grpc
import tritonclient.http as http
from tritonclient.utils import InferenceServerException

import checks
from v2_stream import Stream, batch, counts, failures, number, tensor, until, value, waiting

LAYOUTS = ("1x4", "2x2", "4x1")
SLOTS = [f"acc_{layout}" for layout in LAYOUTS]
ids = itertools.count(1000)


def no_start(id, model):
    return (f"inference request for sequence {id} to model '{model}' must specify the START flag on the first "
            "request of the sequence")


class Case(checks.Case):
    def sums(self, model, sequences, seed=7, kind=np.int32, input="INPUT0", output="OUTPUT0", begin=0):
        """Sends the steps of these sequences (a dictionary of lists) on one stream, interleaved, each sequence in order;
        every response must be the sum of its sequence so far."""
        shuffle = random.Random(seed)
        order = [id for id, values in sequences.items() for _ in values]
        shuffle.shuffle(order)
        done, expected = dict.fromkeys(sequences, 0), []
        with Stream() as stream:
            for id in order:
                values, at = sequences[id], done[id]
                done[id] += 1
                stream.send(model, {input: number(values[at], kind)}, sequence_id=id, sequence_start=at == 0,
                           sequence_end=at == len(values) - 1)
                expected.append((id, at, begin + sum(values[:at + 1])))
            results = stream.results()
            got = [(id, at, value(result, output)) for result, (id, at, _) in zip(results, expected, strict=True)]
            self.assertEqual(got, expected)
            return results

    def some(self, count, steps=(1, 6)):
        """This many sequences with new ids."""
        random_values = random.Random(count)
        return {next(ids): [random_values.randint(-99, 99) for _ in range(random_values.randint(*steps))]
                for _ in range(count)}


class Clients:
    """One call per request; a subclass has the client."""

    def setUp(self):
        url = checks.HTTP if self.MODULE is http else checks.GRPC
        self.client = self.MODULE.InferenceServerClient(url)
        self.addCleanup(self.client.close)

    def step(self, model, id, values, start=False, end=False, input="INPUT0", output="OUTPUT0", **more):
        values = values if isinstance(values, np.ndarray) else number(values)
        result = self.client.infer(model, [tensor(self.MODULE, input, values)], sequence_id=id,
                                   sequence_start=start, sequence_end=end, **more)
        return value(result, output)

    def refused(self, status, text, *arguments, **more):
        with self.assertRaises(InferenceServerException) as caught:
            self.step(*arguments, **more)
        self.assertTrue(caught.exception.message().endswith(text), caught.exception.message())
        self.assertEqual(caught.exception.status(), self.STATUS[status])

    def test_sequence(self):
        for model in (*SLOTS, "acc_fp32", "acc_bool", "acc_nobatch", "old", "corrid_int64"):
            with self.subTest(model):
                id, one = next(ids), number(1)
                one = one[0] if model == "acc_nobatch" else one
                got = [self.step(model, id, i * one, i == 1, i == 9) for i in range(1, 10)]
                self.assertEqual(got, list(itertools.accumulate(range(1, 10))))

    def test_first_request_needs_start(self):
        for model in ("acc_1x4", "old"):
            id = next(ids)
            self.refused(400, no_start(id, model), model, id, 1)
            self.refused(400, no_start(id, model), model, id, 1, end=True)
            # Also after the end.
            self.assertEqual(self.step(model, id, 3, True, True), 3)
            self.refused(400, no_start(id, model), model, id, 1)
        self.refused(400, no_start("a text", "acc_1x4"), "acc_1x4", "a text", 1)

    def test_no_correlation_id(self):
        for model in ("acc_1x4", "old"):
            text = f"inference request to model '{model}' must specify a non-zero or non-empty correlation ID"
            for id in (0, ""):
                with self.subTest(model, id=id):
                    self.refused(400, text, model, id, 1)
                    self.refused(400, text, model, id, 1, True, True)

    def test_batch_size_above_one_is_refused(self):
        for model in ("acc_1x4", "acc_2x2", "old"):
            text = (f"inference request to model '{model}' must specify batch-size 1 due to requirements of "
                    "sequence batcher")
            self.refused(400, text, model, next(ids), np.ones((2, 1), np.int32), True)

    def test_refused_request_does_not_count(self):
        model, id = "acc_1x4", next(ids)
        self.assertEqual(self.step(model, id, 1, True), 1)
        with self.assertRaises(InferenceServerException):
            self.step(model, id, np.ones((2, 1), np.int32))
        self.assertEqual(self.step(model, id, 2), 3)
        self.assertEqual(self.step(model, id, 3, end=True), 6)

    def test_start_restarts_the_sequence(self):
        for model in ("acc_1x4", "acc_2x2", "old"):
            with self.subTest(model):
                id = next(ids)
                got = [self.step(model, id, v, start) for v, start in ((1, True), (2, False), (40, True), (5, False))]
                self.assertEqual(got, [1, 3, 40, 45])
                self.assertEqual(self.step(model, id, 6, end=True), 51)

    def test_id_can_be_reused(self):
        id = next(ids)
        for _ in range(3):
            self.assertEqual(self.step("acc_1x4", id, 5, True, True), 5)

    def test_string_and_number_are_different_ids(self):
        id = next(ids)
        self.assertEqual(self.step("acc_1x4", id, 1, True), 1)
        self.assertEqual(self.step("acc_1x4", str(id), 10, True), 10)
        self.assertEqual(self.step("acc_1x4", id, 2, end=True), 3)
        self.assertEqual(self.step("acc_1x4", str(id), 20, end=True), 30)

    def test_correlation_ids_of_every_type(self):
        for kind, id in (("int64", 2**40 + 1), ("uint64", 2**63 - 1), ("uint32", 2**31 + 3), ("int32", 77),
                         ("string", "häufig"), ("string", "x" * 128)):
            with self.subTest(kind, id=id):
                model = f"corrid_{kind}"
                got = [self.step(model, id, 1, True), self.step(model, id, 2), self.step(model, id, 3, end=True)]
                self.assertEqual(got, [1, 3, 6])

    def test_correlation_ids_of_wrong_type(self):
        for model, id in (("corrid_string", 7), ("corrid_int64", "seven")):
            with self.subTest(model), self.assertRaises(InferenceServerException) as caught:
                self.step(model, id, 1, True, True)
            self.assertIn("sequence batching control 'CORRID' data-type is ", caught.exception.message())
            self.assertIn(f", but model '{model}' expects ", caught.exception.message())
            self.assertEqual(caught.exception.status(), self.STATUS[400])

    def test_id_above_length_limit(self):
        with self.assertRaises(InferenceServerException) as caught:
            self.step("corrid_string", "x" * 129, 1, True, True)
        self.assertIn("string correlation ID cannot be longer than 128 characters", caught.exception.message())

    def test_control_tensors_of_every_type(self):
        for model, kind in (("controls_int32", np.int32), ("controls_fp32", np.float32)):
            with self.subTest(model):
                id = next(ids)
                names = {"input": "INPUT", "output": "OUTPUT"}
                end = 10 if model == "controls_fp32" else 0
                self.assertEqual(self.step(model, id, number(5, kind), True, **names), 6)
                self.assertEqual(self.step(model, id, number(6, kind), **names), 6)
                self.assertEqual(self.step(model, id, number(7, kind), False, True, **names), 7 + end)
                self.assertEqual(self.step(model, id, number(8, kind), True, True, **names), 9 + end)
        for id in checks.present({"small": 3, "int64": 2**40 + 9}).values():
            for start, end in ((True, False), (False, False), (True, False), (False, True), (True, True)):
                result = self.client.infer("controls_bool", [tensor(self.MODULE, "INPUT", number(5))],
                                           sequence_id=id, sequence_start=start, sequence_end=end)
                self.assertEqual(value(result, "OUTPUT"), 5 + start + 10 * end)
                self.assertEqual(value(result, "ID"), id)

    def test_clients_cannot_set_controls_and_states(self):
        for model in ("controls_int32", "state_direct"):
            metadata = self.client.get_model_metadata(model)
            inputs = metadata["inputs"] if isinstance(metadata, dict) else metadata.inputs
            self.assertEqual([i["name"] if isinstance(i, dict) else i.name for i in inputs], ["INPUT"])
        inputs = [tensor(self.MODULE, name, number(1)) for name in ("INPUT", "START")]
        with self.assertRaises(InferenceServerException):
            self.client.infer("controls_int32", inputs, sequence_id=next(ids), sequence_start=True, sequence_end=True)

    def test_states(self):
        names = {"input": "INPUT", "output": "OUTPUT"}
        for model, begin in (("state_direct", 0), ("state_oldest", 0), ("state_initial", 1000)):
            with self.subTest(model):
                id = next(ids)
                for _ in range(2):
                    got = [self.step(model, id, i, i == 1, i == 4, **names) for i in range(1, 5)]
                    self.assertEqual(got, [begin + 1, begin + 3, begin + 6, begin + 10])
                # START without an END before it.
                self.step(model, id, 50, True, **names)
                self.assertEqual(self.step(model, id, 7, True, **names), begin + 7)
                self.assertEqual(self.step(model, id, 1, False, True, **names), begin + 8)

    def test_state_that_is_also_an_output(self):
        requested = [self.MODULE.InferRequestedOutput("STATE_OUT")]
        result = self.client.infer("state_initial", [tensor(self.MODULE, "INPUT", number(5))], outputs=requested,
                                   sequence_id=next(ids), sequence_start=True, sequence_end=True)
        self.assertEqual(value(result, "STATE_OUT"), 1005)
        self.assertIsNone(result.as_numpy("OUTPUT"))


class FreeHttp(Clients, Case):
    MODULE = http
    STATUS = {400: "400", 503: "503"}


class FreeGrpc(Clients, Case):
    MODULE = grpc
    STATUS = {400: "StatusCode.INVALID_ARGUMENT", 503: "StatusCode.UNAVAILABLE"}


class FreeStream(Case):
    def test_as_many_sequences_as_slots(self):
        for model in SLOTS:
            with self.subTest(model):
                self.sums(model, self.some(4, (5, 9)))

    def test_null_requests_in_free_slots(self):
        """Three of four end early; the last one's batches have null requests in the lower slots."""
        for model in SLOTS:
            with self.subTest(model), Stream() as stream:
                before = counts(model)
                names = [next(ids) for _ in range(4)]
                for id in names:
                    stream.step(model, id, 1, True)
                for id in names[:3]:
                    stream.step(model, id, 1, False, True)
                stream.results()
                for i in range(5):
                    stream.step(model, names[3], 1, False, i == 4)
                    [result] = stream.results(1)
                    self.assertEqual(value(result), 2 + i)
                    if model == "acc_1x4":
                        self.assertEqual(batch(result)[0], 4)
                    # A sequence that starts now gets a lower slot.
                    other = next(ids)
                    stream.sequence(model, other, [10, 20])
                    self.assertEqual([value(r) for r in stream.results(2)], [10, 30])
                after = counts(model)
                # Null requests are not counted as inferences, but are rows of the batch.
                self.assertEqual(after["inferences"] - before["inferences"], 4 + 3 + 5 * 3)
                self.assertEqual(after["fail"], before["fail"])
                if model == "acc_1x4":
                    self.assertGreaterEqual(after["batches"][4] - before["batches"].get(4, 0), 5)

    def test_more_sequences_than_slots(self):
        for model in (*SLOTS, "old", "old_two"):
            with self.subTest(model):
                self.sums(model, self.some(12))

    def test_reused_id_in_backlog(self):
        model = "acc_1x4"
        with Stream() as stream:
            blockers = [next(ids) for _ in range(4)]
            for id in blockers:
                stream.step(model, id, 1, True)
            again = next(ids)
            for begin in (1, 100, 1000):
                stream.sequence(model, again, [begin, begin])
            for id in blockers:
                stream.step(model, id, 1, False, True)
            got = [value(result) for result in stream.results()]
        self.assertEqual(got, [1] * 4 + [1, 2, 100, 200, 1000, 2000] + [2] * 4)

    def test_one_request_sequences(self):
        for model in (*SLOTS, "old"):
            with self.subTest(model):
                self.sums(model, self.some(20, (1, 1)))

    def test_sequence_waits_for_a_slot(self):
        with Stream() as stream:
            first, second, before = next(ids), next(ids), counts("one_slot")["inferences"]
            stream.step("one_slot", first, 1, True)
            stream.results(1)
            stream.sequence("one_slot", second, [10, 20])
            until("both wait", lambda: waiting("one_slot") == 2)
            self.assertEqual(counts("one_slot")["inferences"], before + 1)
            stream.step("one_slot", first, 1, False, True)
            self.assertEqual([value(result) for result in stream.results(3)], [10, 30, 2])

    def test_backlog_timeout(self):
        model = "one_slot_timeout"
        with Stream() as stream, Stream() as other:
            first, second = next(ids), next(ids)
            stream.step(model, first, 1, True)
            stream.results(1)
            other.step(model, second, 1, True, timeout=50_000)
            [error] = other.responses(1)
            self.assertIn("timeout of the corresponding sequence has been expired", error.message())
            other.step(model, second, 1)
            [error] = other.responses(1)
            self.assertIn(no_start(second, model), error.message())
            # The timeout does not apply to a sequence that has a slot.
            stream.step(model, first, 1, False, True, timeout=1)
            self.assertEqual(value(stream.results(1)[0]), 2)

    def test_states_are_separate(self):
        for model, begin in (("state_direct", 0), ("state_oldest", 0), ("state_initial", 1000)):
            with self.subTest(model):
                self.sums(model, self.some(15), input="INPUT", output="OUTPUT", begin=begin)

    def test_oldest_batch_has_no_null_requests(self):
        id = next(ids)
        for result in self.sums("old", {id: [1, 2, 3]}):
            self.assertEqual(batch(result), (1, 1))

    def test_oldest_batches_of_a_preferred_size(self):
        """The delay is never reached: all four requests arrive together each time."""
        names = [next(ids) for _ in range(4)]
        with Stream() as stream:
            for step in range(3):
                for id in names:
                    stream.step("old_four", id, step + 1, step == 0, step == 2)
                for result in stream.results(4):
                    self.assertEqual((value(result), batch(result)), ([1, 3, 6][step], (4, 4)))
        self.assertEqual(counts("old_four")["executions"], 3)

    def test_direct_batches_wait_for_their_share_of_slots(self):
        names = [next(ids) for _ in range(4)]
        with Stream() as stream:
            for step in range(3):
                for id in names:
                    stream.step("all_slots", id, step + 1, step == 0, step == 2)
                for result in stream.results(4):
                    self.assertEqual((value(result), batch(result)[0]), ([1, 3, 6][step], 4))
        self.assertEqual(counts("all_slots")["executions"], 3)

    def test_idle_sequences_end(self):
        for model in ("idle", "idle_oldest"):
            with self.subTest(model), Stream() as stream:
                id, waits = next(ids), next(ids)
                stream.step(model, id, 1, True)
                stream.results(1)
                # There is one slot: this gets its response when the first sequence has lost it.
                stream.step(model, waits, 5, True, True)
                self.assertEqual(value(stream.results(1)[0]), 5)
                stream.step(model, id, 1)
                [error] = stream.responses(1)
                self.assertIn(no_start(id, model), error.message())
                stream.sequence(model, id, [2, 3])
                self.assertEqual([value(result) for result in stream.results(2)], [2, 5])

    def test_requests_reset_the_idle_limit(self):
        with Stream() as stream:
            id = next(ids)
            for i in range(8):
                stream.step("idle_two", id, 1, i == 0, i == 7)
                self.assertEqual(value(stream.results(1)[0]), i + 1)
                time.sleep(0.35)

    def test_cancelled_request_ends_its_sequence(self):
        for model in ("cancel_direct", "cancel_oldest"):
            with self.subTest(model):
                gone, other = next(ids), next(ids)
                stays, leaves = Stream(), Stream()
                stays.step(model, other, 1, True)
                stays.results(1)
                leaves.step(model, gone, 1, True)
                leaves.results(1)
                leaves.step(model, gone, 1, parameters={"delay_ms": 600})
                leaves.step(model, gone, 1)
                leaves.step(model, gone, 1)
                until("some wait", lambda: waiting(model) >= 1)
                leaves.close(cancel=True)
                until("they are gone", lambda: failures(model, "CANCELED") >= 2)
                with Stream() as later:
                    later.step(model, gone, 1)
                    [error] = later.responses(1)
                    self.assertIsInstance(error, InferenceServerException)
                    later.sequence(model, gone, [3, 4])
                    self.assertEqual([value(result) for result in later.results(2)], [3, 7])
                stays.step(model, other, 1, False, True)
                self.assertEqual(value(stays.results(1)[0]), 2)
                stays.close()

    def test_failing_request_fails_alone(self):
        with Stream() as stream:
            one, two = next(ids), next(ids)
            stream.step("acc_1x4", one, 1, True)
            stream.step("acc_1x4", two, 10, True)
            stream.step("acc_1x4", one, 1, parameters={"fail": "this step"})
            stream.step("acc_1x4", two, 20, False, True)
            stream.step("acc_1x4", one, 2, False, True)
            responses = stream.responses()
        self.assertIn("this step", responses[2].message())
        self.assertEqual([value(responses[i]) for i in (0, 1, 3)], [1, 10, 30])
        self.assertNotIsInstance(responses[4], Exception)

    def test_every_order_of_flags(self):
        """Every order of flags gets a response to each request, and the server keeps serving."""
        flags = list(itertools.product((True, False), repeat=2))
        for model in ("acc_1x4", "old"):
            for order in itertools.product(flags, repeat=3):
                with Stream() as stream:
                    id = next(ids)
                    for start, end in order:
                        stream.step(model, id, 1, start, end)
                    # Ends the sequence, so that it does not keep its slot.
                    stream.step(model, id, 7, True, True)
                    *responses, last = stream.responses()
                    self.assertEqual(value(last), 7)
                    live, expected = False, []
                    for start, end in order:
                        expected.append(start or live)
                        live = (start or live) and not end
                    self.assertEqual([not isinstance(response, Exception) for response in responses], expected, order)


class Held(Case):
    """Twelve requests of each model are queued before the first batch."""

    def executions(self, kind, lengths):
        found = {}
        for layout in LAYOUTS:
            model = f"{kind}_{layout}"
            with self.subTest(model), Stream() as stream:
                names = [next(ids) for _ in lengths]
                expected = []
                for id, length in zip(names, lengths):
                    stream.sequence(model, id, [1] * length)
                    expected += range(1, length + 1)
                self.assertEqual([value(result) for result in stream.results()], expected)
                got = counts(model)
                self.assertEqual((got["inferences"], got["success"]), (12, 12))
                found[layout] = got["executions"]
        return found

    def test_full_batches(self):
        self.assertEqual(self.executions("full", [3, 3, 3, 3]), {"1x4": 3, "2x2": 6, "4x1": 12})

    def test_half_end_early(self):
        self.assertEqual(self.executions("half", [4, 4, 2, 2]), {"1x4": 4, "2x2": 8, "4x1": 12})

    def test_every_second_ends_early(self):
        self.assertEqual(self.executions("skip", [2, 4, 2, 4]), {"1x4": 4, "2x2": 6, "4x1": 12})


class Backlog(Case):
    """Eight requests in the slots and four in the backlog are queued before the first batch."""

    def test_backlog_moves_into_slots(self):
        for layout, executions in (("1x4", [4]), ("2x2", [6, 8]), ("4x1", [12])):
            model = f"behind_{layout}"
            with self.subTest(model), Stream() as stream:
                for i in range(6):
                    stream.sequence(model, next(ids), [i, 10])
                expected = [sum for i in range(6) for sum in (i, i + 10)]
                self.assertEqual([value(result) for result in stream.results()], expected)
                got = counts(model)
                self.assertEqual(got["inferences"], 12)
                # One instance may be faster and take both.
                self.assertIn(got["executions"], executions)


if __name__ == "__main__":
    checks.run()

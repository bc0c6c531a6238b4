"""Sequence batching with the v1 client. Models and classes as in v2_sequences.py."""

import itertools
import random
import threading

import numpy as np

import checks
from trtis_client import InferContext, InferenceServerException, ProtocolType, ServerStatusContext

RAW = InferContext.ResultFormat.RAW
NONE, START, END = 0, 1, 2
LAYOUTS = ("1x4", "2x2", "4x1")
SLOTS = [f"acc_{layout}" for layout in LAYOUTS]
ids = itertools.count(1000)


def flags(i, length):
    return (START if i == 0 else NONE) | (END if i == length - 1 else NONE)


class Case(checks.Case):
    PROTOCOL, STREAMING = ProtocolType.GRPC, True

    def context(self, model, id=0):
        url = checks.HTTP if self.PROTOCOL == ProtocolType.HTTP else checks.GRPC
        return InferContext(url, self.PROTOCOL, model, correlation_id=id, streaming=self.STREAMING)

    def version(self, model):
        status = ServerStatusContext(checks.HTTP, ProtocolType.HTTP, model).get_server_status()
        return status.model_status[model].version_status[1]

    def together(self, model, steps):
        """Sends (id, value, flags) one after another on a stream; returns the sums."""
        context, mailbox = self.context(model), checks.Mailbox()
        for id, value, flag in steps:
            context.async_run(lambda ctx, id: mailbox.put(id), {"INPUT0": [np.array([value], np.int32)]},
                              {"OUTPUT0": RAW}, flags=flag, corr_id=id)
        return [int(context.get_async_run_results(id)["OUTPUT0"][0][0]) for id in mailbox.take(len(steps))]


class Calls(Case):
    """One call per request; subclasses have the protocols."""

    def step(self, context, value, flags=NONE, id=0, rows=1, input="INPUT0", output="OUTPUT0", kind=np.int32):
        got = context.run({input: [np.array([value], kind)] * rows}, {output: RAW}, rows, flags, id)
        return got[output][0].item()

    def refused(self, text, *arguments, **more):
        with self.refusal(InferenceServerException, text):
            self.step(*arguments, **more)

    def test_sequence(self):
        for model in (*SLOTS, "acc_fp32", "acc_bool", "acc_nobatch", "old", "corrid_uint64"):
            with self.subTest(model):
                context = self.context(model, next(ids))
                got = [self.step(context, i, flags(i - 1, 9)) for i in range(1, 10)]
                self.assertEqual(got, list(itertools.accumulate(range(1, 10))))

    def test_first_request_needs_start(self):
        for model in ("acc_1x4", "old"):
            id = next(ids)
            context = self.context(model, id)
            text = (f"inference request for sequence {id} to model '{model}' must specify the START flag on the first "
                    "request of the sequence")
            self.refused(text, context, 1)
            self.refused(text, context, 1, END)
            self.assertEqual(self.step(context, 3, START | END), 3)
            self.refused(text, context, 1)

    def test_no_correlation_id(self):
        for model in ("acc_1x4", "old"):
            with self.refusal(InferenceServerException, f"inference request to model '{model}' must specify a non-zero",
                              whole=False):
                self.step(self.context(model), 1, START)

    def test_batch_size_above_one_is_refused(self):
        for model in ("acc_1x4", "old"):
            self.refused(f"inference request to model '{model}' must specify batch-size 1 due to requirements of "
                         "sequence batcher", self.context(model, next(ids)), 1, START, rows=2)

    def test_start_restarts_the_sequence(self):
        for model in (*SLOTS, "old"):
            with self.subTest(model):
                context = self.context(model, next(ids))
                steps = ((1, START), (2, NONE), (40, START), (5, NONE), (6, END))
                self.assertEqual([self.step(context, v, f) for v, f in steps], [1, 3, 40, 45, 51])

    def test_control_tensors_of_every_type(self):
        names = {"input": "INPUT", "output": "OUTPUT"}
        for model, kind, end in (("controls_int32", np.int32, 0), ("controls_fp32", np.float32, 10),
                                 ("controls_bool", np.int32, 10)):
            with self.subTest(model):
                context = self.context(model, next(ids))
                steps = ((5, START), (6, NONE), (7, END), (8, START | END))
                got = [self.step(context, v, f, kind=kind, **names) for v, f in steps]
                self.assertEqual(got, [6, 6, 7 + end, 9 + end])

    def test_states(self):
        names = {"input": "INPUT", "output": "OUTPUT"}
        for model, begin in (("state_direct", 0), ("state_oldest", 0), ("state_initial", 1000)):
            with self.subTest(model):
                context = self.context(model, next(ids))
                got = [self.step(context, i, flags(i - 1, 4), **names) for i in range(1, 5)]
                self.assertEqual(got, [begin + 1, begin + 3, begin + 6, begin + 10])

    def test_concurrent_sequences(self):
        """Each on a context and a thread of its own, more than there are slots."""
        for model in (*SLOTS, "old_two"):
            with self.subTest(model):
                seen = {}

                def one(id):
                    context, values = self.context(model, id), random.Random(id).choices(range(-99, 99), k=5)
                    got = [self.step(context, v, flags(i, 5)) for i, v in enumerate(values)]
                    seen[id] = got == list(itertools.accumulate(values))

                threads = [threading.Thread(target=one, args=(next(ids),)) for _ in range(8)]
                for thread in threads:
                    thread.start()
                for thread in threads:
                    thread.join()
                self.assertEqual(list(seen.values()), [True] * 8)


class FreeHttp(Calls):
    PROTOCOL, STREAMING = ProtocolType.HTTP, False


class FreeUnary(Calls):
    PROTOCOL, STREAMING = ProtocolType.GRPC, False


class FreeStream(Calls):
    def test_more_sequences_than_slots_on_one_stream(self):
        for model in (*SLOTS, "old"):
            with self.subTest(model):
                sequences = {next(ids): random.Random(i).choices(range(99), k=1 + i % 6) for i in range(12)}
                order = [id for id, values in sequences.items() for _ in values]
                random.Random(1).shuffle(order)
                at, steps, expected = dict.fromkeys(sequences, 0), [], []
                for id in order:
                    values, i = sequences[id], at[id]
                    at[id] += 1
                    steps.append((id, values[i], flags(i, len(values))))
                    expected.append(sum(values[:i + 1]))
                self.assertEqual(self.together(model, steps), expected)

    def test_reused_id(self):
        id = next(ids)
        steps = [(id, begin, flag) for begin in (1, 100, 1000) for flag in (START, NONE, END)]
        self.assertEqual(self.together("acc_1x4", steps), [1, 2, 3, 100, 200, 300, 1000, 2000, 3000])


class Held(Case):
    """Twelve requests of each model are queued before the first batch."""

    def executions(self, kind, lengths):
        found = {}
        for layout in LAYOUTS:
            model = f"{kind}_{layout}"
            steps = []
            for length in lengths:
                id = next(ids)
                steps += [(id, 1, flags(i, length)) for i in range(length)]
            expected = [i for length in lengths for i in range(1, length + 1)]
            self.assertEqual(self.together(model, steps), expected, model)
            version = self.version(model)
            self.assertEqual({size: s.success.count for size, s in version.infer_stats.items()}, {1: 12})
            self.assertEqual(version.model_inference_count, 12)
            found[layout] = version.model_execution_count
        return found

    def test_full_batches(self):
        self.assertEqual(self.executions("v1_full", [3, 3, 3, 3]), {"1x4": 3, "2x2": 6, "4x1": 12})

    def test_half_end_early(self):
        self.assertEqual(self.executions("v1_half", [4, 4, 2, 2]), {"1x4": 4, "2x2": 8, "4x1": 12})

    def test_every_second_ends_early(self):
        self.assertEqual(self.executions("v1_skip", [2, 4, 2, 4]), {"1x4": 4, "2x2": 6, "4x1": 12})


class Backlog(Case):
    def test_backlog_moves_into_slots(self):
        for layout, executions in (("1x4", [4]), ("2x2", [6, 8]), ("4x1", [12])):
            model = f"v1_behind_{layout}"
            with self.subTest(model):
                steps = []
                for i in range(6):
                    id = next(ids)
                    steps += [(id, i, START), (id, 10, END)]
                self.assertEqual(self.together(model, steps), [s for i in range(6) for s in (i, i + 10)])
                version = self.version(model)
                self.assertEqual(version.model_inference_count, 12)
                self.assertIn(version.model_execution_count, executions)


# Not run itself: it has no protocol.
del Calls

if __name__ == "__main__":
    checks.run()

"""Two hundred concurrent sequences over streams of the v2 client, some streams cancelled: no other sequence gets a wrong sum.

Each check prints what it did; it is the acceptance test of the sequence batcher.
"""

import random
import threading
import time

import checks
from v2_stream import Stream, counts, number as one, until, value, waiting

SEQUENCES, STREAMS = 200, 10


class Storm(checks.Case):
    def own(self, seed):
        """The sequences of one stream: ids and values."""
        shuffle = random.Random(seed)
        count = SEQUENCES // STREAMS
        return {1 + seed * 1000 + i: [shuffle.randint(-1000, 1000) for _ in range(shuffle.randint(5, 10))]
                for i in range(count)}

    def steps(self, seed, sequences):
        """(id, value, start, end, sum) of all of them, interleaved, each sequence in order."""
        order = [id for id, values in sequences.items() for _ in values]
        random.Random(seed).shuffle(order)
        at = dict.fromkeys(sequences, 0)
        for id in order:
            values, i = sequences[id], at[id]
            at[id] += 1
            yield id, values[i], i == 0, i == len(values) - 1, sum(values[:i + 1])

    def survivor(self, model, names, seed, found):
        expected = []
        with Stream() as stream:
            for id, number, start, end, total in self.steps(seed, self.own(seed)):
                self.send(stream, model, names, id, number, start, end)
                expected.append(total)
            responses = stream.responses()
        self.judge(names, seed, responses, expected, found)

    def judge(self, names, seed, responses, expected, found, may_fail=False):
        right = [may_fail if isinstance(response, Exception) else value(response, names[1]) == total
                 for response, total in zip(responses, expected, strict=True)]
        examples = [(seed, str(response)[:300], total)
                    for response, total, is_right in zip(responses, expected, right) if not is_right]
        found.append((sum(right), len(right) - sum(right), 0, examples))

    def victim(self, model, names, seed, found):
        """Sends some steps, cancels the stream, and sometimes starts over with the same ids."""
        shuffle = random.Random(seed)
        sequences = {id: values[:4] for id, values in list(self.own(seed).items())[:6]}
        stream = Stream()
        steps = list(self.steps(seed, sequences))
        for id, number, start, end, _ in steps[:shuffle.randint(1, len(steps) - 1)]:
            self.send(stream, model, names, id, number, start, end)
        stream.responses(shuffle.randint(0, stream.sent))
        stream.close(cancel=True)
        found.append((0, 0, 1, []))
        if shuffle.random() < 0.5:
            with Stream() as again:
                expected = []
                for id, number, start, end, total in self.steps(seed + 1, sequences):
                    self.send(again, model, names, id, number, start, end)
                    expected.append(total)
                # The cancellation may be noticed only now, and cancel these too.
                self.judge(names, seed, again.responses(), expected, found, may_fail=True)

    def send(self, stream, model, names, id, number, start, end):
        stream.send(model, {names[0]: one(number)}, sequence_id=id, sequence_start=start,
                   sequence_end=end)

    def storm(self, model, names=("INPUT0", "OUTPUT0"), victims=0):
        found = []  # of each thread: right and wrong responses, cancellations, examples of wrong ones
        work = [threading.Thread(target=self.survivor, args=(model, names, seed, found)) for seed in range(STREAMS)]
        work += [threading.Thread(target=self.victim, args=(model, names, 100 + seed * 2, found))
                 for seed in range(victims)]
        random.Random(victims).shuffle(work)
        begin = time.monotonic()
        for thread in work:
            thread.start()
        for thread in work:
            thread.join()
        right, wrong, cancelled, examples = (sum(parts, start) for parts, start in zip(zip(*found), (0, 0, 0, [])))
        print(f"{model}: {right} right responses, {wrong} wrong, {cancelled} streams cancelled "
              f"in {time.monotonic() - begin:.1f} s", flush=True)
        expected = sum(len(values) for seed in range(STREAMS) for values in self.own(seed).values())
        self.assertEqual(wrong, 0, examples[:5])
        self.assertGreaterEqual(right, expected)
        self.assertEqual(cancelled, victims)
        until("nothing waits", lambda: waiting(model) == 0)
        got = counts(model)
        self.assertGreaterEqual(got["success"], expected)
        self.assertEqual(got["inferences"], got["success"])

    def test_direct(self):
        self.storm("storm_direct")

    def test_direct_with_cancellations(self):
        self.storm("storm_direct", victims=30)

    def test_oldest(self):
        self.storm("storm_oldest")

    def test_oldest_with_cancellations(self):
        self.storm("storm_oldest", victims=30)

    def test_states(self):
        for model in ("state_direct", "state_oldest"):
            self.storm(model, ("INPUT", "OUTPUT"))


if __name__ == "__main__":
    checks.run()

"""Two hundred concurrent sequences over streams of the v1 client."""

import random
import threading

import numpy as np

import checks
from trtis_client import InferContext, ProtocolType

RAW = InferContext.ResultFormat.RAW
SEQUENCES, STREAMS = 200, 4


class Storm(checks.Case):
    def steps(self, seed):
        """(id, value, flags, sum) of one stream's sequences, interleaved, each sequence in order."""
        shuffle = random.Random(seed)
        sequences = {1 + seed * 1000 + i: [shuffle.randint(-1000, 1000) for _ in range(shuffle.randint(5, 10))]
                     for i in range(SEQUENCES // STREAMS)}
        order = [id for id, values in sequences.items() for _ in values]
        shuffle.shuffle(order)
        at = dict.fromkeys(sequences, 0)
        for id in order:
            values, i = sequences[id], at[id]
            at[id] += 1
            yield id, values[i], (i == 0) + 2 * (i == len(values) - 1), sum(values[:i + 1])

    def stream(self, model, seed, seen):
        context = InferContext(checks.GRPC, ProtocolType.GRPC, model, streaming=True)
        mailbox, expected = checks.Mailbox(), []
        for id, value, flags, total in self.steps(seed):
            context.async_run(lambda ctx, id: mailbox.put(id), {"INPUT0": [np.array([value], np.int32)]},
                              {"OUTPUT0": RAW}, flags=flags, corr_id=id)
            expected.append(total)
        responses = [context.get_async_run_results(id)["OUTPUT0"][0].item() for id in mailbox.take(len(expected))]
        seen.append(responses == expected)
        context.close()

    def test_sums(self):
        for model in ("storm_direct", "storm_oldest"):
            with self.subTest(model):
                seen = []
                threads = [threading.Thread(target=self.stream, args=(model, 500 + seed, seen))
                           for seed in range(STREAMS)]
                for thread in threads:
                    thread.start()
                for thread in threads:
                    thread.join()
                self.assertEqual(seen, [True] * STREAMS)


if __name__ == "__main__":
    checks.run()

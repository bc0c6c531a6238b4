"""The streaming examples beyond their READMEs: concurrent texts, a text that is too long, cancellation."""

import time
import urllib.request

import numpy as np
import tritonclient.grpc

import checks


def text_input(text):
    tensor = tritonclient.grpc.InferInput("TEXT", [1], "BYTES")
    tensor.set_data_from_numpy(np.array([text.encode()], object))
    return [tensor]


class Streaming(checks.Case):
    def setUp(self):
        self.client = tritonclient.grpc.InferenceServerClient(checks.GRPC)
        self.addCleanup(self.client.close)
        self.mailbox = checks.Mailbox()
        self.client.start_stream(lambda result, error: self.mailbox.put((result, error)))

    def send(self, model, id, text, **more):
        self.client.async_stream_infer(model, text_input(text), request_id=id, **more)

    def test_concurrent_texts_keep_their_order(self):
        texts = {str(i): [f"{i}-{j}" for j in range(50)] for i in range(8)}
        for id, words in texts.items():
            self.send("words", id, " ".join(words))
        got = {id: [] for id in texts}
        for result, error in self.mailbox.take(400):
            self.assertIsNone(error)
            response = result.get_response()
            self.assertEqual(result.as_numpy("POSITION")[0], len(got[response.id]))
            got[response.id].append(result.as_numpy("WORD")[0].decode())
            self.assertEqual(response.parameters["triton_final_response"].bool_param, len(got[response.id]) == 50)
        self.assertEqual(got, texts)

    def test_output_not_requested(self):
        self.send("words", "1", "one", outputs=[tritonclient.grpc.InferRequestedOutput("WORD")])
        [(result, error)] = self.mailbox.take(1)
        self.assertIsNone(error)
        self.assertIsNone(result.as_numpy("POSITION"))
        self.assertEqual(result.as_numpy("WORD").tolist(), [b"one"])

    def test_too_many_words_fail_that_text(self):
        self.send("three", "1", "a b c d")
        self.send("three", "2", "a")
        got = {}
        for result, error in self.mailbox.take(2):
            # The client gives an error without the id.
            got["error" if error else result.get_response().id] = error and error.message()
        self.assertEqual(got, {"error": "the text has 4 words, this model takes 3", "2": None})

    def test_cancelled_stream_ends_the_text(self):
        self.send("endless", "1", "one two")
        [(result, error)] = self.mailbox.take(1)
        self.assertEqual(result.as_numpy("WORD").tolist(), [b"one"])
        self.client.stop_stream(cancel_requests=True)
        # Its request is cancelled long before the second word would be due, in ten minutes.
        begin = time.monotonic()
        while time.monotonic() - begin < checks.TIMEOUT:
            page = urllib.request.urlopen(f"http://{checks.METRICS}/metrics").read().decode()
            lines = [line for line in page.splitlines()
                     if "_streaming_cancelled_total{" in line and 'model="endless"' in line]
            self.assertEqual(len(lines), 1)
            if lines[0].endswith(" 1"):
                return
        self.fail(f"still {lines}")


if __name__ == "__main__":
    checks.run()

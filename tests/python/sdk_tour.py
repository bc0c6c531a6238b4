"""A C++ backend that responds in every way that the header offers, and throws every kind of exception."""

import numpy as np
import tritonclient.http
from tritonclient.utils import InferenceServerException

import checks


def tensor(*values):
    made = tritonclient.http.InferInput("IN", [len(values), 1], "FP32")
    made.set_data_from_numpy(np.array(values, np.float32).reshape(-1, 1))
    return [made]


class Tour(checks.Case):
    def setUp(self):
        self.client = tritonclient.http.InferenceServerClient(checks.HTTP, concurrency=4)
        self.addCleanup(self.client.close)

    def send(self, how, *values, **more):
        return self.client.infer("tour", tensor(*values), parameters={"how": how}, **more)

    def together(self, how):
        """Three requests that make one batch; the model waits for the third."""
        sent = [self.client.async_infer("together", tensor(*values), parameters={"how": how})
                 for values in ([1], [2, 3], [4])]
        return [response.get_result().as_numpy("OUT").ravel().tolist() for response in sent]

    def test_single_requests(self):
        result = self.send("each", 1, 2, request_id="mine")
        self.assertEqual(result.as_numpy("OUT").ravel().tolist(), [1, 2])
        self.assertEqual(result.get_response()["parameters"], {"id": "mine", "rows": 2})

    def test_concurrent_requests(self):
        for how in ("merge", "merge_adopt"):
            with self.subTest(how):
                self.assertEqual(self.together(how), [[1], [2, 3], [4]])
                self.assertEqual(self.send(how, 5).as_numpy("OUT").tolist(), [[5]])

    def test_detached_request_gets_no_scattered_output(self):
        # Which request is first depends on which arrives first; its rows come from the thread, as
        # -1.
        got = self.together("detach_first")
        detached = [i for i, values in enumerate(got) if set(values) == {-1.0}]
        self.assertEqual(len(detached), 1)
        want = [[1], [2, 3], [4]]
        want[detached[0]] = [-1] * len(want[detached[0]])
        self.assertEqual(got, want)

    def test_exceptions_become_errors(self):
        for how, text in (
                ("throw_error", "come again"),
                ("throw_std", "vector::_M_range_check: __n (which is 1) >= this->size() (which is 0)"),
                ("throw_alloc", "the backend is out of memory"),
                ("throw_int", "the backend threw something that is not a std::exception"),
                ("drop", "the backend dropped a detached request without finishing it"),
                ("wrong_type", "input 'IN' is FP32, not INT32"),
                ("no_input", "input 'NOPE' is missing"),
                ("no_output", "model 'tour': the backend produced output 'NOPE', which the model configuration does "
                              "not declare (declared: OUT)"),
                ("bad_shape", "output 'OUT' has an impossible shape"),
                ("after_detach", "this request was detached: respond with its Responder")):
            with self.subTest(how), self.refusal(InferenceServerException, text):
                self.send(how, 1)
        with self.refusal(InferenceServerException, "without", whole=False):
            self.send("silent", 1)
        self.assertEqual(self.send("each", 1).as_numpy("OUT").tolist(), [[1]])

    def test_second_response_is_refused(self):
        self.assertEqual(self.send("twice", 3).as_numpy("OUT").tolist(), [[3]])


if __name__ == "__main__":
    checks.run()

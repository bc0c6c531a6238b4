"""Shared by the v2 scheduler checks: ordered requests over a gRPC stream, and statistics."""

import time
import urllib.request

import numpy as np
import tritonclient.grpc as grpc

import checks


def tensor(module, name, values, datatype=None):
    """An input with these values; INT32 and FP32 are derived from them."""
    datatype = datatype or {"i": "INT32", "f": "FP32"}[values.dtype.kind]
    made = module.InferInput(name, values.shape, datatype)
    made.set_data_from_numpy(values)
    return made


def number(value, kind=np.int32):
    return np.array([[value]], kind)


class Stream:
    """A stream. Responses arrive in request order, so each is identified by its position."""

    def __init__(self):
        self.client = grpc.InferenceServerClient(checks.GRPC)
        self.mailbox = checks.Mailbox()
        self.client.start_stream(lambda result, error: self.mailbox.put(result, error))
        self.sent = 0

    def send(self, model, inputs, **more):
        """`inputs`: a dictionary of arrays, or the number for INPUT0."""
        if isinstance(inputs, (int, float)):
            inputs = {"INPUT0": number(inputs)}
        tensors = [tensor(grpc, name, values) for name, values in inputs.items()]
        outputs = [grpc.InferRequestedOutput(name) for name in more.pop("outputs", [])] or None
        self.client.async_stream_infer(model, tensors, outputs=outputs, request_id=str(self.sent), **more)
        self.sent += 1

    def step(self, model, sequence, value, start=False, end=False, **more):
        self.send(model, value, sequence_id=sequence, sequence_start=start, sequence_end=end, **more)

    def sequence(self, model, sequence, values):
        """All steps of a sequence at once."""
        for i, value in enumerate(values):
            self.step(model, sequence, value, i == 0, i == len(values) - 1)

    def responses(self, count=None):
        """The next `count` responses (one for each request so far by default): results or errors."""
        count = self.sent if count is None else count
        taken = self.mailbox.take(count)
        return [error if result is None else result for result, error in taken]

    def results(self, count=None):
        """The same; raises the first error."""
        responses = self.responses(count)
        for response in responses:
            if isinstance(response, Exception):
                raise response
        return responses

    def close(self, cancel=False):
        self.client.stop_stream(cancel_requests=cancel)
        self.client.close()

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        self.close(cancel=kind is not None)


def value(result, output="OUTPUT0"):
    """The single number of a response."""
    return result.as_numpy(output).reshape(-1)[0].item()


def batch(result):
    """Rows and requests of the batch that a response came from."""
    rows, requests = result.as_numpy("BATCH").reshape(-1)[:2]
    return int(rows), int(requests)


def counts(model):
    """The server's statistics: executions, inferences, batches by size, and requests by result."""
    with grpc.InferenceServerClient(checks.GRPC) as client:
        [stats] = client.get_inference_statistics(model).model_stats
    return {
        "executions": stats.execution_count,
        "inferences": stats.inference_count,
        "batches": {b.batch_size: b.compute_infer.count for b in stats.batch_stats},
        "success": stats.inference_stats.success.count,
        "queue": stats.inference_stats.queue.count,
        "fail": stats.inference_stats.fail.count,
    }


def metric(sample):
    """The value of one sample, such as `nv_inference_count{model="m",version="1"}`; 0 where there is none."""
    with urllib.request.urlopen(f"http://{checks.METRICS}/metrics", timeout=checks.TIMEOUT) as page:
        for line in page.read().decode().splitlines():
            if line.startswith(sample + " "):
                return float(line.rsplit(" ", 1)[1])
    return 0.0


def failures(model, reason):
    return metric(f'nv_inference_request_failure{{model="{model}",reason="{reason}",version="1"}}')


def waiting(model):
    return metric(f'nv_inference_pending_request_count{{model="{model}",version="1"}}')


def until(what, condition):
    """Polls until `condition` is true."""
    end = time.monotonic() + checks.TIMEOUT
    while not condition():
        assert time.monotonic() < end, f"not within {checks.TIMEOUT} s: {what}"
        time.sleep(0.005)

"""Polls until the request is cancelled; the metric `python_cancelled` says which state it has seen: 1 waiting, 2 cancelled."""

import time

import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def initialize(self, args):
        family = pb_utils.MetricFamily(
            name="python_cancelled", description="State of the last request", kind=pb_utils.MetricFamily.GAUGE)
        self.family, self.state = family, family.Metric(labels={"model": args["model_name"]})

    def execute(self, requests):
        responses = []
        for request in requests:
            self.state.set(1)
            while not request.is_cancelled():
                time.sleep(0.01)
            self.state.set(2)
            responses.append(pb_utils.InferenceResponse(
                error=pb_utils.TritonError("the model has seen it", pb_utils.TritonError.CANCELLED)))
        return responses

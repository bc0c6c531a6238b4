"""A counter that adds INPUT0 and a gauge that is set to it; VALUES = both."""

import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def initialize(self, args):
        labels = {"model": args["model_name"], "text": 'a "quoted" one'}
        kind = pb_utils.MetricFamily
        self.counters = kind(name="python_sum_total", description="Sum of inputs", kind=kind.COUNTER)
        self.gauges = kind(name="python_last", description="Last input", kind=kind.GAUGE)
        self.counter, self.gauge = self.counters.Metric(labels=labels), self.gauges.Metric(labels=labels)

    def execute(self, requests):
        return [self.respond(pb_utils.get_input_tensor_by_name(r, "INPUT0").as_numpy()[0]) for r in requests]

    def respond(self, value):
        self.counter.increment(value)
        self.gauge.set(value)
        values = [self.counter.value(), self.gauge.value()]
        return pb_utils.InferenceResponse([pb_utils.Tensor("VALUES", np.array(values, np.float32))])

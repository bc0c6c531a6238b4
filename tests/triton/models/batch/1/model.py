"""TOGETHER = number of requests in this call; a request with a negative number gets an error of its own."""

import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        return [self.respond(request, len(requests)) for request in requests]

    @staticmethod
    def respond(request, together):
        value = pb_utils.get_input_tensor_by_name(request, "INPUT0").as_numpy()
        if (value < 0).any():
            return pb_utils.InferenceResponse(
                error=pb_utils.TritonError(f"{value[0, 0]} is negative", pb_utils.TritonError.INVALID_ARG))
        return pb_utils.InferenceResponse([pb_utils.Tensor("TOGETHER", np.full((1, 1), together, np.int32))])

"""Answers every request with an error."""

import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        error = pb_utils.TritonError("told to fail")
        return [pb_utils.InferenceResponse([], error) for _ in requests]

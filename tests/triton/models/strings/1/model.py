"""UPPER = TEXT in upper case, BYTES = its lengths."""

import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        return [self.respond(pb_utils.get_input_tensor_by_name(r, "TEXT").as_numpy()) for r in requests]

    @staticmethod
    def respond(texts):
        upper = np.array([text.upper() for text in texts.flat], np.object_).reshape(texts.shape)
        lengths = np.array([len(text) for text in texts.flat], np.int64).reshape(texts.shape)
        return pb_utils.InferenceResponse([pb_utils.Tensor("UPPER", upper), pb_utils.Tensor("BYTES", lengths)])

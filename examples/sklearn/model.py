"""Serves a pickled estimator of scikit-learn with Triton's Python backend. No config.pbtxt is needed."""

import pathlib
import pickle

import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    @staticmethod
    def auto_complete_config(config):
        config.add_input({"name": "PIXELS", "data_type": "TYPE_FP32", "dims": [64]})
        config.add_output({"name": "DIGIT", "data_type": "TYPE_INT64", "dims": [1]})
        config.add_output({"name": "PROBABILITIES", "data_type": "TYPE_FP32", "dims": [10]})
        config.set_max_batch_size(64)
        config.set_dynamic_batching()
        return config

    def initialize(self, args):
        version = pathlib.Path(args["model_repository"]) / args["model_version"]
        self.estimator = pickle.loads((version / "estimator.pkl").read_bytes())

    def execute(self, requests):
        # One prediction for all requests of the batch.
        rows = [pb_utils.get_input_tensor_by_name(request, "PIXELS").as_numpy() for request in requests]
        probabilities = self.estimator.predict_proba(np.concatenate(rows))
        digits = self.estimator.classes_[probabilities.argmax(axis=1)].astype(np.int64)
        responses, at = [], 0
        for part in rows:
            end = at + len(part)
            responses.append(pb_utils.InferenceResponse([
                pb_utils.Tensor("DIGIT", digits[at:end, None]),
                pb_utils.Tensor("PROBABILITIES", probabilities[at:end].astype(np.float32)),
            ]))
            at = end
        return responses

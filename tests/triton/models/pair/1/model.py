"""Answers with the instance's name once two instances execute at the same time, which files in FOLDER show."""

import pathlib
import time

import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def initialize(self, args):
        self.name = args["model_instance_name"]

    def execute(self, requests):
        return [self.respond(pb_utils.get_input_tensor_by_name(r, "FOLDER").as_numpy()[0]) for r in requests]

    def respond(self, folder):
        folder = pathlib.Path(folder.decode())
        (folder / self.name).touch()
        end = time.monotonic() + 30
        while len(list(folder.iterdir())) < 2:
            if time.monotonic() > end:
                return pb_utils.InferenceResponse(error=pb_utils.TritonError("the other instance does not execute"))
            time.sleep(0.005)
        return pb_utils.InferenceResponse([pb_utils.Tensor("INSTANCE", np.array([self.name], np.object_))])

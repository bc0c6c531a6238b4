"""OUTPUT0 = process number. Raises in `initialize` if there is a file `when` beside it, and for these inputs: 1 an exception, 2 a
response too few, 3 something that is not a response, 5 killed, 6 exit. It raises in `finalize` always."""

import os
import pathlib
import signal

import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def initialize(self, args):
        if pathlib.Path(__file__).with_name("when").exists():
            raise ValueError("no paper in initialize")

    def execute(self, requests):
        values = [int(pb_utils.get_input_tensor_by_name(r, "INPUT0").as_numpy()[0]) for r in requests]
        if 1 in values:
            raise ValueError("no ink in execute")
        if 2 in values:
            return []
        if 3 in values:
            return ["not a response"] * len(requests)
        if 5 in values:
            os.kill(os.getpid(), signal.SIGKILL)
        if 6 in values:
            os._exit(3)
        return [
            pb_utils.InferenceResponse([pb_utils.Tensor("OUTPUT0", np.array([os.getpid()], np.int32))])
            for _ in requests
        ]

    def finalize(self):
        raise ValueError("no glue in finalize")

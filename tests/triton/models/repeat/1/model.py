"""A response for each element of IN, from a thread of the model after `execute` has returned; an error for a negative one, after
which the stream goes on."""

import threading

import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def initialize(self, args):
        self.threads = []

    def execute(self, requests):
        for request in requests:
            values = pb_utils.get_input_tensor_by_name(request, "IN").as_numpy().copy()
            thread = threading.Thread(target=self.send, args=(values, request.get_response_sender()))
            self.threads.append(thread)
            thread.start()

    @staticmethod
    def send(values, sender):
        for index, value in enumerate(values):
            if value < 0:
                sender.send(pb_utils.InferenceResponse(error=pb_utils.TritonError(f"element {index} is negative")))
                continue
            sender.send(pb_utils.InferenceResponse([
                pb_utils.Tensor("OUT", np.array([value], np.int32)),
                pb_utils.Tensor("IDX", np.array([index], np.uint32)),
            ]))
        sender.send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)

    def finalize(self):
        for thread in self.threads:
            thread.join()

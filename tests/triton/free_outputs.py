"""Each element of WISH is JSON: the responses that a model sends, as lists of outputs. OUT has the type and the shape that are asked for
there, and the values 0, 1, 2 and so on. Models that are not decoupled send the first response only."""

import json

import numpy as np
import triton_python_backend_utils as pb_utils


def response(outputs):
    tensors = []
    for kind, shape in outputs:
        values = np.arange(np.prod(shape, dtype=np.int64)).reshape(shape)
        tensors.append(pb_utils.Tensor("OUT", values.astype(str).astype(object) if kind == "text" else values.astype(kind)))
    return pb_utils.InferenceResponse(tensors)


class TritonPythonModel:
    def initialize(self, arguments):
        self.decoupled = json.loads(arguments["model_config"]).get("model_transaction_policy", {}).get("decoupled", False)

    def execute(self, requests):
        wishes = [json.loads(pb_utils.get_input_tensor_by_name(r, "WISH").as_numpy().flat[0]) for r in requests]
        if not self.decoupled:
            return [response(wish[0]) for wish in wishes]
        for request, wish in zip(requests, wishes):
            sender = request.get_response_sender()
            for outputs in wish:
                sender.send(response(outputs))
            sender.send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
        return None

"""SEEN = JSON of what the model knows of the request, of itself and of its configuration."""

import json

import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def initialize(self, args):
        config = json.loads(args["model_config"])
        self.seen = {
            "colour": config["parameters"]["colour"]["string_value"],
            "name": args["model_name"],
            "version": args["model_version"],
            "instance": args["model_instance_name"],
            "kind": args["model_instance_kind"],
            "device": args["model_instance_device_id"],
        }

    def execute(self, requests):
        return [self.respond(request) for request in requests]

    def respond(self, request):
        seen = self.seen | {
            "id": request.request_id(),
            "correlation": request.correlation_id(),
            "flags": request.flags(),
            "timeout": request.timeout(),
            "outputs": list(request.requested_output_names()),
            "parameters": json.loads(request.parameters()),
        }
        return pb_utils.InferenceResponse([pb_utils.Tensor("SEEN", np.array([json.dumps(seen)], np.object_))])

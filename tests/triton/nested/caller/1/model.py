"""Does what COMMAND says with another model: `infer`, `stream`, `ready`, `load` or `unload`, and its name. TEXT is the result, or
the error of the other model."""

import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        responses = []
        for request in requests:
            command = pb_utils.get_input_tensor_by_name(request, "COMMAND").as_numpy()[0].decode()
            values = pb_utils.get_input_tensor_by_name(request, "INPUT0")
            command, model = command.split()
            try:
                result, text = getattr(self, command)(model, values)
            except pb_utils.TritonModelException as error:
                result, text = np.zeros(0, np.float32), f"exception: {error}"
            tensors = [pb_utils.Tensor("OUTPUT0", result), pb_utils.Tensor("TEXT", np.array([text.encode()], object))]
            responses.append(pb_utils.InferenceResponse(tensors))
        return responses

    def request(self, model, values):
        return pb_utils.InferenceRequest(
            model_name=model, request_id="nested", requested_output_names=["OUTPUT0"], inputs=[values],
            parameters={"color": "red", "number": 7},
        )  # fmt: skip

    def result(self, response):
        if response.has_error():
            return np.zeros(0, np.float32), response.error().message()
        return pb_utils.get_output_tensor_by_name(response, "OUTPUT0").as_numpy(), "done"

    def infer(self, model, values):
        return self.result(self.request(model, values).exec())

    def stream(self, model, values):
        results, count = [], 0
        for response in self.request(model, values).exec(decoupled=True):
            if response.has_error():
                return np.zeros(0, np.float32), response.error().message()
            count += 1
            # The last response may have flags only.
            if response.output_tensors():
                results.append(self.result(response)[0])
        return np.concatenate(results), f"{len(results)} responses"

    def ready(self, model, values):
        return values.as_numpy(), str(pb_utils.is_model_ready(model_name=model))

    def load(self, model, values):
        pb_utils.load_model(model_name=model)
        return values.as_numpy(), "loaded"

    def unload(self, model, values):
        pb_utils.unload_model(model_name=model)
        return values.as_numpy(), "unloaded"

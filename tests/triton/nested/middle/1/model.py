"""OUTPUT0 = 1 + what `inner` makes of INPUT0."""

import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        responses = []
        for request in requests:
            values = pb_utils.get_input_tensor_by_name(request, "INPUT0")
            asked = pb_utils.InferenceRequest(model_name="inner", requested_output_names=["OUTPUT0"], inputs=[values])
            doubled = pb_utils.get_output_tensor_by_name(asked.exec(), "OUTPUT0").as_numpy()
            responses.append(pb_utils.InferenceResponse([pb_utils.Tensor("OUTPUT0", doubled + 1)]))
        return responses

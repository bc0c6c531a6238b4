"""Asks the model of COMMAND once for each value of INPUT0, all at the same time. After `many `, it is a decoupled model, which is asked twice
for all values."""

import asyncio

import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    async def execute(self, requests):
        return [await self.one(request) for request in requests]

    async def one(self, request):
        model = pb_utils.get_input_tensor_by_name(request, "COMMAND").as_numpy()[0].decode()
        values = pb_utils.get_input_tensor_by_name(request, "INPUT0").as_numpy()
        many = model.startswith("many ")
        asked = [
            pb_utils.InferenceRequest(
                model_name=model.removeprefix("many "), requested_output_names=["OUTPUT0"],
                inputs=[pb_utils.Tensor("INPUT0", each)])
            for each in ([values, values] if many else [value.reshape(1) for value in values])
        ]  # fmt: skip
        responses = await asyncio.gather(*(each.async_exec(decoupled=many) for each in asked))
        if many:
            # The last response of each may be empty.
            every = [response for each in responses for response in each]
            responses = [response for response in every if response.has_error() or response.output_tensors()]
        errors = [response.error().message() for response in responses if response.has_error()]
        results = [
            pb_utils.get_output_tensor_by_name(response, "OUTPUT0").as_numpy()
            for response in responses
            if not response.has_error()
        ]
        text = np.array([(errors or ["done"])[0].encode()], object)
        values = np.concatenate(results) if results else np.zeros(0, np.float32)
        return pb_utils.InferenceResponse([pb_utils.Tensor("OUTPUT0", values), pb_utils.Tensor("TEXT", text)])

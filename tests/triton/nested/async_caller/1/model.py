"""Asks the model of COMMAND once for each value of INPUT0, all at the same time."""

import asyncio

import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    async def execute(self, requests):
        return [await self.one(request) for request in requests]

    async def one(self, request):
        model = pb_utils.get_input_tensor_by_name(request, "COMMAND").as_numpy()[0].decode()
        values = pb_utils.get_input_tensor_by_name(request, "INPUT0").as_numpy()
        asked = [
            pb_utils.InferenceRequest(
                model_name=model, requested_output_names=["OUTPUT0"], inputs=[pb_utils.Tensor("INPUT0", each.reshape(1))])
            for each in values
        ]  # fmt: skip
        responses = await asyncio.gather(*(each.async_exec() for each in asked))
        errors = [response.error().message() for response in responses if response.has_error()]
        results = [
            pb_utils.get_output_tensor_by_name(response, "OUTPUT0").as_numpy()
            for response in responses
            if not response.has_error()
        ]
        text = np.array([(errors or ["done"])[0].encode()], object)
        values = np.concatenate(results) if results else np.zeros(0, np.float32)
        return pb_utils.InferenceResponse([pb_utils.Tensor("OUTPUT0", values), pb_utils.Tensor("TEXT", text)])

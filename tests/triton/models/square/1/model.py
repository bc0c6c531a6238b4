"""IN responses with the value of IN, sent inside of `execute`; the last one is also the final one."""

import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        for request in requests:
            sender = request.get_response_sender()
            count = int(pb_utils.get_input_tensor_by_name(request, "IN").as_numpy()[0])
            for left in range(count, 0, -1):
                response = pb_utils.InferenceResponse([pb_utils.Tensor("OUT", np.array([count], np.int32))])
                flags = pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL if left == 1 else 0
                sender.send(response, flags)
            if count == 0:
                sender.send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)

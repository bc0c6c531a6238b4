"""Requests of tritonclient, for a recorder.

    v2_requests.py HTTP GRPC
"""

import sys

import numpy as np
import tritonclient.grpc
import tritonclient.http

for url, module in zip(sys.argv[1:], (tritonclient.http, tritonclient.grpc)):
    client = module.InferenceServerClient(url)
    inputs = [module.InferInput(name, [1, 16], "INT32") for name in ("INPUT0", "INPUT1")]
    inputs[0].set_data_from_numpy(np.arange(16, dtype=np.int32).reshape(1, 16))
    inputs[1].set_data_from_numpy(np.ones((1, 16), np.int32))
    outputs = [module.InferRequestedOutput("OUTPUT0"), module.InferRequestedOutput("OUTPUT1", class_count=3)]
    client.infer("addsub_int32", inputs, "1", outputs, request_id="seven", parameters={"key": "value"})
    strings = module.InferInput("INPUT0", [1, 2], "BYTES")
    strings.set_data_from_numpy(np.array([["ab", ""]], dtype=object))
    client.infer("identity_string", [strings], priority=2, timeout=60000000)
    client.close()

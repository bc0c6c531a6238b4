"""Requests of the client of 2020, for a recorder: two batches with raw and class results, and strings.

    v1_requests.py HTTP GRPC
"""

import sys

import numpy as np

from trtis_client import InferContext, ProtocolType

RAW = InferContext.ResultFormat.RAW
CLASS = InferContext.ResultFormat.CLASS

for url, protocol in zip(sys.argv[1:], (ProtocolType.HTTP, ProtocolType.GRPC)):
    context = InferContext(url, protocol, "addsub_int32", correlation_id=9)
    counted, ones = np.arange(16, dtype=np.int32), np.ones(16, np.int32)
    inputs = {"INPUT0": [counted, ones], "INPUT1": [ones, ones]}
    context.run(inputs, {"OUTPUT0": RAW, "OUTPUT1": (CLASS, 3)}, batch_size=2, flags=3)
    context = InferContext(url, protocol, "identity_string", 1)
    context.run({"INPUT0": [np.array(["ab", ""], dtype=object)]}, {"OUTPUT0": RAW})

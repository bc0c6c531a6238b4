"""The v1 client while the repository changes: every response must come from the right version."""

import itertools
import random

import numpy as np

import checks
import live_repository
from live_repository import Wrong, base
from trtis_client import InferContext, ProtocolType

RAW = InferContext.ResultFormat.RAW
NONE, START, END = 0, 1, 2
# The v2 client's are lower.
ids = itertools.count(1_000_000)


def context(protocol, model, version=None, **more):
    url = checks.HTTP if protocol == ProtocolType.HTTP else checks.GRPC
    return InferContext(url, protocol, model, version, **more)


def calls(protocol, model, versions, exact=None, steps=1):
    def make():
        connection = context(protocol, model, exact)

        def once():
            given = float(random.randint(0, 99))
            got = connection.run({"INPUT0": [np.full([2], given, np.float32)]}, {"OUTPUT0": RAW})
            base(got["OUTPUT0"][0][0], given, versions, steps)
        return once
    return make


def sequences(protocol):
    def make():
        connection = context(protocol, "sums", correlation_id=1)

        def once():
            id, length, begin = next(ids), random.randint(1, 20), None
            for step in range(1, length + 1):
                flags = (START if step == 1 else NONE) | (END if step == length else NONE)
                got = connection.run({"INPUT0": [np.array([1], np.int32)]}, {"OUTPUT0": RAW}, 1, flags, id)
                added = base(got["OUTPUT0"][0][0], step, [1])
                begin = added if begin is None else begin
                if added != begin:
                    raise Wrong(f"step {step} of {length} of sequence {id}: {added} instead of {begin}")
        return once
    return make


live_repository.run({
    "steady over HTTP": calls(ProtocolType.HTTP, "steady", [1]),
    "steady over gRPC": calls(ProtocolType.GRPC, "steady", [1]),
    "edited over HTTP": calls(ProtocolType.HTTP, "edited", [1]),
    "edited over gRPC": calls(ProtocolType.GRPC, "edited", [1]),
    "latest version over HTTP": calls(ProtocolType.HTTP, "versions", [2, 3]),
    "version 1 over gRPC": calls(ProtocolType.GRPC, "versions", [1], 1),
    "ensemble over HTTP": calls(ProtocolType.HTTP, "pair", [1], steps=2),
    "sequences over HTTP": sequences(ProtocolType.HTTP),
    "sequences over gRPC": sequences(ProtocolType.GRPC),
})

"""The v2 client while the repository changes: every response must come from the right version."""

import itertools
import random

import numpy as np
import tritonclient.grpc as grpc
import tritonclient.http as http
from tritonclient.utils import InferenceServerException

import checks
import live_repository
from live_repository import Wrong, base
from v2_stream import number, tensor

ids = itertools.count(1)


def client(module):
    url = checks.HTTP if module is http else checks.GRPC
    return module.InferenceServerClient(url)


def calls(module, model, versions, exact="", steps=1, gone=False):
    """Requests to a model; `versions` are those that may respond. `gone`: it may be removed."""
    def make():
        connection = client(module)

        def once():
            given = float(random.randint(0, 99))
            inputs = [tensor(module, "INPUT0", np.full([1, 2], given, np.float32))]
            try:
                result = connection.infer(model, inputs, exact)
            except InferenceServerException as e:
                if gone and "unknown model" in e.message():
                    return
                raise
            added = base(result.as_numpy("OUTPUT0")[0][0], given, versions, steps)
            response = result.get_response()
            version = response["model_version"] if module is http else response.model_version
            if steps == 1 and added // 1000 != int(version):
                raise Wrong(f"version {version} added {added}")
        return once
    return make


def sequences(module):
    """Sequences of up to 20 steps; each must be executed by one version from its begin to its end."""
    def make():
        connection = client(module)

        def once():
            id, length, begin = next(ids), random.randint(1, 20), None
            for step in range(1, length + 1):
                inputs = [tensor(module, "INPUT0", number(1))]
                result = connection.infer("sums", inputs, sequence_id=id, sequence_start=step == 1,
                                          sequence_end=step == length)
                added = base(result.as_numpy("OUTPUT0")[0][0], step, [1])
                begin = added if begin is None else begin
                if added != begin:
                    raise Wrong(f"step {step} of {length} of sequence {id}: {added} instead of {begin}")
        return once
    return make


live_repository.run({
    "steady over HTTP": calls(http, "steady", [1]),
    "steady over gRPC": calls(grpc, "steady", [1]),
    "edited over HTTP": calls(http, "edited", [1]),
    "edited over gRPC": calls(grpc, "edited", [1]),
    "latest version over gRPC": calls(grpc, "versions", [2, 3]),
    "version 1 over HTTP": calls(http, "versions", [1], "1"),
    "moved over gRPC": calls(grpc, "moved", [1], gone=True),
    "ensemble over HTTP": calls(http, "pair", [1], steps=2),
    "sequences over HTTP": sequences(http),
    "sequences over gRPC": sequences(grpc),
})

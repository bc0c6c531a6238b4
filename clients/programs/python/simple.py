"""What the simple_* programs share: inputs, the check of results, and a look at the server."""

import sys

import numpy as np
from tensorrtserver.api import InferContext, ServerHealthContext, ServerStatusContext


def inputs():
    """The two inputs of `simple`: 0 to 15, and ones."""
    return np.arange(16, dtype=np.int32), np.ones(16, dtype=np.int32)


def strings(numbers):
    return np.array([str(number) for number in numbers], dtype=object)


def check(input0, input1, sums, differences, show=True):
    """Prints sums and differences, and ends the program at a wrong one."""
    if len(sums) != len(input0) or len(differences) != len(input0):
        print(f"error: expected {len(input0)} sums and differences, got {len(sums)} and {len(differences)}")
        sys.exit(1)
    for a, b, added, subtracted in zip(input0, input1, sums, differences):
        if show:
            print(f"{a} + {b} = {added}")
            print(f"{a} - {b} = {subtracted}")
        if int(a) + int(b) != int(added):
            print("error: incorrect sum")
            sys.exit(1)
        if int(a) - int(b) != int(subtracted):
            print("error: incorrect difference")
            sys.exit(1)


def show_server(flags, model):
    health = ServerHealthContext(flags.url, flags.protocol, flags.verbose, flags.http_headers)
    print(f"Health for model {model}")
    print(f"Live: {health.is_live()}")
    print(f"Ready: {health.is_ready()}")
    status = ServerStatusContext(flags.url, flags.protocol, model, flags.verbose, flags.http_headers)
    print(f"Status for model {model}")
    print(status.get_server_status())


def context(flags, model):
    """A context for the latest version of a model."""
    return InferContext(flags.url, flags.protocol, model, -1, flags.verbose, http_headers=flags.http_headers)

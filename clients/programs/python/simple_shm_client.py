#!/usr/bin/env python3
"""Adds and subtracts sixteen numbers with the model `simple`, with inputs and outputs in shared memory."""

import program
import simple
from shared_regions import registered
from tensorrtserver.api import InferContext, SharedMemoryControlContext


def main():
    flags = program.parse(program.parser(__doc__, headers=True))
    simple.show_server(flags, "simple")

    context = simple.context(flags, "simple")
    control = SharedMemoryControlContext(flags.url, flags.protocol, flags.verbose, flags.http_headers)
    input0, input1 = simple.inputs()
    with registered(control, (input0, input1), output_size=input0.nbytes) as region:
        raw = InferContext.ResultFormat.RAW
        result = context.run(
            {"INPUT0": (region["INPUT0"], input0.shape), "INPUT1": (region["INPUT1"], input1.shape)},
            {"OUTPUT0": (raw, region["OUTPUT0"]), "OUTPUT1": (raw, region["OUTPUT1"])},
            batch_size=1)
        simple.check(input0, input1, result["OUTPUT0"][0], result["OUTPUT1"][0])


if __name__ == "__main__":
    program.run(main)

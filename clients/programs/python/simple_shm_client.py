#!/usr/bin/env python3
"""Adds and subtracts sixteen numbers with the model `simple`, with inputs and outputs in shared memory."""

import program
import simple
from shared_regions import registered
from tensorrtserver.api import InferContext, ServerHealthContext, ServerStatusContext, SharedMemoryControlContext


def main():
    parser = program.parser(__doc__)
    program.add_protocol(parser)
    program.add_headers(parser)
    flags = parser.parse_args()
    protocol = program.protocol_of(flags)
    options = {"http_headers": flags.http_headers, "verbose": flags.verbose}

    health = ServerHealthContext(flags.url, protocol, **options)
    status = ServerStatusContext(flags.url, protocol, "simple", **options)
    simple.show_server(health, status, "simple")

    context = InferContext(flags.url, protocol, "simple", -1, **options)
    control = SharedMemoryControlContext(flags.url, protocol, **options)
    input0, input1 = simple.inputs()
    with registered(control, (input0, input1), output_size=input0.nbytes) as region:
        raw = InferContext.ResultFormat.RAW
        result = context.run(
            {"INPUT0": (region["INPUT0"], input0.shape), "INPUT1": (region["INPUT1"], input1.shape)},
            {"OUTPUT0": (raw, region["OUTPUT0"]), "OUTPUT1": (raw, region["OUTPUT1"])},
            batch_size=1)
        simple.check(input0, input1, result["OUTPUT0"][0], result["OUTPUT1"][0])
        # The arrays of the result are views of the regions, which are destroyed next.
        del result


if __name__ == "__main__":
    program.run(main)

#!/usr/bin/env python3
"""Adds and subtracts decimal strings with the model `simple_string`, with inputs and outputs in shared memory."""

import program
import simple
from shared_regions import registered
from tensorrtserver.api import InferContext, SharedMemoryControlContext, serialize_string_tensor


def main():
    flags = program.parse(program.parser(__doc__, headers=True))
    context = simple.context(flags, "simple_string")
    control = SharedMemoryControlContext(flags.url, flags.protocol, flags.verbose, flags.http_headers)
    input0, input1 = map(simple.strings, simple.inputs())
    # Each string with its length; a result may be a digit longer than the longest input.
    serialized = [serialize_string_tensor(strings) for strings in (input0, input1)]
    size = max(array.size * array.itemsize for array in serialized) + 16
    with registered(control, serialized, output_size=size) as region:
        raw = InferContext.ResultFormat.RAW
        result = context.run(
            {"INPUT0": (region["INPUT0"], input0.shape), "INPUT1": (region["INPUT1"], input1.shape)},
            {"OUTPUT0": (raw, region["OUTPUT0"]), "OUTPUT1": (raw, region["OUTPUT1"])},
            batch_size=1)
        sums, differences = ([value.decode() for value in result[name][0]] for name in ("OUTPUT0", "OUTPUT1"))
        simple.check(input0, input1, sums, differences)


if __name__ == "__main__":
    program.run(main)

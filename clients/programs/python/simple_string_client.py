#!/usr/bin/env python3
"""Adds and subtracts sixteen numbers, sent as decimal strings, with the model `simple_string`."""

import program
import simple
from tensorrtserver.api import InferContext


def main():
    flags = program.parse(program.parser(__doc__))
    context = simple.context(flags, "simple_string")
    input0, input1 = map(simple.strings, simple.inputs())
    result = context.run(
        {"INPUT0": [input0], "INPUT1": [input1]},
        {"OUTPUT0": InferContext.ResultFormat.RAW, "OUTPUT1": InferContext.ResultFormat.RAW},
        batch_size=1)

    # Strings of a result are bytes.
    sums, differences = ([value.decode() for value in result[name][0]] for name in ("OUTPUT0", "OUTPUT1"))
    simple.check(input0, input1, sums, differences)


if __name__ == "__main__":
    program.run(main)

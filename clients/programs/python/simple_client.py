#!/usr/bin/env python3
"""Adds and subtracts sixteen numbers with the model `simple`, after a look at health and status of the server."""

import sys

import program
import simple
from tensorrtserver.api import InferContext


def main():
    flags = program.parse(program.parser(__doc__, headers=True))
    simple.show_server(flags, "simple")

    context = simple.context(flags, "simple")
    input0, input1 = simple.inputs()
    # One array for each item of the batch.
    result = context.run(
        {"INPUT0": [input0], "INPUT1": [input1]},
        {"OUTPUT0": InferContext.ResultFormat.RAW, "OUTPUT1": InferContext.ResultFormat.RAW},
        batch_size=1)

    statistics = context.get_stat()
    if statistics["completed_request_count"] != 1:
        print(f"error: incorrect statistics. Expected 1, Got {statistics['completed_request_count']}")
        sys.exit(1)
    print("====Infer Statistcs====")
    for name, value in statistics.items():
        print(f"{name}: {value}")
    print("======================= \n\n")
    simple.check(input0, input1, result["OUTPUT0"][0], result["OUTPUT1"][0])


if __name__ == "__main__":
    program.run(main)

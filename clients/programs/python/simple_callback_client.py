#!/usr/bin/env python3
"""Sends two requests to the model `simple` without waiting, and takes the results when the callbacks have announced them."""

import queue
from functools import partial

import program
import simple
from tensorrtserver.api import InferContext


def announce(completed, index, context, request_id):
    """A thread of the library calls this when a response has arrived; the first arguments are ours."""
    print(f"Callback {index} is called")
    completed.put((context, request_id, index))


def main():
    flags = program.parse(program.parser(__doc__))
    context = simple.context(flags, "simple")
    input0, input1 = simple.inputs()
    completed = queue.Queue()
    requests = 2
    for index in range(requests):
        context.async_run(
            partial(announce, completed, index),
            {"INPUT0": [input0], "INPUT1": [input1]},
            {"OUTPUT0": InferContext.ResultFormat.RAW, "OUTPUT1": InferContext.ResultFormat.RAW},
            batch_size=1)

    for _ in range(requests):
        context, request_id, index = completed.get()
        result = context.get_async_run_results(request_id)
        sums, differences = result["OUTPUT0"][0], result["OUTPUT1"][0]
        print(f"Main thread retrieved request {index}'s results:")
        print(sums)
        print(differences)
        simple.check(input0, input1, sums, differences, show=False)


if __name__ == "__main__":
    program.run(main)

#!/usr/bin/env python3
"""Sends two sequences of numbers to a model that adds them up: `simple_sequence`, or with -d `simple_dyna_sequence`."""

import queue
import sys

import numpy as np
import program
from tensorrtserver.api import InferContext, InferRequestHeader, ProtocolType

VALUES = [11, 7, 5, 3, 2, 0, 1]


def steps(first, sign):
    """The values of a sequence, each with its flags."""
    yield first, InferRequestHeader.FLAG_SEQUENCE_START
    for index, value in enumerate(VALUES):
        last = index + 1 == len(VALUES)
        yield sign * value, InferRequestHeader.FLAG_SEQUENCE_END if last else InferRequestHeader.FLAG_NONE


def tensors(value):
    return {"INPUT": [np.array([value], dtype=np.int32)]}, {"OUTPUT": InferContext.ResultFormat.RAW}


def number(result):
    return int(result["OUTPUT"][0][0])


def run(context, sequence):
    """One request after the other; the context has the correlation id."""
    return [number(context.run(*tensors(value), batch_size=1, flags=flags)) for value, flags in sequence]


def run_interleaved(context, ids, sequences):
    """All requests at once, over one stream: it keeps their order."""
    completed = [queue.Queue() for _ in ids]
    for parts in zip(*sequences):
        for arrived, correlation_id, (value, flags) in zip(completed, ids, parts):
            announce = lambda context, request_id, arrived=arrived: arrived.put(request_id)  # noqa: E731
            context.async_run(announce, *tensors(value), batch_size=1, flags=flags, corr_id=correlation_id)
    count = len(VALUES) + 1
    return [[number(context.get_async_run_results(arrived.get())) for _ in range(count)] for arrived in completed]


def main():
    parser = program.parser(__doc__, url="localhost:8001", protocol=False)
    parser.add_argument("-a", "--async", dest="at_once", action="store_true", help="Enable asynchronous inference")
    parser.add_argument("-r", "--reverse", action="store_true", help="Run non-streaming context first")
    parser.add_argument("-d", "--dyna", action="store_true", help="Use the dynamic sequence model")
    parser.add_argument("-o", "--offset", type=program.number(0), default=0, help="Add twice this number to the correlation ids")
    flags = program.parse(parser)

    model = "simple_dyna_sequence" if flags.dyna else "simple_sequence"
    # Zero is not a correlation id.
    ids = [1000 + 2 * flags.offset, 1001 + 2 * flags.offset]
    streams = InferContext(flags.url, ProtocolType.GRPC, model, -1, flags.verbose, ids[0], streaming=True)
    sequences = steps(0, 1), steps(100, -1)
    if flags.at_once:
        order = "streaming : streaming"
        results = run_interleaved(streams, ids, sequences)
    else:
        # Without a stream, requests that are sent at once may overtake each other: each waits for
        # its response.
        single = InferContext(flags.url, ProtocolType.GRPC, model, -1, flags.verbose, ids[1])
        contexts = [single, streams] if flags.reverse else [streams, single]
        order = "non-streaming : streaming" if flags.reverse else "streaming : non-streaming"
        results = [run(context, sequence) for context, sequence in zip(contexts, sequences)]
        ids = [context.correlation_id() for context in contexts]

    print(order)
    expected = [0, 100]
    for index, (first, second) in enumerate(zip(*results)):
        print(f"[{index}] {first} : {second}")
        if [first, second] != expected:
            print(f"[ expected ] {expected[0]} : {expected[1]}")
            sys.exit(1)
        if index < len(VALUES):
            expected = [expected[0] + VALUES[index], expected[1] - VALUES[index]]
            # The dynamic model adds the correlation id to the last sum.
            if flags.dyna and index + 1 == len(VALUES):
                expected = [total + correlation_id for total, correlation_id in zip(expected, ids)]


if __name__ == "__main__":
    program.run(main)

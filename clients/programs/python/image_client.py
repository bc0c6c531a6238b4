#!/usr/bin/env python3
"""Classifies pictures with a model whose input is a picture and whose output is a vector of classes."""

import queue
from functools import partial

import classification
import program
from tensorrtserver.api import InferContext, ServerStatusContext


def main():
    parser = program.parser(__doc__, headers=True)
    classification.flags_of_model(parser)
    classification.flags_of_pictures(parser)
    flags = program.parse(parser)

    status = ServerStatusContext(flags.url, flags.protocol, flags.model_name, flags.verbose, flags.http_headers)
    config = classification.config_in(status.get_server_status(), flags.model_name)
    model = classification.Model(config, flags.batch_size)
    context = InferContext(flags.url, flags.protocol, flags.model_name, flags.model_version, flags.verbose, 0,
                           flags.streaming, flags.http_headers)

    filenames = classification.filenames_in(flags.image_filename)
    pictures = [(name, classification.picture(name, model, flags.scaling)) for name in filenames]

    results, completed, sent = {}, queue.Queue(), []
    for number, batch in enumerate(classification.batches(pictures, flags.batch_size)):
        inputs = {model.input: [pixels for _, pixels in batch]}
        outputs = {model.output: (InferContext.ResultFormat.CLASS, flags.classes)}
        sent.append([name for name, _ in batch])
        if flags.at_once:
            announce = partial(lambda number, _, request_id: completed.put((number, request_id)), number)
            context.async_run(announce, inputs, outputs, flags.batch_size)
        else:
            results[number] = context.run(inputs, outputs, flags.batch_size)
    while len(results) < len(sent):
        number, request_id = completed.get()
        results[number] = context.get_async_run_results(request_id)

    for number, names in enumerate(sent):
        print(f"Request {number}, batch size {flags.batch_size}")
        classification.show(names, results[number][model.output])


if __name__ == "__main__":
    program.run(main)

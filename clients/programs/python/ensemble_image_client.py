#!/usr/bin/env python3
"""Classifies pictures with the ensemble `preprocess_resnet50_ensemble`: the server reads and scales them."""

import classification
import numpy as np
import program
from tensorrtserver.api import InferContext, ServerStatusContext

MODEL = "preprocess_resnet50_ensemble"


def contents(filename):
    with open(filename, "rb") as file:
        data = file.read()
    if not data:
        raise program.Refused(f"unable to read image file {filename}")
    return np.array([data], dtype=np.bytes_)


def main():
    parser = program.parser(__doc__)
    classification.flags_of_pictures(parser)
    flags = program.parse(parser)

    status = ServerStatusContext(flags.url, flags.protocol, MODEL, flags.verbose)
    config = classification.config_in(status.get_server_status(), MODEL)
    context = InferContext(flags.url, flags.protocol, MODEL, -1, flags.verbose)

    # One request, so the pictures are limited to the largest batch.
    filenames = classification.filenames_in(flags.image_filename)
    if len(filenames) > config.max_batch_size:
        print("The number of images exceeds maximum batch size,only the first "
              f"{config.max_batch_size} images, sorted by name alphabetically,  will be processed")
        filenames = filenames[:config.max_batch_size]
    result = context.run(
        {config.input[0].name: [contents(name) for name in filenames]},
        {config.output[0].name: (InferContext.ResultFormat.CLASS, flags.classes)},
        len(filenames))
    classification.show(filenames, result[config.output[0].name])


if __name__ == "__main__":
    program.run(main)

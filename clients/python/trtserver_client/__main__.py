# SPDX-License-Identifier: Apache-2.0
"""Tries a server: `python -m trtserver_client URL [MODEL]`. Exit status 1 if something fails.

Prints the server's metadata and its models. With a model, sends zeros to it and prints the outputs.
"""

from __future__ import annotations

import argparse
import sys
from typing import Dict, List, Optional

import numpy as np

from trtserver_client import Client, InferenceError, ModelMetadata, __version__
from trtserver_client._request import DATATYPES
from trtserver_client._types import Input, Tensor

_DTYPES = {value.decode(): np.dtype(key) for key, value in DATATYPES.items()}


def _zeros(metadata: ModelMetadata) -> Dict[str, Input]:
    """An input for each of the model, with 1 for variable dimensions."""
    inputs: Dict[str, Input] = {}
    for tensor in metadata.inputs:
        shape = [max(size, 1) for size in tensor.shape]
        if tensor.datatype == "BYTES":
            inputs[tensor.name] = np.full(shape, b"0", object)
        elif tensor.datatype == "BF16":
            inputs[tensor.name] = Tensor(np.zeros(shape, np.float32), "BF16")
        else:
            inputs[tensor.name] = np.zeros(shape, _DTYPES[tensor.datatype])
    return inputs


def _try(client: Client, model: Optional[str]) -> None:
    server = client.server_metadata()
    print(f"server {server.name} {server.version}, ready: {str(client.is_ready()).lower()}")
    for entry in client.repository_index():
        version = f" version {entry.version}" if entry.version else ""
        print(f"model {entry.name}{version}: {entry.state or 'not loaded'}{' ' + entry.reason if entry.reason else ''}")
    if model is None:
        return
    result = client.infer(model, _zeros(client.model_metadata(model)))
    for name in result.outputs:
        print(f"output {name} {result.datatype(name)} {list(result.shape(name))}")


def main(arguments: Optional[List[str]] = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m trtserver_client", description="Tries a server (v2).")
    parser.add_argument("url", nargs="?", default="localhost:8000", help="[http://]HOST:PORT or grpc://HOST:PORT")
    parser.add_argument("model", nargs="?", help="sends zeros to this model")
    parser.add_argument("--timeout", type=float, default=10.0, metavar="SECONDS", help="of each call (default 10)")
    parser.add_argument("--version", action="version", version=__version__)
    given = parser.parse_args(arguments)
    try:
        with Client(given.url, deadline=given.timeout) as client:
            _try(client, given.model)
    except InferenceError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Writes operator tests of the `onnx` package with empty tensors to `onnx_operators/`: make.py runs it.

Each folder has a model without a configuration, and `case.json`: the inputs of a v2 request and the outputs of its
response, both as JSON. Clients write a scalar as [ 1 ].
"""

import json
import pathlib

import numpy
from onnx.backend.test.case.node import collect_testcases

HERE = pathlib.Path(__file__).resolve().parent / "onnx_operators"
NAMES = [
    "test_reduce_sum_default_axes_keepdims_example",  # an input of no elements beside one of many
    "test_reduce_sum_empty_set",
    "test_reduce_sum_empty_set_non_reduced_axis_zero",
    "test_regex_full_match_empty",  # strings
    "test_split_zero_size_splits_opset13",  # three empty outputs
    "test_tril_zero",
]
TYPES = {"float32": "FP32", "int64": "INT64", "bool": "BOOL", "object": "BYTES"}


def tensor(info, values):
    values = numpy.asarray(values)
    return {"name": info.name, "datatype": TYPES[values.dtype.name], "shape": list(values.shape) or [1],
            "data": values.reshape(-1).tolist()}


def make():
    for case in collect_testcases(None):
        if case.name in NAMES:
            folder = HERE / case.name.removeprefix("test_") / "1"
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "model.onnx").write_bytes(case.model.SerializeToString(deterministic=True))
            [(inputs, outputs)] = case.data_sets
            graph = case.model.graph
            contents = {"inputs": list(map(tensor, graph.input, inputs)),
                        "outputs": list(map(tensor, graph.output, outputs))}
            (folder.parent / "case.json").write_text(json.dumps(contents) + "\n")


if __name__ == "__main__":
    make()

"""Writes the models of examples/models, all but `digits` (which digits/train.py makes) and `row_totals` (a text file)."""

import pathlib

from onnx import helper, numpy_helper
import numpy

from onnx_models import Tensor, addsub, identity, write

MODELS = pathlib.Path(__file__).parent / "models"


def main():
    addsub(MODELS, "addsub_fp32", "FP32", 8)
    addsub(MODELS, "addsub_int32", "INT32", 8)
    # The name and the shapes that the sample programs of the old client expect.
    addsub(MODELS, "simple", "INT32", 8)
    identity(MODELS, "identity_string", "STRING", 8)
    write(
        MODELS, "dynamic_shape",
        [Tensor("INPUT", "FP32", [-1, -1])],
        [Tensor("DOUBLED", "FP32", [-1, -1]), Tensor("ROW_SUMS", "FP32", [-1])],
        {1: [helper.make_node("Add", ["INPUT", "INPUT"], ["DOUBLED"]),
             helper.make_node("ReduceSum", ["INPUT", "last"], ["ROW_SUMS"], keepdims=0)]},
        max_batch_size=0,
        initializers=[numpy_helper.from_array(numpy.array([-1], numpy.int64), "last")],
    )


if __name__ == "__main__":
    main()

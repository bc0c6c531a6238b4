"""What the Python packages of LightGBM and XGBoost predict: the file of tests/models/make_trees.py."""

import json

import numpy as np


def expected():
    """The rows, and the scores of each model."""
    with open("tests/models/trees/expected.json") as file:
        data = json.load(file)
    rows = np.array(data["rows"], np.float64).astype(np.float32)
    models = {}
    for name, values in data["models"].items():
        scores = np.array(values["scores"], np.float64).astype(np.float32)
        models[name] = scores.reshape(len(rows), -1)
    return rows, models


def assert_equal(got, scores):
    """Equal, but for the last digit of exponential functions, which round by the processor."""
    assert got.dtype == np.float32, got.dtype
    np.testing.assert_allclose(got, scores, rtol=4e-7, atol=1e-8)

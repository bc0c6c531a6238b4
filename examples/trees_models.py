#!/usr/bin/env python3
"""Trains the digits classifier as decision trees of LightGBM and of XGBoost, and writes examples/models-trees.

The data and the split are those of digits/train.py. Needs examples/requirements-trees.txt; serving needs the libraries
alone.
"""

import pathlib
import sys

import lightgbm
import numpy
import xgboost
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

HERE = pathlib.Path(__file__).resolve().parent / "models-trees"
CLASSES = {"num_class": 10, "seed": 1}


def main():
    data = load_digits()
    ink = (data.images / 16.0).astype(numpy.float32).reshape(-1, 64)
    train_x, test_x, train_y, test_y = train_test_split(
        ink, data.target, test_size=1 / 3, random_state=1, stratify=data.target)

    parameters = {"objective": "multiclass", "num_leaves": 8, "learning_rate": 0.4, "verbose": -1, **CLASSES}
    trees = lightgbm.train(parameters, lightgbm.Dataset(train_x, train_y), 12)
    report("LightGBM", trees.predict(test_x), test_y)
    trees.save_model(folder("digits_lightgbm") / "model.txt")

    parameters = {"objective": "multi:softprob", "max_depth": 4, "eta": 0.4, **CLASSES}
    trees = xgboost.train(parameters, xgboost.DMatrix(train_x, train_y), 12)
    report("XGBoost", trees.predict(xgboost.DMatrix(test_x)), test_y)
    trees.save_model(folder("digits_xgboost") / "model.ubj")


def folder(name):
    version = HERE / name / "1"
    version.mkdir(parents=True, exist_ok=True)
    return version


def report(name, scores, expected):
    accuracy = (scores.argmax(axis=1) == expected).mean()
    print(f"{name}: {accuracy:.1%} of the held-out pictures right")
    if accuracy < 0.93:
        sys.exit("not good enough to be shown")


if __name__ == "__main__":
    main()

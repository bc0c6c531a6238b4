#!/usr/bin/env python3
"""Trains scikit-learn on its handwritten digits, and writes the estimator and the model that serves it.

    python3 examples/sklearn/train.py --into models

makes models/digits_sklearn. A pickle is code, and loads with the release of scikit-learn that wrote it: train with the
packages that the server's Python models import (docs/examples.md).
"""

import argparse
import pathlib
import pickle
import shutil

from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

HERE = pathlib.Path(__file__).resolve().parent


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--into", type=pathlib.Path, default=pathlib.Path("models"), help="the model repository")
    version = arguments.parse_args().into / "digits_sklearn/1"
    pixels, digits = load_digits(return_X_y=True)
    train_x, test_x, train_y, test_y = train_test_split(pixels, digits, random_state=0)
    estimator = make_pipeline(StandardScaler(), LogisticRegression(max_iter=500)).fit(train_x, train_y)
    version.mkdir(parents=True, exist_ok=True)
    (version / "estimator.pkl").write_bytes(pickle.dumps(estimator))
    shutil.copy(HERE / "model.py", version)
    print(f"made {version.parent}: {estimator.score(test_x, test_y):.1%} of {len(test_y)} digits are right")


if __name__ == "__main__":
    main()

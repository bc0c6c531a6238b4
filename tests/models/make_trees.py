#!/usr/bin/env python3
"""Writes the models of LightGBM and XGBoost to tests/models/trees, and to its file expected.json what
their Python packages predict. Needs lightgbm 4.7.0, xgboost 3.2.0 and numpy.

Six features: the first five are numbers, some of them missing, the last is a category.
"""

import json
import pathlib

import lightgbm
import numpy as np
import xgboost

HERE = pathlib.Path(__file__).parent / "trees"
ROWS = 20
random = np.random.default_rng(7)
X = random.normal(size=(400, 6)).astype(np.float32)
X[:, 5] = random.integers(0, 5, 400)
X[random.random(X.shape) < 0.1] = np.nan
target = np.nansum(X[:, :3] * [1, -2, 0.5], axis=1) + np.where(X[:, 5] == 3, 2, 0)
classes = np.digitize(target, [-1, 1])
expected = {}


def numbers(values):
    """A nested list of texts, with the digits that a number needs: parsers of JSON may round numbers."""
    if np.ndim(values):
        return [numbers(value) for value in values]
    return repr(float(values))


def record(name, scores, leaves, contributions):
    expected[name] = {
        "scores": numbers(scores), "leaves": numbers(leaves), "shap": numbers(contributions),
    }


def lgbm(name, label, trees=4, columns=X, **parameters):
    parameters = {"num_leaves": 6, "verbose": -1, "num_threads": 1, "seed": 1, "deterministic": True,
                  "force_row_wise": True, **parameters}
    categorical = [] if parameters.get("linear_tree") else [5]
    data = lightgbm.Dataset(columns, label, categorical_feature=categorical)
    model = lightgbm.train(parameters, data, trees)
    folder = HERE / name / "1"
    folder.mkdir(parents=True, exist_ok=True)
    model.save_model(folder / "model.txt")
    model = lightgbm.Booster(model_file=folder / "model.txt")
    rows = X[:ROWS]
    linear = parameters.get("linear_tree")
    record(name, model.predict(rows), model.predict(rows, pred_leaf=True),
           [] if linear else model.predict(rows, pred_contrib=True))


def xgb(name, file, label, trees=4, **parameters):
    parameters = {"max_depth": 3, "nthread": 1, "seed": 1, **parameters}
    types = ["float"] * 5 + ["c"]
    data = xgboost.DMatrix(X, label, feature_types=types, enable_categorical=True)
    folder = HERE / name / "1"
    folder.mkdir(parents=True, exist_ok=True)
    xgboost.train(parameters, data, trees).save_model(folder / file)
    model = xgboost.Booster(model_file=folder / file)
    rows = xgboost.DMatrix(X[:ROWS], feature_types=types, enable_categorical=True)
    record(name, model.predict(rows), model.predict(rows, pred_leaf=True),
           model.predict(rows, pred_contribs=True))


lgbm("lgbm_binary", target > 0, objective="binary")
lgbm("lgbm_regression", target, objective="regression")
lgbm("lgbm_three", classes, objective="multiclass", num_class=3, trees=3)
lgbm("lgbm_dart", target, objective="regression", boosting="dart", drop_rate=0.5)
lgbm("lgbm_linear", target, objective="regression", linear_tree=True)
lgbm("lgbm_forest", target, objective="regression", boosting="rf", bagging_freq=1, bagging_fraction=0.5)
xgb("xgb_binary", "model.json", target > 0, objective="binary:logistic")
xgb("xgb_regression", "model.ubj", target, objective="reg:squarederror")
xgb("xgb_three", "model.ubj", classes, objective="multi:softprob", num_class=3, trees=3)
xgb("xgb_class", "model.json", classes, objective="multi:softmax", num_class=3, trees=3)
xgb("xgb_dart", "model.ubj", target, booster="dart", rate_drop=0.5)
xgb("xgb_forest", "model.ubj", target, num_parallel_tree=2, trees=2)
(HERE / "expected.json").write_text(
    json.dumps({"rows": numbers(X[:ROWS]), "models": expected}, separators=(",", ":")) + "\n")

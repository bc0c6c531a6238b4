"""Models of LightGBM and XGBoost predict as their Python packages; with tests/wire/frameworks/with_trees.rs."""

import numpy as np

import checks
import trees
import v2_clients


class Calls:
    """The same calls over both wires."""

    def ask(self, model, rows):
        tensor = self.library.InferInput("input__0", list(rows.shape), "FP32")
        tensor.set_data_from_numpy(rows)
        return self.client.infer(model, [tensor]).as_numpy("output__0")

    def test_all_models(self):
        rows, models = trees.expected()
        for name, scores in models.items():
            with self.subTest(name):
                trees.assert_equal(self.ask(name, rows), scores)
                trees.assert_equal(self.ask(name, rows[3:4]), scores[3:4])

    def test_many_rows(self):
        rows, models = trees.expected()
        for name in ("lgbm_three", "xgb_three"):
            scores = self.ask(name, np.tile(rows, (1000, 1)))
            trees.assert_equal(scores, np.tile(models[name], (1000, 1)))


class Http(Calls, v2_clients.HttpCase):
    pass


class Grpc(Calls, v2_clients.GrpcCase):
    pass


if __name__ == "__main__":
    checks.run()

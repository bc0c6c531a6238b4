"""Trace settings by the unmodified tritonclient, over both wires, for the models `a` and `b`."""

import unittest

import tritonclient.grpc as grpc
import tritonclient.http as http
from tritonclient.utils import InferenceServerException

import checks


class Settings:
    """`self.shown` returns the settings of a model, lists over both wires."""

    def test_update_and_clear(self):
        start = self.shown()
        changed = self.update("a", {"trace_level": ["TIMESTAMPS", "TENSORS"], "trace_rate": "3"})
        self.assertEqual((changed["trace_level"], changed["trace_rate"]), (["TIMESTAMPS", "TENSORS"], ["3"]))
        self.assertEqual(self.shown("a"), changed)
        self.assertEqual(self.shown("b"), start)
        self.assertEqual(self.update(None, {"trace_count": "8", "log_frequency": "2"})["trace_count"], ["8"])
        self.assertEqual((self.shown("a")["trace_count"], self.shown("a")["trace_rate"]), (["8"], ["3"]))
        self.assertEqual(self.shown("b")["log_frequency"], ["2"])
        self.update(None, {"trace_count": None, "log_frequency": None})
        self.assertEqual(self.update("a", {"trace_level": None, "trace_rate": None}), start)
        self.assertEqual(self.shown(), start)

    def test_refusals(self):
        for settings, text in (
                ({"trace_rate": "x"}, "Unable to parse 'trace_rate', got: x"),
                ({"trace_count": "-2"}, "Unable to parse 'trace_count'. Expecting value >= -1, got:-2"),
                ({"trace_level": ["OFF", "TENSORS"]}, "Expect only one trace level 'OFF' is specified"),
                ({"trace_file": "/x"}, "trace file location can not be updated through network protocol")):
            for model in (None, "a"):
                with self.subTest(text, model=model), self.assertRaises(InferenceServerException) as caught:
                    self.update(model, settings)
                self.assertIn(text, str(caught.exception))
        with self.assertRaises(InferenceServerException) as caught:
            self.shown("absent")
        self.assertIn("Request for unknown model : absent", str(caught.exception))


class Http(Settings, unittest.TestCase):
    def setUp(self):
        self.client = http.InferenceServerClient(checks.HTTP)
        self.addCleanup(self.client.close)

    @staticmethod
    def lists(settings):
        return {key: value if isinstance(value, list) else [value] for key, value in settings.items()}

    def shown(self, model=None):
        return self.lists(self.client.get_trace_settings(model_name=model))

    def update(self, model, settings):
        return self.lists(self.client.update_trace_settings(model_name=model, settings=settings))


class Grpc(Settings, unittest.TestCase):
    def setUp(self):
        self.client = grpc.InferenceServerClient(checks.GRPC)
        self.addCleanup(self.client.close)

    @staticmethod
    def lists(response):
        return {key: list(value.value) for key, value in response.settings.items()}

    def shown(self, model=None):
        return self.lists(self.client.get_trace_settings(model_name=model))

    def update(self, model, settings):
        return self.lists(self.client.update_trace_settings(model_name=model, settings=settings))

    def test_one_value_is_expected(self):
        with self.assertRaises(InferenceServerException) as caught:
            self.update("a", {"trace_rate": ["1", "2"]})
        self.assertIn("expect only 1 value for 'trace_rate'", str(caught.exception))


if __name__ == "__main__":
    checks.run()

"""The status in text and JSON, read by the parsers of the v1 client's own messages, which refuse fields that they do not know."""

import urllib.request

from google.protobuf import json_format, text_format

import checks
from trtis_client import server_status_pb2


class Status(checks.Case):
    def fetch(self, query=""):
        with urllib.request.urlopen(f"http://{checks.HTTP}/api/status{query}") as response:
            return response.read().decode()

    def check(self, status):
        self.assertEqual(status.version, "1.11.0")
        self.assertEqual(status.ready_state, server_status_pb2.SERVER_READY)
        model = status.model_status["echo"]
        self.assertEqual((model.config.name, model.config.max_batch_size), ("echo", 8))
        self.assertEqual(model.version_status[1].infer_stats[1].success.count, 1)

    def test_text(self):
        self.check(text_format.Parse(self.fetch(), server_status_pb2.ServerStatus()))

    def test_json(self):
        text = self.fetch("?format=json")
        self.assertIn('"modelStatus"', text)
        self.check(json_format.Parse(text, server_status_pb2.ServerStatus()))

    def test_binary(self):
        with urllib.request.urlopen(f"http://{checks.HTTP}/api/status?format=binary") as response:
            self.check(server_status_pb2.ServerStatus.FromString(response.read()))


if __name__ == "__main__":
    checks.run()

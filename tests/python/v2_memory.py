"""`memory_usage` of the statistics with the v2 clients. The server is that of tests/wire/memory.rs."""

import threading

import numpy as np
import tritonclient.grpc
import tritonclient.http

import checks

VALUES = np.ones((1, 1 << 18), np.float32)  # 1 MiB


class Memory(checks.Case):
    MODULE = None

    def setUp(self):
        self.client = self.MODULE.InferenceServerClient(self.url())
        self.addCleanup(self.client.close)

    def infer(self):
        with self.MODULE.InferenceServerClient(self.url()) as client:
            tensor = self.MODULE.InferInput("INPUT0", VALUES.shape, "FP32")
            tensor.set_data_from_numpy(VALUES)
            np.testing.assert_array_equal(client.infer("slow", [tensor]).as_numpy("OUTPUT0"), VALUES)

    def held(self):
        """Bytes of CPU memory."""
        [entry] = self.statistics()["model_stats"]
        usage = entry.get("memory_usage", [])
        self.assertEqual([(u["type"], int(u.get("id", 0))) for u in usage], [("CPU", 0)] * len(usage))
        return sum(int(u["byte_size"]) for u in usage)

    def test_input_of_a_running_request_is_shown(self):
        self.becomes(self.held, 0)
        request = threading.Thread(target=self.infer)
        request.start()
        self.becomes(lambda: self.held() >= VALUES.nbytes, True)
        request.join()
        self.becomes(self.held, 0)


class Http(Memory):
    MODULE = tritonclient.http

    def url(self):
        return checks.HTTP

    def statistics(self):
        return self.client.get_inference_statistics("slow")


class Grpc(Memory):
    MODULE = tritonclient.grpc

    def url(self):
        return checks.GRPC

    def statistics(self):
        return self.client.get_inference_statistics("slow", as_json=True)


del Memory
if __name__ == "__main__":
    checks.run()

"""Resident memory after large tensors, while their connections stay open. The server is that of tests/wire/memory.rs."""

import threading
import urllib.request

import numpy as np
import tritonclient.grpc

import checks

SAMPLE = 'trtserver_process_memory_bytes{state="resident"}'
SMALL = np.ones((1, 16), np.float32)
LARGE = np.ones((1, 4 << 20), np.float32)  # 16 MiB


def resident():
    page = urllib.request.urlopen(f"http://{checks.METRICS}/metrics", timeout=60).read().decode()
    [line] = [line for line in page.splitlines() if line.startswith(SAMPLE)]
    return float(line.rpartition(" ")[2])


def infer(client, values):
    tensor = tritonclient.grpc.InferInput("INPUT0", values.shape, "FP32")
    tensor.set_data_from_numpy(values)
    np.testing.assert_array_equal(client.infer("echo", [tensor]).as_numpy("OUTPUT0"), values)


class ResidentMemory(checks.Case):
    def test_memory_returns_to_the_system(self):
        clients = [tritonclient.grpc.InferenceServerClient(checks.GRPC) for _ in range(4)]
        for client in clients:
            self.addCleanup(client.close)
            for _ in range(20):
                infer(client, SMALL)
        before = resident()
        threads = [threading.Thread(target=lambda c=c: [infer(c, LARGE) for _ in range(4)]) for c in clients]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertGreater(resident(), 1.5 * before)
        self.becomes(lambda: resident() <= 1.5 * before, True)


if __name__ == "__main__":
    checks.run()

"""Requests per second of our Python wheel beside those of PyPI's `tensorrtserver` (v1) and `tritonclient` (v2).

    benches/python_clients.py [--dist target/dist] [--seconds 3] [--rounds 4]

Starts the server of the install on an identity model. Each client runs alone in a process of its own, one request at a time, in
rounds of changing order, so that both clients of a pair meet the same machine. Figures are medians of the rounds. Needs
`cargo xtask build`, `cargo xtask runtimes` and `cargo xtask python`.
"""

import argparse
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[1]
MODEL = "identity_fp32"
PAIRS = {"v1": ("tensorrtserver 1.11.0", "wheel"), "v2": ("tritonclient", "wheel")}
#: Bytes of the tensor.
SIZES = {"64 B": 64, "16 MiB": 16 << 20}


def v1(url, wire, array):
    if PATCH in sys.argv:
        sys.path.insert(0, str(ROOT / "tests/python"))
        import trtis_client  # noqa: F401  (adapts the package of 2020 to newer versions of protobuf)
    from tensorrtserver.api import InferContext, ProtocolType

    context = InferContext(url, ProtocolType.from_str(wire), MODEL)
    raw = InferContext.ResultFormat.RAW
    values = array.reshape(-1)
    return lambda: context.run({"INPUT0": [values]}, {"OUTPUT0": raw})["OUTPUT0"][0]


PATCH = "--patch"


def v2_tritonclient(url, wire, array):
    import importlib

    module = importlib.import_module(f"tritonclient.{wire}")
    client = module.InferenceServerClient(url)

    def call():
        tensor = module.InferInput("INPUT0", array.shape, "FP32")
        tensor.set_data_from_numpy(array)
        return client.infer(MODEL, [tensor]).as_numpy("OUTPUT0")

    return call


def v2_wheel(url, wire, array):
    from trtserver_client import Client

    client = Client(f"{wire}://{url}")
    return lambda: client.infer(MODEL, {"INPUT0": array})["OUTPUT0"]


def measure(generation, client, wire, url, size, seconds):
    """Runs in the process of one client. Prints requests per second and CPU seconds per request."""
    import numpy as np

    array = np.arange(size // 4, dtype=np.float32).reshape(1, -1)
    make = v1 if generation == "v1" else v2_wheel if client == "wheel" else v2_tritonclient
    call = make(url, wire, array)
    for _ in range(20):
        got = call()
    assert got.reshape(-1)[-1] == array[0, -1], got
    count, start, cpu = 0, time.perf_counter(), time.process_time()
    while (now := time.perf_counter()) < start + seconds:
        call()
        count += 1
    print(count / (now - start), (time.process_time() - cpu) / count)


def run(generation, client, wire, url, size, seconds, packages):
    python = ROOT / "target/python" / ("v1/run" if generation == "v1" else "v2/bin/python")
    environment = dict(os.environ)
    arguments = [str(python), __file__, "--measure", generation, client, wire, url, str(size), str(seconds)]
    if client == "wheel":
        environment["PYTHONPATH"] = packages
    elif generation == "v1":
        arguments.append(PATCH)
    done = subprocess.run(arguments, env=environment, check=True, stdout=subprocess.PIPE, encoding="utf-8")
    rate, cpu = done.stdout.split()
    return float(rate), float(cpu)


def wait_until_ready(http, process):
    while process.poll() is None:
        try:
            urllib.request.urlopen(f"http://{http}/v2/health/ready", timeout=5)
            return
        except OSError:
            time.sleep(0.05)
    sys.exit("the server has ended")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dist", type=pathlib.Path, default=ROOT / "target/dist", help="install with the server")
    parser.add_argument("--wheel", type=pathlib.Path, help="wheel (default: that of the install)")
    parser.add_argument("--seconds", type=float, default=3, help="of each run")
    parser.add_argument("--rounds", type=int, default=4)
    given = parser.parse_args()
    wheel = given.wheel or next((given.dist / "python").glob("*.whl"))
    with tempfile.TemporaryDirectory() as folder:
        models, packages = pathlib.Path(folder, "models"), str(pathlib.Path(folder, "packages"))
        shutil.copytree(ROOT / "tests/models" / MODEL, models / MODEL)
        pip = [str(ROOT / "target/python/v2/bin/python"), "-m", "pip", "install", "--quiet", "--no-deps", "--no-index"]
        subprocess.run([*pip, "--target", packages, str(wheel)], check=True)
        http, grpc = "127.0.0.1:18900", "127.0.0.1:18901"
        server = subprocess.Popen(
            [str(given.dist / "bin/trtserver"), f"--model-repository={models}", "--http-port=18900",
             "--grpc-port=18901", "--metrics-port=18902"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            wait_until_ready(http, server)
            print(f"{'tensor':8}{'protocol':12}{'client':24}{'requests/s':>12}{'CPU us':>10}{'ratio':>8}")
            for title, size in SIZES.items():
                for generation, clients in PAIRS.items():
                    for wire, url in (("http", http), ("grpc", grpc)):
                        compare(title, size, generation, clients, wire, url, given, packages)
        finally:
            server.terminate()
            server.wait()


def compare(title, size, generation, clients, wire, url, given, packages):
    figures = {client: [] for client in clients}
    for number in range(given.rounds):
        for client in clients if number % 2 == 0 else reversed(clients):
            figures[client].append(run(generation, client, wire, url, size, given.seconds, packages))
    medians = {client: [statistics.median(column) for column in zip(*rows)] for client, rows in figures.items()}
    for client, (rate, cpu) in medians.items():
        ratio = rate / medians[clients[0]][0]
        print(f"{title:8}{generation + ' ' + wire:12}{client:24}{rate:12.0f}{cpu * 1e6:10.0f}{ratio:8.2f}", flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--measure"]:
        measure(*sys.argv[2:6], int(sys.argv[6]), float(sys.argv[7]))
    else:
        main()

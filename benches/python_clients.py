"""Requests per second of our Python wheel beside those of PyPI's `tensorrtserver` (v1) and `tritonclient` (v2).

    benches/python_clients.py [--dist target/dist] [--seconds 3] [--rounds 4]

Starts the server of the install on an identity model. Each client runs alone in a process of its own, with one request at a time
and with 16 in flight (`async_run` with callbacks in v1, asyncio in v2), in rounds of changing order, so that both clients of a pair
meet the same machine. The `bare socket` is a C program that sends the same bytes again and again (`ping_pong.c`): no client can be
faster one request at a time. Figures are medians of the rounds; the CPU time is that of the client's process, user and system. Needs
`cargo xtask build`, `cargo xtask runtimes`, `cargo xtask python` and a C compiler.
"""

import argparse
import asyncio
import os
import pathlib
import queue
import shutil
import statistics
import struct
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
#: Requests at a time, for each size.
IN_FLIGHT = {"64 B": (1, 16), "16 MiB": (1,)}
PORTS = {"http": 18900, "grpc": 18901}


def v1_context(url, wire):
    if PATCH in sys.argv:
        sys.path.insert(0, str(ROOT / "tests/python"))
        import trtis_client  # noqa: F401  (adapts the package of 2020 to newer versions of protobuf)
    from tensorrtserver.api import InferContext, ProtocolType

    return InferContext(url, ProtocolType.from_str(wire), MODEL)


def v1(url, wire, array):
    context = v1_context(url, wire)
    raw, values = context.ResultFormat.RAW, array.reshape(-1)
    return lambda: context.run({"INPUT0": [values]}, {"OUTPUT0": raw})["OUTPUT0"][0]


def v1_in_flight(url, wire, array, count):
    """Returns a function that completes one request and sends another."""
    context, done = v1_context(url, wire), queue.SimpleQueue()
    raw, values = context.ResultFormat.RAW, array.reshape(-1)

    def send():
        context.async_run(lambda ctx, id: done.put(id), {"INPUT0": [values]}, {"OUTPUT0": raw})

    def call():
        result = context.get_async_run_results(done.get())["OUTPUT0"][0]
        send()
        return result

    for _ in range(count):
        send()
    return call


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


def v2_in_flight(client, wire, url, array, count, seconds):
    """Completed requests and seconds of `count` tasks, each with one request at a time."""
    import importlib

    async def with_wheel():
        from trtserver_client import AsyncClient

        client = AsyncClient(f"{wire}://{url}")
        return client.close, lambda: client.infer(MODEL, {"INPUT0": array})

    async def with_tritonclient():
        module = importlib.import_module(f"tritonclient.{wire}.aio")
        client = module.InferenceServerClient(url)

        def call():
            tensor = module.InferInput("INPUT0", array.shape, "FP32")
            tensor.set_data_from_numpy(array)
            return client.infer(MODEL, [tensor])

        return client.close, call

    async def work(call, end):
        done = 0
        while time.perf_counter() < end:
            result = await call()
            assert (result["OUTPUT0"] if client == "wheel" else result.as_numpy("OUTPUT0")).size == array.size
            done += 1
        return done

    async def run():
        close, call = await (with_wheel if client == "wheel" else with_tritonclient)()
        await work(call, time.perf_counter() + seconds / 10)
        start, cpu = time.perf_counter(), time.process_time()
        done = await asyncio.gather(*[work(call, start + seconds) for _ in range(count)])
        measured = sum(done), time.perf_counter() - start, time.process_time() - cpu
        closing = close()
        if closing is not None:
            await closing
        return measured

    return asyncio.run(run())


def measure(generation, client, wire, url, size, in_flight, seconds):
    """Runs in the process of one client. Prints requests per second and CPU seconds per request."""
    import numpy as np

    array = np.arange(size // 4, dtype=np.float32).reshape(1, -1)
    if generation == "v2" and in_flight > 1:
        count, seconds, cpu = v2_in_flight(client, wire, url, array, in_flight, seconds)
        print(count / seconds, cpu / count)
        return
    if in_flight > 1:
        call = v1_in_flight(url, wire, array, in_flight)
    else:
        make = v1 if generation == "v1" else v2_wheel if client == "wheel" else v2_tritonclient
        call = make(url, wire, array)
    for _ in range(20):
        got = call()
    assert got.reshape(-1)[-1] == array[0, -1], got
    count, start, cpu = 0, time.perf_counter(), time.process_time()
    while (now := time.perf_counter()) < start + seconds:
        call()
        count += 1
    print(count / (now - start), (time.process_time() - cpu) / count, flush=True)
    # Requests in flight are cancelled.
    os._exit(0)


def run(generation, client, wire, url, size, in_flight, seconds, packages):
    if client == BARE:
        return bare(generation, wire, size, seconds, packages)
    python = ROOT / "target/python" / ("v1/run" if generation == "v1" else "v2/bin/python")
    environment = dict(os.environ)
    arguments = [str(python), __file__, "--measure", generation, client, wire, url, str(size), str(in_flight), str(seconds)]
    if client == "wheel":
        environment["PYTHONPATH"] = packages
    elif generation == "v1":
        arguments.append(PATCH)
    return figures_of(arguments, environment)


def figures_of(arguments, environment=None):
    done = subprocess.run(arguments, env=environment, check=True, stdout=subprocess.PIPE, encoding="utf-8")
    rate, cpu = done.stdout.split()
    return float(rate), float(cpu)


BARE = "bare socket"


def bare(generation, wire, size, seconds, folder):
    """`ping_pong` with a request of that tensor."""
    program, request, preface = (pathlib.Path(folder, name) for name in ("ping_pong", "request", "preface"))
    if not program.exists():
        source = pathlib.Path(__file__).with_name("ping_pong.c")
        subprocess.run(["cc", "-O2", "-D_GNU_SOURCE", "-o", program, source], check=True)
    # Settings, and a window that does not close.
    preface.write_bytes(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(4, 0, b"") + frame(8, 0, struct.pack(">I", 0x7FFF0000)))
    request.write_bytes(REQUESTS[generation, wire](bytes(size)))
    arguments = [str(program), str(PORTS[wire]), wire, str(request), str(seconds)]
    return figures_of(arguments + ([str(preface)] if wire == "grpc" else []))


def v1_http_request(tensor):
    elements = len(tensor) // 4
    header = f'batch_size: 1 input {{ name: "INPUT0" dims: {elements} }} output {{ name: "OUTPUT0" }}'
    return (f"POST /api/infer/{MODEL}?format=binary HTTP/1.1\r\nhost: bare\r\nNV-InferRequest: {header}\r\n"
            f"content-type: application/octet-stream\r\ncontent-length: {len(tensor)}\r\n\r\n").encode() + tensor  # fmt: skip


def v2_http_request(tensor):
    head = (f'{{"inputs":[{{"name":"INPUT0","shape":[1,{len(tensor) // 4}],"datatype":"FP32",'
            f'"parameters":{{"binary_data_size":{len(tensor)}}}}}],'
            '"outputs":[{"name":"OUTPUT0","parameters":{"binary_data":true}}]}').encode()  # fmt: skip
    return (f"POST /v2/models/{MODEL}/infer HTTP/1.1\r\nhost: bare\r\nInference-Header-Content-Length: {len(head)}\r\n"
            f"content-type: application/octet-stream\r\ncontent-length: {len(head) + len(tensor)}\r\n\r\n"
            ).encode() + head + tensor  # fmt: skip


def frame(kind, flags, payload):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", 1 if kind < 4 else 0) + payload


def field(number, value):
    """A length-delimited field of fewer than 128 bytes."""
    return bytes([number << 3 | 2, len(value)]) + value


def grpc_request(path, message):
    def literal(name, value):
        return bytes([0, len(name)]) + name + bytes([len(value)]) + value

    block = b"\x83\x86" + literal(b":path", path) + literal(b":authority", b"bare")
    block += literal(b"content-type", b"application/grpc") + literal(b"te", b"trailers")
    return frame(1, 4, block) + frame(0, 1, b"\0" + struct.pack(">I", len(message)) + message)


def v1_grpc_request(tensor):
    inputs = field(1, b"INPUT0") + bytes([2 << 3 | 2, 1, len(tensor) // 4])
    header = bytes([1 << 3, 1]) + field(2, inputs) + field(3, field(1, b"OUTPUT0"))
    # Version -1 is the newest.
    message = field(1, MODEL.encode()) + b"\x10" + b"\xff" * 9 + b"\x01" + field(3, header) + field(4, tensor)
    return grpc_request(b"/nvidia.inferenceserver.GRPCService/Infer", message)


def v2_grpc_request(tensor):
    inputs = field(1, b"INPUT0") + field(2, b"FP32") + field(3, bytes([1, len(tensor) // 4]))
    return grpc_request(b"/inference.GRPCInferenceService/ModelInfer",
                        field(1, MODEL.encode()) + field(5, inputs) + field(7, tensor))  # fmt: skip


REQUESTS = {
    ("v1", "http"): v1_http_request,
    ("v1", "grpc"): v1_grpc_request,
    ("v2", "http"): v2_http_request,
    ("v2", "grpc"): v2_grpc_request,
}


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
        urls = {wire: f"127.0.0.1:{port}" for wire, port in PORTS.items()}
        server = subprocess.Popen(
            [str(given.dist / "bin/trtserver"), f"--model-repository={models}", f"--http-port={PORTS['http']}",
             f"--grpc-port={PORTS['grpc']}", "--metrics-port=18902"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            wait_until_ready(urls["http"], server)
            print(f"{'tensor':8}{'protocol':12}{'at a time':>10}  {'client':24}{'requests/s':>12}{'CPU us':>10}"
                  f"{'ratio':>8}{'CPU ratio':>11}")  # fmt: skip
            for title, size in SIZES.items():
                for in_flight in IN_FLIGHT[title]:
                    for generation, clients in PAIRS.items():
                        for wire, url in urls.items():
                            compare(title, size, in_flight, generation, clients, wire, url, given, packages)
        finally:
            server.terminate()
            server.wait()


def compare(title, size, in_flight, generation, clients, wire, url, given, packages):
    if in_flight == 1 and size < 128:
        clients = (*clients, BARE)
    figures = {client: [] for client in clients}
    for number in range(given.rounds):
        for client in clients if number % 2 == 0 else reversed(clients):
            figures[client].append(run(generation, client, wire, url, size, in_flight, given.seconds, packages))
    medians = {client: [statistics.median(column) for column in zip(*rows)] for client, rows in figures.items()}
    first_rate, first_cpu = medians[clients[0]]
    for client, (rate, cpu) in medians.items():
        print(f"{title:8}{generation + ' ' + wire:12}{in_flight:10}  {client:24}{rate:12.0f}{cpu * 1e6:10.0f}"
              f"{rate / first_rate:8.2f}{cpu / first_cpu:11.2f}", flush=True)  # fmt: skip


if __name__ == "__main__":
    if sys.argv[1:2] == ["--measure"]:
        measure(*sys.argv[2:6], int(sys.argv[6]), int(sys.argv[7]), float(sys.argv[8]))
    else:
        main()

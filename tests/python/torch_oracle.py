"""Packages of AOTInductor beside torch itself: compiles the modules of torch_modules.py, serves them
without configurations, and compares every output of every call.

    python tests/python/torch_oracle.py --server target/dist/bin/trtserver [--packages FOLDER]

needs torch 2.9 or newer with numpy, and a C++ compiler. FOLDER keeps the packages for the next run
(compiling takes 10 to 30 s a module). `--only NAME` and `--isolated` are for looking closer, `--speed`
measures the modules of MEASURED beside the package's own Python call."""

import argparse
import copy
import http.client
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

import torch
from torch.utils import _pytree as pytree

from torch_modules import modules

NAMES = {"float16": "FP16", "bfloat16": "BF16", "float32": "FP32", "float64": "FP64", "bool": "BOOL"}

# Name, and the shape of its input.
MEASURED = {"mlp": (1, 16), "transformer": (8, 6, 16), "unet": (8, 3, 16, 16), "residual": (8, 4, 8, 8)}

# Modules with an operator that torch does not offer as a C function: the server says which.
REFUSED = {"inverse": "linalg_inv_ex"}

# Seconds of each measurement.
DURATION = 2.0

ONE_THREAD = 'parameters { key: "INTRA_OP_THREAD_COUNT" value: { string_value: "1" } }'

# The part of the generated code that only calls others takes most of the compiler's time.
torch._inductor.config.aot_inductor.compile_wrapper_opt_level = "O0"


def datatype(tensor):
    name = str(tensor.dtype).removeprefix("torch.")
    return NAMES.get(name, name.upper())


def compile_package(name, case, folder):
    """The package of a module, compiled unless the folder has it."""
    version = folder / name / "1"
    path = version / "model.pt2"
    module, args, kwargs, dynamic, _ = case
    if not path.exists():
        version.mkdir(parents=True, exist_ok=True)
        if isinstance(module, torch.nn.Module) and dynamic and not kwargs and takes_any(module):
            dynamic = (tuple(dynamic[0]) if isinstance(dynamic[0], tuple) else tuple(dynamic),)
        program = torch.export.export(
            module, copy.deepcopy(args), copy.deepcopy(kwargs), dynamic_shapes=dynamic, strict=False
        )
        partial = version / "partial.pt2"
        torch._inductor.aoti_compile_and_package(program, package_path=str(partial))
        partial.rename(path)
    return path


def takes_any(module):
    code = type(module).forward.__code__
    return bool(code.co_flags & 4)


def flat_names(args, kwargs):
    """Triton's names of the inputs."""
    names = []

    def add(prefix, value):
        if isinstance(value, torch.Tensor):
            names.append((prefix, value))
        elif isinstance(value, dict):
            for key, one in value.items():
                add(f"{prefix}[{key}]", one)
        else:
            for at, one in enumerate(value):
                add(f"{prefix}[{at}]", one)

    add("ARGS", args)
    add("KWARGS", kwargs)
    return names


def raw_bytes(tensor):
    return tensor.contiguous().flatten().view(torch.uint8).numpy().tobytes() if tensor.numel() else b""


class Client:
    """Requests of the binary extension over one connection."""

    def __init__(self, port):
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)

    def infer(self, model, named):
        inputs, data = [], []
        for name, tensor in named:
            data.append(raw_bytes(tensor))
            inputs.append(
                {
                    "name": name,
                    "datatype": datatype(tensor),
                    "shape": list(tensor.shape) or [1],
                    "parameters": {"binary_data_size": len(data[-1])},
                }
            )
        head = json.dumps({"inputs": inputs, "parameters": {"binary_data_output": True}}).encode()
        headers = {"Inference-Header-Content-Length": str(len(head))}
        self.connection.request("POST", f"/v2/models/{model}/infer", head + b"".join(data), headers)
        answer = self.connection.getresponse()
        body = answer.read()
        if answer.status != 200:
            raise AssertionError(f"{answer.status}: {body[:500].decode()}")
        length = int(answer.headers["Inference-Header-Content-Length"])
        outputs, at = {}, length
        for output in json.loads(body[:length])["outputs"]:
            size = output["parameters"]["binary_data_size"]
            outputs[output["name"]] = (output["datatype"], output["shape"], body[at : at + size])
            at += size
        return outputs

    def text(self, path):
        self.connection.request("GET", path)
        return self.connection.getresponse().read().decode()

    def computing(self, model):
        """Nanoseconds of the inputs, runs and outputs of all requests so far."""
        stats = json.loads(self.text(f"/v2/models/{model}/stats"))["model_stats"][0]["inference_stats"]
        parts = [stats[part] for part in ("compute_input", "compute_infer", "compute_output")]
        return sum(int(part["ns"]) for part in parts)

    def reason(self, model):
        """Why a model is not served."""
        self.connection.request("POST", "/v2/repository/index", b"")
        index = json.loads(self.connection.getresponse().read())
        return next(entry.get("reason", "") for entry in index if entry["name"] == model)


def expect_equal(name, found, expected):
    kind, shape, data = found
    assert kind == datatype(expected), f"{name}: type {kind}, torch has {datatype(expected)}"
    # The server gives a tensor of one element a row a dimension of its own.
    own_shapes = [list(expected.shape) or [1], [*expected.shape, 1]]
    assert list(shape) in own_shapes, f"{name}: shape {shape}, torch has {list(expected.shape)}"
    kind = expected.dtype
    own = torch.frombuffer(bytearray(data), dtype=kind) if data else torch.empty(0, dtype=kind)
    # Compiled code adds in another order than torch's own operators.
    relative = 1e-3 if kind in (torch.float16, torch.bfloat16) else 2e-5
    torch.testing.assert_close(own.reshape(expected.shape), expected, equal_nan=True, rtol=relative, atol=1e-5)


def check(client, name, case):
    """Compares each call; returns how many outputs were compared."""
    module, args, kwargs, _, more = case
    compared = 0
    for args, kwargs in [(args, kwargs), *more]:
        with torch.no_grad():
            expected = module(*copy.deepcopy(args), **copy.deepcopy(kwargs))
        paths, _ = pytree.tree_flatten_with_path(expected)
        found = client.infer(name, flat_names(args, kwargs))
        assert len(found) == len(paths), f"{len(found)} outputs, torch has {len(paths)}"
        for path, tensor in paths:
            key = "RESULT" + "".join(f"[{re.sub(chr(39), '', str(p).strip('[]'))}]" for p in path)
            expect_equal(key, found[key], tensor)
            compared += 1
    return compared


def measure(client, folder):
    """What the server says of its computing beside calls of the package and of the module from
    Python, all on one thread."""
    torch.set_num_threads(1)
    print(f"{'module':14}{'input':>16}{'server':>10}{'package':>10}{'module':>10}   \u00b5s a call")
    eager = modules()
    for name, shape in MEASURED.items():
        x = torch.randn(*shape)
        package = torch._inductor.aoti_load_package(str(folder / name / "1" / "model.pt2"))
        module = eager[name][0].eval()
        named = [("ARGS[0]", x)]
        served = [client.computing(name)]
        median(lambda: (client.infer(name, named), served.append(client.computing(name))))
        served = sorted(after - before for before, after in zip(served, served[1:]))
        with torch.no_grad():
            times = [served[len(served) // 2] / 1000, median(lambda: package(x)), median(lambda: module(x))]
        print(f"{name:14}{'x'.join(map(str, shape)):>16}" + "".join(f"{time:10.1f}" for time in times))


def median(call):
    times, end = [], time.monotonic() + DURATION
    while time.monotonic() < end:
        begin = time.perf_counter()
        call()
        times.append(time.perf_counter() - begin)
    return sorted(times)[len(times) // 2] * 1e6


def start(server, folder, options, log):
    command = [
        server,
        f"--model-repository={folder}",
        "--http-port=0",
        "--allow-grpc=false",
        "--allow-metrics=false",
        "--strict-readiness=false",
        "--exit-on-error=false",
        "--backend-config=default-max-batch-size=64",
        *options.flag,
    ]
    if options.isolated:
        command.append("--backend-config=pytorch,isolation=process")
    library = pathlib.Path(torch.__file__).parent / "lib" / "libtorch_cpu.so"
    environment = {"TRTSERVER_TORCH_LIBRARY": str(library), **os.environ}
    process = subprocess.Popen(command, stderr=log, stdout=log, env=environment)
    return process


def find_port(process, log, seconds=300):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        assert process.poll() is None, f"the server ended; its log is {log}"
        found = re.search(r"listening http \S*:(\d+)", pathlib.Path(log).read_text())
        if found:
            return int(found[1])
        time.sleep(0.1)
    raise AssertionError(f"the server has not said its port; its log is {log}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--server")
    parser.add_argument("--packages", type=pathlib.Path)
    parser.add_argument("--only", action="append")
    parser.add_argument("--isolated", action="store_true")
    parser.add_argument("--flag", action="append", default=[], help="of the server")
    parser.add_argument("--speed", action="store_true")
    options = parser.parse_args()
    cases = {name: case for name, case in modules().items() if not options.only or name in options.only}
    scratch = tempfile.TemporaryDirectory(prefix="torch-oracle-")
    folder = options.packages or pathlib.Path(scratch.name) / "models"
    failed = []
    for name, case in cases.items():
        case[0].eval()
        try:
            with torch.no_grad():
                compile_package(name, case, folder)
        except Exception as error:
            failed.append(name)
            print(f"{name}: torch does not compile it: {str(error)[:300]}")
    if not options.server:
        sys.exit(len(failed))
    if options.speed:
        for name in MEASURED:
            (folder / name / "config.pbtxt").write_text(ONE_THREAD)
    log = pathlib.Path(scratch.name) / "log"
    with open(log, "w") as output:
        process = start(options.server, folder, options, output)
        try:
            failed += ask(process, log, folder, cases, options, failed)
        finally:
            process.terminate()
            process.wait(60)
    if failed:
        kept = pathlib.Path(tempfile.gettempdir()) / "torch_oracle.log"
        kept.write_bytes(log.read_bytes())
        sys.exit(f"failed: {', '.join(failed)}; the server's log is {kept}")


def ask(process, log, folder, cases, options, skipped):
    client = Client(find_port(process, log))
    end = time.monotonic() + 300
    while "ready: " not in log.read_text() and time.monotonic() < end:
        time.sleep(0.1)
    failed, compared, refused = [], 0, 0
    for name in (name for name in cases if name not in skipped):
        try:
            if name in REFUSED:
                reason = client.reason(name)
                assert REFUSED[name] in reason, f"expected a refusal that names {REFUSED[name]}, found '{reason}'"
                refused += 1
            else:
                compared += check(client, name, cases[name])
        except AssertionError as error:
            failed.append(name)
            print(f"{name}: {error}")
    agree = len(cases) - len(failed) - len(skipped) - refused
    print(
        f"{agree} modules of {len(cases)} agree with torch {torch.__version__}, {compared} outputs compared;"
        f" {refused} refused as expected"
    )
    if options.speed and not failed:
        measure(client, folder)
    return failed


if __name__ == "__main__":
    main()

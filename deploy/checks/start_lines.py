"""Start lines of the files, executed with their mounts in a temporary folder, their probes asked."""

import contextlib
import hashlib
import json
import os
import shutil
import signal
import ssl
import subprocess
import tempfile
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path

from . import ray
from .findings import DEPLOY
from .kubernetes import scaled_metrics

ROOT = DEPLOY.parent
TIMEOUT = 60
LISTENERS = ("http", "grpc", "metrics")
TOKEN = "a-token-of-this-check"


class Server:
    """A server that was started by a line of a file."""

    def __init__(self, dist, folder, words, env=None):
        # By the name in the line, which decides what some flags mean.
        program = folder / "bin" / words[0]
        program.parent.mkdir(exist_ok=True)
        if not program.is_symlink():
            program.symlink_to(dist / "bin/trtserver")
        words = [place(word, folder) for word in words[1:] if "-port=" not in word]
        words += [f"--{name}-port=0" for name in LISTENERS]
        words += ["--http-address=127.0.0.1", "--grpc-address=127.0.0.1", f"--backend-directory={dist}/backends"]
        (folder / "tmp").mkdir(exist_ok=True)
        self.process = subprocess.Popen(
            [str(program), *words],
            stdout=subprocess.PIPE,
            stderr=open(folder / "log", "w"),
            text=True,
            # What a container has, and no more.
            env={"PATH": "/usr/bin:/bin", "TMPDIR": str(folder / "tmp"), **(env or {})},
            cwd=folder,
        )
        self.folder, self.addresses, self.ready, self.drains = folder, {}, threading.Event(), False
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in self.process.stdout:
            words = line.split()
            if words[:1] == ["listening"]:
                self.addresses[words[1]] = words[2]
            if words == ["ready"]:
                self.ready.set()

    def wait_ready(self):
        begin = time.monotonic()
        while not self.ready.wait(0.05):
            if self.process.poll() is not None or time.monotonic() - begin > TIMEOUT:
                raise RuntimeError(f"did not become ready:\n{(self.folder / 'log').read_text()}")

    def ask(self, path, body=None, listener="http", scheme="http", token=None):
        """Status and text."""
        request = urllib.request.Request(f"{scheme}://{self.addresses[listener]}{path}", data=body)
        if token:
            request.add_header("Authorization", f"Bearer {token}")
        context = ssl._create_unverified_context() if scheme == "https" else None
        try:
            with urllib.request.urlopen(request, timeout=TIMEOUT, context=context) as response:
                return response.status, response.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def end(self):
        """As an orchestrator does, without the time that the drain delay needs."""
        if self.drains:
            self.process.kill()
            self.process.wait(TIMEOUT)
            return 0
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(TIMEOUT)


def place(word, folder):
    """Paths of the container, in the folder."""
    for mount in ("/mnt/models", "/models", "/etc/trtserver", "/run/trtserver"):
        for before in ("=", ":"):
            if f"{before}{mount}" in word and not word.startswith("--model-repository=s3"):
                return word.replace(f"{before}{mount}", f"{before}{folder}{mount}", 1)
    return word


@contextlib.contextmanager
def started(dist, words, prepare, env=None):
    """A server in a folder that `prepare` has filled, ended afterwards."""
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        prepare(folder)
        server = Server(dist, folder, words, env)
        try:
            yield server
            status = server.end()
            if status:
                raise RuntimeError(f"ended with status {status}:\n{(folder / 'log').read_text()}")
        finally:
            server.process.kill()


def copy_model(name, into):
    into.mkdir(parents=True)
    shutil.copytree(ROOT / "tests/models" / name, into / name)


def copy_repository(folder):
    copy_model("addsub_fp32", folder / "models")


def check_infer(findings, where, server, model, **options):
    inputs = [
        {"name": name, "datatype": "FP32", "shape": [1, 16], "data": [value] * 16}
        for name, value in (("INPUT0", 3), ("INPUT1", 2))
    ]
    status, text = server.ask(f"/v2/models/{model}/infer", json.dumps({"inputs": inputs}).encode(), **options)
    right = status == 200 and json.loads(text)["outputs"][0]["data"] == [5.0] * 16
    findings.expect(right, where, f"model {model}: {status} {text[:300]}")


def check_probes(findings, where, server, container):
    for name in ("startupProbe", "readinessProbe", "livenessProbe"):
        get = container[name]["httpGet"]
        status, text = server.ask(get["path"], scheme=get.get("scheme", "HTTP").lower())
        findings.expect(status == 200, where, f"{name}: {status} {text}")


def check_drain(findings, where, server, model, container):
    """From SIGTERM on it is not ready and serves: what replaces a preStop hook."""
    server.process.send_signal(signal.SIGTERM)
    server.drains = True
    path, begin = container["readinessProbe"]["httpGet"]["path"], time.monotonic()
    try:
        while (status := server.ask(path)[0]) == 200 and time.monotonic() - begin < TIMEOUT:
            time.sleep(0.02)
        findings.expect(status in (400, 503), where, f"{path} after SIGTERM: {status}, expected 400 or 503")
        check_infer(findings, f"{where}, after SIGTERM", server, model)
    except OSError as error:
        findings.add(where, f"serves nobody after SIGTERM; is there a --drain-delay-secs? {error}")


def check_ports(findings, where, words, ports):
    """The ports of the file are those of the flags, or the server's own."""
    flags = dict(word.lstrip("-").split("=", 1) for word in words if "-port=" in word)
    own = [int(flags.get(f"{name}-port", port)) for name, port in zip(LISTENERS, (8000, 8001, 8002))]
    findings.expect(set(ports) <= set(own), where, f"ports {ports}, the server has {own}")


def check_metrics(findings, where, server, **options):
    """What autoscalers read is there."""
    _, page = server.ask("/metrics", listener="metrics", **options)
    for name in scaled_metrics():
        # A machine without a GPU has no series of it.
        if name != "nv_gpu_utilization":
            found = any(line.startswith(name + "{") for line in page.splitlines())
            findings.expect(found, where, f"the server has no metric {name}")


def run_overlay(dist, overlay, objects, findings):
    (deployment,) = [entry for entry in objects if entry["kind"] == "Deployment"]
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    where, words = f"overlay {overlay}", container["args"]
    check_ports(findings, where, words, [port["containerPort"] for port in container["ports"]])
    env = {}
    if overlay == "object-store":
        # tests/wire/object_stores has servers of buckets; here the flags count.
        words = [word.replace("s3://models/live", "/models") for word in words]
        words = [word for word in words if not word.startswith("--model-cache-dir")]

    def prepare(folder):
        copy_repository(folder)
        secrets = folder / "etc/trtserver"
        (secrets / "tls").mkdir(parents=True)
        (secrets / "tokens").mkdir()
        (folder / "run/trtserver").mkdir(parents=True)
        for name, ending in (("server.pem", "crt"), ("server.key", "key")):
            shutil.copy(ROOT / "tests/tls" / name, secrets / f"tls/tls.{ending}")
        hashed = hashlib.sha256(TOKEN.encode()).hexdigest()
        lines = ["anonymous - read:health", f"client {hashed} infer,read"]
        (secrets / "tokens/tokens").write_text("\n".join(lines) + "\n")

    secure = overlay == "secure"
    options = {"scheme": "https", "token": TOKEN} if secure else {}
    with started(dist, words, prepare, env) as server:
        server.wait_ready()
        check_probes(findings, where, server, container)
        check_infer(findings, where, server, "addsub_fp32", **options)
        check_metrics(findings, where, server, **options)
        if secure:
            status, _ = server.ask("/v2/models/addsub_fp32", scheme="https")
            findings.expect(status == 401, where, f"without a token: {status}, expected 401")
            socket = server.folder / "run/trtserver/control"
            findings.expect(socket.is_socket(), where, "no control socket")
        else:
            check_drain(findings, where, server, "addsub_fp32", container)


def bare(model, names):
    """Files of one model, as the storage initializer puts them."""

    def prepare(folder):
        at = folder / "mnt/models"
        at.mkdir(parents=True)
        for name in names:
            shutil.copy(ROOT / "tests/models" / model / name, at)

    return prepare


def run_kserve(dist, runtimes, findings):
    runtime = runtimes["trtserver"]["spec"]
    (container,) = runtime["containers"]
    words = container["args"]
    check_ports(findings, "runtime trtserver", words, [container["readinessProbe"]["httpGet"]["port"]])
    findings.expect("--http-port=8080" in words, "runtime trtserver", "KServe expects HTTP at 8080")
    layouts = {
        "onnx": (bare("addsub_fp32", ["1/model.onnx"]), "digits"),
        "caffe2": (bare("netdef/addsub_fp32", ["1/model.netdef", "1/init_model.netdef", "config.pbtxt"]), "digits"),
        "repository": (lambda folder: copy_model("addsub_fp32", folder / "mnt/models"), "addsub_fp32"),
    }
    for name, (prepare, model) in layouts.items():
        where = f"runtime trtserver, {name}"
        with started(dist, words, prepare, {"INFERENCE_SERVICE_NAME": "digits"}) as server:
            server.wait_ready()
            check_probes(findings, where, server, container)
            check_infer(findings, where, server, model)
            if name == "onnx":
                check_drain(findings, where, server, model, container)
    run_modelcar(dist, words, container, findings)
    run_agent(dist, runtimes["trtserver-multi-model"], findings)


def run_modelcar(dist, words, container, findings):
    """/mnt/models is a link into the root of another process, and comes late."""
    where = "runtime trtserver, modelcar"

    def prepare(folder):
        (folder / "mnt").mkdir()
        at = folder / "proc/7/root/models"
        at.mkdir(parents=True)
        shutil.copy(ROOT / "tests/models/addsub_fp32/1/model.onnx", at)

    env = {"INFERENCE_SERVICE_NAME": "digits", "MODEL_INIT_MODE": "async"}
    with started(dist, words, prepare, env) as server:
        log, begin = server.folder / "log", time.monotonic()
        while "/mnt/models" not in log.read_text() and time.monotonic() - begin < TIMEOUT:
            time.sleep(0.02)
        findings.expect(not server.ready.is_set(), where, "ready before there is a model")
        os.symlink(server.folder / "proc/7/root/models", server.folder / "mnt/models")
        server.wait_ready()
        check_probes(findings, where, server, container)
        check_infer(findings, where, server, "digits")


def run_agent(dist, runtime, findings):
    """Load and unload as KServe's agent asks for them."""
    where = "runtime trtserver-multi-model"
    (container,) = runtime["spec"]["containers"]
    with started(dist, container["args"], lambda folder: (folder / "mnt/models").mkdir(parents=True)) as server:
        server.wait_ready()
        check_probes(findings, where, server, container)
        shutil.copytree(ROOT / "tests/models/addsub_fp32", server.folder / "mnt/models/addsub_fp32")
        for action, served in (("load", True), ("unload", False)):
            status, text = server.ask(f"/v2/repository/models/addsub_fp32/{action}", b"{}")
            findings.expect(status == 200, where, f"{action}: {status} {text}")
            if served:
                check_infer(findings, where, server, "addsub_fp32")
        begin = time.monotonic()
        while server.ask("/v2/models/addsub_fp32/ready")[0] == 200 and time.monotonic() - begin < TIMEOUT:
            time.sleep(0.05)
        status, _ = server.ask("/v2/models/addsub_fp32/ready")
        findings.expect(status != 200, where, "serves a model that was unloaded")


def run(dist, overlays, runtimes, job, findings):
    for overlay, objects in overlays.items():
        attempt(findings, f"overlay {overlay}", run_overlay, dist, overlay, objects, findings)
    attempt(findings, "runtimes of KServe", run_kserve, dist, runtimes, findings)
    attempt(findings, "job of Nomad", run_nomad, dist, job, findings)
    attempt(findings, "server of Ray", run_ray, dist, findings)


def run_nomad(dist, job, findings):
    with started(dist, job, copy_repository) as server:
        server.wait_ready()
        check_infer(findings, "job of Nomad", server, "addsub_fp32")


def run_ray(dist, findings):
    with tempfile.TemporaryDirectory() as folder:
        copy_repository(Path(folder))
        ray.run(dist, Path(folder) / "models", findings)


def attempt(findings, where, check, *arguments):
    """A server that does not start is a finding."""
    try:
        check(*arguments)
    except (RuntimeError, OSError, subprocess.SubprocessError) as error:
        findings.add(where, str(error))

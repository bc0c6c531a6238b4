"""A server that a start line of a file starts, with its mounts in a temporary folder."""

import contextlib
import json
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

from .findings import DEPLOY
from .kubernetes import scaled_metrics

ROOT = DEPLOY.parent
TIMEOUT = 60
LISTENERS = ("http", "grpc", "metrics")


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

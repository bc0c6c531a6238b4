"""Servers of a demonstration, each with a model whose executions take a known time."""

import subprocess
import threading
import time
from pathlib import Path

TIMEOUT = 60
MODEL = "work"


def wait_until(condition, text, seconds=TIMEOUT, pause=0.02):
    """Polls, and returns what `condition` has returned."""
    end = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise SystemExit(f"demonstrate: {text} within {seconds} s")
        time.sleep(pause)


def model_configuration(delay_ms, instances, more=""):
    """The test backend `probe`: an execution sleeps, so that many servers fit on few cores."""
    return f"""name: "{MODEL}"
backend: "probe"
max_batch_size: 1
input [ {{ name: "INPUT0" data_type: TYPE_FP32 dims: [ -1 ] }} ]
output [ {{ name: "OUTPUT0" data_type: TYPE_FP32 dims: [ -1 ] }} ]
instance_group [ {{ kind: KIND_CPU count: {instances} }} ]
parameters: {{ key: "delay_ms" value: {{ string_value: "{delay_ms}" }} }}
{more}"""


class Server:
    """One server process. Its address is that of the machine, or of the host that `prefix` enters."""

    def __init__(self, dist, folder, configuration, flags=(), address="127.0.0.1", prefix=()):
        model = Path(folder) / "models" / MODEL
        (model / "1").mkdir(parents=True)
        (model / "config.pbtxt").write_text(configuration)
        listeners = ("http", "grpc", "metrics")
        self.log = Path(folder) / "log"
        with open(self.log, "w") as log:
            self.process = subprocess.Popen(
                [*prefix, str(dist / "bin/trtserver"), f"--model-repository={model.parent}",
                 f"--backend-directory={dist}/backends", *(f"--{name}-port=0" for name in listeners),
                 *(f"--{name}-address={address}" for name in listeners), *flags],
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        self.address, self.ports, self.ready = address, {}, threading.Event()
        threading.Thread(target=self.read_output, daemon=True).start()

    def read_output(self):
        for line in self.process.stdout:
            words = line.split()
            if words[:1] == ["listening"]:
                self.ports[words[1]] = int(words[2].rsplit(":", 1)[1])
            if words == ["ready"]:
                self.ready.set()

    def wait_ready(self):
        failed = f"a server is not ready, its log: {self.log.read_text()[-2000:]}"
        wait_until(lambda: self.ready.is_set() or self.process.poll() is not None, failed)
        if not self.ready.is_set():
            raise SystemExit(f"demonstrate: a server has ended: {self.log.read_text()[-2000:]}")
        return self

    def kill(self):
        self.process.kill()
        self.process.wait(TIMEOUT)


class Fleet:
    """Servers that end with the `with` block."""

    def __init__(self, dist, folder):
        self.dist, self.folder, self.servers, self.number = dist, Path(folder), [], 0

    def start(self, configuration, *flags, **where):
        """The server is not ready yet."""
        self.number += 1
        server = Server(self.dist, self.folder / f"server-{self.number}", configuration, flags, **where)
        self.servers.append(server)
        return server

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for server in self.servers:
            server.kill()

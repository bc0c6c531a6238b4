"""One trtserver process, on Unix sockets in a folder of its own. Needs nothing but Python."""

import ctypes
import http.client
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
from pathlib import Path

LISTENERS = ("http", "grpc", "metrics")
READY = "/v2/health/ready"
SET_DEATH_SIGNAL = 1


class UnixConnection(http.client.HTTPConnection):
    """HTTP/1.1 over a Unix socket."""

    def __init__(self, path, timeout):
        super().__init__("localhost", timeout=timeout)
        self.path = str(path)

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


def start_line(folder, options):
    """Program and flags. What the user adds comes last."""
    return [
        options["program"],
        f"--model-repository={options['model_repository']}",
        *(f"--{name}-address=unix:{folder / name}" for name in LISTENERS),
        # Like a probe, whoever starts a replica waits until its models are there.
        "--listen-when-ready",
        f"--drain-delay-secs={options['drain_delay_secs']}",
        f"--exit-timeout-secs={options['exit_timeout_secs']}",
        *options["arguments"],
    ]


class ServerProcess:
    """Started by the constructor; `wait_ready` and `stop` block.

    `on_end` is called with the status of a server that ends by itself after it was ready.
    """

    def __init__(self, options, on_end=None):
        self.options, self.on_end, self.stopped = options, on_end, False
        # Short, because the path of a socket has at most 107 bytes.
        self.folder = Path(tempfile.mkdtemp(prefix="trtserver-"))
        self.sockets = {name: self.folder / name for name in LISTENERS}
        libc = ctypes.CDLL(None)
        try:
            # Its log goes where the log of the replica goes.
            self.process = subprocess.Popen(
                start_line(self.folder, options),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                text=True,
                # A replica that is killed takes its server with it.
                preexec_fn=lambda: libc.prctl(SET_DEATH_SIGNAL, signal.SIGKILL),
            )
        except OSError as error:
            shutil.rmtree(self.folder, ignore_errors=True)
            raise RuntimeError(
                f"cannot start {options['program']}: {error.strerror}; install the wheel of trtserver on this"
                " node, or name the program (`program`)"
            ) from error
        self.ready = threading.Event()
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        """Also keeps the pipe empty."""
        for line in self.process.stdout:
            if line.split() == ["ready"]:
                self.ready.set()
        status = self.process.wait()
        if self.ready.is_set() and not self.stopped and self.on_end:
            self.on_end(status)

    def wait_ready(self):
        """Until the models are loaded."""
        end = time.monotonic() + self.options["start_timeout_secs"]
        while not self.ready.wait(0.05):
            status = self.process.poll()
            if status is not None:
                self.stop()
                raise RuntimeError(f"trtserver ended with status {status} before it was ready: see its log above")
            if time.monotonic() > end:
                self.stop()
                raise RuntimeError(f"trtserver was not ready after {self.options['start_timeout_secs']} s")

    def ask(self, path, listener="http", timeout=5):
        """Status and text of a GET."""
        connection = UnixConnection(self.sockets[listener], timeout)
        try:
            # The reason of an unready server is in JSON.
            connection.request("GET", path, headers={"Accept": "application/json"})
            response = connection.getresponse()
            return response.status, response.read().decode()
        finally:
            connection.close()

    def check_ready(self):
        """Raises unless the server is ready, with its reason."""
        if self.process.poll() is not None:
            raise RuntimeError(f"trtserver ended with status {self.process.returncode}")
        status, text = self.ask(READY)
        if status != 200:
            raise RuntimeError(f"trtserver is not ready: {status} {text}")

    def stop(self):
        """SIGTERM; the server drains. Kills one that does not end in its time. Returns its status."""
        self.stopped = True
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(seconds_to_end(self.options))
        except subprocess.TimeoutExpired:
            self.process.kill()
            return self.process.wait()
        finally:
            shutil.rmtree(self.folder, ignore_errors=True)


def seconds_to_end(options):
    """From SIGTERM to the end: drain delay, exit timeout, and time to unload the models."""
    return options["drain_delay_secs"] + options["exit_timeout_secs"] + 10

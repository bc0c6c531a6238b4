"""A server by itself, and a cluster of one node that runs serve.yaml with other ports and models."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from http.client import HTTPConnection, HTTPException
from pathlib import Path

import yaml

DEPLOY = Path(__file__).resolve().parent.parent
MODELS = DEPLOY.parent / "tests/models"
TIMEOUT = 180
# Ray replaces 127.0.0.1 by an address of the network.
NODE = "127.0.0.2"
# A model that echoes INPUT0, or does what a request's parameters say (tests/plugins/probe).
PROBE = """backend: "probe"
max_batch_size: {rows}
input [ {{ name: "INPUT0" data_type: TYPE_FP32 dims: [ -1 ] }} ]
output [ {{ name: "OUTPUT0" data_type: TYPE_FP32 dims: [ -1 ] }} ]
"""
PROBES = {
    "echo": PROBE.format(rows=8),
    "many": PROBE.format(rows=8) + "model_transaction_policy { decoupled: true }\n",
    "slow": PROBE.format(rows=1) + 'parameters: { key: "delay_ms" value: { string_value: "100" } }\n',
}
SMALL_SCALING = {
    "min_replicas": 1,
    "max_replicas": 3,
    "metrics_interval_s": 0.5,
    "look_back_period_s": 2,
    "upscale_delay_s": 1,
    "downscale_delay_s": 3,
}


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def wait_until(condition, text, timeout=TIMEOUT):
    begin = time.monotonic()
    while not condition():
        if time.monotonic() - begin > timeout:
            sys.exit(f"ray: {text}, after {timeout} s")
        time.sleep(0.1)
    return time.monotonic() - begin


def status_of(port, path):
    """0 if nobody answers."""
    connection = HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request("GET", path)
        return connection.getresponse().status
    except (OSError, HTTPException):
        return 0
    finally:
        connection.close()


def cpu_seconds(roots):
    """CPU time of these processes and of all below them."""
    children, times = {}, {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rsplit(")", 1)[1].split()
            except OSError:
                continue
            children.setdefault(int(fields[1]), []).append(int(entry.name))
            times[int(entry.name)] = int(fields[11]) + int(fields[12])
    total, left = 0, list(roots)
    while left:
        process = left.pop()
        total += times.get(process, 0)
        left += children.get(process, [])
    return total / os.sysconf("SC_CLK_TCK")


def make_repository(folder, dist):
    shutil.copytree(MODELS / "addsub_fp32", folder / "models/addsub_fp32")
    if (dist / "backends/probe").exists():
        for name, config in PROBES.items():
            (folder / "models" / name / "1").mkdir(parents=True)
            (folder / "models" / name / "config.pbtxt").write_text(config)
    return folder / "models"


class Direct:
    """The server, without Ray."""

    def __init__(self, dist, models):
        self.process = subprocess.Popen(
            [dist / "bin/trtserver", f"--model-repository={models}", f"--backend-directory={dist}/backends",
             "--http-address=127.0.0.1", "--http-port=0", "--grpc-port=0", "--metrics-port=0"],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )  # fmt: skip
        ports = {}
        for line in self.process.stdout:
            words = line.split()
            if words[:1] == ["listening"]:
                ports[words[1]] = int(words[2].rsplit(":", 1)[1])
            if words == ["ready"]:
                break
        else:
            sys.exit("ray: the server without Ray did not become ready")
        threading.Thread(target=self.process.stdout.read, daemon=True).start()
        self.http, self.grpc = ports["http"], ports["grpc"]

    def cpu_seconds(self):
        return cpu_seconds([self.process.pid])

    def stop(self):
        self.process.kill()
        self.process.wait()


class Cluster:
    """Ray with serve.yaml. Its servers are known by their repository, which nobody else has."""

    def __init__(self, dist, folder, models, haproxy):
        self.http, self.grpc = free_port(), free_port()
        self.models = models
        config = yaml.safe_load((DEPLOY / "ray/serve.yaml").read_text())
        config["http_options"] = {"host": "127.0.0.1", "port": self.http}
        config["grpc_options"]["port"] = self.grpc
        (application,) = config["applications"]
        application["args"] = {
            "model_repository": str(models),
            "program": str(dist / "bin/trtserver"),
            "arguments": [f"--backend-directory={dist}/backends"],
        }
        (deployment,) = application["deployments"]
        deployment["ray_actor_options"] = {"num_cpus": 0}
        deployment["autoscaling_config"].update(SMALL_SCALING)
        file = folder / "serve.yaml"
        file.write_text(yaml.safe_dump(config))
        self.env = {
            **os.environ,
            "PYTHONPATH": str(DEPLOY / "ray"),
            "RAY_USAGE_STATS_ENABLED": "0",
            "RAY_DEDUP_LOGS": "0",
            # A busy machine needs more than five seconds to start a proxy.
            "RAY_SERVE_PROXY_READY_CHECK_TIMEOUT_S": "60",
            "RAY_SERVE_PROXY_HEALTH_CHECK_TIMEOUT_S": "60",
        }
        if haproxy:
            self.env |= {
                "RAY_SERVE_ENABLE_HA_PROXY": "1",
                # 30 s, by default: replicas end one after the other.
                "RAY_SERVE_DIRECT_INGRESS_MIN_DRAINING_PERIOD_S": "5",
                "RAY_SERVE_HAPROXY_CONFIG_FILE_LOC": f"{folder}/haproxy/haproxy.cfg",
                "RAY_SERVE_HAPROXY_SOCKET_PATH": f"{folder}/haproxy/admin.sock",
                "RAY_SERVE_HAPROXY_SERVER_STATE_BASE": f"{folder}/haproxy",
                "RAY_SERVE_HAPROXY_SERVER_STATE_FILE": f"{folder}/haproxy/server-state",
            }
        self.log = open(folder / "log", "w")
        port = free_port()
        self.node = self.spawn(
            "ray", "start", "--head", "--block", f"--port={port}", f"--node-ip-address={NODE}",
            "--include-dashboard=false", "--num-cpus=2", "--object-store-memory=200000000",
            f"--temp-dir={folder}/ray", "--disable-usage-stats",
        )  # fmt: skip
        self.serve = None
        try:
            wait_until(lambda: "Ray runtime started" in (folder / "log").read_text(), "Ray did not start")
            self.serve = self.spawn("serve", "run", f"--address={NODE}:{port}", str(file))
            wait_until(self.is_ready, "Ray Serve did not become ready")
        except BaseException as error:
            self.stop()
            print((folder / "log").read_text()[-8000:], file=sys.stderr)
            raise error

    def spawn(self, program, *words):
        beside = Path(sys.executable).with_name(program)
        return subprocess.Popen(
            [beside, *words], env=self.env, stdout=self.log, stderr=subprocess.STDOUT, start_new_session=True
        )

    def is_ready(self):
        if self.serve.poll() is not None:
            sys.exit(f"ray: `serve run` ended with status {self.serve.returncode}")
        return status_of(self.http, "/v2/health/ready") == 200

    def cpu_seconds(self):
        return cpu_seconds([self.node.pid, self.serve.pid])

    def servers(self):
        """Process ids of the servers that replicas own."""
        found = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                try:
                    words = (entry / "cmdline").read_bytes().split(b"\0")
                except OSError:
                    continue
                sockets = any(word.startswith(b"--http-address=unix:") for word in words)
                if sockets and f"--model-repository={self.models}".encode() in words:
                    found.append(int(entry.name))
        return found

    def stop(self):
        """As an operator does: Ctrl-C, then the node. Returns the servers that are left."""
        for process, number in ((self.serve, signal.SIGINT), (self.node, signal.SIGTERM)):
            if process is None:
                continue
            if process.poll() is None:
                process.send_signal(number)
            try:
                process.wait(TIMEOUT)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        return self.servers()

"""Runs haproxy and nginx with the files of deploy/ in front of three servers, over HTTP and gRPC.

    target/python/v2/bin/python deploy/try_proxies.py [--dist target/dist-debug] [haproxy] [nginx]

Each server is restarted in turn, on its own ports, while four clients with connections that stay open
send without pause: with a drain delay of 3 s, without one, and for nginx, which asks no server whether
it is ready, also with a reload that takes the server out first. Fails if haproxy with the delay or
nginx with the reload loses a request, or if a server got none. The proxies are Debian's (haproxy,
nginx-light).
"""

import argparse
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from http.client import HTTPConnection, HTTPException
from pathlib import Path

import numpy
import tritonclient.grpc

DEPLOY = Path(__file__).resolve().parent
TIMEOUT = 60
BODY = b'{"inputs":[{"name":"INPUT","datatype":"FP32","shape":[2,2],"data":[1,2,3,4]}]}'
PROXIES = {"haproxy": "haproxy/haproxy.cfg", "nginx": "nginx/nginx.conf"}


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class Server:
    """One server, on ports that stay its own."""

    def __init__(self, dist, delay):
        self.dist, self.delay = dist, delay
        self.http, self.grpc, self.metrics = free_port(), free_port(), free_port()
        self.served = 0
        self.start()

    def start(self):
        self.process = subprocess.Popen(
            [self.dist / "bin/trtserver", f"--model-repository={DEPLOY.parent}/examples/models",
             f"--http-port={self.http}", f"--grpc-port={self.grpc}", f"--metrics-port={self.metrics}",
             "--http-address=127.0.0.1", "--grpc-address=127.0.0.1",
             f"--backend-dir={self.dist}/backends", f"--drain-delay-secs={self.delay}"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        wait_until(lambda: get(self.http, "/v2/health/ready")[0] == 200, "the server is not ready")

    def count(self):
        """Adds what this process has served."""
        page = get(self.metrics, "/metrics")[1]
        found = re.search(r'^nv_inference_request_success\{model="dynamic_shape".*\} (\d+)', page, re.M)
        self.served += int(found.group(1)) if found else 0

    def restart(self):
        self.process.send_signal(signal.SIGTERM)
        # The metrics are served until the end.
        time.sleep(self.delay / 2)
        self.count()
        if self.process.wait(TIMEOUT):
            sys.exit("proxies: a server ended with an error")
        self.start()


def get(port, path):
    connection = HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        return response.status, response.read().decode()
    except (OSError, HTTPException):
        return 0, ""
    finally:
        connection.close()


def wait_until(condition, text):
    begin = time.monotonic()
    while not condition():
        if time.monotonic() - begin > TIMEOUT:
            sys.exit(f"proxies: {text}")
        time.sleep(0.05)


class Counts:
    """Requests of one protocol."""

    def __init__(self):
        self.good, self.again, self.failed, self.examples = 0, 0, 0, []

    def fail(self, text):
        self.failed += 1
        self.examples = [*self.examples, text][:3]

    def __str__(self):
        again = f", {self.again} sent on a new connection" if self.again else ""
        return f"{self.good} good, {self.failed} failed{again}"


def send_http(port, ended, counts):
    connection = HTTPConnection("127.0.0.1", port, timeout=30)
    while not ended.is_set():
        try:
            connection.request("POST", "/v2/models/dynamic_shape/infer", BODY)
            response = connection.getresponse()
            text = response.read()
            if response.status == 200:
                counts.good += 1
            else:
                counts.fail(f"HTTP {response.status} {text[:100]}")
        except BrokenPipeError:
            # The proxy had closed the idle connection: HTTP clients open another one.
            counts.again += 1
            connection.close()
        except (OSError, HTTPException) as error:
            counts.fail(repr(error))
            connection.close()


def send_grpc(port, ended, counts):
    client = tritonclient.grpc.InferenceServerClient(f"127.0.0.1:{port}")
    tensor = tritonclient.grpc.InferInput("INPUT", [2, 2], "FP32")
    tensor.set_data_from_numpy(numpy.ones((2, 2), dtype=numpy.float32))
    while not ended.is_set():
        try:
            client.infer("dynamic_shape", [tensor])
            counts.good += 1
        except tritonclient.grpc.InferenceServerException as error:
            counts.fail(str(error)[:100])


def proxy_configuration(name, servers):
    """The file of deploy/ with these servers; ports of the proxy over HTTP and gRPC."""
    text = (DEPLOY / PROXIES[name]).read_text()
    for number, server in enumerate(servers, 1):
        lines = [line for line in text.splitlines(keepends=True)]
        for index, line in enumerate(lines):
            if f"server-{number}:" in line:
                line = line.replace(f"server-{number}:8000", f"127.0.0.1:{server.http}")
                line = line.replace(f"server-{number}:8001", f"127.0.0.1:{server.grpc}")
                lines[index] = line.replace("port 8000", f"port {server.http}")
        text = "".join(lines)
    http = free_port()
    if name == "haproxy":
        return text.replace("bind :8080", f"bind 127.0.0.1:{http}"), http, http
    grpc = free_port()
    text = text.replace("listen 8080", f"listen 127.0.0.1:{http}")
    return text.replace("listen 8081", f"listen 127.0.0.1:{grpc}"), http, grpc


def start_proxy(name, configuration, folder):
    program = shutil.which(name) or shutil.which(name, path="/usr/sbin")
    if not program:
        sys.exit(f"proxies: no {name}: apt-get install {name if name == 'haproxy' else 'nginx-light'}")
    path = folder / Path(PROXIES[name]).name
    path.write_text(configuration.replace("/run/nginx-trtserver.pid", str(folder / "pid")))
    words = {"haproxy": ["-db", "-f", path], "nginx": ["-c", path, "-g", "daemon off;"]}[name]
    with open(folder / "log", "w") as log:
        return subprocess.Popen([program, *words], stdout=log, stderr=log)


def mark_down(proxy, path, server, down):
    """Takes a server out of nginx's file, or puts it back, and lets nginx read it."""
    text = path.read_text()
    for port in (server.http, server.grpc):
        text = text.replace(f"127.0.0.1:{port} down max", f"127.0.0.1:{port} max")
        text = text.replace(f"127.0.0.1:{port} max", f"127.0.0.1:{port} {'down ' * down}max")
    path.write_text(text)
    proxy.send_signal(signal.SIGHUP)
    time.sleep(2)


def try_proxy(name, dist, delay, reload=False):
    servers = [Server(dist, delay) for _ in range(3)]
    configuration, http, grpc = proxy_configuration(name, servers)
    ended, over_http, over_grpc = threading.Event(), Counts(), Counts()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / Path(PROXIES[name]).name
        proxy = start_proxy(name, configuration, Path(folder))
        try:
            wait_until(lambda: get(http, "/v2/health/ready")[0] == 200, f"{name} does not listen")
            time.sleep(2)
            clients = [
                threading.Thread(target=send, args=(port, ended, counts))
                for send, port, counts in ((send_http, http, over_http), (send_grpc, grpc, over_grpc))
                for _ in range(2)
            ]
            [client.start() for client in clients]
            for server in servers:
                time.sleep(2)
                if reload:
                    mark_down(proxy, path, server, True)
                server.restart()
                if reload:
                    mark_down(proxy, path, server, False)
            time.sleep(2)
            ended.set()
            [client.join() for client in clients]
            [server.count() for server in servers]
        finally:
            ended.set()
            proxy.terminate()
            proxy.wait(TIMEOUT)
            for server in servers:
                server.process.kill()
                server.process.wait(TIMEOUT)
    shares = ", ".join(str(server.served) for server in servers)
    how = f"--drain-delay-secs={delay}" + ", taken out by a reload" * reload
    print(f"{name}, {how}: HTTP {over_http}; gRPC {over_grpc}; by server {shares}")
    for text in over_http.examples + over_grpc.examples:
        print(f"  failed: {text}")
    if not (over_http.good and over_grpc.good and all(server.served for server in servers)):
        sys.exit(f"proxies: {name} did not use all servers over both protocols")
    return over_http.failed + over_grpc.failed


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("proxies", nargs="*", metavar="PROXY", help="of haproxy, nginx; default: both")
    parser.add_argument("--dist", type=Path, default=DEPLOY.parent / "target/dist-debug")
    arguments = parser.parse_args()
    for name in arguments.proxies or PROXIES:
        if name not in PROXIES:
            parser.error(f"{name}: expected haproxy or nginx")
        dist = arguments.dist.resolve()
        failed = try_proxy(name, dist, 3)
        try_proxy(name, dist, 0)
        if name == "nginx":
            failed = try_proxy(name, dist, 0, reload=True)
        if failed:
            sys.exit(f"proxies: {name} lost {failed} requests where it should lose none")


if __name__ == "__main__":
    main()

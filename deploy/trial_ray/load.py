"""Load: what a request costs through Ray, and replicas that follow the queue."""

import json
import os
import signal
import sys
import threading
import time
from http.client import HTTPConnection, HTTPException

import tritonclient.grpc

from .answers import ADDSUB, INFER, JSON, addsub
from .cluster import wait_until

BODY = json.dumps(ADDSUB).encode()
SLOW = b'{"inputs":[{"name":"INPUT0","datatype":"FP32","shape":[1,2],"data":[1,2]}]}'


class HttpCaller:
    """One connection."""

    def __init__(self, target, path=INFER, body=BODY):
        self.connection = HTTPConnection("127.0.0.1", target.http, timeout=60)
        self.path, self.body = path, body

    def call(self):
        self.connection.request("POST", self.path, self.body, JSON)
        response = self.connection.getresponse()
        text = response.read()
        if response.status != 200:
            raise HTTPException(f"{response.status} {text[:200]}")


class GrpcCaller:
    """One channel."""

    def __init__(self, target):
        self.client = tritonclient.grpc.InferenceServerClient(f"127.0.0.1:{target.grpc}")
        self.inputs = addsub(tritonclient.grpc)

    def call(self):
        self.client.infer("addsub_fp32", self.inputs)


def idle_share(target, seconds):
    """CPUs that the target uses without requests."""
    begun = target.cpu_seconds()
    time.sleep(seconds)
    return (target.cpu_seconds() - begun) / seconds


def measure(target, make, clients, seconds):
    """Median latency in ms, requests a second, and CPU time of the target for each request in ms."""
    times, ended, begun = [], time.monotonic() + seconds, target.cpu_seconds()

    def run():
        caller = make(target)
        caller.call()
        while (begin := time.monotonic()) < ended:
            caller.call()
            times.append(time.monotonic() - begin)

    threads = [threading.Thread(target=run) for _ in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    cpu = target.cpu_seconds() - begun
    return sorted(times)[len(times) // 2] * 1000, len(times) / seconds, cpu / len(times) * 1000


def cost(direct, through_ray, seconds):
    """Prints the table of docs/ray.md."""
    idle = idle_share(through_ray, seconds)
    print(f"ray: without requests Ray uses {idle:.2f} CPUs, which count below, too")
    print("| | clients | | p50 | requests/s | CPU for each request |\n|---|---|---|---|---|---|")
    for name, caller in (("HTTP, JSON", HttpCaller), ("gRPC", GrpcCaller)):
        for clients in (1, 8):
            own = measure(direct, caller, clients, seconds)
            ray = measure(through_ray, caller, clients, seconds)
            for way, row in (("direct", own), ("through Ray", ray)):
                print(f"| {name} | {clients} | {way} | {row[0]:.2f} ms | {row[1]:.0f} | {row[2]:.2f} ms |")
            ratios = [ray[0] / own[0], own[1] / ray[1], ray[2] / own[2]]
            print("| | | ratio |" + "".join(f" {ratio:.0f} |" for ratio in ratios), flush=True)


class Load:
    """Clients that send to the slow model until they are told to end. Each failure is kept."""

    def __init__(self, target, clients):
        self.target, self.good, self.failed, self.ended = target, 0, [], threading.Event()
        self.threads = [threading.Thread(target=self.run) for _ in range(clients)]
        for thread in self.threads:
            thread.start()

    def run(self):
        caller = HttpCaller(self.target, "/v2/models/slow/infer", SLOW)
        while not self.ended.is_set():
            try:
                caller.call()
                self.good += 1
            except (OSError, HTTPException) as error:
                self.failed.append(f"{type(error).__name__}: {error}")
                caller = HttpCaller(self.target, "/v2/models/slow/infer", SLOW)

    def end(self):
        self.ended.set()
        for thread in self.threads:
            thread.join()


def scale(cluster):
    """One replica becomes three under load, and one again without; no request fails."""
    wait_until(lambda: len(cluster.servers()) == 1, "more than one server without load")
    load = Load(cluster, 40)
    # One client goes on while replicas end.
    up = wait_until(lambda: len(cluster.servers()) == 3, f"{len(cluster.servers())} servers under load, expected 3")
    calm = Load(cluster, 1)
    load.end()
    down = wait_until(lambda: len(cluster.servers()) == 1, "servers of replicas that are not needed stay")
    calm.end()
    failed = load.failed + calm.failed
    if failed:
        sys.exit(f"ray: {len(failed)} of {load.good + calm.good} requests failed while replicas came and went: {failed[:3]}")
    print(
        f"ray: 3 servers {up:.0f} s after the load began, 1 again {down:.0f} s after its end;"
        f" {load.good + calm.good} requests, 0 failed",
        flush=True,
    )


def replace(cluster):
    """A server that is killed is replaced, with its replica. Requests after that wait for the new one."""
    (before,) = cluster.servers()
    load = Load(cluster, 4)
    wait_until(lambda: load.good > 4, "no request was answered")
    os.kill(before, signal.SIGKILL)

    def replaced():
        return before not in (now := cluster.servers()) and now and cluster.is_ready()

    seconds = wait_until(replaced, "a server that was killed is not replaced")
    good = load.good
    wait_until(lambda: load.good > good, "the new server answers nothing")
    load.end()
    if len(load.failed) > 8:
        sys.exit(f"ray: {len(load.failed)} requests of 4 clients failed, expected those in progress: {load.failed[:3]}")
    print(
        f"ray: a server that was killed is replaced after {seconds:.0f} s; of 4 clients' requests"
        f" {len(load.failed)} failed: {sorted(set(load.failed))[:4]}",
        flush=True,
    )

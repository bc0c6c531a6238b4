"""A network with latency, loss, slow clients and a split between the balancer and a server.

Namespaces are the hosts of three servers and of the slow clients (links.py); Envoy with
deploy/envoy/envoy.yaml and the ordinary clients are in a fourth one. Needs root and /dev/net/tun.
"""

import json
import multiprocessing
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from calls import inference
from fleet import TIMEOUT, Fleet, model_configuration
from links import Host, enter_new_namespace
from load import Load
from proxy import Envoy, place, read_file
from results import examples, milliseconds, percentile, table

DELAY_MS, INSTANCES, RATE = 50, 2, 40
LATENCY_MS, LOSS = 40, 0.05
# Bytes a second for each, on a link that loses what its buffer cannot hold.
SLOW_CLIENTS, SLOW_RATE, SLOW_VALUES = 12, 30_000, 50_000
SPLIT_S = 5

# A client in a namespace of its own: several requests at the same time over one slow link.
SLOW_CLIENT = """
import json, sys, threading, time, urllib.request
url, number, values = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
body = json.dumps({"inputs": [{"name": "INPUT0", "datatype": "FP32", "shape": [1, values], "data": [1] * values}]}).encode()
right = []
def send():
    with urllib.request.urlopen(url, body, timeout=60) as response:
        right.append(len(json.load(response)["outputs"][0]["data"]) == values)
threads = [threading.Thread(target=send) for _ in range(number)]
begin = time.monotonic()
[thread.start() for thread in threads]
[thread.join() for thread in threads]
print(json.dumps({"right": sum(right), "seconds": time.monotonic() - begin}))
"""


class Stage:
    """Three servers behind links, and Envoy."""

    def __init__(self, hosts, servers, slow, envoy):
        self.hosts, self.servers, self.slow, self.envoy = hosts, servers, slow, envoy

    def measure(self, seconds, during=lambda: None):
        """Outcomes of ordinary clients, and what `during` has returned."""
        load = Load(self.envoy.address, self.envoy.port, [inference("http"), inference("grpc")], RATE)
        load.start()
        begin = time.monotonic()
        found = during()
        time.sleep(max(0, begin + seconds - time.monotonic()))
        return load.stop(), found

    def share(self, outcomes):
        """The part that the third server has answered."""
        third = [outcome for outcome in outcomes if outcome.server.startswith(self.servers[2].address + ":")]
        return len(third) / len(outcomes)

    def send_slowly(self):
        url = f"http://{self.slow.near}:{self.envoy.port}/v2/models/work/infer"
        command = [*self.slow.prefix, sys.executable, "-c", SLOW_CLIENT, url, str(SLOW_CLIENTS), str(SLOW_VALUES)]
        found = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=2 * TIMEOUT)
        return json.loads(found.stdout)

    def split(self):
        """Cuts the link to the third server. When it was cut, and when it was mended."""
        time.sleep(2)
        begin = time.monotonic()
        self.hosts[2].set(cut=True)
        time.sleep(SPLIT_S)
        end = time.monotonic()
        self.hosts[2].set()
        return begin, end


def show(stage, verdicts, seconds):
    rows, p99 = [], {}

    def add(name, outcomes):
        times = [outcome.took for outcome in outcomes]
        p99[name] = percentile(times, 0.99)
        failed = examples(outcomes)
        rows.append([name, len(outcomes), failed, f"{stage.share(outcomes):.2f}", milliseconds(percentile(times, 0.5)), milliseconds(p99[name])])
        verdicts.expect(not failed, f"{name}: {failed} requests failed (0)")

    add("as it is", stage.measure(seconds)[0])
    stage.hosts[2].set(delay_ms=LATENCY_MS)
    add(f"{LATENCY_MS} ms each way", stage.measure(seconds)[0])
    stage.hosts[2].set(loss=LOSS)
    add(f"{LOSS:.0%} of packets lost", stage.measure(seconds)[0])
    stage.hosts[2].set()
    outcomes, slow = stage.measure(seconds, stage.send_slowly)
    add(f"{SLOW_CLIENTS} slow clients", outcomes)
    outcomes, (cut, mended) = stage.measure(2 + SPLIT_S + 5, stage.split)
    add(f"split for {SPLIT_S} s", outcomes)
    print(table(["third server", "requests", "failed", "its share", "p50", "p99"], rows))
    verdicts.expect(
        slow["right"] == SLOW_CLIENTS and p99[f"{SLOW_CLIENTS} slow clients"] < 2 * p99["as it is"],
        f"{slow['right']} of {SLOW_CLIENTS} slow requests are right after {slow['seconds']:.0f} s, "
        f"p99 of the others {p99[f'{SLOW_CLIENTS} slow clients'] / p99['as it is']:.2f} of that without them (less than 2)",
    )
    report_split(verdicts, stage, outcomes, cut, mended)


def report_split(verdicts, stage, outcomes, cut, mended):
    held = [outcome for outcome in outcomes if cut - 1 < outcome.sent < mended and outcome.took > 1]
    late = [outcome for outcome in held if outcome.sent > cut + 2]
    last = max((outcome.sent - cut for outcome in held), default=0)
    print(f"{len(held)} requests were held up by the split, the last was sent {milliseconds(last)} after it")
    verdicts.expect(not late, f"{len(late)} requests that were sent later than 2 s after the split were held up (0)")
    after = [outcome for outcome in outcomes if outcome.sent > mended + 2]
    share = stage.share(after)
    verdicts.expect(share > 0.2, f"2 s after the link is back the server answers {share:.2f} of the requests (more than 0.2)")


def run(dist, verdicts, short, missed):
    reason = enter_new_namespace()
    if reason:
        print(f"not shown: {reason}")
        missed.value = 0
        return
    hosts = [Host(number) for number in range(1, 5)]
    try:
        with tempfile.TemporaryDirectory() as folder, Fleet(dist, folder) as fleet:
            servers = [fleet.start(model_configuration(DELAY_MS, INSTANCES), address=host.address, prefix=host.prefix) for host in hosts[:3]]
            [server.wait_ready() for server in servers]
            slow = hosts[3]
            slow.set(bytes_per_s=SLOW_RATE * SLOW_CLIENTS)
            # Slow clients reach Envoy at this end of their link.
            with Envoy(place(read_file("envoy.yaml"), servers, "0.0.0.0"), Path(folder)) as envoy:
                envoy.address = "127.0.0.1"
                envoy.wait_healthy(servers)
                show(Stage(hosts, servers, slow, envoy), verdicts, 5 if short else 10)
    finally:
        [host.end() for host in hosts]
    missed.value = verdicts.missed


def demonstrate(dist, verdicts, short=False):
    """In a process of its own, which leaves the network of this one."""
    context = multiprocessing.get_context("spawn")
    missed = context.Value("i", 1)
    process = context.Process(target=run, args=(dist, type(verdicts)(), short, missed))
    process.start()
    process.join()
    verdicts.missed += missed.value if process.exitcode == 0 else 1

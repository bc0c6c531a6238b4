"""One of three servers is killed (SIGKILL) under load.

Envoy with deploy/envoy/envoy.yaml. A quarter of the requests each over HTTP and gRPC, with and without
the header idempotency-key. Only requests that the server was executing may fail, and of those only the
ones without that header: Envoy sends the others again.
"""

import tempfile
import threading
import time
from collections import Counter
from pathlib import Path

from calls import inference
from fleet import Fleet, model_configuration, wait_until
from load import Load
from proxy import Envoy, place, read_file
from results import examples, milliseconds, percentile, table

# Each server can execute 32 requests a second; all three have 40 in flight at this rate.
DELAY_MS, INSTANCES, RATE = 1000, 32, 40
# So many are to be in flight on the server when it is killed: more than the three that Envoy repeats at
# a time by its defaults.
LEAST_IN_FLIGHT = 12
# For Envoy to read the end of its connections. What it writes to them until then may have arrived.
NOTICE_S = 0.1
REPEATED = (("idempotency-key", "1"),)


class HealthWatch(threading.Thread):
    """When Envoy stopped to send requests to a server."""

    def __init__(self, envoy, server):
        super().__init__(daemon=True)
        self.envoy, self.server, self.moved = envoy, server, {}

    def run(self):
        addresses = {f"{self.server.address}:{port}" for port in self.server.ports.values()}
        end = time.monotonic() + 10
        while time.monotonic() < end and len(self.moved) < 2:
            for (cluster, address), healthy in self.envoy.hosts().items():
                if address in addresses and not healthy:
                    self.moved.setdefault(cluster, time.monotonic())
            time.sleep(0.02)


def demonstrate(dist, verdicts, short=False):
    before_s, after_s = (2, 3) if short else (5, 10)
    with tempfile.TemporaryDirectory() as folder, Fleet(dist, folder) as fleet:
        servers = [fleet.start(model_configuration(DELAY_MS, INSTANCES)) for _ in range(3)]
        [server.wait_ready() for server in servers]
        with Envoy(place(read_file("envoy.yaml"), servers), Path(folder)) as envoy:
            envoy.wait_healthy(servers)
            calls = [inference(protocol, headers) for headers in ((), REPEATED) for protocol in ("http", "grpc")]
            load = Load(envoy.address, envoy.port, calls, RATE)
            load.start()
            time.sleep(before_s)
            killed = servers[0]
            watch = HealthWatch(envoy, killed)
            watch.start()
            # The kill is to be felt.
            in_flight = wait_until(lambda: (number := envoy.active_requests(killed)) >= LEAST_IN_FLIGHT and number, "no load")
            before = envoy.repeated_requests()
            begin = time.monotonic()
            killed.kill()
            dead = time.monotonic()
            time.sleep(after_s)
            outcomes = load.stop()
            watch.join()
            repeats = envoy.repeated_requests() - before
    report(verdicts, outcomes, (begin, dead), killed, watch.moved)
    failed = sum(outcome.failure is not None for outcome in outcomes)
    print(f"{in_flight} requests were in flight there; {failed} failed, {repeats} were sent again")
    verdicts.expect(failed + repeats > 0, "the kill was felt")


def report(verdicts, outcomes, when, killed, moved):
    begin, dead = when
    before = [outcome for outcome in outcomes if outcome.ended < begin]
    later = [outcome for outcome in outcomes if outcome.sent >= dead + NOTICE_S]
    open_then = [outcome for outcome in outcomes if outcome not in before and outcome not in later]
    rows = []
    for name, group in (("before", before), ("in flight", open_then), ("after", later)):
        for repeated in (False, True):
            some = [outcome for outcome in group if (outcome.call.headers == REPEATED) is repeated]
            failed = sum(outcome.failure is not None for outcome in some)
            slowest = milliseconds(max(outcome.took for outcome in some)) if some else "-"
            rows.append([name, "yes" if repeated else "no", len(some), failed, slowest])
    print(table(["requests sent", "idempotency-key", "number", "failed", "slowest"], rows))
    examples(outcomes)
    failed = [outcome for outcome in outcomes if outcome.failure]
    strangers = [outcome for outcome in failed if outcome not in open_then]
    verdicts.expect(not strangers, f"{len(strangers)} requests failed that were not in flight (0)")
    here = {f"{killed.address}:{port}" for port in killed.ports.values()}
    others = [outcome for outcome in failed if outcome.server not in here]
    verdicts.expect(not others, f"{len(others)} requests to other servers failed (0)")
    repeated = [outcome for outcome in failed if outcome.call.headers == REPEATED]
    verdicts.expect(not repeated, f"{len(repeated)} requests failed that may be repeated (0)")
    last = max([0, *(outcome.ended - dead for outcome in failed)])
    first_s = [outcome for outcome in later if outcome.sent < dead + 1]
    slowest = max(outcome.took for outcome in first_s)
    verdicts.expect(last < 1, f"the last failure is {milliseconds(last)} after the end of the process (less than 1 s)")
    verdicts.expect(
        slowest < 1 + DELAY_MS / 1e3,
        f"of the second after the kill, the slowest request took {milliseconds(slowest)} (less than 1 s more than {DELAY_MS} ms)",
    )
    late = Counter(outcome.server in here for outcome in later if outcome.sent > dead + 1)
    verdicts.expect(not late[True], f"{late[True]} of {late.total()} requests after the first second went to the killed server (0)")
    noticed = ", ".join(f"{cluster} after {milliseconds(when - begin)}" for cluster, when in sorted(moved.items()))
    print(f"Envoy stopped choosing the killed server: {noticed or 'not within 10 s'}")
    times = [outcome.took for outcome in later]
    print(f"p50 and p99 afterwards: {milliseconds(percentile(times, 0.5))}, {milliseconds(percentile(times, 0.99))}")

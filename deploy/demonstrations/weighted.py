"""Three servers, one with a quarter of the speed: round robin beside weights from load reports.

Envoy with deploy/envoy/envoy-weighted.yaml, and with the same file but ROUND_ROBIN and LEAST_REQUEST.
Round robin sends the slow server more than it can execute; the load reports (ORCA) tell Envoy how
busy each server is, so that it gets less.
"""

import tempfile
import time
from pathlib import Path

from calls import inference
from fleet import Fleet, model_configuration
from load import Load
from proxy import Envoy, place, read_file, set_policy
from results import examples, milliseconds, percentile, table

FAST_MS, SLOW_MS, INSTANCES = 20, 80, 2
# All three can execute 225 requests a second, the slow one 25 of them: with round robin it gets 20 of
# the first rate, and 30 of the second.
RATES = (60, 90)


def measure(dist, policy, rate, learn_s, measured_s):
    """Outcomes of one policy at a rate after it has had time to learn, and the share of the slow server."""
    with tempfile.TemporaryDirectory() as folder, Fleet(dist, folder) as fleet:
        servers = [fleet.start(model_configuration(ms, INSTANCES)) for ms in (FAST_MS, FAST_MS, SLOW_MS)]
        [server.wait_ready() for server in servers]
        config = read_file("envoy-weighted.yaml")
        if policy:
            set_policy(config, policy)
        with Envoy(place(config, servers), Path(folder)) as envoy:
            envoy.wait_healthy(servers)
            load = Load(envoy.address, envoy.port, [inference("http"), inference("grpc")], rate)
            begin = time.monotonic() + learn_s
            load.start()
            time.sleep(learn_s + measured_s)
            outcomes = [outcome for outcome in load.stop() if outcome.sent >= begin]
        slow = {f"{servers[2].address}:{servers[2].ports[name]}" for name in ("http", "grpc")}
        share = sum(outcome.server in slow for outcome in outcomes) / len(outcomes)
        return outcomes, share


def demonstrate(dist, verdicts, short=False):
    learn_s, measured_s = (4, 3) if short else (10, 15)
    # The short form has no figures to compare with: the share of the slow server tells.
    policies = {"round robin": "ROUND_ROBIN", "least request": "LEAST_REQUEST", "load reports": None}
    rows, promises = [], []
    for rate in RATES[:1] if short else RATES:
        p99 = {}
        for name, policy in list(policies.items())[2 if short else 0:]:
            outcomes, share = measure(dist, policy, rate, learn_s, measured_s)
            times = [outcome.took for outcome in outcomes]
            p99[name], failed = percentile(times, 0.99), examples(outcomes)
            middle = milliseconds(percentile(times, 0.5))
            rows.append([rate, name, len(outcomes), f"{share:.2f}", middle, milliseconds(p99[name]), failed])
        if not short:
            ratio = p99["load reports"] / p99["round robin"]
            text = f"{rate}/s: p99 with load reports is {ratio:.2f} of that of round robin (at most 0.5)"
            promises.append((ratio <= 0.5, text))
        promises += [
            (share < 0.25, f"{rate}/s: the slow server gets {share:.2f} of the requests (less than 0.25; 0.11 is its part of the speed)"),
            (not failed, f"{rate}/s: {failed} requests failed with load reports (0)"),
        ]
    print(table(["requests a second", "policy", "requests", "share of the slow server", "p50", "p99", "failed"], rows))
    for condition, text in promises:
        verdicts.expect(condition, text)

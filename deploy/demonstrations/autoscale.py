"""An autoscaler on Prometheus starts and stops servers behind Envoy while the load becomes five times as large.

Envoy with deploy/envoy/envoy.yaml and file-based EDS; Debian's Prometheus with the rules of
deploy/prometheus and those by NVIDIA's names (triton.rules.yml). The loop follows the formula of
Kubernetes' HorizontalPodAutoscaler, once on this server's utilization, once on the queue time of
NVIDIA's charts.
"""

import json
import shutil
import signal
import subprocess
import tempfile
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

from calls import inference
from fleet import TIMEOUT, Fleet, model_configuration, wait_until
from load import Load
from proxy import Envoy, place, read_file
from results import examples, milliseconds, percentile, table
from scaling import Autoscaler, discovery_response, replace_file, use_file_discovery

RULES = Path(__file__).resolve().parent.parent / "prometheus/trtserver.rules.yml"
TRITON_RULES = Path(__file__).resolve().with_name("triton.rules.yml")
# A server executes 20 requests a second. Its queue holds two seconds of them: about the time that a new
# server needs, with a scrape, a rule and a look of the autoscaler before it.
DELAY_MS, INSTANCES, QUEUE = 100, 2, 40
LOW, HIGH = 12, 60
LEAST, MOST = 2, 8
QUEUE_POLICY = f"dynamic_batching {{ preferred_batch_size: [ 1 ] default_queue_policy {{ max_queue_size: {QUEUE} }} }}"
DRAIN_S = 2
# Failed requests of all in the first third after the step, while servers are missing.
BOUND = 0.02


class Prometheus:
    """Scrapes each second the servers that a file lists."""

    def __init__(self, folder):
        program = shutil.which("prometheus")
        if not program:
            raise SystemExit("demonstrate: no prometheus: apt-get install prometheus")
        self.targets = folder / "targets.json"
        self.targets.write_text("[]")
        scrape = {"job_name": "trtserver", "file_sd_configs": [{"files": [str(self.targets)], "refresh_interval": "1s"}]}
        (folder / "prometheus.yml").write_text(json.dumps({
            "global": {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"},
            "rule_files": [str(RULES), str(TRITON_RULES)],
            "scrape_configs": [scrape],
        }))
        self.address_file = folder / "prometheus-log"
        with open(self.address_file, "w") as log:
            self.process = subprocess.Popen(
                [program, f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data",
                 "--web.listen-address=127.0.0.1:0", "--log.level=info"],
                stdout=log,
                stderr=log,
            )
        self.address = ""

    def __enter__(self):
        self.address = wait_until(self.find_address, "Prometheus does not listen")
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(TIMEOUT)

    def find_address(self):
        """Of the line `msg="Listening on" address=…` in its log."""
        for line in self.address_file.read_text().splitlines():
            if "Listening on" in line and "address=" in line:
                return line.split("address=")[1].split()[0]
        return None

    def scrape(self, servers):
        targets = [f"{server.address}:{server.ports['metrics']}" for server in servers]
        replace_file(self.targets, [{"targets": targets}])

    def ask(self, expression):
        """The only value, or None."""
        query = urllib.parse.urlencode({"query": expression})
        try:
            with urllib.request.urlopen(f"http://{self.address}/api/v1/query?{query}", timeout=10) as response:
                found = json.load(response)["data"]["result"]
        except urllib.error.HTTPError as error:
            raise SystemExit(f"demonstrate: {expression}: {error.read().decode()}") from error
        values = [float(series["value"][1]) for series in found]
        return values[0] if values and values[0] == values[0] else None


    def rules(self):
        """All rules, each with its name and its health."""
        with urllib.request.urlopen(f"http://{self.address}/api/v1/rules", timeout=10) as response:
            groups = json.load(response)["data"]["groups"]
        return [(rule["name"], rule["health"]) for group in groups for rule in group["rules"]]


class ServerPool:
    """The servers that are there, in Envoy's and Prometheus' files."""

    def __init__(self, fleet, folder, prometheus):
        self.fleet, self.folder, self.prometheus = fleet, folder, prometheus
        self.servers, self.version, self.leaving = [], 0, []

    def resize(self, number):
        """Starts and ends servers. New ones are in the files once they are ready."""
        configuration = model_configuration(DELAY_MS, INSTANCES, QUEUE_POLICY)
        new = [self.fleet.start(configuration, f"--drain-delay-secs={DRAIN_S}") for _ in range(number - len(self.servers))]
        self.servers += [server.wait_ready() for server in new]
        leaving, self.servers = self.servers[number:], self.servers[:number]
        self.publish()
        for server in leaving:
            # The drain delay answers what Envoy sends until it has read the file.
            server.process.send_signal(signal.SIGTERM)
        self.leaving += leaving

    def publish(self):
        self.version += 1
        for cluster in ("trtserver_http", "trtserver_grpc"):
            content = discovery_response(cluster, self.servers, self.version)
            replace_file(self.folder / f"{cluster}.json", content)
        self.prometheus.scrape(self.servers)


class Loop(threading.Thread):
    """Asks for the metric and resizes the pool, every second."""

    def __init__(self, pool, autoscaler, prometheus, expression):
        super().__init__(daemon=True)
        self.pool, self.autoscaler, self.prometheus, self.expression = pool, autoscaler, prometheus, expression
        self.ended, self.history, self.failure = threading.Event(), [], None

    def run(self):
        try:
            while not self.ended.wait(1):
                now, current = time.monotonic(), len(self.pool.servers)
                metric = self.prometheus.ask(self.expression)
                number = self.autoscaler.decide(now, current, metric)
                self.history.append((now, current, metric))
                if number != current:
                    self.pool.resize(number)
        except BaseException as error:
            self.failure = error

    def most(self, begin, end):
        return max(number for at, number, _ in self.history if begin <= at < end)


def run_day(dist, expression, target, seconds):
    """Low load, five times as much, low load again. Outcomes, times of the steps, the loop, exit codes, rules."""
    with tempfile.TemporaryDirectory() as name, Fleet(dist, name) as fleet:
        folder = Path(name)
        with Prometheus(folder) as prometheus:
            pool = ServerPool(fleet, folder, prometheus)
            pool.resize(LEAST)
            config = read_file("envoy.yaml")
            use_file_discovery(config, folder)
            with Envoy(place(config, []), folder) as envoy:
                envoy.wait_healthy(pool.servers)
                autoscaler = Autoscaler(LEAST, MOST, target, down_window_s=20)
                loop = Loop(pool, autoscaler, prometheus, expression)
                load = Load(envoy.address, envoy.port, [inference("http"), inference("grpc")], LOW)
                load.start()
                loop.start()
                steps = [time.monotonic()]
                for rate, lasts in zip((LOW, HIGH, LOW), seconds):
                    load.rate = rate
                    time.sleep(lasts)
                    steps.append(time.monotonic())
                loop.ended.set()
                loop.join(TIMEOUT)
                outcomes = load.stop()
                if loop.failure:
                    raise loop.failure
                rules = prometheus.rules()
                exits = [server.process.wait(TIMEOUT) for server in pool.leaving]
    return outcomes, steps, loop, exits, rules


def demonstrate(dist, verdicts, short=False):
    seconds = (10, 30, 30) if short else (20, 60, 60)
    rules = {
        "utilization": ("avg(max by (instance) (trtserver_application_utilization_ratio))", 0.65),
        "NVIDIA's queue time": ("avg_time_queue_us", 20_000),
    }
    rows, results = [], {}
    for name, (expression, target) in rules.items():
        outcomes, steps, loop, exits, found_rules = run_day(dist, expression, target, seconds)
        print(f"servers over time, on {name}:", " ".join(str(number) for _, number, _ in loop.history))
        begin, end = steps[1], steps[2]
        parts = {
            "low": [o for o in outcomes if o.sent < begin],
            "5 x, first third": [o for o in outcomes if begin <= o.sent < begin + (end - begin) / 3],
            "5 x, rest": [o for o in outcomes if begin + (end - begin) / 3 <= o.sent < end],
            "low again": [o for o in outcomes if o.sent >= end],
        }
        edges = [steps[0], begin, begin + (end - begin) / 3, end, steps[3]]
        for (part, some), first, last in zip(parts.items(), edges, edges[1:]):
            failed = sum(outcome.failure is not None for outcome in some)
            good = [outcome.took for outcome in some if not outcome.failure]
            rows.append([name, part, loop.most(first, last), len(some), failed, milliseconds(percentile(good, 0.5)), milliseconds(percentile(good, 0.99))])
        examples(outcomes)
        results[name] = parts, loop, exits
        bad = [rule for rule, health in found_rules if health != "ok"]
        verdicts.expect(found_rules and not bad, f"{len(found_rules)} rules of both files, {len(bad)} with an error (0)")
    print(table(["scaled on", "load", "most servers", "requests", "failed", "p50", "p99"], rows))
    for name, (parts, loop, exits) in results.items():
        count = {part: (len(some), sum(o.failure is not None for o in some)) for part, some in parts.items()}
        step, failed = count["5 x, first third"]
        verdicts.expect(failed <= BOUND * step, f"{name}: {failed} of {step} requests fail while servers are missing (at most {BOUND:.0%})")
        rest = sum(failed for part, (_, failed) in count.items() if part != "5 x, first third")
        verdicts.expect(not rest, f"{name}: {rest} requests fail at other times, servers that leave included (0)")
        most, last = max(number for _, number, _ in loop.history), loop.history[-1][1]
        verdicts.expect(HIGH / 20 <= most, f"{name}: {most} servers for the large load (at least {HIGH // 20})")
        verdicts.expect(last < most and not any(exits), f"{name}: {last} servers at the end, and those that left ended with {exits}")

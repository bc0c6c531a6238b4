#!/usr/bin/env python3
"""The rules and the board of `deploy` on a Prometheus that scrapes a server under load.

Needs `prometheus` and `promtool` (Debian's package `prometheus`). Each expression must be valid, and
those of requests, batches and memory must have values.
"""

import argparse
import contextlib
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request

from page_test import ROOT, Server

RULES = ROOT / "deploy/prometheus/trtserver.rules.yml"
BOARD = ROOT / "deploy/grafana/trtserver.json"
# Panels that have nothing to show on a healthy machine without GPUs and queue timeouts.
MAY_BE_EMPTY = {"GPUs in use", "Models that failed to load", "Queue: wait over timeout"}
PORT = 19090


def ask(path, **query):
    url = f"http://127.0.0.1:{PORT}{path}?{urllib.parse.urlencode(query)}"
    try:
        with urllib.request.urlopen(url, timeout=10) as response:
            return json.load(response)
    except urllib.error.HTTPError as error:
        return json.load(error)


def board_expressions():
    for panel in json.loads(BOARD.read_text())["panels"]:
        for target in panel["targets"]:
            expression = target["expr"].replace("$__rate_interval", "10s")
            yield panel["title"], re.sub(r"\$(model|instance)\b", ".*", expression)


def wait_for(what, condition, seconds=60):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            sys.exit(f"boards: {what} did not come within {seconds} s")
        time.sleep(0.5)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--dist", type=pathlib.Path, required=True)
    args = parser.parse_args()
    subprocess.run(["promtool", "check", "rules", RULES], check=True)
    subprocess.run(["promtool", "test", "rules", RULES.with_name("trtserver.test.yml")], check=True)
    findings = []
    with tempfile.TemporaryDirectory() as folder:
        server = Server(args.dist, ROOT / "examples/models")
        config = pathlib.Path(folder) / "prometheus.yml"
        config.write_text(json.dumps({
            "global": {"scrape_interval": "1s", "evaluation_interval": "1s"}, "rule_files": [str(RULES)],
            "scrape_configs": [{"job_name": "trtserver", "static_configs": [{"targets": [server.metrics]}]}]}))
        prometheus = subprocess.Popen(["prometheus", f"--config.file={config}", f"--storage.tsdb.path={folder}/data",
                                       f"--web.listen-address=127.0.0.1:{PORT}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            body = {"inputs": [{"name": "IMAGE", "datatype": "FP32", "shape": [1, 1, 8, 8], "data": [0.5] * 64}]}
            begin = time.monotonic()
            while time.monotonic() < begin + 15:
                with contextlib.suppress(urllib.error.HTTPError):
                    server.ask("/v2/models/digits/infer", body)
            for title, expression in board_expressions():
                found = ask("/api/v1/query", query=expression)
                if found["status"] != "success":
                    findings.append(f"{title}: {expression}: {found['error']}")
                elif not found["data"]["result"] and title not in MAY_BE_EMPTY:
                    findings.append(f"{title}: no values: {expression}")
            groups = ask("/api/v1/rules")["data"]["groups"]
            for rule in (rule for group in groups for rule in group["rules"]):
                if rule["health"] != "ok":
                    findings.append(f"rule {rule['name']}: {rule['health']} {rule.get('lastError', '')}")
                if rule.get("state") == "firing":
                    findings.append(f"alert {rule['name']} on a healthy server")
            wait_for("the recorded rate", lambda: ask("/api/v1/query", query="trtserver:request_rate:5m > 0")["data"]["result"])
            wait_for("the recorded p99", lambda: ask("/api/v1/query", query="trtserver:request_seconds_p99:5m > 0")["data"]["result"])
        finally:
            prometheus.terminate()
            prometheus.wait(30)
            server.stop()
    for finding in findings:
        print("boards:", finding)
    print(f"boards: {len(findings)} findings")
    sys.exit(1 if findings else 0)


if __name__ == "__main__":
    main()

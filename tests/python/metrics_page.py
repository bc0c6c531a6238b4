"""The metrics page with the parsers of `prometheus_client`. The server is that of tests/wire/metrics.rs."""

import gzip
import re
import urllib.request

from prometheus_client.openmetrics import parser as openmetrics
from prometheus_client import parser as text

import checks

# What Prometheus 3 sends.
PROMETHEUS = (
    "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,"
    "application/openmetrics-text;version=0.0.1;q=0.5,text/plain;version=1.0.0;q=0.4,"
    "text/plain;version=0.0.4;q=0.3,*/*;q=0.2"
)
OPEN_METRICS = "application/openmetrics-text;version=1.0.0"
HISTOGRAMS = ("request", "queue", "compute")


def page(**headers):
    headers = {name.replace("_", "-"): value for name, value in headers.items()}
    request = urllib.request.Request(f"http://{checks.METRICS}/metrics", headers=headers)
    with urllib.request.urlopen(request, timeout=checks.TIMEOUT) as response:
        return response.headers, response.read()


def families(parser, body):
    return {family.name: family for family in parser.text_string_to_metric_families(body.decode())}


def samples(body):
    """Names of samples as they are sent: the parsers add `_total` to those of counters."""
    lines = [line for line in body.decode().splitlines() if not line.startswith("#")]
    return {re.match("[a-z_0-9]+", line)[0] for line in lines}


class Page(checks.Case):
    def test_text_format(self):
        headers, body = page()
        self.assertEqual(headers["content-type"], "text/plain; charset=utf-8")
        found = families(text, body)
        self.assertEqual(found["nv_inference_request_success"].type, "counter")
        self.check_values(found)

    def test_open_metrics(self):
        headers, body = page(Accept=OPEN_METRICS)
        self.assertEqual(
            headers["content-type"], "application/openmetrics-text; version=1.0.0; charset=utf-8")
        self.assertTrue(body.endswith(b"\n# EOF\n"))
        found = families(openmetrics, body)
        self.assertEqual(found["nv_inference_request_success"].type, "counter")
        self.assertEqual(found["process_cpu_seconds"].type, "counter")
        # No other name is allowed for a counter.
        self.assertIn("nv_inference_request_success_total", samples(body))
        self.assertNotIn("unknown", {family.type for family in found.values()})
        self.check_values(found)

    def check_values(self, found):
        def value(name, **labels):
            [value] = [
                sample.value for family in found.values() for sample in family.samples
                if sample.name in (name, f"{name}_total") and labels.items() <= sample.labels.items()
            ]
            return value

        echo = {"model": "echo", "version": "1", "_team": 'blue "\\ \n'}
        requests = value("nv_inference_request_success", **echo)
        self.assertGreater(requests, 0)
        for name in HISTOGRAMS:
            family = f"trtserver_{name}_duration_seconds"
            self.assertEqual(found[family].type, "histogram")
            self.assertEqual(value(f"{family}_count", **echo), requests)
            self.assertEqual(value(f"{family}_bucket", le="+Inf", **echo), requests)
            self.assertLess(value(f"{family}_sum", **echo), 60)
            buckets = [s.value for s in found[family].samples if "le" in s.labels and echo.items() <= s.labels.items()]
            self.assertEqual((sorted(buckets), len(buckets)), (buckets, 18))
        self.assertEqual(value("trtserver_requests_in_flight", **echo), 0)
        self.assertEqual(value("trtserver_queue_wait_predicted_seconds", **echo), 0)
        self.assertEqual(value("trtserver_queue_saturation_ratio", **echo), 0)
        for name in ("process_resident_memory_bytes", "process_open_fds", "process_max_fds", "process_threads",
                     "process_start_time_seconds", "nv_cpu_memory_total_bytes"):
            self.assertGreater(value(name), 0, name)
        self.assertEqual(value("nv_pinned_memory_pool_used_bytes"), 0)
        self.assertTrue(0 <= value("nv_cpu_utilization") <= 1)

    def test_prometheus_gets_the_names_of_triton(self):
        headers, body = page(Accept=PROMETHEUS)
        self.assertEqual(headers["content-type"], "text/plain; charset=utf-8")
        self.assertEqual(families(text, body)["nv_inference_request_success"].type, "counter")
        self.assertIn("nv_inference_request_success", samples(body))

    def test_only_names_of_counters_differ(self):
        _, in_text = page()
        _, in_open_metrics = page(Accept=OPEN_METRICS)
        counters = {line.split()[2] for line in in_text.decode().splitlines()
                    if line.startswith("# TYPE") and line.endswith(" counter")}
        expected = {name if name not in counters or name.endswith("_total") else f"{name}_total"
                    for name in samples(in_text)}
        self.assertEqual(samples(in_open_metrics), expected)

    def test_compression(self):
        headers, body = page(Accept_Encoding="gzip")
        self.assertEqual(headers["content-encoding"], "gzip")
        self.assertIn("nv_inference_count", families(text, gzip.decompress(body)))

    def test_format_of_equal_weight_and_of_unknown_version(self):
        for accept, expected in (
                ("application/openmetrics-text", "application/openmetrics-text"),
                ("application/openmetrics-text;q=0.1,text/plain", "text/plain"),
                ("application/openmetrics-text;version=7.0.0", "text/plain")):
            headers, _ = page(Accept=accept)
            self.assertEqual(headers.get_content_type(), expected)


if __name__ == "__main__":
    checks.run()

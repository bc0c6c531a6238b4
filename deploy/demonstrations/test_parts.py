"""Tests of the pure parts of the demonstrations: `cargo xtask deploy` runs them."""

import json
import tempfile
import unittest
from pathlib import Path
from types import SimpleNamespace

import calls
import links
import proxy
import results
import scaling

SERVERS = [SimpleNamespace(address="127.0.0.1", ports={"http": 8000 + n, "grpc": 9000 + n}) for n in (1, 2)]


class ResultsTest(unittest.TestCase):
    def test_percentile_is_the_nearest_rank(self):
        values = [5, 1, 4, 2, 3]
        cases = [(0.5, 3), (0.2, 1), (0.21, 2), (0.99, 5), (1.0, 5), (0.0, 1)]
        for share, expected in cases:
            self.assertEqual(results.percentile(values, share), expected, share)
        hundred = list(range(1, 101))
        self.assertEqual(results.percentile(hundred, 0.99), 99)
        with self.assertRaises(ValueError):
            results.percentile([], 0.5)

    def test_table_has_equal_columns(self):
        self.assertEqual(results.table(["a", "long"], [[100, "x"]]), "| a   | long |\n| --- | ---- |\n| 100 | x    |")


class ScalingTest(unittest.TestCase):
    def test_formula_of_the_autoscaler(self):
        # current, metric, target, wanted
        cases = [
            (1, 2.0, 0.5, 4),
            (4, 0.5, 0.5, 4),
            # Within a tenth of the target nothing changes.
            (10, 0.54, 0.5, 10),
            (10, 0.46, 0.5, 10),
            (10, 0.56, 0.5, 12),
            (10, 0.44, 0.5, 9),
            (3, 0.0, 0.5, 0),
        ]
        for current, metric, target, wanted in cases:
            self.assertEqual(scaling.desired_replicas(current, metric, target), wanted, (current, metric))

    def test_rate_upwards_is_limited_in_a_period(self):
        autoscaler = scaling.Autoscaler(1, 100, 1.0)
        self.assertEqual(autoscaler.decide(0, 1, 50.0), 5)
        self.assertEqual(autoscaler.decide(1, 5, 10.0), 5)
        self.assertEqual(autoscaler.decide(16, 5, 10.0), 10)
        self.assertEqual(autoscaler.decide(32, 10, 5.0), 20)

    def test_limits_hold(self):
        autoscaler = scaling.Autoscaler(2, 6, 1.0, down_window_s=0)
        self.assertEqual(autoscaler.decide(0, 4, 50.0), 6)
        self.assertEqual(autoscaler.decide(100, 4, 0.0), 2)

    def test_shrinks_to_the_largest_number_of_the_window(self):
        autoscaler = scaling.Autoscaler(1, 10, 1.0, down_window_s=30)
        metrics = [(0, 1.0, 8), (10, 0.5, 8), (20, 0.25, 8), (31, 0.25, 4), (41, 0.25, 2)]
        for now, metric, expected in metrics:
            self.assertEqual(autoscaler.decide(now, 8, metric), expected, now)

    def test_missing_metric_changes_nothing(self):
        self.assertEqual(scaling.Autoscaler(1, 10, 1.0).decide(0, 3, None), 3)

    def test_file_of_servers(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "trtserver_grpc.json"
            for version in (1, 2):
                scaling.replace_file(path, scaling.discovery_response("trtserver_grpc", SERVERS[:version], version))
            self.assertEqual([file.name for file in path.parent.iterdir()], [path.name])
            response = json.loads(path.read_text())
        self.assertEqual(response["version_info"], "2")
        (resource,) = response["resources"]
        self.assertEqual(resource["cluster_name"], "trtserver_grpc")
        endpoints = [entry["endpoint"] for entry in resource["endpoints"][0]["lb_endpoints"]]
        ports = [endpoint["address"]["socket_address"]["port_value"] for endpoint in endpoints]
        probes = [endpoint["health_check_config"]["port_value"] for endpoint in endpoints]
        self.assertEqual((ports, probes), ([9001, 9002], [8001, 8002]))


class ConfigurationTest(unittest.TestCase):
    def test_files_are_placed_without_a_name_that_is_left(self):
        for path in sorted(proxy.FILES.glob("*.yaml")):
            config = proxy.place(proxy.read_file(path.name), SERVERS)
            text = json.dumps(config)
            self.assertNotIn("server-1", text, path.name)
            for address in (config["admin"]["address"], config["static_resources"]["listeners"][0]["address"]):
                self.assertEqual(address["socket_address"], {"address": "127.0.0.1", "port_value": 0}, path.name)

    def test_another_policy_takes_the_place_of_weights(self):
        config = proxy.read_file("envoy-weighted.yaml")
        proxy.set_policy(config, "ROUND_ROBIN")
        for cluster in config["static_resources"]["clusters"]:
            self.assertEqual(cluster["lb_policy"], "ROUND_ROBIN")
            self.assertNotIn("load_balancing_policy", cluster)


class CallsTest(unittest.TestCase):
    def test_fields_of_messages(self):
        self.assertEqual(calls.varint(300), b"\xac\x02")
        self.assertEqual(calls.field(2, b"ab"), b"\x12\x02ab")
        self.assertEqual(calls.field(2, 5), b"\x10\x05")

    def test_message_of_an_inference(self):
        body = calls.inference("grpc", parameters={"sequence_id": 7}).body
        self.assertEqual(body[:6], b"\x0a\x04work")
        self.assertIn(b"\x0a\x0bsequence_id\x12\x02\x10\x07", body)
        self.assertEqual(body[-4:], b"\x00\x00\x80\x3f")


class LinkTest(unittest.TestCase):
    def test_latency_adds_to_the_time(self):
        direction = links.Direction(1)
        direction.delay_s = 0.04
        self.assertEqual(direction.arrival(10.0, 1500), 10.04)

    def test_packets_wait_for_a_slow_link_up_to_its_buffer(self):
        direction = links.Direction(1)
        direction.bytes_per_s = 1000
        self.assertEqual([direction.arrival(0.0, 500) for _ in range(3)], [0.5, 1.0, 1.5])
        self.assertEqual(direction.arrival(9.0, 500), 9.5)
        arrivals = [direction.arrival(20.0, 1000) for _ in range(100)]
        self.assertEqual(arrivals.index(None), links.BUFFER // 1000 + 1)

    def test_loss_is_a_part_of_the_packets_and_a_cut_takes_all(self):
        direction = links.Direction(1)
        direction.loss = 0.05
        lost = sum(direction.arrival(0.0, 100) is None for _ in range(10_000))
        self.assertTrue(400 < lost < 600, lost)
        direction.cut = True
        self.assertIsNone(direction.arrival(0.0, 100))


if __name__ == "__main__":
    unittest.main()

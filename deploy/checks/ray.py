"""The parts of deploy/ray that need no Ray: rules of forwarding, scaling, the server process.

deploy/try_ray.py runs the rest.
"""

import ast
import re
import sys
from types import SimpleNamespace

import yaml

from .findings import DEPLOY

sys.path.insert(0, str(DEPLOY / "ray"))
from trtserver_ray import autoscaling, grpc_methods, http_rules, server_process

PROTOS = DEPLOY.parent / "proto"
# Its stream would tell of one replica.
NOT_FORWARDED = {"xds.service.orca.v3.OpenRcaService"}


def check(findings):
    check_methods(findings)
    check_rules(findings)
    check_scaling(findings)
    check_configuration(findings)


def services_of_protos():
    """(service, method, whether it streams), of all files."""
    for path in PROTOS.rglob("*.proto"):
        text = path.read_text()
        package = re.search(r"^package (\S+);", text, re.M)
        for service, body in re.findall(r"^service (\w+) \{(.*?)^\}", text, re.M | re.S):
            name = f"{package.group(1)}.{service}"
            for method, streams in re.findall(r"rpc (\w+)\((stream )?", body):
                if name not in NOT_FORWARDED:
                    yield name, method, bool(streams)


def check_methods(findings):
    """All calls of the server are forwarded, each by a name of its own."""
    where = "deploy/ray, grpc_methods.py"
    kinds = ((grpc_methods.UNARY, False), (grpc_methods.STREAMS, True))
    forwarded = [(s, m, streams) for table, streams in kinds for s, methods in table.items() for m in methods]
    served = set(services_of_protos())
    findings.expect(set(forwarded) == served, where, f"differs from proto/: {set(forwarded) ^ served}")
    names = [method for _, method, _ in forwarded]
    findings.expect(len(set(names)) == len(names), where, "two methods have the same name")
    given = [("application", "a"), ("authorization", "Bearer x"), ("User-Agent", "g"), ("te-bin", b"\0")]
    expected = [("authorization", "Bearer x"), ("te-bin", b"\0")]
    found = grpc_methods.forwarded_metadata(given)
    findings.expect(found == expected, where, f"metadata {found}, expected {expected}")


def check_rules(findings):
    """Headers of a hop stay there; the target is the client's."""
    where = "deploy/ray, http_rules.py"
    given = [
        (b"Host", b"h"), (b"Connection", b"close, X-Hop"), (b"x-hop", b"1"), (b"Transfer-Encoding", b"chunked"),
        (b"Inference-Header-Content-Length", b"7"), (b"expect", b"100-continue"), (b"a", b"1"), (b"A", b"2"),
    ]  # fmt: skip
    kept = [b"Host", b"Inference-Header-Content-Length", b"a", b"A"]
    found = [name for name, _ in http_rules.forwarded_headers(given)]
    findings.expect(found == kept, where, f"headers {found}, expected {kept}")
    scopes = {
        "/v2/models/a%2Fb?x=%20": {"path": "/v2/models/a/b", "raw_path": b"/v2/models/a%2Fb", "query_string": b"x=%20"},
        "/v2/a%20b": {"path": "/v2/a b"},
        "/v2": {"path": "/ray/v2", "raw_path": b"/ray/v2", "root_path": "/ray"},
        "/rayon": {"path": "/rayon", "raw_path": b"/rayon", "root_path": "/ray"},
        "/": {"path": "/ray", "raw_path": b"/ray", "root_path": "/ray/"},
    }
    for expected, scope in scopes.items():
        found = http_rules.forwarded_target(scope)
        findings.expect(found == expected, where, f"target {found}, expected {expected}")


def check_scaling(findings):
    where = "deploy/ray, autoscaling.py"
    page = (
        'nv_inference_pending_request_count{model="a",version="1"} 3\n'
        'nv_inference_pending_request_count{model="b",version="1"} 4\n'
        'nv_inference_pending_request_count_other{model="b"} 9\n'
        'trtserver_queue_wait_predicted_seconds{model="a"} 0.25\n'
        'trtserver_queue_wait_predicted_seconds{model="b"} 1e-3\n'
    )
    for text, pending, wait in ((page, 7.0, 0.25), ("", 0.0, 0.0)):
        found = autoscaling.load_of_page(text)
        expected = {autoscaling.PENDING: pending, autoscaling.WAIT: wait}
        findings.expect(found == expected, where, f"load {found}, expected {expected}")
    policy = autoscaling.QueuePolicy(target_pending_requests=8, target_wait_seconds=0.01)
    # Replicas, their queues and waits, requests in progress; replicas that are wanted.
    cases = [
        (2, [8, 8], [0, 0], 0, 2),
        (2, [16, 16], [0, 0], 0, 4),
        (2, [0, 40], [0, 0], 0, 5),
        (2, [9, 8], [0, 0], 0, 2),
        (4, [0] * 4, [0] * 4, 0, 0),
        (4, [0] * 4, [0] * 4, 60, 2),
        (2, [0, 0], [0.03, 0.01], 0, 4),
        (2, [], [], 96, 3),
        (0, [], [], 0, 0),
        (0, [], [], 40, 2),
    ]
    for current, pending, wait, ongoing, expected in cases:
        context = SimpleNamespace(
            current_num_replicas=current,
            aggregated_metrics={
                autoscaling.PENDING: dict(enumerate(pending)),
                autoscaling.WAIT: dict(enumerate(wait)),
            },
            total_num_requests=ongoing,
            config=SimpleNamespace(target_ongoing_requests=32),
        )
        (found, _) = policy(context)
        case = f"{current} replicas, queues {pending}, waits {wait}, {ongoing} in progress"
        findings.expect(found == expected, where, f"{case}: {found} replicas, expected {expected}")


def check_configuration(findings):
    """What serve.yaml names exists."""
    where = "deploy/ray/serve.yaml"
    config = yaml.safe_load((DEPLOY / "ray/serve.yaml").read_text())
    (application,) = config["applications"]
    (deployment,) = application["deployments"]
    policy = deployment["autoscaling_config"]["policy"]
    named = [application["import_path"], policy["policy_function"], *config["grpc_options"]["grpc_servicer_functions"]]
    for path in named:
        module, _, name = path.partition(":")
        file = DEPLOY / "ray" / (module.replace(".", "/") + ".py")
        names = {getattr(entry, "name", "") for entry in ast.parse(file.read_text()).body} if file.exists() else set()
        findings.expect(name in names, where, f"nothing is named {path}")
    autoscaling.QueuePolicy(**policy["policy_kwargs"])


def run(dist, repository, findings):
    """The process of a replica, on its sockets."""
    where = "deploy/ray, server_process.py"
    options = {
        "program": str(dist / "bin/trtserver"),
        "model_repository": str(repository),
        "arguments": [f"--backend-directory={dist}/backends", "--log-info=false"],
        "drain_delay_secs": 0,
        "exit_timeout_secs": 30,
        "start_timeout_secs": 60,
    }
    server = server_process.ServerProcess(options)
    try:
        server.wait_ready()
        server.check_ready()
        load = autoscaling.load_of_page(server.ask("/metrics", "metrics")[1])
        findings.expect(load[autoscaling.PENDING] == 0, where, f"load {load}")
    finally:
        status = server.stop()
    findings.expect(status == 0, where, f"ended with status {status}")
    findings.expect(not server.folder.exists(), where, "leaves its folder")
    try:
        server.check_ready()
        findings.add(where, "a server that has ended is ready")
    except RuntimeError:
        pass
    try:
        server_process.ServerProcess({**options, "program": "/no/such/program"})
        findings.add(where, "a program that is not there is started")
    except RuntimeError as error:
        findings.expect("/no/such/program" in str(error), where, f"the error does not name it: {error}")

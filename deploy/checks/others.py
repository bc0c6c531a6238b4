"""Nomad's job, systemd's drop-in, the files of the proxies."""

import re
import shutil
import subprocess
import tempfile
from pathlib import Path

import hcl2
import yaml

from .findings import DEPLOY, check_grace


def check(findings):
    """Returns the start line of Nomad's job."""
    check_systemd(findings)
    patterns = {
        "haproxy/haproxy.cfg": r"server server-(\d) server-\1:(\d+)",
        "nginx/nginx.conf": r"server server-(\d):(\d+)",
    }
    for name, pattern in patterns.items():
        ports = sorted(re.findall(pattern, (DEPLOY / name).read_text()))
        expected = sorted((str(number), port) for number in (1, 2, 3) for port in ("8000", "8001"))
        findings.expect(ports == expected, f"deploy/{name}", f"servers {ports}, expected {expected}")
    check_envoy(findings)
    return check_nomad(findings)


def check_envoy(findings):
    """The files differ in how a server is chosen, and not in how failures are met."""
    reactions = {}
    for path in sorted((DEPLOY / "envoy").glob("*.yaml")):
        where = f"deploy/envoy/{path.name}"
        resources = yaml.safe_load(path.read_text())["static_resources"]
        manager = resources["listeners"][0]["filter_chains"][0]["filters"][0]["typed_config"]
        (host,) = manager["route_config"]["virtual_hosts"]
        reactions[where] = {
            "retry_policy": host["retry_policy"],
            "delayed_close_timeout": manager["delayed_close_timeout"],
        }
        for cluster, port in zip(resources["clusters"], (8000, 8001)):
            endpoints = cluster["load_assignment"]["endpoints"][0]["lb_endpoints"]
            found = [endpoint["endpoint"]["address"]["socket_address"] for endpoint in endpoints]
            expected = [{"address": f"server-{number}", "port_value": port} for number in (1, 2, 3)]
            findings.expect(found == expected, where, f"{cluster['name']} has {found}, expected {expected}")
            (probe,) = cluster["health_checks"]
            probe.pop("tls_options", None)
            keys = ("health_checks", "outlier_detection", "common_lb_config", "connect_timeout", "circuit_breakers")
            reactions[where][cluster["name"]] = {key: cluster[key] for key in keys}
    (first, expected), *others = reactions.items()
    for where, found in others:
        findings.expect(found == expected, where, f"reacts to failures in another way than {first}: {found}")


def plain(value):
    """Strings of the parser keep their quotes."""
    if isinstance(value, dict):
        return {plain(key): plain(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [plain(entry) for entry in value]
    return value.strip('"') if isinstance(value, str) else value


def check_nomad(findings):
    where = "deploy/nomad/trtserver.nomad.hcl"
    with open(DEPLOY / "nomad/trtserver.nomad.hcl") as file:
        job = plain(hcl2.load(file))["job"][0]["trtserver"]
    group = job["group"][0]["server"]
    task = group["task"][0]["server"]
    config = task["config"][0]
    check_grace(findings, where, config["args"], int(task["kill_timeout"].rstrip("s")))
    findings.expect(task["kill_signal"] == "SIGTERM" and task["user"] == "1000", where, "user or signal")
    findings.expect(config["readonly_rootfs"] is True and config["cap_drop"] == ["all"], where, "privileges")
    network = group["network"][0]
    labels = {label for port in network["port"] for label in port}
    findings.expect(set(config["ports"]) == labels, where, f"ports {config['ports']}, network {labels}")
    services = group["service"]
    findings.expect({service["port"] for service in services} == labels, where, "a port has no service")
    check = services[0]["check"][0]
    findings.expect(check["path"] == "/v2/health/ready", where, f"the check asks {check['path']}")
    volumes = [name for volume in group["volume"] for name in volume]
    mounts = [mount["volume"] for mount in task["volume_mount"]]
    findings.expect(volumes == mounts, where, f"volumes {volumes}, mounts {mounts}")
    return config["args"]


def check_systemd(findings):
    """The drop-in with the unit of the Debian package, whose program is replaced by one that exists."""
    where = "deploy/systemd/drain.conf"
    drop_in = (DEPLOY / "systemd/drain.conf").read_text()
    (line,) = re.findall(r"^ExecStart=(.+)$", drop_in, re.M)
    (grace,) = re.findall(r"^TimeoutStopSec=(\d+)$", drop_in, re.M)
    check_grace(findings, where, line.split(), int(grace))
    unit = (DEPLOY.parent / "packaging/deb/trtserver.service").read_text()
    program = re.findall(r"^ExecStart=(\S+)", unit, re.M)
    findings.expect(program == [line.split()[0]], where, f"starts {line.split()[0]}, the unit {program}")
    if not shutil.which("systemd-analyze"):
        print("deploy: no systemd-analyze: units are not verified")
        return
    with tempfile.TemporaryDirectory() as folder:
        beside = Path(folder) / "trtserver.service.d"
        beside.mkdir()
        stand_in = shutil.which("true")
        path = Path(folder) / "trtserver.service"
        path.write_text(unit.replace(line.split()[0], stand_in))
        (beside / "drain.conf").write_text(drop_in.replace(line.split()[0], stand_in))
        verified = subprocess.run(
            ["systemd-analyze", "verify", "--man=no", str(path)],
            capture_output=True,
            text=True,
            env={"SYSTEMD_UNIT_PATH": folder + ":", "PATH": "/usr/bin:/bin"},
        )
    said = [text for text in verified.stderr.splitlines() if "trtserver" in text]
    findings.expect(not verified.returncode and not said, where, "; ".join(said) or verified.stderr.strip())

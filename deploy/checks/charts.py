"""The chart of deploy/helm: rendered by Helm, validated, and compared with the overlays of kustomize."""

import copy
import json
import shutil
import subprocess
import sys

import yaml

from . import kubernetes
from .findings import DEPLOY

CHART = DEPLOY / "helm/trtserver"
VALUES = DEPLOY / "helm/values"
# What Helm's labels add to those of kustomize.
RELEASE_LABELS = {
    "app.kubernetes.io/instance", "app.kubernetes.io/version", "app.kubernetes.io/managed-by", "helm.sh/chart",
}  # fmt: skip
# Variants beside the overlays. `defaults` and `more` are started, too.
SETTINGS = {
    "defaults": {},
    "more": {
        "fullnameOverride": "digits",
        "replicas": 3,
        "image": {"tag": "1", "pullPolicy": "Always", "pullSecrets": ["registry"]},
        "server": {
            "drainDelaySecs": 5,
            "arguments": ["--model-control-mode=explicit", "--load-model=*"],
            "env": [{"name": "TZ", "value": "UTC"}],
        },
        "networkPolicy": {"clients": [{"podSelector": {"matchLabels": {"app": "gateway"}}}], "egress": [{}]},
        "serviceAccountName": "models",
        "podLabels": {"team": "vision"},
        "podAnnotations": {"note": "yes"},
        "nodeSelector": {"pool": "large"},
        "affinity": {"podAntiAffinity": {}},
        "tolerations": [{"key": "spot", "operator": "Exists"}],
        "resources": {"requests": {"cpu": "500m"}, "limits": None},
    },
    "gpus": {
        "gpu": {"enabled": True, "count": 2},
        "tolerations": [{"key": "spot", "operator": "Exists"}],
        "resources": {"limits": None},
    },
    "least": {
        "disruptionBudget": {"enabled": False},
        "networkPolicy": {"enabled": False},
        "spread": False,
        "models": {"objectStore": {"enabled": True, "credentialsSecret": ""}},
        "autoscaling": {"enabled": True, "cpuPercent": None},
        "monitoring": {"enabled": True, "labels": {"release": "prometheus"}},
    },
}
STARTED = ("defaults", "more")
# Values that the schema refuses, and what it says of them.
REFUSED = {
    "drainDelay=3": "additional properties 'drainDelay' not allowed",
    "server.drainDelaySecs=0": "minimum: got 0, want 1",
    "models.objectStore.uri=/models": "does not match pattern",
    "server.arguments={http-port=1}": "does not match pattern",
    "gpu.enabled=some": "got string, want boolean",
    "tmpSize=big": "does not match pattern",
}


def helm(program, words, given=None):
    return subprocess.run([program, *words], input=given, capture_output=True, text=True)


def render(program, release, *words, values=None):
    """The objects, or an end of the check with Helm's reason."""
    given = None if values is None else yaml.safe_dump(values)
    options = [*words, *(["--values=-"] if values else [])]
    rendered = helm(program, ["template", release, str(CHART), "--namespace=inference", *options], given)
    if rendered.returncode:
        sys.exit(f"deploy: helm template {release} {words}: {rendered.stderr.strip()}")
    return [entry for entry in yaml.safe_load_all(rendered.stdout) if entry]


def without_release(entry):
    """Without the labels that name the release."""
    if isinstance(entry, dict):
        return {key: without_release(value) for key, value in entry.items() if key not in RELEASE_LABELS}
    return [without_release(value) for value in entry] if isinstance(entry, list) else entry


def by_name(objects):
    return {f"{entry['kind']} {entry['metadata']['name']}": entry for entry in objects}


def check(findings, overlays, program=None):
    """Returns the objects of the variants to start."""
    program = program or shutil.which("helm")
    if not program:
        sys.exit("deploy: no helm: `cargo xtask deploy` installs it, --helm=PATH names another one")
    linted = helm(program, ["lint", "--strict", str(CHART)])
    findings.expect(not linted.returncode, "deploy/helm", f"helm lint: {linted.stdout}{linted.stderr}")
    check_values(findings)
    check_refusals(findings, program)
    found = {path.stem for path in VALUES.iterdir()}
    findings.expect(found == set(overlays), "deploy/helm/values", f"{found}, expected {set(overlays)}")
    for name, objects in overlays.items():
        rendered = render(program, "trtserver", f"--values={VALUES / name}.yaml")
        compare(findings, f"chart with {name}.yaml", without_release(rendered), objects)
        kubernetes.check_overlay(findings, f"chart with {name}.yaml", rendered)
    variants = {name: render(program, name, values=values) for name, values in SETTINGS.items()}
    for name, objects in variants.items():
        check_objects(findings, f"chart, {name}", objects)
    return {name: variants[name] for name in STARTED}


def check_objects(findings, where, objects):
    for entry in objects:
        if entry["kind"] not in kubernetes.OPERATOR_KINDS:
            kubernetes.validate(findings, f"{where}, {entry['kind']} {entry['metadata']['name']}", entry)
    kubernetes.check_overlay(findings, where, objects)


def compare(findings, where, rendered, built):
    """The chart and kustomize make the same objects."""
    rendered, built = by_name(rendered), by_name(copy.deepcopy(built))
    findings.expect(set(rendered) == set(built), where, f"{sorted(rendered)}, the overlay has {sorted(built)}")
    for name in sorted(set(rendered) & set(built)):
        # Kustomize gives objects of components no labels.
        built[name]["metadata"].setdefault("labels", {"app.kubernetes.io/name": "trtserver"})
        for path in differences(rendered[name], built[name]):
            findings.add(f"{where}, {name}", f"differs from the overlay: {path}")


def differences(left, right, path=""):
    """Where two objects differ, with both values."""
    if isinstance(left, dict) and isinstance(right, dict):
        return [
            text
            for key in sorted({*left, *right})
            for text in differences(left.get(key, "nothing"), right.get(key, "nothing"), f"{path}/{key}")
        ]
    if isinstance(left, list) and isinstance(right, list) and len(left) == len(right):
        return [text for at, pair in enumerate(zip(left, right)) for text in differences(*pair, f"{path}/{at}")]
    return [] if left == right else [f"{path} is {left}, there {right}"]


def check_values(findings):
    """values.yaml and the schema name the same values."""
    schema = json.loads((CHART / "values.schema.json").read_text())
    # Helm's own, for charts that have this one as a part.
    schema["properties"].pop("global")

    def names(schema, values, path):
        known = schema.get("properties", {})
        if not isinstance(values, dict) or not known:
            return
        # A pod has none of them by default.
        findings.expect(
            set(known) - {"claims"} == set(values), "deploy/helm/trtserver",
            f"values{path} has {sorted(values)}, the schema {sorted(known)}",
        )  # fmt: skip
        for key in set(known) & set(values):
            names(known[key], values[key], f"{path}.{key}")

    names(schema, yaml.safe_load((CHART / "values.yaml").read_text()), "")


def check_refusals(findings, program):
    for setting, reason in REFUSED.items():
        said = helm(program, ["template", "refused", str(CHART), f"--set={setting}"])
        refused = said.returncode and reason in said.stderr
        findings.expect(refused, "deploy/helm", f"--set={setting}: {said.stderr.strip()}, expected: {reason}")

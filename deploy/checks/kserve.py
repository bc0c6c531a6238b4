"""Runtimes and services of deploy/kserve, against KServe's definitions."""

import json

import jsonschema
import yaml

from .findings import DEPLOY, check_grace, check_probes, check_restricted


def strict(schema):
    """The schema as a server with strict field validation reads it: unknown fields are errors."""
    if isinstance(schema, list):
        return [strict(entry) for entry in schema]
    if not isinstance(schema, dict):
        return schema
    made = {key: strict(value) for key, value in schema.items()}
    open_ended = made.pop("x-kubernetes-preserve-unknown-fields", False)
    if isinstance(made.get("properties"), dict) and made.get("type") == "object" and not open_ended:
        made.setdefault("additionalProperties", False)
    if made.pop("x-kubernetes-int-or-string", False):
        made.pop("type", None)
    return made


def validators():
    data = json.loads((DEPLOY / "schemas/kserve.json").read_text())
    definitions = strict(data["$defs"])
    # What every object has, and definitions of resources leave out.
    metadata = {"type": "object", "required": ["name"]}
    made = {}
    for name, schema in data["kinds"].items():
        schema = {**strict(schema), "$defs": definitions}
        schema["properties"] = {**schema["properties"], "metadata": metadata}
        made[name] = jsonschema.Draft202012Validator(schema)
    return made


def read(name):
    return list(yaml.safe_load_all((DEPLOY / "kserve" / name).read_text()))


def check(findings):
    """Returns the runtimes by name."""
    schemas = validators()
    runtimes, services = read("runtimes.yaml"), read("inference-services.yaml")
    for entry in [*runtimes, *services]:
        where = f"deploy/kserve, {entry['kind']} {entry['metadata']['name']}"
        version = entry["apiVersion"].split("/")[1]
        for error in schemas[f"{entry['kind']}/{version}"].iter_errors(entry):
            findings.add(where, f"{error.json_path}: {error.message}")
    by_name = {runtime["metadata"]["name"]: runtime for runtime in runtimes}
    for name, runtime in by_name.items():
        where = f"deploy/kserve, runtime {name}"
        (container,) = runtime["spec"]["containers"]
        findings.expect(container["name"] == "kserve-container", where, f"container {container['name']}")
        check_restricted(findings, where, {}, container)
        check_probes(findings, where, container)
    for service in services:
        check_service(findings, service, by_name)
    return by_name


def check_service(findings, service, runtimes):
    """That its runtime serves it."""
    where = f"deploy/kserve, InferenceService {service['metadata']['name']}"
    predictor = service["spec"]["predictor"]
    model = predictor["model"]
    runtime = runtimes.get(model["runtime"])
    if runtime is None:
        findings.add(where, f"no runtime {model['runtime']}, expected one of {sorted(runtimes)}")
        return
    spec = runtime["spec"]
    wanted = model["modelFormat"]
    fits = any(
        wanted["name"] == known["name"] and wanted.get("version", known["version"]) == known["version"]
        for known in spec["supportedModelFormats"]
    )
    findings.expect(fits, where, f"the runtime has no format {wanted}")
    protocol = model["protocolVersion"]
    findings.expect(protocol in spec["protocolVersions"], where, f"the runtime has no protocol {protocol}")
    findings.expect(spec.get("multiModel", False) == ("storageUri" not in model), where, "storageUri of several models")
    (container,) = spec["containers"]
    check_grace(findings, where, container["args"], predictor.get("terminationGracePeriodSeconds"))
    for port in model.get("ports", []):
        serves = f"--grpc-port={port['containerPort']}" in container["args"]
        findings.expect(port["name"] == "h2c" and serves, where, f"port {port} is not the runtime's for gRPC")

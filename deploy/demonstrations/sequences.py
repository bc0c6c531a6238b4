"""Sequences stay with one of three servers by a hash of the correlation id, with TLS on both sides.

Envoy with deploy/envoy/envoy-sequences.yaml, and with the same file but ROUND_ROBIN. Servers take
clients with a certificate of the demonstration's authority only. Sequences over v1 HTTP, v2 HTTP and
gRPC at the same time; each answer must be the sum of the sequence so far.
"""

import asyncio
import json
import struct
import subprocess
import tempfile
from pathlib import Path

from calls import Call, inference
from fleet import MODEL, Fleet
from load import Client
from proxy import Envoy, place, read_file, set_policy
from results import examples, table

SEQUENCES, STEPS = 10, 8
# A running sum for each sequence; slots for all sequences on each server.
CONFIGURATION = f"""name: "{MODEL}"
backend: "probe"
max_batch_size: 8
input [ {{ name: "INPUT0" data_type: TYPE_INT32 dims: [ 1 ] }} ]
output [ {{ name: "OUTPUT0" data_type: TYPE_INT32 dims: [ 1 ] }} ]
instance_group [ {{ kind: KIND_CPU count: 4 }} ]
parameters: {{ key: "accumulate" value: {{ string_value: "corrid" }} }}
sequence_batching {{
  max_sequence_idle_microseconds: 60000000
  control_input [ {{ name: "CORRID" control [ {{ kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_UINT64 }} ] }} ]
  control_input [ {{ name: "START" control [ {{ kind: CONTROL_SEQUENCE_START int32_false_true: [ 0, 1 ] }} ] }} ]
}}
"""


def make_certificates(folder):
    """`ca.crt`, and a certificate for the servers and for Envoy, which clients call localhost."""
    def openssl(*words):
        subprocess.run(["openssl", *words], cwd=folder, check=True, capture_output=True)

    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
    openssl("req", "-x509", *key, "-keyout", "ca.key", "-out", "ca.crt", "-days", "2", "-subj", "/CN=authority",
            "-addext", "keyUsage=critical,keyCertSign")
    for name, host in (("server", "trtserver"), ("tls", "localhost")):
        openssl("req", *key, "-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj", f"/CN={host}")
        (folder / f"{name}.ext").write_text(f"subjectAltName=DNS:{host}\n")
        openssl("x509", "-req", "-in", f"{name}.csr", "-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial",
                "-days", "2", "-extfile", f"{name}.ext", "-out", f"{name}.crt")


def request(kind, sequence, step):
    """One request of a sequence, whose value is its number from 1 on."""
    start, end = step == 1, step == STEPS
    if kind == "v1 HTTP":
        head = f'batch_size: 1 flags: {start + 2 * end} correlation_id: {sequence} input {{ name: "INPUT0" }} output {{ name: "OUTPUT0" }}'
        return Call("http", "POST", f"/api/infer/{MODEL}", (("NV-InferRequest", head),), struct.pack("<i", step))
    parameters = {"sequence_id": sequence, "sequence_start": start, "sequence_end": end}
    protocol = "http" if kind == "v2 HTTP" else "grpc"
    return inference(protocol, (("sequence-id", str(sequence)),), parameters, step, "INT32")


def sum_in(kind, answer):
    """The only value of an answer."""
    if kind == "v2 HTTP":
        return json.loads(answer)["outputs"][0]["data"][0]
    # Raw bytes: v1 has them before its message, gRPC in the last field.
    return struct.unpack("<i", answer[:4] if kind == "v1 HTTP" else answer[-4:])[0]


async def run_sequence(client, kind, sequence):
    outcomes = []
    for step in range(1, STEPS + 1):
        outcome = await client.send(request(kind, sequence, step))
        if not outcome.failure:
            expected, found = step * (step + 1) // 2, sum_in(kind, outcome.answer)
            if found != expected:
                outcome = outcome._replace(failure=f"the sum is {found}, expected {expected}")
        outcomes.append(outcome)
    return kind, outcomes


async def run_sequences(envoy, authority):
    client = Client(envoy.address, envoy.port, authority)
    kinds = ("v1 HTTP", "v2 HTTP", "v2 gRPC")
    running = [run_sequence(client, kind, 1 + index * len(kinds) + number)
               for index in range(SEQUENCES) for number, kind in enumerate(kinds)]
    found = await asyncio.gather(*running)
    await client.close()
    return {kind: [outcomes for name, outcomes in found if name == kind] for kind in kinds}


def run(dist, policy):
    with tempfile.TemporaryDirectory() as name, Fleet(dist, name) as fleet:
        folder = Path(name)
        make_certificates(folder)
        flags = [f"--tls-cert={folder}/server.crt", f"--tls-key={folder}/server.key", f"--tls-client-ca={folder}/ca.crt"]
        servers = [fleet.start(CONFIGURATION, *flags) for _ in range(3)]
        [server.wait_ready() for server in servers]
        config = place(read_file("envoy-sequences.yaml"), servers)
        if policy:
            set_policy(config, policy)
        config = json.loads(json.dumps(config).replace("/etc/envoy/tls", name))
        with Envoy(config, folder) as envoy:
            envoy.wait_healthy(servers)
            return asyncio.run(run_sequences(envoy, folder / "ca.crt"))


def demonstrate(dist, verdicts, short=False):
    rows, failures, split, used = [], {}, {}, {}
    for name, policy in (("hash", None), ("round robin", "ROUND_ROBIN")):
        found = run(dist, policy)
        failures[name], split[name], used[name] = 0, 0, []
        for kind, sequences in found.items():
            failed = sum(outcome.failure is not None for outcomes in sequences for outcome in outcomes)
            servers = [{outcome.server for outcome in outcomes} for outcomes in sequences]
            several = sum(len(some) > 1 for some in servers)
            used[name].append(len(set.union(*servers)))
            failures[name] += failed
            split[name] += several
            rows.append([name, kind, len(sequences), several, len(sequences) * STEPS, failed])
        if name == "hash":
            examples([outcome for sequences in found.values() for outcomes in sequences for outcome in outcomes])
    print(table(["policy", "protocol", "sequences", "on several servers", "requests", "failed or wrong"], rows))
    verdicts.expect(not failures["hash"], f"{failures['hash']} requests are wrong with the hash (0)")
    verdicts.expect(not split["hash"], f"{split['hash']} sequences are on several servers with the hash (0)")
    verdicts.expect(min(used["hash"]) > 1, f"sequences of each protocol are on {used['hash']} servers (at least 2)")
    verdicts.expect(failures["round robin"] > 0, f"{failures['round robin']} requests are wrong with round robin (more than 0)")

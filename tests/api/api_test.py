#!/usr/bin/env python3
"""The HTTP API against its own description: `cargo xtask api-test` runs it.

Starts a server with models that any process can execute, and has schemathesis send what
`GET /v2/docs` and `GET /v2/models/MODEL/docs` allow and what they do not. Fails on statuses, content types,
headers and bodies that the documents do not name, and if the server ends.
"""

import argparse
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import threading
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
MODELS = ["simple", "dynamic_shape", "identity_string", "digits"]
# Not `not_a_server_error`: Triton answers some JSON of the wrong type with 500, and so does this server. Not those
# of data that must be accepted: names, keys and files of a request are those of a running server.
CHECKS = "status_code_conformance,content_type_conformance,response_headers_conformance,response_schema_conformance"
# Events do not end.
ENDLESS = "/v2/trtserver/status/events"


class Server:
    def __init__(self, dist, models):
        flags = ["--model-repository", models, "--backend-dir", dist / "backends", "--http-port=0", "--grpc-port=0", "--metrics-port=0",
                 "--http-address=127.0.0.1", "--grpc-address=127.0.0.1", "--metrics-address=127.0.0.1", "--http-metrics",
                 "--model-control-mode=explicit", "--load-model=*", "--allow-client-shm=true", "--allow-profiling=true"]
        # Requests change the settings of the log.
        self.log = tempfile.TemporaryFile()
        self.process = subprocess.Popen([dist / "bin/trtserver", *flags], stdout=subprocess.PIPE, stderr=self.log, text=True)
        self.url = None
        for line in self.process.stdout:
            if line.startswith("listening http "):
                self.url = "http://" + line.split()[2]
            if line.strip() == "ready":
                break
        if self.url is None or self.process.poll() is not None:
            sys.exit(f"the server did not start:\n{self.last_lines()}")
        threading.Thread(target=self.process.stdout.read, daemon=True).start()

    def ask(self, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        with urllib.request.urlopen(urllib.request.Request(self.url + path, data=data), timeout=30) as response:
            return response.read()

    def load_all(self):
        """What a run has unloaded or broken is there again."""
        for model in MODELS:
            self.ask(f"/v2/repository/models/{model}/load", {})

    def last_lines(self):
        self.log.seek(0)
        return "\n".join(self.log.read().decode(errors="replace").splitlines()[-20:])

    def stop(self):
        self.process.terminate()
        return self.process.wait(timeout=60)


def check(server, path, folder, arguments):
    command = [sys.executable, "-m", "schemathesis.cli", "run", server.url + path, "--checks", CHECKS,
               "--exclude-path", ENDLESS, "--suppress-health-check", "all", "--warnings", "off", "--request-timeout", "30",
               "--continue-on-failure", *arguments]
    print(f"== {path}", flush=True)
    # It keeps what it found in the current folder.
    return subprocess.run(command, check=False, cwd=folder).returncode == 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dist", required=True, type=pathlib.Path, help="an install of the server")
    parser.add_argument("--max-examples", default="40", help="requests per operation of the phase 'fuzzing'")
    parser.add_argument("--seed", default="1")
    parser.add_argument("--model", action="append", help="only the documents of these models")
    given, more = parser.parse_known_args()
    more = ["--max-examples", given.max_examples, "--seed", given.seed, *more]
    with tempfile.TemporaryDirectory() as folder:
        models = pathlib.Path(folder) / "models"
        for model in MODELS:
            shutil.copytree(ROOT / "examples/models" / model, models / model)
        server = Server(given.dist.resolve(), models)
        paths = [f"/v2/models/{model}/docs" for model in given.model or MODELS]
        failed = []
        for path in paths if given.model else ["/v2/docs", *paths]:
            if not check(server, path, folder, more):
                failed.append(path)
            if server.process.poll() is not None:
                sys.exit(f"the server ended with {server.process.returncode} while {path} was checked:\n{server.last_lines()}")
            server.load_all()
        ended = server.stop()
    if failed or ended:
        sys.exit(f"failed: {', '.join(failed)}; exit code of the server: {ended}")


if __name__ == "__main__":
    main()

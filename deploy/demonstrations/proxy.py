"""Envoy with a file of deploy/envoy, its addresses replaced."""

import copy
import json
import os
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import yaml
from fleet import TIMEOUT, wait_until

FILES = Path(__file__).resolve().parent.parent / "envoy"
# The response header that names the server behind Envoy, which only demonstrations have.
SERVER_HEADER = "demonstration-server"


def read_file(name):
    return yaml.safe_load((FILES / name).read_text())


def manager_of(config):
    """The HTTP connection manager of the only listener."""
    (listener,) = config["static_resources"]["listeners"]
    return listener["filter_chains"][0]["filters"][0]["typed_config"]


def set_policy(config, policy):
    """Another balancing policy, such as ROUND_ROBIN, in place of the one of the file."""
    for cluster in config["static_resources"]["clusters"]:
        cluster.pop("load_balancing_policy", None)
        cluster["lb_policy"] = policy


def endpoints_of(protocol, servers):
    """`lb_endpoints` of the cluster of one protocol. Probes go to the HTTP port."""
    def endpoint(server):
        address = {"socket_address": {"address": server.address, "port_value": server.ports[protocol]}}
        probe = {"port_value": server.ports["http"]}
        return {"endpoint": {"address": address, "health_check_config": probe}}

    return [endpoint(server) for server in servers]


def assignment(cluster, servers):
    """The servers of a cluster, as Envoy reads them from its configuration or by EDS."""
    lb_endpoints = endpoints_of(cluster.rsplit("_", 1)[1], servers)
    return {"cluster_name": cluster, "endpoints": [{"lb_endpoints": lb_endpoints}]}


def place(config, servers, address="127.0.0.1"):
    """The configuration with these servers, free ports for Envoy, and a header that names the server."""
    config = copy.deepcopy(config)
    config["admin"]["address"]["socket_address"].update(address=address, port_value=0)
    (listener,) = config["static_resources"]["listeners"]
    listener["address"]["socket_address"].update(address=address, port_value=0)
    header = {"key": SERVER_HEADER, "value": "%UPSTREAM_REMOTE_ADDRESS%"}
    manager_of(config)["route_config"]["response_headers_to_add"] = [{"header": header}]
    for cluster in config["static_resources"]["clusters"]:
        if "load_assignment" in cluster:
            cluster["load_assignment"] = assignment(cluster["name"], servers)
            cluster["type"] = "STATIC"
    return config


class Envoy:
    """Envoy until the end of the `with` block, once it listens."""

    def __init__(self, config, folder, prefix=()):
        folder = Path(folder)
        path, self.admin_file, self.log = folder / "envoy.json", folder / "admin", folder / "envoy-log"
        path.write_text(json.dumps(config))
        self.prefix = prefix
        with open(self.log, "w") as log:
            self.process = subprocess.Popen(
                [*prefix, program(), "-c", str(path), "--admin-address-path", str(self.admin_file),
                 "--concurrency", "1", "--disable-hot-restart", "--log-level", "warning",
                 "--service-node", "demonstration", "--service-cluster", "demonstration"],
                stdout=log,
                stderr=log,
            )

    def __enter__(self):
        try:
            self.admin = self.wait_for(self.read_admin_file, "admin address")
            self.address, port = self.wait_for(self.find_listener, "listener").rsplit(":", 1)
            self.port = int(port)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(TIMEOUT)

    def wait_for(self, find, what):
        found = wait_until(lambda: find() or self.process.poll() is not None, f"no {what} of Envoy")
        if found is True:
            raise SystemExit(f"demonstrate: Envoy has ended: {self.log.read_text()[-3000:]}")
        return found

    def read_admin_file(self):
        return self.admin_file.exists() and self.admin_file.read_text().strip()

    def find_listener(self):
        for line in self.get("/listeners").splitlines():
            if line.startswith("trtserver::"):
                return line.removeprefix("trtserver::")
        return None

    def get(self, path):
        """A page of the admin interface; empty if it is not there yet."""
        if self.prefix:
            command = [*self.prefix, sys.executable, "-c", GET, f"http://{self.admin}{path}"]
            return subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT).stdout
        try:
            with urllib.request.urlopen(f"http://{self.admin}{path}", timeout=5) as response:
                return response.read().decode()
        except urllib.error.URLError:
            return ""

    def hosts(self):
        """By cluster and `address:port`: whether Envoy sends requests there."""
        found = {}
        for line in self.get("/clusters").splitlines():
            parts = line.split("::")
            if len(parts) == 4 and parts[2] == "health_flags":
                found[parts[0], parts[1]] = parts[3] == "healthy"
        return found

    def active_requests(self, server):
        """Requests that Envoy has sent to the server and that are not answered."""
        addresses = {f"{server.address}:{port}" for port in server.ports.values()}
        lines = [line.split("::") for line in self.get("/clusters").splitlines()]
        return sum(int(parts[3]) for parts in lines if len(parts) == 4 and parts[1] in addresses and parts[2] == "rq_active")

    def repeated_requests(self):
        """How often a request was sent again, since the start."""
        lines = self.get("/stats?filter=upstream_rq_retry$").splitlines()
        return sum(int(line.split(": ")[1]) for line in lines if line)

    def wait_healthy(self, servers):
        def all_healthy():
            hosts = self.hosts()
            return all(
                any(hosts.get((cluster, f"{server.address}:{server.ports[protocol]}"))
                    for cluster, _ in hosts)
                for server in servers
                for protocol in ("http", "grpc")
            )

        wait_until(all_healthy, "Envoy does not send requests to each server")


GET = "import sys, urllib.request as r; print(r.urlopen(sys.argv[1], timeout=5).read().decode())"


def program():
    """TRTSERVER_ENVOY, or that of the environment that runs this."""
    return os.environ.get("TRTSERVER_ENVOY") or str(Path(sys.executable).with_name("envoy"))

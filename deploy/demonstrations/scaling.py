"""How many servers, by the published formula of Kubernetes' HorizontalPodAutoscaler; and Envoy's file of servers.

Pure: no clock, no processes.
"""

import json
import math
import os
from pathlib import Path

from proxy import assignment


def desired_replicas(current, metric, target, tolerance=0.1):
    """ceil(current * metric / target), and no change while the ratio is within the tolerance of 1."""
    ratio = metric / target
    return current if abs(ratio - 1) <= tolerance else math.ceil(current * ratio)


class Autoscaler:
    """The formula with limits, rates and the stabilization of scaling down.

    Scaling up, the number at most doubles, or grows by `up_pods`, within `up_period_s`; the larger
    counts. Scaling down goes to the largest number that was wanted within `down_window_s`.
    """

    def __init__(self, least, most, target, tolerance=0.1, up_pods=4, up_period_s=15, down_window_s=300):
        self.least, self.most, self.target, self.tolerance = least, most, target, tolerance
        self.up_pods, self.up_period_s, self.down_window_s = up_pods, up_period_s, down_window_s
        # (time, wanted number), and (time, number before) of changes upwards.
        self.wanted, self.ups = [], []

    def decide(self, now, current, metric):
        """The number from now on. `metric`: the mean over current servers; None if there is none yet."""
        if metric is None:
            return current
        wanted = min(max(desired_replicas(current, metric, self.target, self.tolerance), self.least), self.most)
        self.wanted = [(at, number) for at, number in self.wanted if at > now - self.down_window_s]
        self.wanted.append((now, wanted))
        if wanted < current:
            return min(current, max(number for _, number in self.wanted))
        if wanted == current:
            return current
        self.ups = [(at, number) for at, number in self.ups if at > now - self.up_period_s]
        # The number at the beginning of the period.
        base = min((number for _, number in self.ups), default=current)
        allowed = min(wanted, max(2 * base, base + self.up_pods))
        if allowed <= current:
            return current
        self.ups.append((now, current))
        return allowed


def discovery_response(cluster, servers, version):
    """What Envoy's file-based EDS reads."""
    kind = "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment"
    return {"version_info": str(version), "resources": [{"@type": kind, **assignment(cluster, servers)}]}


def replace_file(path, content):
    """Envoy watches for a file that is moved to this path: it never reads half of one."""
    path = Path(path)
    new = path.with_name(path.name + ".new")
    new.write_text(json.dumps(content))
    os.replace(new, path)


def use_file_discovery(config, folder):
    """Clusters read their servers from `CLUSTER.json` in this folder."""
    for cluster in config["static_resources"]["clusters"]:
        del cluster["load_assignment"]
        cluster["type"] = "EDS"
        source = {"path_config_source": {"path": str(Path(folder) / f"{cluster['name']}.json")}}
        cluster["eds_cluster_config"] = {"eds_config": {"resource_api_version": "V3", **source}}

"""Runs deploy/ray/serve.yaml in Ray, on this machine, and compares it with the server alone.

    PYTHON deploy/try_ray.py [--dist target/dist-debug] [--mode haproxy] [--only cost] [--seconds N]

Both ways in which Ray Serve takes requests are tried: its proxies, and HAProxy in front of the replicas.
Fails if an answer through Ray differs from the server's own, if replicas do not follow the queue or lose
a request, if a killed server is not replaced, or if a server outlives Ray. Prints what a request costs.
`cargo xtask deploy --ray` makes the environment (tests/python/requirements-ray.txt).
"""

import argparse
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from trial_ray import answers, load
from trial_ray.cluster import Cluster, Direct, make_repository


MODES = ("proxy", "haproxy")
PARTS = ("answers", "cost", "scaling")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dist", type=Path, default=Path("target/dist-debug"), help="the install")
    parser.add_argument("--mode", choices=MODES, help="only this one")
    parser.add_argument("--only", choices=PARTS, help="only this part")
    parser.add_argument("--seconds", type=float, default=5, help="for each measurement")
    arguments = parser.parse_args()
    parts = [arguments.only] if arguments.only else PARTS
    for mode in [arguments.mode] if arguments.mode else MODES:
        print(f"ray: {mode}", flush=True)
        attempt(mode, parts, arguments.dist.resolve(), arguments.seconds)


def attempt(mode, parts, dist, seconds):
    with tempfile.TemporaryDirectory(prefix="ray-") as folder:
        folder = Path(folder)
        models = make_repository(folder, dist)
        direct = Direct(dist, models)
        try:
            cluster = Cluster(dist, folder, models, mode == "haproxy")
            try:
                run(parts, seconds, direct, cluster)
            finally:
                left = cluster.stop()
        finally:
            direct.stop()
    if left:
        sys.exit(f"ray: servers outlive Ray: {left}")


def run(parts, seconds, direct, cluster):
    if "answers" in parts:
        number, found = answers.differences(direct, cluster)
        if found:
            sys.exit("\n".join([f"ray: {len(found)} of {number} answers differ", *found]))
        print(f"ray: {number} answers are equal", flush=True)
    if "cost" in parts:
        load.cost(direct, cluster, seconds)
    if "scaling" in parts:
        load.scale(cluster)
        load.replace(cluster)


if __name__ == "__main__":
    main()

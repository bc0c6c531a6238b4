"""Checks the files of deploy/, and runs what they start.

    python deploy/check.py [--run target/dist-debug]

Without --run: the overlays are built by kustomize and validated against the schemas of three releases
of Kubernetes, the runtimes against KServe's, Nomad's job is parsed, systemd looks at the units, and
what belongs together is compared: ports, selectors, grace periods, names of metrics. With --run each
start line is executed with its mounts in a temporary folder, and its probes are asked.
`cargo xtask deploy` installs what this needs (tests/python/requirements-deploy.txt) and does both.
"""

import argparse
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from checks import kserve, kubernetes, others, start_lines
from checks.findings import Findings


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--run", type=Path, metavar="DIST", help="an install whose server is started")
    arguments = parser.parse_args()
    findings = Findings()
    begin = time.monotonic()
    overlays = kubernetes.check(findings)
    runtimes = kserve.check(findings)
    job = others.check(findings)
    findings.stop_if_any()
    print(f"deploy: files checked in {time.monotonic() - begin:.1f} s")
    if arguments.run:
        begin = time.monotonic()
        start_lines.run(arguments.run.resolve(), overlays, runtimes, job, findings)
        findings.stop_if_any()
        print(f"deploy: start lines run in {time.monotonic() - begin:.1f} s")


if __name__ == "__main__":
    main()

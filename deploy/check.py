"""Checks the files of deploy/, and runs what they start.

    python deploy/check.py [--run target/dist-debug] [--helm PATH]

Without --run: the overlays are built by kustomize and validated against the schemas of three releases
of Kubernetes, the runtimes against KServe's, Nomad's job is parsed, systemd looks at the units, what
belongs together is compared (ports, selectors, grace periods, names of metrics), and the unit tests of
demonstrations/ run. Helm renders the chart, which must make the same objects as the overlays. With
--run each start line is executed with its mounts in a temporary folder, and its probes are asked.
`cargo xtask deploy` installs what this needs (tests/python/requirements-deploy.txt, helm.txt) and does
both.
"""

import argparse
import sys
import time
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from checks import charts, kserve, kubernetes, others, ray, start_lines
from checks.findings import Findings


def test_demonstrations(findings):
    """The pure parts: the autoscaler's formula, percentiles, files for Envoy."""
    folder = Path(__file__).resolve().parent / "demonstrations"
    sys.path.insert(0, str(folder))
    found = unittest.TextTestRunner(verbosity=0).run(unittest.defaultTestLoader.discover(str(folder)))
    findings.expect(found.wasSuccessful() and found.testsRun > 0, "deploy/demonstrations", "a unit test fails: see above")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--run", type=Path, metavar="DIST", help="an install whose server is started")
    parser.add_argument("--helm", metavar="PATH", help="the program, if it is not in PATH")
    arguments = parser.parse_args()
    findings = Findings()
    begin = time.monotonic()
    test_demonstrations(findings)
    overlays = kubernetes.check(findings)
    variants = charts.check(findings, overlays, arguments.helm)
    runtimes = kserve.check(findings)
    job = others.check(findings)
    ray.check(findings)
    findings.stop_if_any()
    print(f"deploy: files checked in {time.monotonic() - begin:.1f} s")
    if arguments.run:
        begin = time.monotonic()
        start_lines.run(arguments.run.resolve(), {**overlays, **variants}, runtimes, job, findings)
        findings.stop_if_any()
        print(f"deploy: start lines run in {time.monotonic() - begin:.1f} s")


if __name__ == "__main__":
    main()

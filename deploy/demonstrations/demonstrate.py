"""Demonstrations with several servers behind a real Envoy. `cargo xtask demonstrate` runs them.

    python deploy/demonstrations/demonstrate.py [--dist target/dist-debug] [--short] [NAME ...]

Each prints a table and what it promises with `pass` or `FAIL`, and all exit with 1 if one failed.
Figures are ratios: servers execute a sleep of known length, so that several fit on two cores. Short
ones have less time, and run at the same time.
"""

import argparse
import importlib
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from results import Verdicts

NAMES = ["weighted", "kill", "autoscale", "sequences", "network"]


def demonstrate(name, dist, short):
    """True if all promises held."""
    verdicts = Verdicts()
    module = importlib.import_module(name)
    print(f"\n## {name}: {module.__doc__.splitlines()[0]}\n", flush=True)
    begin = time.monotonic()
    module.demonstrate(dist, verdicts, short)
    print(f"took {time.monotonic() - begin:.0f} s", flush=True)
    return not verdicts.missed


def run_together(names, dist):
    """The short forms, each in a process of its own. True if all promises of all held."""
    command = [sys.executable, __file__, f"--dist={dist}", "--short"]
    running = [subprocess.Popen([*command, name], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) for name in names]
    for process in running:
        print(process.communicate()[0], end="")
    return not any(process.returncode for process in running)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(NAMES)}; default: all")
    parser.add_argument("--dist", type=Path, default=Path(__file__).resolve().parents[2] / "target/dist-debug")
    parser.add_argument("--short", action="store_true", help="the short forms, at the same time")
    arguments = parser.parse_args()
    names, dist = arguments.names or NAMES, arguments.dist.resolve()
    for name in names:
        if name not in NAMES:
            parser.error(f"{name}: expected one of {', '.join(NAMES)}")
    if arguments.short and len(names) > 1:
        right = run_together(names, dist)
    else:
        right = all([demonstrate(name, dist, arguments.short) for name in names])
    sys.exit(0 if right else 1)


if __name__ == "__main__":
    main()

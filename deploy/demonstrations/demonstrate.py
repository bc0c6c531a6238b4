"""Demonstrations with several servers behind a real Envoy. `cargo xtask demonstrate` runs them.

    python deploy/demonstrations/demonstrate.py [--dist target/dist-debug] [--short] [NAME ...]

Each prints a table and what it promises with `pass` or `FAIL`, and all exit with 1 if one failed.
Figures are ratios: servers execute a sleep of known length, so that several fit on two cores.
"""

import argparse
import importlib
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from results import Verdicts

NAMES = ["weighted", "kill", "autoscale", "sequences", "network"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(NAMES)}; default: all")
    parser.add_argument("--dist", type=Path, default=Path(__file__).resolve().parents[2] / "target/dist-debug")
    parser.add_argument("--short", action="store_true", help="less time for each, for those that have a short form")
    arguments = parser.parse_args()
    verdicts = Verdicts()
    for name in arguments.names or NAMES:
        if name not in NAMES:
            parser.error(f"{name}: expected one of {', '.join(NAMES)}")
        module = importlib.import_module(name)
        print(f"\n## {name}: {module.__doc__.splitlines()[0]}\n", flush=True)
        begin = time.monotonic()
        module.demonstrate(arguments.dist.resolve(), verdicts, arguments.short)
        print(f"took {time.monotonic() - begin:.0f} s", flush=True)
    sys.exit(1 if verdicts.missed else 0)


if __name__ == "__main__":
    main()

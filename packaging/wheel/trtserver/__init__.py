"""The inference server trtserver, as a program in a package.

The functions replace the Python process by the program, so that signals and exit status are the
program's own.
"""

import os
import sys

__version__ = "@VERSION@"


def program_path(name):
    """Path of a program of this package: ``trtserver`` or ``trtserver-perf``."""
    return os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", name)


def _execute(name):
    path = program_path(name)
    os.execv(path, [path] + sys.argv[1:])


def run_server():
    """Becomes ``trtserver`` with the arguments of this process."""
    _execute("trtserver")


def run_perf():
    """Becomes ``trtserver-perf`` with the arguments of this process."""
    _execute("trtserver-perf")

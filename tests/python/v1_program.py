"""Runs a Python program with PyPI's v1 client, which `trtis_client` adapts to this Python: v1_program.py PROGRAM ARGUMENT..."""

import pathlib
import runpy
import sys
import warnings

import trtis_client  # noqa: F401

# The package uses deprecated names of numpy.
warnings.simplefilter("ignore")
sys.argv.pop(0)
sys.path.insert(0, str(pathlib.Path(sys.argv[0]).resolve().parent))
runpy.run_path(sys.argv[0], run_name="__main__")

"""``python -m trtserver``."""

from trtserver import run_server

run_server()

"""Parts of check.py."""

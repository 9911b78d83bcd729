"""Attacks with hostile files, matrices, functions and signals; see `run.py`."""

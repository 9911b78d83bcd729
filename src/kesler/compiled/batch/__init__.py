"""Compiled loops of batch solvers and dictionaries."""

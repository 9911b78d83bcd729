"""Loops of batch solvers and of dictionaries."""

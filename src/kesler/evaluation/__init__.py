"""Evaluation: progressive validation, comparison of methods, metrics, mistake bounds, plots."""

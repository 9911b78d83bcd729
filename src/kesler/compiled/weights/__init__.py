"""Weights: scores, updates, norms, links, sparse rows."""

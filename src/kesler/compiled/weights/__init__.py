"""Weights: scores, moves, norms, links, sparse rows."""

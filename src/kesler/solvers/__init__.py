"""Batch optimisation: the same hypotheses and constraints, solved to the optimum."""

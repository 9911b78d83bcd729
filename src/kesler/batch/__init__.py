"""Estimators that need all data at hand: support vector machines, softmax, decompositions."""

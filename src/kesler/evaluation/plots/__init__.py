"""Plots: Display classes with the interface of scikit-learn's."""

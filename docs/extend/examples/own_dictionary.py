"""A dictionary of candidate features, written by a user."""

import numpy as np

from kesler.dictionaries import Dictionary


# [dictionary]
class Distances(Dictionary):
    """Distances of two neighbouring columns, |v_i - v_{i+1}|."""

    def fit(self, X, y=None):
        """Count the candidates."""
        self.n_candidates_ = X.shape[1] - 1
        return self

    def columns(self, X, candidates):
        """Return the columns of some candidates on some rows."""
        return np.abs(X[:, candidates] - X[:, candidates + 1])

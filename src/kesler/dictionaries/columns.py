"""Columns: the features themselves as candidates."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeVar

import numpy as np
from scipy import sparse

from kesler.dictionaries.dictionary import (
    BLOCK_BYTES,
    Dictionary,
    Floats,
    Ints,
    Moments,
    SummablePool,
    spread,
)
from kesler.dictionaries.steps import Column, Step

Self = TypeVar("Self", bound="Columns")


class Columns(Dictionary):
    """The features themselves: candidate j is column j.

    Attributes
    ----------
    n_candidates_ : int
        How many features there are.

    Notes
    -----
    A round costs O(nnz k) for rows with nnz entries in all and k classes, in the rows' own
    precision. Rows are neither copied nor made dense, so that they may be sparse, or a memory map.

    Examples
    --------
    >>> from kesler.dictionaries import Columns
    >>> import numpy as np
    >>> pool = Columns().fit(np.eye(3)).pool(np.eye(3))
    >>> pool.columns(np.array([2])).ravel().tolist()
    [0.0, 0.0, 1.0]
    """

    def fit(self: Self, X: Any, y: Any = None) -> Self:
        """Count the features."""
        self.n_candidates_ = int(X.shape[1])
        return self

    def columns(self, X: Any, candidates: Ints) -> Floats:
        """Return some features."""
        return dense(X[:, candidates])

    def pool(self, X: Any) -> ColumnsPool:
        """Return the training rows, whose product with residuals gives all scores."""
        return ColumnsPool(self, X)

    def ends(self, least: Floats, most: Floats) -> tuple[Floats, Floats]:
        """Return what no candidate is below, or above, by the ends of the features: these."""
        return least, most

    def step(self, candidate: int) -> Step:
        """Return the feature."""
        return Column(int(candidate))


class ColumnsPool(SummablePool):
    """Training rows whose candidates are their features: none of them is copied."""

    def scores(self, residuals: Floats) -> Iterator[tuple[int, Floats]]:
        """Yield the scores of all features at once, for as many classes at a time as fit."""
        scores = np.zeros(self.n_candidates)
        n_classes = max(1, BLOCK_BYTES // (8 * self.n_candidates))
        for first in range(0, residuals.shape[1], n_classes):
            products = self.gradients(residuals[:, first : first + n_classes])
            scores += np.abs(products).sum(axis=0, dtype=np.float64)
        yield 0, scores

    def gradients(self, residuals: Floats) -> Floats:
        """Return the sums of all features times residuals, of shape (n_classes, n_candidates)."""
        # In the type of the rows: else all of them would be converted.
        some = residuals.astype(self.X.dtype, copy=False)
        # Dense products are three times as fast this way round.
        is_sparse: bool = sparse.issparse(self.X)
        return np.asarray((self.X.T @ some).T if is_sparse else some.T @ self.X)

    def spreads(self, row_weights: Floats, *, centred: bool) -> Iterator[tuple[int, Floats]]:
        """Yield the spreads of all candidates at once."""
        found = self.moments(row_weights)
        ends = found.least, found.most
        yield 0, spread(found.sums, found.squares, ends, row_weights, centred=centred)

    def moments(self, row_weights: Floats) -> Moments:
        """Return what spreads follow from."""
        q = row_weights.astype(self.X.dtype, copy=False)
        ends = _line(self.X.min(axis=0)), _line(self.X.max(axis=0))
        return Moments(self.X.T @ q, self._weighted_squares(q), *ends)

    def _weighted_squares(self, q: Floats) -> Floats:
        """Return sum_i q_i x_ij^2, a block of rows at a time where they are dense."""
        X = self.X
        if not isinstance(X, np.ndarray):
            return np.asarray(X.multiply(X).T @ q)
        step = max(1, BLOCK_BYTES // 8 // (X.itemsize * max(1, X.shape[1])))
        starts = range(0, X.shape[0], step)
        return np.asarray(sum(q[i : i + step] @ np.square(X[i : i + step]) for i in starts))


def _line(values: Any) -> Floats:
    """Return a row as an array of one dimension."""
    return dense(values).ravel()


def dense(X: Any) -> Floats:
    """Return rows as an array, whether they are one or sparse."""
    return np.asarray(X if isinstance(X, np.ndarray) else X.toarray())

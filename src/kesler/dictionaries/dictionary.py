"""The base class of dictionaries, pools of candidates, and the dictionary of plain features."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils.validation import has_fit_parameter

from kesler.dictionaries.steps import Column, Step
from kesler.errors import KeslerError

Self = TypeVar("Self", bound="Dictionary")
Floats = npt.NDArray[np.floating[Any]]
Ints = npt.NDArray[np.int64]

# Maximum size of the columns of a block of candidates.
BLOCK_BYTES = 1 << 25
# The weight of a column's largest squared deviation in its spread, relative to its variance.
RARE = 0.025


class Dictionary(BaseEstimator, ABC):
    """Base class of dictionaries of candidate features, whose columns are computed when needed.

    Candidates are numbered from 0. A candidate is one column, or a group of columns that are chosen
    together. `fit` determines the candidates (thresholds, centres, patches); `columns` computes
    some of them on any rows. A subclass must define these two methods; it may override `pool` if it
    can score all candidates without computing their columns. If its `fit` has a parameter
    `sample_weight`, it is given the weights of the rows, or None if they are equal; rows are
    distinct, so a weight may stand for that many copies.

    Attributes
    ----------
    n_candidates_ : int
        The number of candidates after fitting.
    indicators : bool
        Whether all columns are 0 or 1: spreads are then computed from scores, without columns.
    """

    n_candidates_: int
    indicators: bool = False

    @abstractmethod
    def fit(self: Self, X: Any, y: Any = None) -> Self:
        """Determine the candidates from validated rows, a float array or a CSR array."""

    @abstractmethod
    def columns(self, X: Any, candidates: Ints) -> Floats:
        """Return the columns of some candidates on validated rows, in the candidates' order."""

    def widths(self, candidates: Ints) -> Ints:
        """Return the number of columns of some candidates, by default 1 each."""
        return np.ones(len(candidates), dtype=np.int64)

    def pool(self, X: Any) -> Pool:
        """Return the pool of training rows with the candidates of this dictionary."""
        return Pool(self, X)

    def step(self, candidate: int) -> Step:
        """Return the computation of a candidate, for its name, its cost and exports.

        Raises
        ------
        KeslerError
            If the dictionary does not define steps.
        """
        raise KeslerError(
            f"{type(self).__name__} does not define how candidate {candidate} is computed: give "
            "the class a method step(candidate) that returns a kesler.dictionaries.Step"
        )


class Pool:
    """The candidates of a dictionary on training rows: their scores, spreads and columns.

    Parameters
    ----------
    dictionary : Dictionary
        A fitted dictionary.
    X : array or CSR array of shape (n_rows, n_features)

    Examples
    --------
    >>> import numpy as np
    >>> from kesler.dictionaries import Columns
    >>> pool = Columns().fit(np.eye(3)).pool(np.eye(3))
    >>> pool.n_candidates, pool.columns(np.array([2])).ravel().tolist()
    (3, [0.0, 0.0, 1.0])
    """

    def __init__(self, dictionary: Dictionary, X: Any) -> None:
        self.dictionary = dictionary
        self.X = X

    @property
    def n_candidates(self) -> int:
        """Number of candidates."""
        return self.dictionary.n_candidates_

    def columns(self, candidates: Ints) -> Floats:
        """Return the columns of some candidates, shape (n_rows, sum of their widths)."""
        return self.dictionary.columns(self.X, candidates)

    def blocks(self) -> Iterator[Ints]:
        """Yield all candidates in blocks whose columns fit into memory."""
        step = max(1, BLOCK_BYTES // (8 * max(1, self.X.shape[0])))
        for first in range(0, self.n_candidates, step):
            yield np.arange(first, min(first + step, self.n_candidates))

    def scores(self, residuals: Floats) -> Iterator[tuple[int, Floats]]:
        r"""Yield the first number and the scores of blocks of candidates.

        .. math:: s_J = \sum_{j \in J} \Big\| \sum_i x_{ij} R_i \Big\|_1

        for the columns J of each candidate and residuals R of shape (n_rows, n_classes). For
        R = (rho - e_y) / m, this is the L1 norm of the loss's gradient.
        """
        for block in self.blocks():
            columns = self.columns(block)
            gradients = residuals.astype(columns.dtype, copy=False).T @ columns
            yield int(block[0]), self._by_candidate(np.abs(gradients).sum(axis=0), block)

    def spreads(self, row_weights: Floats, *, centred: bool) -> Iterator[tuple[int, Floats]]:
        r"""Yield the first number and the spreads of blocks of candidates.

        .. math:: t_J^2 = \sum_{j \in J} \sum_i q_i \Big( (x_{ij} - \bar{x}_j)^2
            + \epsilon \max_l (x_{lj} - \bar{x}_j)^2 \Big)

        for the columns J of each candidate and row weights q, where the mean is weighted by q, or 0
        unless centred. The spread is 0 if the squares are only rounding errors. Without the second
        term, columns that are rarely nonzero would be overrated relative to columns that split the
        rows in halves. The maximum may be replaced by an upper bound.
        """
        if self.dictionary.indicators:
            for first, sums in self.scores(row_weights[:, None]):
                yield first, spread(sums, sums, (0.0, 1.0), row_weights, centred=centred)
            return
        for block in self.blocks():
            columns = self.columns(block)
            q = row_weights.astype(columns.dtype)
            ends = columns.min(axis=0, initial=np.inf), columns.max(axis=0, initial=-np.inf)
            each = spread(q @ columns, q @ np.square(columns), ends, row_weights, centred=centred)
            yield int(block[0]), np.sqrt(self._by_candidate(each**2, block))

    def _by_candidate(self, values: Floats, block: Ints) -> Floats:
        """Return sums of the values of each candidate's columns."""
        ends = np.cumsum(self.dictionary.widths(block))
        return np.add.reduceat(values, np.concatenate([[0], ends[:-1]]))


def spread(
    sums: Floats, squares: Floats, ends: tuple[Any, Any], row_weights: Floats, *, centred: bool
) -> Floats:
    """Return the spread of columns from weighted sums, sums of squares, and extreme values."""
    total = float(row_weights.sum())
    if not total > 0:
        return np.zeros_like(squares)
    means = sums / total if centred else np.zeros_like(sums)
    left = squares - sums * means
    reach = np.maximum(np.abs(ends[0] - means), np.abs(ends[1] - means))
    rounding = float(np.finfo(squares.dtype).eps) ** 0.75
    return np.sqrt(np.where(left > rounding * squares, left + RARE * total * reach**2, 0.0))


@dataclass(frozen=True, eq=False)
class Moments:
    """Sums over rows that determine spreads, and that can be added for distributed rows.

    Parameters
    ----------
    sums, squares : arrays of shape (n_candidates,)
        Weighted sums of the columns and of their squares.
    least, most : arrays
        The smallest and the largest value of each feature.
    """

    sums: Floats
    squares: Floats
    least: Floats
    most: Floats

    def __add__(self, other: Moments) -> Moments:
        """Return the moments over the rows of both."""
        return Moments(
            self.sums + other.sums,
            self.squares + other.squares,
            np.minimum(self.least, other.least),
            np.maximum(self.most, other.most),
        )


class SummablePool(Pool, ABC):
    """A pool for distributed rows, whose gradients and moments can be added up."""

    @abstractmethod
    def gradients(self, residuals: Floats) -> Floats:
        """Return the sums of all candidates times residuals, shape (n_classes, n_candidates)."""

    @abstractmethod
    def moments(self, row_weights: Floats) -> Moments:
        """Return the moments that determine spreads."""


def fitted(dictionary: Dictionary, X: Any, y: Any, weights: Floats) -> Dictionary:
    """Return a dictionary fitted to rows, with their weights if they differ and it accepts them."""
    if has_fit_parameter(dictionary, "sample_weight") and (weights != weights[0]).any():
        return dictionary.fit(X, y, sample_weight=weights)  # type: ignore[call-arg]
    return dictionary.fit(X, y)


SelfColumns = TypeVar("SelfColumns", bound="Columns")


class Columns(Dictionary):
    """The features themselves: candidate j is column j.

    Attributes
    ----------
    n_candidates_ : int
        The number of features.

    Notes
    -----
    A round costs O(nnz k) for rows with nnz entries in total and k classes, in the precision of the
    rows. Rows are neither copied nor made dense, so they may be sparse or a memory map.

    Examples
    --------
    >>> from kesler.dictionaries import Columns
    >>> import numpy as np
    >>> pool = Columns().fit(np.eye(3)).pool(np.eye(3))
    >>> pool.columns(np.array([2])).ravel().tolist()
    [0.0, 0.0, 1.0]
    """

    def fit(self: SelfColumns, X: Any, y: Any = None) -> SelfColumns:
        """Count the features."""
        self.n_candidates_ = int(X.shape[1])
        return self

    def columns(self, X: Any, candidates: Ints) -> Floats:
        """Return some features."""
        return dense(X[:, candidates])

    def pool(self, X: Any) -> ColumnsPool:
        """Return the pool of training rows, which scores all features by a matrix product."""
        return ColumnsPool(self, X)

    def ends(self, least: Floats, most: Floats) -> tuple[Floats, Floats]:
        """Return lower and upper bounds of the candidates, which are those of the features."""
        return least, most

    def step(self, candidate: int) -> Step:
        """Return the step for a feature."""
        return Column(int(candidate))


class ColumnsPool(SummablePool):
    """Training rows whose candidates are their features; rows are not copied."""

    def scores(self, residuals: Floats) -> Iterator[tuple[int, Floats]]:
        """Yield the scores of all features at once, computed in blocks of classes."""
        scores = np.zeros(self.n_candidates)
        n_classes = max(1, BLOCK_BYTES // (8 * self.n_candidates))
        for first in range(0, residuals.shape[1], n_classes):
            products = self.gradients(residuals[:, first : first + n_classes])
            scores += np.abs(products).sum(axis=0, dtype=np.float64)
        yield 0, scores

    def gradients(self, residuals: Floats) -> Floats:
        """Return the sums of all features times residuals, shape (n_classes, n_candidates)."""
        # In the dtype of the rows, since otherwise all rows would be converted.
        some = residuals.astype(self.X.dtype, copy=False)
        # Dense products are three times as fast in this order.
        is_sparse: bool = sparse.issparse(self.X)
        return np.asarray((self.X.T @ some).T if is_sparse else some.T @ self.X)

    def spreads(self, row_weights: Floats, *, centred: bool) -> Iterator[tuple[int, Floats]]:
        """Yield the spreads of all candidates at once."""
        found = self.moments(row_weights)
        ends = found.least, found.most
        yield 0, spread(found.sums, found.squares, ends, row_weights, centred=centred)

    def moments(self, row_weights: Floats) -> Moments:
        """Return the moments that determine spreads."""
        q = row_weights.astype(self.X.dtype, copy=False)
        ends = _line(self.X.min(axis=0)), _line(self.X.max(axis=0))
        return Moments(self.X.T @ q, self._weighted_squares(q), *ends)

    def _weighted_squares(self, q: Floats) -> Floats:
        """Return sum_i q_i x_ij^2, in blocks of rows if they are dense."""
        X = self.X
        if not isinstance(X, np.ndarray):
            return np.asarray(X.multiply(X).T @ q)
        step = max(1, BLOCK_BYTES // 8 // (X.itemsize * max(1, X.shape[1])))
        starts = range(0, X.shape[0], step)
        return np.asarray(sum(q[i : i + step] @ np.square(X[i : i + step]) for i in starts))


def _line(values: Any) -> Floats:
    """Return a row as a one-dimensional array."""
    return dense(values).ravel()


def dense(X: Any) -> Floats:
    """Return dense or sparse rows as a dense array."""
    return np.asarray(X if isinstance(X, np.ndarray) else X.toarray())


def check_dense(X: Any, candidates: str) -> None:
    """Raise if rows are sparse, for candidates that would be dense."""
    if sparse.issparse(X):
        raise KeslerError(
            f"{candidates} do not support sparse rows: give a dense array, "
            "such as X.toarray() if memory allows, or fewer features"
        )

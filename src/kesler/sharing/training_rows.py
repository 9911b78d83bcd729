"""Training rows as forward selection uses them: sums over rows, candidates and chosen columns.

A solver that accesses rows through these interfaces only works on rows in one array as well as on
rows that are distributed over machines.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from scipy.linalg import blas

Floats = npt.NDArray[Any]
RowValues = Any
"""Values per row, such as scores: an array, or a reference to its distributed pieces."""


@dataclass(frozen=True, eq=False)
class Task:
    r"""The loss of scores h.

    .. math:: \sum_i c_i \ln \sum_r e^{h_r(x_i) + \mu [r \ne y_i] - h_{y_i}(x_i)}

    Parameters
    ----------
    labels : int64 array of shape (n_rows,)
        Classes by number.
    counts : float64 array of shape (n_rows,)
        The weight of each row, c; their sum is 1.
    n_classes : int
    margin : float
        mu: 1 for the loss of ShareBoost, 0 for the logistic loss.
    """

    labels: npt.NDArray[np.int64]
    counts: Floats
    n_classes: int
    margin: float

    def loss(self, scores: Floats) -> tuple[float, Floats]:
        """Return the loss at given scores, and its gradient with respect to them."""
        from kesler.compiled.batch.softmax_loss import take_losses

        residuals, unused = scores.copy(), np.empty(scores.shape, dtype=np.float32)
        value = take_losses(residuals, self.labels, self.counts, self.margin, unused)
        return float(value), residuals

    def slope(self, scores: Floats, change: Floats, share: float) -> float:
        """Return the derivative of the loss at a share of a change of the scores."""
        from kesler.compiled.batch.softmax_loss import slope_along

        arguments = self.labels, self.counts, self.margin
        return float(slope_along(scores, change, share, *arguments))

    def probabilities(self, residuals: Floats) -> Floats:
        """Return the class probabilities, without loss of precision near 0."""
        counts = np.where(self.counts > 0, self.counts, 1.0)[:, None]
        probabilities = residuals / counts
        probabilities[np.arange(len(probabilities)), self.labels] += 1
        return np.maximum(probabilities, 0)

    def curvatures(self, residuals: Floats) -> Floats:
        """Return the second derivatives c p (1 - p), without loss of precision near p = 1."""
        counts = np.where(self.counts > 0, self.counts, 1.0)[:, None]
        apart = np.abs(residuals)
        return apart * np.maximum(1 - apart / counts, 0)


class RowSums(Protocol):
    """Some columns of the training rows, and the loss of scores that are linear in them."""

    @property
    def n_rows(self) -> int:
        """Number of rows."""

    @property
    def n_columns(self) -> int:
        """Number of columns."""

    def forward(self, weights: Floats) -> RowValues:
        """Return the scores of weights of shape (n_columns, n_classes)."""

    def shifted(self, scores: RowValues, change: RowValues, share: float) -> RowValues:
        """Return scores plus a share of a change that `forward` returned."""

    def loss(self, scores: RowValues) -> tuple[float, RowValues]:
        """Return the loss, and its gradient with respect to the scores."""

    def slope(self, scores: RowValues, change: RowValues, share: float) -> float:
        """Return the derivative of the loss at a share of a change of the scores."""

    def gradient(self, residuals: RowValues) -> Floats:
        """Return the gradient with respect to the weights, in float64."""

    def squares(self) -> Floats:
        """Return the sum of the squares of each column."""

    def fourths(self) -> Floats:
        """Return the sum of the fourth powers of each column."""

    def curvatures(self, residuals: RowValues) -> Floats:
        """Return the second derivatives with respect to the scores of each class, summed."""

    def class_blocks(
        self, residuals: RowValues, totals: Floats, columns: slice, wanted: int | None
    ) -> list[Floats]:
        """Return sum_i q_i x_i x_i' of some columns for each class, as lower triangles.

        Parameters
        ----------
        residuals : RowValues
        totals : array of shape (n_classes,)
            The sums of q, from `curvatures`.
        columns : slice
        wanted : int or None
            Approximate number of rows to sample, with probabilities proportional to q; None is all.
        """

    def pair_blocks(self, residuals: RowValues, wanted: int | None) -> list[Floats]:
        """Return sum_i c_i p_ia p_ib x_i x_i' for `pairs_of` classes, as lower triangles."""


def pairs_of(n_classes: int) -> list[tuple[int, int]]:
    """Return all pairs of classes, the larger number first."""
    return [(a, b) for a in range(n_classes) for b in range(a)]


@dataclass(frozen=True, eq=False)
class LocalSums:
    """Columns in one array.

    Parameters
    ----------
    task : Task
    rows_of_columns : array of shape (n_columns, n_rows), float32 or float64
        The transposed columns, so that appending one does not move the others.
    first_row : int, default 0
        The number of the first row if the rows are distributed: rows are sampled by number.
    """

    task: Task
    rows_of_columns: Floats
    first_row: int = 0

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.rows_of_columns.shape[1])

    @property
    def n_columns(self) -> int:
        """Number of columns."""
        return len(self.rows_of_columns)

    def forward(self, weights: Floats) -> Floats:
        """Return the scores, in float64."""
        A = self.rows_of_columns
        return np.asarray(A.T @ weights.astype(A.dtype, copy=False), dtype=np.float64)

    def shifted(self, scores: Floats, change: Floats, share: float) -> Floats:
        """Return scores plus a share of a change."""
        return scores + share * change

    def loss(self, scores: Floats) -> tuple[float, Floats]:
        """Return the loss, and its gradient with respect to the scores."""
        return self.task.loss(scores)

    def slope(self, scores: Floats, change: Floats, share: float) -> float:
        """Return the derivative of the loss at a share of a change of the scores."""
        return self.task.slope(scores, change, share)

    def gradient(self, residuals: Floats) -> Floats:
        """Return the gradient with respect to the weights."""
        A = self.rows_of_columns
        return np.asarray(A @ residuals.astype(A.dtype, copy=False), dtype=np.float64)

    def squares(self) -> Floats:
        """Return the sum of the squares of each column."""
        A = self.rows_of_columns
        return np.asarray(np.einsum("ji,ji->j", A, A))

    def fourths(self) -> Floats:
        """Return the sum of the fourth powers of each column."""
        squares = np.square(self.rows_of_columns)
        return np.asarray(np.einsum("ji,ji->j", squares, squares))

    def curvatures(self, residuals: Floats) -> Floats:
        """Return the sums of the second derivatives."""
        return np.asarray(self.task.curvatures(residuals).sum(axis=0))

    def class_blocks(
        self, residuals: Floats, totals: Floats, columns: slice, wanted: int | None
    ) -> list[Floats]:
        """Return the block of each class."""
        some, drawn = self.rows_of_columns[columns], self._drawn()
        each = zip(self.task.curvatures(residuals).T, totals.tolist(), strict=True)
        return [_block(some, q, total, drawn, wanted) for q, total in each]

    def pair_blocks(
        self, residuals: Floats, wanted: int | None, totals: Floats | None = None
    ) -> list[Floats]:
        """Return the block of each pair; `totals` must be given if the rows are distributed."""
        probabilities, counts, drawn = (
            self.task.probabilities(residuals),
            self.task.counts,
            self._drawn(),
        )
        totals = self.pair_totals(residuals) if totals is None else totals
        return [
            _block(
                self.rows_of_columns,
                counts * probabilities[:, a] * probabilities[:, b],
                float(totals[a, b]),
                drawn,
                wanted,
            )
            for a, b in pairs_of(self.task.n_classes)
        ]

    def pair_totals(self, residuals: Floats) -> Floats:
        """Return sum_i c_i p_ia p_ib for all a and b."""
        probabilities = self.task.probabilities(residuals)
        return np.asarray(probabilities.T @ (self.task.counts[:, None] * probabilities))

    def _drawn(self) -> Floats:
        """Return a random number from 0 to 1 for each row, independent of the distribution."""
        numbers = np.random.PCG64(0).advance(self.first_row)
        return np.random.Generator(numbers).random(self.n_rows)


def _block(
    rows_of_columns: Floats, q: Floats, total: float, drawn: Floats, wanted: int | None
) -> Floats:
    """Return the lower triangle of sum_i q_i x_i x_i', estimated from a sample if one is wanted."""
    A = rows_of_columns
    if wanted is not None and total > 0:
        probabilities = np.minimum(1, wanted * (q / total))
        rows = np.flatnonzero(drawn < probabilities)
        A, q = A[:, rows], q[rows] / probabilities[rows]
    if not len(q):  # an empty sample; BLAS does not accept empty arrays
        return np.zeros((len(A), len(A)), order="F")
    scaled = A * np.sqrt(q).astype(A.dtype)
    multiply = blas.ssyrk if A.dtype == np.float32 else blas.dsyrk
    return np.asarray(multiply(1.0, scaled.T, trans=1, lower=1), dtype=np.float64, order="F")


Ints = npt.NDArray[np.int64]
SomeColumns = Any
"""The columns of some candidates: an array, or a reference to its distributed pieces."""

# Columns whose absolute correlation differs from 1 by at most this are multiples of each other;
# centred columns whose length is at most this share of their largest value are constant.
ALIKE = {np.dtype(np.float32): 1e-6, np.dtype(np.float64): 1e-12}


class Candidates(Protocol):
    """The candidates of a dictionary on some rows."""

    @property
    def n_candidates(self) -> int:
        """Number of candidates."""

    def columns(self, candidates: Ints) -> Floats:
        """Return the columns of some candidates, side by side."""

    def scores(self, residuals: Floats) -> Iterable[tuple[int, Floats]]:
        """Yield the L1 norms of the gradients of blocks of candidates."""

    def spreads(self, row_weights: Floats, *, centred: bool) -> Iterable[tuple[int, Floats]]:
        """Yield the spreads of the columns of blocks of candidates."""


class Support(ABC):
    """The columns chosen so far.

    With a bias, the first column is 1 and the others are centred. Centring changes the bias only,
    and avoids a loss of precision for large columns with little variation.

    Parameters
    ----------
    bias : bool

    Attributes
    ----------
    means : array of shape (n_columns,)
        The values subtracted from the columns.
    """

    def __init__(self, bias: bool) -> None:
        self._bias = bias
        self.means: Floats = np.zeros(int(bias))

    @property
    def n_columns(self) -> int:
        """Number of columns, including the bias."""
        return len(self.means)

    @property
    def n_free(self) -> int:
        """Number of bias columns: 1 or 0."""
        return int(self._bias)

    @abstractmethod
    def append(self, columns: SomeColumns) -> None:
        """Add columns."""

    @abstractmethod
    def shorten(self, n_columns: int) -> None:
        """Remove the last columns until `n_columns` are left."""

    @abstractmethod
    def holds(self, columns: SomeColumns) -> bool:
        """Return whether each of some columns is constant or a multiple of a chosen one."""

    @abstractmethod
    def sums(self) -> RowSums:
        """Return the sums over rows of the columns."""


class TrainingRows(Protocol):
    """The training rows with their weights and candidates."""

    @property
    def n_candidates(self) -> int:
        """Number of candidates."""

    def columns(self, candidates: Ints) -> SomeColumns:
        """Return the columns of some candidates."""

    def sums(self, columns: SomeColumns) -> RowSums:
        """Return the sums over rows of some columns."""

    def scores(self, residuals: RowValues) -> Floats:
        """Return the L1 norms of the gradients of all candidates."""

    def spreads(self, *, centred: bool) -> Floats:
        """Return the spreads of the columns of all candidates."""

    def support(self, bias: bool) -> Support:
        """Return the support before the first choice."""


@dataclass(frozen=True, eq=False)
class LocalRows:
    """Training rows in one array.

    Parameters
    ----------
    pool : Candidates
    task : Task
    """

    pool: Candidates
    task: Task

    @property
    def n_candidates(self) -> int:
        """Number of candidates."""
        return self.pool.n_candidates

    def columns(self, candidates: Ints) -> Floats:
        """Return the columns of some candidates, side by side."""
        return self.pool.columns(candidates)

    def sums(self, columns: Floats) -> LocalSums:
        """Return the sums over rows of some columns."""
        return LocalSums(self.task, np.ascontiguousarray(columns.T))

    def scores(self, residuals: Floats) -> Floats:
        """Return the L1 norms of the gradients of all candidates."""
        return _joined(self.pool.scores(residuals))

    def spreads(self, *, centred: bool) -> Floats:
        """Return the spreads of the columns of all candidates."""
        return _joined(self.pool.spreads(self.task.counts, centred=centred))

    def support(self, bias: bool) -> LocalSupport:
        """Return the support before the first choice."""
        return LocalSupport(self.task, bias)


class LocalSupport(Support):
    """The columns chosen so far, as rows of one growing array.

    Parameters
    ----------
    task : Task
    bias : bool
    """

    def __init__(self, task: Task, bias: bool) -> None:
        super().__init__(bias)
        self._task = task
        # Converted to the precision of the first columns when they are added.
        self._rows: Floats = np.ones((8, len(task.counts)))

    def append(self, columns: Floats) -> None:
        """Add columns of shape (n_rows, width)."""
        if self._rows.dtype != columns.dtype and self.n_columns == self.n_free:
            self._rows = self._rows.astype(columns.dtype)
        end = self.n_columns + columns.shape[1]
        if end > len(self._rows):
            n_rows = self._rows.shape[1]
            larger = np.empty((max(end, 2 * len(self._rows)), n_rows), self._rows.dtype)
            larger[: self.n_columns] = self._chosen
            self._rows = larger
        means = self._means(columns)
        np.subtract(columns.T, means[:, None], out=self._rows[self.n_columns : end])
        self.means = np.concatenate([self.means, means])

    def shorten(self, n_columns: int) -> None:
        """Remove the last columns."""
        self.means = self.means[:n_columns]

    def holds(self, columns: Floats) -> bool:
        """Return whether each of some columns is constant or a multiple of a chosen one."""
        chosen = self._chosen[self.n_free :]
        likeness = Likeness.measured(columns, self._means(columns), chosen, self._task.counts)
        return likeness.says_nothing_new()

    def sums(self) -> LocalSums:
        """Return the sums over rows of the columns."""
        return LocalSums(self._task, self._chosen)

    @property
    def _chosen(self) -> Floats:
        return self._rows[: self.n_columns]

    def _means(self, columns: Floats) -> Floats:
        return weighted_sums(columns, self._task.counts) * self._bias


def weighted_sums(columns: Floats, counts: Floats) -> Floats:
    """Return the weighted sum of each column over the rows."""
    return np.asarray(counts @ columns, dtype=np.float64)


@dataclass(frozen=True, eq=False)
class Likeness:
    """Moments that determine whether some centred columns repeat chosen ones.

    Parameters
    ----------
    squares : array of shape (n_columns,)
        Weighted sums of squares of the centred columns.
    largest : array of shape (n_columns,)
        The largest absolute value of each uncentred column.
    products : array of shape (n_chosen, n_columns)
        Weighted sums of products with the chosen columns.
    own : array of shape (n_chosen,)
        Weighted sums of squares of the chosen columns.
    near : float
        The tolerance of correlations; see `ALIKE`.
    """

    squares: Floats
    largest: Floats
    products: Floats
    own: Floats
    near: float

    @classmethod
    def measured(cls, columns: Floats, means: Floats, chosen: Floats, counts: Floats) -> Likeness:
        """Compare columns of shape (n_rows, n_columns) with chosen ones, (n_chosen, n_rows)."""
        centred = (columns - means).T.astype(np.float64)
        return cls(
            (centred**2 * counts).sum(axis=1),
            np.abs(columns).max(axis=0, initial=0.0),
            chosen @ (centred * counts).T.astype(chosen.dtype),
            np.einsum("ji,ji,i->j", chosen, chosen, counts),
            ALIKE[columns.dtype],
        )

    def __add__(self, other: Likeness) -> Likeness:
        """Return the moments over the rows of both."""
        return Likeness(
            self.squares + other.squares,
            np.maximum(self.largest, other.largest),
            self.products + other.products,
            self.own + other.own,
            self.near,
        )

    def says_nothing_new(self) -> bool:
        """Return whether each column is constant or a multiple of a chosen one."""
        lengths = np.sqrt(self.squares)
        constant = lengths <= self.near * self.largest
        if constant.all() or not len(self.own):
            return bool(constant.all())
        scale = np.sqrt(np.maximum(self.own, 0))[:, None] * np.where(constant, 1.0, lengths)
        alike = (np.abs(self.products) >= (1 - self.near) * scale).any(axis=0)
        return bool((constant | alike).all())


def _joined(blocks: Iterable[tuple[int, Floats]]) -> Floats:
    """Concatenate blocks of numbers, each given with its first index."""
    return np.concatenate([block for _, block in sorted(blocks, key=lambda each: each[0])])

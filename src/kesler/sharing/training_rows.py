"""The training rows as a solver sees them that chooses columns: sums over rows, candidates.

And those chosen.

A solver that sees rows through this alone neither knows nor cares where they are: in one array, or
in as many as there are machines.
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
"""Numbers of each row, such as scores: an array, or wherever its pieces are."""


@dataclass(frozen=True, eq=False)
class Task:
    r"""The loss of scores h.

    .. math:: \sum_i c_i \ln \sum_r e^{h_r(x_i) + \mu [r \ne y_i] - h_{y_i}(x_i)}

    Parameters
    ----------
    labels : int64 array of shape (n_rows,)
        Classes by number.
    counts : float64 array of shape (n_rows,)
        What each row counts, c; their sum is 1.
    n_classes : int
    margin : float
        mu: 1 for the loss of ShareBoost, 0 for the logistic loss.
    """

    labels: npt.NDArray[np.int64]
    counts: Floats
    n_classes: int
    margin: float

    def loss(self, scores: Floats) -> tuple[float, Floats]:
        """Return the loss at some scores, and its gradient with respect to them."""
        from kesler.compiled.batch.softmax_loss import take_losses

        residuals, unused = scores.copy(), np.empty(scores.shape, dtype=np.float32)
        value = take_losses(residuals, self.labels, self.counts, self.margin, unused)
        return float(value), residuals

    def slope(self, scores: Floats, change: Floats, share: float) -> float:
        """Return how fast the loss grows at a share of a change of the scores."""
        from kesler.compiled.batch.softmax_loss import slope_along

        targets = self.labels, self.counts, self.margin
        return float(slope_along(scores, change, share, *targets))

    def probabilities(self, residuals: Floats) -> Floats:
        """Return the probabilities of the classes, without loss near 0."""
        counts = np.where(self.counts > 0, self.counts, 1.0)[:, None]
        probabilities = residuals / counts
        probabilities[np.arange(len(probabilities)), self.labels] += 1
        return np.maximum(probabilities, 0)

    def curvatures(self, residuals: Floats) -> Floats:
        """Return the second derivatives c p (1 - p) of each row, without loss near p = 1."""
        counts = np.where(self.counts > 0, self.counts, 1.0)[:, None]
        apart = np.abs(residuals)
        return apart * np.maximum(1 - apart / counts, 0)


class RowSums(Protocol):
    """Some columns of the training rows, and the loss of scores that are linear in them."""

    @property
    def n_rows(self) -> int:
        """How many rows there are."""

    @property
    def n_columns(self) -> int:
        """How many columns there are."""

    def forward(self, weights: Floats) -> RowValues:
        """Return what weights of shape (n_columns, n_classes) add to the scores."""

    def shifted(self, scores: RowValues, change: RowValues, share: float) -> RowValues:
        """Return the scores after a share of a change, which `forward` returned."""

    def loss(self, scores: RowValues) -> tuple[float, RowValues]:
        """Return the loss, and its gradient with respect to the scores."""

    def slope(self, scores: RowValues, change: RowValues, share: float) -> float:
        """Return how fast the loss grows at a share of a change of the scores."""

    def gradient(self, residuals: RowValues) -> Floats:
        """Return the gradient with respect to the weights, in float64."""

    def squares(self) -> Floats:
        """Return the sum of the squares of each column."""

    def curvatures(self, residuals: RowValues) -> Floats:
        """Return the sum of the second derivatives with respect to the scores of each class."""

    def class_blocks(
        self, residuals: RowValues, totals: Floats, columns: slice, wanted: int | None
    ) -> list[Floats]:
        """Return sum_i q_i x_i x_i' of some columns for each class, below the diagonals.

        Parameters
        ----------
        residuals : values of rows
        totals : array of shape (n_classes,)
            What `curvatures` returned, the sums of q.
        columns : slice
        wanted : int or None
            About how many rows to estimate it from, those that curve most; None for all.
        """

    def pair_blocks(self, residuals: RowValues, wanted: int | None) -> list[Floats]:
        """Return sum_i c_i p_ia p_ib x_i x_i' for `pairs_of` classes, below the diagonals."""


def pairs_of(n_classes: int) -> list[tuple[int, int]]:
    """Return all pairs of classes, the larger number first."""
    return [(a, b) for a in range(n_classes) for b in range(a)]


@dataclass(frozen=True, eq=False)
class LocalSums:
    """Columns in an array.

    Parameters
    ----------
    task : Task
    rows_of_columns : array of shape (n_columns, n_rows), float32 or float64
        A column in each row, so that one more does not move the others.
    first_row : int, default 0
        The number of the first row, where others stand elsewhere: rows are drawn by number.
    """

    task: Task
    rows_of_columns: Floats
    first_row: int = 0

    @property
    def n_rows(self) -> int:
        """How many rows there are."""
        return int(self.rows_of_columns.shape[1])

    @property
    def n_columns(self) -> int:
        """How many columns there are."""
        return len(self.rows_of_columns)

    def forward(self, weights: Floats) -> Floats:
        """Return the scores, in float64."""
        A = self.rows_of_columns
        return np.asarray(A.T @ weights.astype(A.dtype, copy=False), dtype=np.float64)

    def shifted(self, scores: Floats, change: Floats, share: float) -> Floats:
        """Return the scores after a share of a change."""
        return scores + share * change

    def loss(self, scores: Floats) -> tuple[float, Floats]:
        """Return the loss, and its gradient with respect to the scores."""
        return self.task.loss(scores)

    def slope(self, scores: Floats, change: Floats, share: float) -> float:
        """Return how fast the loss grows at a share of a change of the scores."""
        return self.task.slope(scores, change, share)

    def gradient(self, residuals: Floats) -> Floats:
        """Return the gradient with respect to the weights."""
        A = self.rows_of_columns
        return np.asarray(A @ residuals.astype(A.dtype, copy=False), dtype=np.float64)

    def squares(self) -> Floats:
        """Return the sum of the squares of each column."""
        A = self.rows_of_columns
        return np.asarray(np.einsum("ji,ji->j", A, A))

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
        """Return the block of each pair; `totals` are given where some rows stand elsewhere."""
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
        """Return a number from 0 to 1 for each row, the same wherever other rows stand."""
        numbers = np.random.PCG64(0).advance(self.first_row)
        return np.random.Generator(numbers).random(self.n_rows)


def _block(
    rows_of_columns: Floats, q: Floats, total: float, drawn: Floats, wanted: int | None
) -> Floats:
    """Return sum_i q_i x_i x_i' below its diagonal, of drawn rows if fewer are wanted."""
    A = rows_of_columns
    if wanted is not None and total > 0:
        probabilities = np.minimum(1, wanted * (q / total))
        rows = np.flatnonzero(drawn < probabilities)
        A, q = A[:, rows], q[rows] / probabilities[rows]
    if not len(q):  # none was drawn of these; BLAS takes no empty arrays
        return np.zeros((len(A), len(A)), order="F")
    scaled = A * np.sqrt(q).astype(A.dtype)
    multiply = blas.ssyrk if A.dtype == np.float32 else blas.dsyrk
    return np.asarray(multiply(1.0, scaled.T, trans=1, lower=1), dtype=np.float64, order="F")


Ints = npt.NDArray[np.int64]
SomeColumns = Any
"""The columns of some candidates: an array, or wherever their pieces are."""

# Columns whose correlation is as near to 1 say the same; those as short beside their largest value,
# once centred, say nothing.
ALIKE = {np.dtype(np.float32): 1e-6, np.dtype(np.float64): 1e-12}


class Candidates(Protocol):
    """Rows seen through a dictionary."""

    @property
    def n_candidates(self) -> int:
        """How many candidates there are."""

    def columns(self, candidates: Ints) -> Floats:
        """Return the columns of some candidates, side by side."""

    def scores(self, residuals: Floats) -> Iterable[tuple[int, Floats]]:
        """Yield the L1 norms of the gradients of blocks of candidates."""

    def spreads(self, row_weights: Floats, *, centred: bool) -> Iterable[tuple[int, Floats]]:
        """Yield how far the columns of blocks of candidates spread."""


class Support(ABC):
    """The columns chosen so far.

    With a bias the first is 1, and the others are taken from their means: that changes the bias
    alone, and large columns that hardly vary lose no digits.

    Parameters
    ----------
    bias : bool

    Attributes
    ----------
    means : array of shape (n_columns,)
        What each is taken from.
    """

    def __init__(self, bias: bool) -> None:
        self._bias = bias
        self.means: Floats = np.zeros(int(bias))

    @property
    def n_columns(self) -> int:
        """How many there are, the bias among them."""
        return len(self.means)

    @property
    def n_free(self) -> int:
        """How many of the columns are the bias: 1 or 0."""
        return int(self._bias)

    @abstractmethod
    def append(self, columns: SomeColumns) -> None:
        """Add columns."""

    @abstractmethod
    def shorten(self, n_columns: int) -> None:
        """Take the last columns away, so that so many are left."""

    @abstractmethod
    def holds(self, columns: SomeColumns) -> bool:
        """Whether each of some columns is constant, or a multiple of one that was chosen."""

    @abstractmethod
    def sums(self) -> RowSums:
        """Return the columns as solvers for weights see them."""


class TrainingRows(Protocol):
    """The rows, and what they count."""

    @property
    def n_candidates(self) -> int:
        """How many candidates there are."""

    def columns(self, candidates: Ints) -> SomeColumns:
        """Return the columns of some candidates."""

    def sums(self, columns: SomeColumns) -> RowSums:
        """Return columns as solvers for weights see them."""

    def scores(self, residuals: RowValues) -> Floats:
        """Return the L1 norms of the gradients of all candidates."""

    def spreads(self, *, centred: bool) -> Floats:
        """Return how far the columns of all candidates spread."""

    def support(self, bias: bool) -> Support:
        """Return the support before the first choice."""


@dataclass(frozen=True, eq=False)
class LocalRows:
    """Rows in one place.

    Parameters
    ----------
    pool : Candidates
    task : Task
    """

    pool: Candidates
    task: Task

    @property
    def n_candidates(self) -> int:
        """How many candidates there are."""
        return self.pool.n_candidates

    def columns(self, candidates: Ints) -> Floats:
        """Return the columns of some candidates, side by side."""
        return self.pool.columns(candidates)

    def sums(self, columns: Floats) -> LocalSums:
        """Return columns as solvers for weights see them."""
        return LocalSums(self.task, np.ascontiguousarray(columns.T))

    def scores(self, residuals: Floats) -> Floats:
        """Return the L1 norms of the gradients of all candidates."""
        return _joined(self.pool.scores(residuals))

    def spreads(self, *, centred: bool) -> Floats:
        """Return how far the columns of all candidates spread."""
        return _joined(self.pool.spreads(self.task.counts, centred=centred))

    def support(self, bias: bool) -> LocalSupport:
        """Return the support before the first choice."""
        return LocalSupport(self.task, bias)


class LocalSupport(Support):
    """The columns chosen so far, in one growing array, a row of it for each.

    Parameters
    ----------
    task : Task
    bias : bool
    """

    def __init__(self, task: Task, bias: bool) -> None:
        super().__init__(bias)
        self._task = task
        # Of the precision of the first columns: float64 until then.
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
        """Take the last columns away."""
        self.means = self.means[:n_columns]

    def holds(self, columns: Floats) -> bool:
        """Whether each of some columns is constant, or a multiple of one that was chosen."""
        chosen = self._chosen[self.n_free :]
        likeness = Likeness.measured(columns, self._means(columns), chosen, self._task.counts)
        return likeness.says_nothing_new()

    def sums(self) -> LocalSums:
        """Return the columns as solvers for weights see them."""
        return LocalSums(self._task, self._chosen)

    @property
    def _chosen(self) -> Floats:
        return self._rows[: self.n_columns]

    def _means(self, columns: Floats) -> Floats:
        return weighted_sums(columns, self._task.counts) * self._bias


def weighted_sums(columns: Floats, counts: Floats) -> Floats:
    """Return the sum of each column over the rows, by what they count."""
    return np.asarray(counts @ columns, dtype=np.float64)


@dataclass(frozen=True, eq=False)
class Likeness:
    """How some columns, once centred, stand to those that were chosen.

    Parameters
    ----------
    squares : array of shape (n_columns,)
        Of the centred columns, summed by what rows count.
    largest : array of shape (n_columns,)
        The largest absolute value of each column as it is.
    products : array of shape (n_chosen, n_columns)
        With the chosen columns, summed likewise.
    own : array of shape (n_chosen,)
        The squares of the chosen columns.
    near : float
        How near correlations are to 1 at which columns count as alike.
    """

    squares: Floats
    largest: Floats
    products: Floats
    own: Floats
    near: float

    @classmethod
    def measured(cls, columns: Floats, means: Floats, chosen: Floats, counts: Floats) -> Likeness:
        """Compare columns of shape (n_rows, n_columns) with chosen ones, each in a row."""
        centred = (columns - means).T.astype(np.float64)
        return cls(
            (centred**2 * counts).sum(axis=1),
            np.abs(columns).max(axis=0, initial=0.0),
            chosen @ (centred * counts).T.astype(chosen.dtype),
            np.einsum("ji,ji,i->j", chosen, chosen, counts),
            ALIKE[columns.dtype],
        )

    def __add__(self, other: Likeness) -> Likeness:
        """Return that of the rows of both."""
        return Likeness(
            self.squares + other.squares,
            np.maximum(self.largest, other.largest),
            self.products + other.products,
            self.own + other.own,
            self.near,
        )

    def says_nothing_new(self) -> bool:
        """Whether each column is constant, or a multiple of a chosen one."""
        lengths = np.sqrt(self.squares)
        constant = lengths <= self.near * self.largest
        if constant.all() or not len(self.own):
            return bool(constant.all())
        scale = np.sqrt(np.maximum(self.own, 0))[:, None] * np.where(constant, 1.0, lengths)
        alike = (np.abs(self.products) >= (1 - self.near) * scale).any(axis=0)
        return bool((constant | alike).all())


def _joined(blocks: Iterable[tuple[int, Floats]]) -> Floats:
    """Return blocks of numbers, each with its first index, as one array."""
    return np.concatenate([block for _, block in sorted(blocks, key=lambda each: each[0])])

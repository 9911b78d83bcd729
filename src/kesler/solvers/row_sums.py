"""What a solver asks of the training rows: values that stay with them, and sums over them.

A solver that sees rows through this alone neither knows nor cares where they are: in one array, or
in as many as there are machines.
"""

from __future__ import annotations

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
        from kesler.compiled.softmax_loss import take_losses

        residuals, unused = scores.copy(), np.empty(scores.shape, dtype=np.float32)
        value = take_losses(residuals, self.labels, self.counts, self.margin, unused)
        return float(value), residuals

    def slope(self, scores: Floats, change: Floats, share: float) -> float:
        """Return how fast the loss grows at a share of a change of the scores."""
        from kesler.compiled.softmax_loss import slope_along

        told = self.labels, self.counts, self.margin
        return float(slope_along(scores, change, share, *told))

    def chances(self, residuals: Floats) -> Floats:
        """Return the probabilities of the classes, without loss near 0."""
        counts = np.where(self.counts > 0, self.counts, 1.0)[:, None]
        chances = residuals / counts
        chances[np.arange(len(chances)), self.labels] += 1
        return np.maximum(chances, 0)

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
        chances, counts, drawn = self.task.chances(residuals), self.task.counts, self._drawn()
        totals = self.pair_totals(residuals) if totals is None else totals
        return [
            _block(
                self.rows_of_columns,
                counts * chances[:, a] * chances[:, b],
                float(totals[a, b]),
                drawn,
                wanted,
            )
            for a, b in pairs_of(self.task.n_classes)
        ]

    def pair_totals(self, residuals: Floats) -> Floats:
        """Return sum_i c_i p_ia p_ib for all a and b."""
        chances = self.task.chances(residuals)
        return np.asarray(chances.T @ (self.task.counts[:, None] * chances))

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
        chances = np.minimum(1, wanted * (q / total))
        rows = np.flatnonzero(drawn < chances)
        A, q = A[:, rows], q[rows] / chances[rows]
    if not len(q):  # none was drawn of these; BLAS takes no empty arrays
        return np.zeros((len(A), len(A)), order="F")
    scaled = A * np.sqrt(q).astype(A.dtype)
    multiply = blas.ssyrk if A.dtype == np.float32 else blas.dsyrk
    return np.asarray(multiply(1.0, scaled.T, trans=1, lower=1), dtype=np.float64, order="F")

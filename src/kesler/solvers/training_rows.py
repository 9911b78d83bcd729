"""The training rows as a solver sees them that chooses columns: candidates, and those chosen."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from kesler.solvers.row_sums import LocalSums, RowSums, RowValues, Task

Floats = npt.NDArray[Any]
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

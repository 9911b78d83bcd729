"""ShareBoost on partitions: the solver of one machine, given sums over them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from kesler.dictionaries import Columns, Products
from kesler.dictionaries.dictionary import Moments, SummablePool, spread
from kesler.dictionaries.names import resolve_dictionary
from kesler.distributed.batches import Batch, Batches
from kesler.distributed.scattered import Scattered
from kesler.errors import KeslerError
from kesler.estimators.shareboost import ShareBoostClassifier
from kesler.estimators.softmax import MARGINS
from kesler.solvers.row_sums import LocalSums, Task
from kesler.solvers.training_rows import Likeness, Support, weighted_sums

Floats = npt.NDArray[Any]
Ints = npt.NDArray[np.int64]


def fit_shareboost(model: ShareBoostClassifier, batches: Batches) -> None:
    """Choose for a model of which everything else is known.

    Raises
    ------
    KeslerError
        If a parameter is out of its range, or candidates are learnt from rows.
    """
    model._require_parameters(None)
    dictionary = _fitted(model.dictionary, batches)
    model._begin(dictionary, batches.classes)
    told = batches.total, len(batches.classes), MARGINS[model.loss]
    firsts = Scattered(batches.parts.client, batches.first_rows[:-1])
    parts = batches.parts.each(Part.of, firsts, dictionary, *told)
    model._choose(SpreadRows(parts, dictionary, batches.first_rows[-1]), None, goes_on=False)


def _fitted(given: Any, batches: Batches) -> Columns | Products:
    """Return a dictionary that needs no rows but their width to know its candidates."""
    dictionary = resolve_dictionary(given)
    if not isinstance(dictionary, (Columns, Products)):
        raise KeslerError(
            f"{dictionary!r} learns its candidates from all rows, which are nowhere together: give "
            '"columns" or "products", or rows that hold the candidates as their columns'
        )
    shape = (0, batches.kind.n_features)
    empty = sparse.csr_array(shape) if batches.kind.kind == "sparse" else np.empty(shape)
    return dictionary.fit(empty)


@dataclass(frozen=True, eq=False)
class Part:
    """The rows of one partition, seen through a dictionary.

    Parameters
    ----------
    pool : SummablePool
    task : Task
    first_row : int
        The number of the first one among all rows.
    """

    pool: SummablePool
    task: Task
    first_row: int

    @classmethod
    def of(
        cls,
        batch: Batch,
        first_row: int,
        dictionary: Columns | Products,
        total: float,
        n_classes: int,
        margin: float,
    ) -> Part:
        """Return the rows of a batch, whose counts sum to 1 with those of all others."""
        task = Task(batch.labels, batch.counts / total, n_classes, margin)
        return cls(dictionary.pool(batch.X), task, first_row)

    def chosen(self, candidates: Ints, means: Floats, bias: bool) -> LocalSums:
        """Return columns taken from their means, and before them, with a bias, one that is 1."""
        columns = self.pool.columns(candidates)
        kind = columns.dtype if len(candidates) else np.dtype(np.float64)
        rows = np.ones((len(means), len(self.task.counts)), kind)
        np.subtract(columns.T, means[bias:, None], out=rows[bias:])
        return LocalSums(self.task, rows, self.first_row)

    def sums(self, candidates: Ints) -> Floats:
        """Return the sums of some columns, by what rows count."""
        return weighted_sums(self.pool.columns(candidates), self.task.counts)

    def likeness(self, candidates: Ints, means: Floats, support: LocalSums, bias: bool) -> Likeness:
        """Compare some columns with those that were chosen."""
        columns, chosen = self.pool.columns(candidates), support.rows_of_columns[int(bias) :]
        return Likeness.measured(columns, means, chosen, self.task.counts)

    def gradients(self, standing: tuple[Floats, Floats]) -> Floats:
        """Return the gradients of all candidates."""
        return self.pool.gradients(standing[RESIDUALS]).astype(np.float64)

    def moments(self) -> Moments:
        """Return what spreads follow from."""
        return self.pool.moments(self.task.counts)


@dataclass(frozen=True, eq=False)
class SpreadRows:
    """Rows on partitions, as the solver sees those of one machine.

    Parameters
    ----------
    parts : Scattered
        Of parts.
    dictionary : Columns or Products
    n_rows : int
        Of all partitions.
    """

    parts: Scattered
    dictionary: Columns | Products
    n_rows: int

    @property
    def n_candidates(self) -> int:
        """How many candidates there are."""
        return self.dictionary.n_candidates_

    def columns(self, candidates: Ints) -> SpreadColumns:
        """Return the columns of some candidates: nothing is made of them yet."""
        return SpreadColumns(self, candidates)

    def sums(self, columns: SpreadColumns) -> SpreadSums:
        """Return columns as solvers for weights see them."""
        n_columns = len(columns.candidates)
        zeros = np.zeros(n_columns)
        local = self.parts.each(Part.chosen, columns.candidates, zeros, False)
        return SpreadSums(local, columns, self.n_rows, n_columns)

    def scores(self, residuals: SpreadResiduals) -> Floats:
        """Return the L1 norms of the gradients of all candidates."""
        gradients = self.parts.total(Part.gradients, residuals.values)
        return np.asarray(np.abs(gradients).sum(axis=0))

    def spreads(self, *, centred: bool) -> Floats:
        """Return how far the columns of all candidates spread."""
        found: Moments = self.parts.total(Part.moments)
        ends = self.dictionary.ends(found.least, found.most)
        return spread(found.sums, found.squares, ends, np.ones(1), centred=centred)

    def support(self, bias: bool) -> SpreadSupport:
        """Return the support before the first choice."""
        return SpreadSupport(self, bias)


@dataclass(frozen=True, eq=False)
class SpreadColumns:
    """The columns of some candidates, wherever rows are."""

    rows: SpreadRows
    candidates: Ints

    @cached_property
    def means(self) -> Floats:
        """Their means, by what rows count."""
        return np.asarray(self.rows.parts.total(Part.sums, self.candidates))


class SpreadSupport(Support):
    """The candidates chosen so far, whose columns workers have.

    Parameters
    ----------
    rows : SpreadRows
    bias : bool
    """

    def __init__(self, rows: SpreadRows, bias: bool) -> None:
        super().__init__(bias)
        self.rows = rows
        self.candidates: Ints = np.empty(0, dtype=np.int64)
        self._local: Scattered | None = None

    def append(self, columns: SpreadColumns) -> None:
        """Add columns."""
        self.means = np.concatenate([self.means, self._means(columns)])
        self.candidates = np.concatenate([self.candidates, columns.candidates])
        self._local = None

    def shorten(self, n_columns: int) -> None:
        """Take the last columns away."""
        self.means = self.means[:n_columns]
        self.candidates = self.candidates[: n_columns - self.n_free]
        self._local = None

    def holds(self, columns: SpreadColumns) -> bool:
        """Whether each of some columns is constant, or a multiple of one that was chosen."""
        told = columns.candidates, self._means(columns), self._columns(), self._bias
        likeness: Likeness = self.rows.parts.total(Part.likeness, *told)
        return likeness.says_nothing_new()

    def sums(self) -> SpreadSums:
        """Return the columns as solvers for weights see them."""
        return SpreadSums(self._columns(), self, self.rows.n_rows, self.n_columns)

    def _columns(self) -> Scattered:
        """Return the columns on the partitions, made anew from the rows when there are others."""
        if self._local is None:
            told = self.candidates, self.means, self._bias
            self._local = self.rows.parts.each(Part.chosen, *told)
        return self._local

    def _means(self, columns: SpreadColumns) -> Floats:
        return columns.means if self._bias else np.zeros(len(columns.candidates))


# Of what is kept of rows on a partition.
SCORES, RESIDUALS = range(2)


@dataclass(frozen=True, eq=False)
class SpreadScores:
    """Scores of rows on partitions, computed from weights when they are asked for.

    Parameters
    ----------
    sums : SpreadSums
        Over the columns that are weighed.
    weights : array of shape (n_columns, n_classes)
    base : SpreadScores or None, default None
        To which those of the weights are added.
    """

    sums: SpreadSums
    weights: Floats
    base: SpreadScores | None = None

    @cached_property
    def standing(self) -> Scattered:
        """The scores, the residuals and the loss."""
        base = None if self.base is None else self.base.standing
        return self.sums.local.each(_stand, self.weights, base)


@dataclass(frozen=True, eq=False)
class SpreadResiduals:
    """Residuals of rows on partitions, and the gradient that came with them.

    Parameters
    ----------
    scores : SpreadScores
        At which they are.
    gradient : array of the shape of their weights
        Of the loss.
    """

    scores: SpreadScores
    gradient: Floats

    @property
    def values(self) -> Scattered:
        """What is kept of the rows."""
        return self.scores.standing


@dataclass(frozen=True, eq=False)
class SpreadSums:
    """Columns on partitions, and sums over their rows.

    Parameters
    ----------
    local : Scattered
        Of `LocalSums`.
    columns : SpreadSupport or SpreadColumns
        Whose columns these are.
    n_rows, n_columns : int
    """

    local: Scattered
    columns: Any
    n_rows: int
    n_columns: int

    def forward(self, weights: Floats) -> SpreadScores:
        """Return what weights add to the scores."""
        return SpreadScores(self, weights)

    def shifted(self, scores: SpreadScores, change: SpreadScores, share: float) -> SpreadScores:
        """Return the scores after a share of a change, to be computed from their weights alone."""
        weights = share * change.weights
        if scores.sums.columns is not self.columns:
            return SpreadScores(self, weights, scores)
        weights[: len(scores.weights)] += scores.weights
        return SpreadScores(self, weights, scores.base)

    def loss(self, scores: SpreadScores) -> tuple[float, SpreadResiduals]:
        """Return the loss, and with the residuals the gradient, which takes no second round."""
        loss, gradient = self.local.total(_loss_and_gradient, scores.standing)
        return loss, SpreadResiduals(scores, gradient)

    def slope(self, scores: SpreadScores, change: SpreadScores, share: float) -> float:
        """Return how fast the loss grows at a share of a change of the scores."""
        return float(self.local.total(_slope, scores.standing, change.weights, share))

    def gradient(self, residuals: SpreadResiduals) -> Floats:
        """Return the gradient with respect to the weights."""
        if residuals.scores.sums is self:
            return residuals.gradient.copy()
        return np.asarray(self.local.total(_of_residuals(LocalSums.gradient), residuals.values))

    def squares(self) -> Floats:
        """Return the sum of the squares of each column."""
        return np.asarray(self.local.total(LocalSums.squares))

    def curvatures(self, residuals: SpreadResiduals) -> Floats:
        """Return the sums of the second derivatives."""
        return np.asarray(self.local.total(_of_residuals(LocalSums.curvatures), residuals.values))

    def class_blocks(
        self, residuals: SpreadResiduals, totals: Floats, columns: slice, wanted: int | None
    ) -> list[Floats]:
        """Return the block of each class."""
        told = residuals.values, totals, columns, wanted
        found: list[Floats] = self.local.total(_of_residuals(LocalSums.class_blocks), *told)
        return found

    def pair_blocks(self, residuals: SpreadResiduals, wanted: int | None) -> list[Floats]:
        """Return the block of each pair of classes."""
        totals = self.local.total(_of_residuals(LocalSums.pair_totals), residuals.values)
        told = residuals.values, wanted, totals
        found: list[Floats] = self.local.total(_of_residuals(LocalSums.pair_blocks), *told)
        return found


def _stand(sums: LocalSums, weights: Floats, base: Any) -> tuple[Floats, Floats, float]:
    """Return scores, residuals and the loss of the rows of a partition."""
    scores = sums.forward(weights)
    if base is not None:
        scores += base[SCORES]
    loss, residuals = sums.loss(scores)
    return scores, residuals, loss


def _loss_and_gradient(sums: LocalSums, standing: Any) -> tuple[float, Floats]:
    return standing[-1], sums.gradient(standing[RESIDUALS])


def _slope(sums: LocalSums, standing: Any, weights: Floats, share: float) -> float:
    # What weights add is not kept for the next share: most steps ask once.
    return sums.slope(standing[SCORES], sums.forward(weights), share)


@dataclass(frozen=True)
class _of_residuals:
    """What `LocalSums` makes of residuals, given all that is kept of the rows."""

    method: Callable[..., Any]

    def __call__(self, sums: LocalSums, standing: Any, *told: Any) -> Any:
        return self.method(sums, standing[RESIDUALS], *told)

"""Batch learners on partitions: the single-machine solvers with sums over all partitions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.base import BaseEstimator, clone

from kesler.batch.design import (
    ClassBlocks,
    DensePerClass,
    Diagonal,
    PerClassDesign,
    Preconditioner,
    SparsePerClass,
)
from kesler.batch.newton import SoftmaxLine, SoftmaxObjective, SoftmaxPoint
from kesler.batch.scorers import is_per_class
from kesler.batch.softmax import MARGINS, SoftmaxClassifier, largest_in, require_moderate
from kesler.dictionaries.dictionary import Columns, Moments, SummablePool, spread
from kesler.dictionaries.products import Products
from kesler.dictionaries.registry import resolve_dictionary
from kesler.distributed.partitions import Partitions
from kesler.distributed.scattered import Scattered, resolve_client
from kesler.distributed.shards import Batch, Batches, numbered
from kesler.errors import KeslerError
from kesler.sharing.shareboost import ShareBoostClassifier
from kesler.sharing.training_rows import Likeness, LocalSums, Support, Task, weighted_sums

Floats = npt.NDArray[Any]

# Maximum number of elements of the Hessian blocks, which are sent to the client.
MOST_SENT = 1 << 22


def fit_softmax(model: SoftmaxClassifier, batches: Batches) -> None:
    """Compute the weights of a model whose other attributes are known.

    Raises
    ------
    KeslerError
        If a parameter is out of its range, or classes share weights.
    """
    model._require_parameters()
    if not is_per_class(model.hypotheses):
        raise KeslerError(
            f"hypotheses={model.hypotheses!r}: partitions support only separate weights for each "
            'class, since maps need statistics of all rows: set hypotheses="multi"'
        )
    C, bias, n_classes = float(model.C), bool(model.fit_intercept), len(batches.classes)
    require_moderate(max(batches.parts.collect(_largest)), C * batches.total)
    parts = batches.parts.each(_objective, C, bias, n_classes, MARGINS[model.loss])
    ridge = model._ridge(batches.kind.n_features + bias, -1)
    model.classes_ = batches.classes
    start = np.zeros((len(ridge), n_classes))
    model._solve(SpreadObjective(parts, ridge), start, 0)


@dataclass(frozen=True, eq=False)
class SpreadObjective:
    """The regularised loss of rows on partitions.

    Parameters
    ----------
    parts : Scattered
        The objectives of the partitions, without the regulariser.
    ridge : float64 array of shape (n_features, 1)
        The regularisation coefficient of each feature.
    """

    parts: Scattered
    ridge: Floats

    def at(self, weights: Floats) -> SpreadPoint:
        """Return the objective and its gradient at the given weights."""
        points = self.parts.each(SoftmaxObjective.at, weights)
        loss, gradient = points.total(_value_and_gradient)
        pull = self.ridge * weights
        value = loss + 0.5 * float(np.vdot(pull, weights))
        return SpreadPoint(self, weights, points, value, gradient + pull)


@dataclass(frozen=True, eq=False)
class SpreadPoint:
    """The objective at given weights; `points` stay on the workers of the partitions."""

    objective: SpreadObjective
    weights: Floats
    points: Scattered
    value: float
    gradient: Floats

    def curvature(self, direction: Floats) -> Floats:
        """Return the product of the Hessian and a direction, in one pass over the rows."""
        product = self.points.total(SoftmaxPoint.curvature, direction)
        return np.asarray(product + self.objective.ridge.astype(np.float32) * direction)

    def preconditioner(self) -> Preconditioner:
        """Return the inverse of the Hessian's blocks, or of its diagonal if they are large."""
        (n_features, n_classes), ridge = self.weights.shape, self.objective.ridge
        is_small = n_features**2 * n_classes <= MOST_SENT
        if is_small and ClassBlocks.fit_in(n_features, n_classes):
            return ClassBlocks.of(self.points.total(_blocks), ridge)
        return Diagonal(self.points.total(_diagonal) + ridge)

    def along(self, direction: Floats) -> SpreadLine:
        """Return the objective along a direction."""
        return SpreadLine(self, direction, self.points.each(SoftmaxPoint.along, direction))


@dataclass(frozen=True, eq=False)
class SpreadLine:
    """The objective along a direction, from the change of scores on the partitions."""

    origin: SpreadPoint
    direction: Floats
    lines: Scattered

    def slope(self, share: float) -> float:
        """Return the derivative after a step of length `share`."""
        first, growth = self._pulls
        return float(self.lines.total(SoftmaxLine.slope, share)) + first + share * growth

    @cached_property
    def _pulls(self) -> tuple[float, float]:
        """The derivative of the regulariser at the start of the line, and its slope."""
        pull = self.origin.objective.ridge * self.direction
        return float(np.vdot(pull, self.origin.weights)), float(np.vdot(pull, self.direction))

    def at(self, share: float) -> SpreadPoint:
        """Return the point after a step of length `share`, computed from its weights."""
        return self.origin.objective.at(self.origin.weights + share * self.direction)


def _objective(
    batch: Batch, C: float, bias: bool, n_classes: int, margin: float
) -> SoftmaxObjective:
    kind = SparsePerClass if sparse.issparse(batch.X) else DensePerClass
    design: PerClassDesign = kind(batch.X, bias)
    no_ridge = np.zeros((1, 1))
    return SoftmaxObjective(design, batch.labels, C * batch.counts, n_classes, no_ridge, margin)


def _largest(batch: Batch) -> float:
    return largest_in(batch.X)


def _value_and_gradient(point: SoftmaxPoint) -> tuple[float, Floats]:
    return point.value, point.gradient


def _design(point: SoftmaxPoint) -> PerClassDesign:
    design = point.objective.design.single
    assert isinstance(design, PerClassDesign)
    return design


def _blocks(point: SoftmaxPoint) -> list[Floats]:
    return _design(point).class_blocks(point.curvatures)


def _diagonal(point: SoftmaxPoint) -> Floats:
    return _design(point).diagonal(point.curvatures)


Ints = npt.NDArray[np.int64]


def fit_shareboost(model: ShareBoostClassifier, batches: Batches) -> None:
    """Select the features of a model whose other attributes are known.

    Raises
    ------
    KeslerError
        If a parameter is out of its range, or candidates are learnt from rows.
    """
    model._require_parameters(None)
    dictionary = _fitted(model.dictionary, batches)
    model._begin(dictionary, batches.classes)
    model.dtype_ = batches.kind.dtype
    settings = batches.total, len(batches.classes), MARGINS[model.loss]
    firsts = Scattered(batches.parts.client, batches.first_rows[:-1])
    parts = batches.parts.each(Part.of, firsts, dictionary, *settings)
    model._choose(SpreadRows(parts, dictionary, batches.first_rows[-1]), None, goes_on=False)


def _fitted(given: Any, batches: Batches) -> Columns | Products:
    """Return a fitted dictionary whose candidates depend only on the number of features."""
    dictionary = resolve_dictionary(given)
    if not isinstance(dictionary, (Columns, Products)):
        raise KeslerError(
            f"{dictionary!r} learns its candidates from all rows, which partitions do not support: "
            'set "columns" or "products", or give rows with the candidates as columns'
        )
    shape = (0, batches.kind.n_features)
    empty = sparse.csr_array(shape) if batches.kind.kind == "sparse" else np.empty(shape)
    return dictionary.fit(empty)


@dataclass(frozen=True, eq=False)
class Part:
    """The rows of one partition with the candidates of a dictionary.

    Parameters
    ----------
    pool : SummablePool
    task : Task
    first_row : int
        Index of its first row among all rows.
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
        """Return the part of a batch; row weights are normalised to sum to 1 over all parts."""
        task = Task(batch.labels, batch.counts / total, n_classes, margin)
        return cls(dictionary.pool(batch.X), task, first_row)

    def chosen(self, candidates: Ints, means: Floats, bias: bool) -> LocalSums:
        """Return centred columns, after a column of ones if there is a bias."""
        columns = self.pool.columns(candidates)
        kind = columns.dtype if len(candidates) else np.dtype(np.float64)
        rows = np.ones((len(means), len(self.task.counts)), kind)
        np.subtract(columns.T, means[bias:, None], out=rows[bias:])
        return LocalSums(self.task, rows, self.first_row)

    def sums(self, candidates: Ints) -> Floats:
        """Return the weighted sums of columns."""
        return weighted_sums(self.pool.columns(candidates), self.task.counts)

    def likeness(self, candidates: Ints, means: Floats, support: LocalSums, bias: bool) -> Likeness:
        """Compare columns with the selected ones."""
        columns, chosen = self.pool.columns(candidates), support.rows_of_columns[int(bias) :]
        return Likeness.measured(columns, means, chosen, self.task.counts)

    def gradients(self, standing: tuple[Floats, Floats]) -> Floats:
        """Return the gradients of all candidates."""
        return self.pool.gradients(standing[RESIDUALS]).astype(np.float64)

    def moments(self) -> Moments:
        """Return the moments of all candidates, from which spreads are computed."""
        return self.pool.moments(self.task.counts)


@dataclass(frozen=True, eq=False)
class SpreadRows:
    """Rows on partitions, with the interface of rows on one machine.

    Parameters
    ----------
    parts : Scattered
        The `Part` of each partition.
    dictionary : Columns or Products
    n_rows : int
        Number of rows of all partitions.
    """

    parts: Scattered
    dictionary: Columns | Products
    n_rows: int

    @property
    def n_candidates(self) -> int:
        """Number of candidates."""
        return self.dictionary.n_candidates_

    def columns(self, candidates: Ints) -> SpreadColumns:
        """Return the columns of candidates, which are computed lazily."""
        return SpreadColumns(self, candidates)

    def sums(self, columns: SpreadColumns) -> SpreadSums:
        """Return columns with the interface of the solvers for weights."""
        n_columns = len(columns.candidates)
        zeros = np.zeros(n_columns)
        local = self.parts.each(Part.chosen, columns.candidates, zeros, False)
        return SpreadSums(local, columns, self.n_rows, n_columns)

    def scores(self, residuals: SpreadResiduals) -> Floats:
        """Return the L1 norms of the gradients of all candidates."""
        gradients = self.parts.total(Part.gradients, residuals.values)
        return np.asarray(np.abs(gradients).sum(axis=0))

    def spreads(self, *, centred: bool) -> Floats:
        """Return the spreads of the columns of all candidates."""
        found: Moments = self.parts.total(Part.moments)
        ends = self.dictionary.ends(found.least, found.most)
        return spread(found.sums, found.squares, ends, np.ones(1), centred=centred)

    def support(self, bias: bool) -> SpreadSupport:
        """Return the support before the first selection."""
        return SpreadSupport(self, bias)


@dataclass(frozen=True, eq=False)
class SpreadColumns:
    """The columns of candidates on all partitions."""

    rows: SpreadRows
    candidates: Ints

    @cached_property
    def means(self) -> Floats:
        """Weighted means of the columns."""
        return np.asarray(self.rows.parts.total(Part.sums, self.candidates))


class SpreadSupport(Support):
    """The candidates selected so far, with their columns on the workers.

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
        """Append columns."""
        self.means = np.concatenate([self.means, self._means(columns)])
        self.candidates = np.concatenate([self.candidates, columns.candidates])
        self._local = None

    def shorten(self, n_columns: int) -> None:
        """Remove the last columns, so that `n_columns` are left."""
        self.means = self.means[:n_columns]
        self.candidates = self.candidates[: n_columns - self.n_free]
        self._local = None

    def holds(self, columns: SpreadColumns) -> bool:
        """Return whether each column is constant or a multiple of a selected one."""
        arguments = columns.candidates, self._means(columns), self._columns(), self._bias
        likeness: Likeness = self.rows.parts.total(Part.likeness, *arguments)
        return likeness.says_nothing_new()

    def sums(self) -> SpreadSums:
        """Return the selected columns with the interface of the solvers for weights."""
        return SpreadSums(self._columns(), self, self.rows.n_rows, self.n_columns)

    def _columns(self) -> Scattered:
        """Return the selected columns on the partitions; recompute them after a change."""
        if self._local is None:
            arguments = self.candidates, self.means, self._bias
            self._local = self.rows.parts.each(Part.chosen, *arguments)
        return self._local

    def _means(self, columns: SpreadColumns) -> Floats:
        return columns.means if self._bias else np.zeros(len(columns.candidates))


# Indices of the values stored for the rows of a partition; the last one is the loss.
SCORES, RESIDUALS = range(2)


@dataclass(frozen=True, eq=False)
class SpreadScores:
    """Scores of rows on partitions, computed lazily from weights.

    Parameters
    ----------
    sums : SpreadSums
        The columns of the weights.
    weights : array of shape (n_columns, n_classes)
    base : SpreadScores or None, default None
        Scores to which those of the weights are added.
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
    """Residuals of rows on partitions, and the gradient computed with them.

    Parameters
    ----------
    scores : SpreadScores
        The scores of the residuals.
    gradient : array of the shape of the weights
        Gradient of the loss.
    """

    scores: SpreadScores
    gradient: Floats

    @property
    def values(self) -> Scattered:
        """The values stored for the rows."""
        return self.scores.standing


@dataclass(frozen=True, eq=False)
class SpreadSums:
    """Columns on partitions, and sums over their rows.

    Parameters
    ----------
    local : Scattered
        The `LocalSums` of each partition.
    columns : SpreadSupport or SpreadColumns
        The source of the columns.
    n_rows, n_columns : int
    """

    local: Scattered
    columns: Any
    n_rows: int
    n_columns: int

    def forward(self, weights: Floats) -> SpreadScores:
        """Return the scores of the weights."""
        return SpreadScores(self, weights)

    def shifted(self, scores: SpreadScores, change: SpreadScores, share: float) -> SpreadScores:
        """Return the scores after a share of a change, computed from their weights."""
        weights = share * change.weights
        if scores.sums.columns is not self.columns:
            return SpreadScores(self, weights, scores)
        weights[: len(scores.weights)] += scores.weights
        return SpreadScores(self, weights, scores.base)

    def loss(self, scores: SpreadScores) -> tuple[float, SpreadResiduals]:
        """Return the loss, and the residuals with the gradient, in one round of communication."""
        loss, gradient = self.local.total(_loss_and_gradient, scores.standing)
        return loss, SpreadResiduals(scores, gradient)

    def slope(self, scores: SpreadScores, change: SpreadScores, share: float) -> float:
        """Return the derivative of the loss along a change of the scores, after a share of it."""
        return float(self.local.total(_slope, scores.standing, change.weights, share))

    def gradient(self, residuals: SpreadResiduals) -> Floats:
        """Return the gradient with respect to the weights."""
        if residuals.scores.sums is self:
            return residuals.gradient.copy()
        return np.asarray(self.local.total(_of_residuals(LocalSums.gradient), residuals.values))

    def squares(self) -> Floats:
        """Return the sum of the squares of each column."""
        return np.asarray(self.local.total(LocalSums.squares))

    def fourths(self) -> Floats:
        """Return the sum of the fourth powers of each column."""
        return np.asarray(self.local.total(LocalSums.fourths))

    def curvatures(self, residuals: SpreadResiduals) -> Floats:
        """Return the sums of the second derivatives."""
        return np.asarray(self.local.total(_of_residuals(LocalSums.curvatures), residuals.values))

    def class_blocks(
        self, residuals: SpreadResiduals, totals: Floats, columns: slice, wanted: int | None
    ) -> list[Floats]:
        """Return the block of each class."""
        arguments = residuals.values, totals, columns, wanted
        found: list[Floats] = self.local.total(_of_residuals(LocalSums.class_blocks), *arguments)
        return found

    def pair_blocks(self, residuals: SpreadResiduals, wanted: int | None) -> list[Floats]:
        """Return the block of each pair of classes."""
        totals = self.local.total(_of_residuals(LocalSums.pair_totals), residuals.values)
        arguments = residuals.values, wanted, totals
        found: list[Floats] = self.local.total(_of_residuals(LocalSums.pair_blocks), *arguments)
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
    # The change of scores is not stored, since most steps need one slope.
    return sums.slope(standing[SCORES], sums.forward(weights), share)


@dataclass(frozen=True)
class _of_residuals:
    """A method of `LocalSums`, applied to the residuals of the values stored for the rows."""

    method: Callable[..., Any]

    def __call__(self, sums: LocalSums, standing: Any, *arguments: Any) -> Any:
        return self.method(sums, standing[RESIDUALS], *arguments)


Estimator = TypeVar("Estimator", bound=BaseEstimator)


def fit(estimator: Estimator, partitions: Partitions, *, client: Any = None) -> Estimator:
    """Fit a batch learner to rows that are distributed over machines.

    The solver is that of one machine: it needs the loss, its gradient and products with its
    Hessian, which are sums over rows. Each worker computes the sums over its rows.

    Parameters
    ----------
    estimator : SoftmaxClassifier or ShareBoostClassifier
        The learner, of which only the parameters are used. Softmax needs hypotheses="multi";
        ShareBoost needs the dictionary "columns" or "products", whose candidates do not depend on
        rows.
    partitions : Partitions
        Rows with features by position, dense or sparse. The assignment of rows to partitions and
        the number of workers affect only rounding.
    client : distributed.Client or None, default None
        None means the client that was created last.

    Returns
    -------
    A new estimator of the same kind, fitted, which needs neither Dask nor the partitions.

    Raises
    ------
    KeslerError
        As in the `fit` of the estimator; also if partitions differ in kind or number of features,
        features are identified by name, or the estimator is of another class.

    Notes
    -----
    ShareBoost runs the same steps as on one machine and selects the same features, unless two
    candidates are equal up to rounding. The softmax starts with zero weights instead of passes of
    dual ascent, which are not sums over rows, and converges to the same optimum within `tol`.

    Each step sends weights, a gradient or a direction to the workers and receives sums: 8 bytes for
    each candidate (or feature) and class. Scores and selected columns stay on the workers, which
    compute them from weights and never from earlier values, so they can be recomputed after a
    worker has died.

    Examples
    --------
    >>> from distributed import Client  # doctest: +SKIP
    >>> from kesler import ShareBoostClassifier  # doctest: +SKIP
    >>> from kesler.distributed import Partitions, fit  # doctest: +SKIP
    >>> rows = Partitions.from_parquet("rows/*.parquet", label="digit")  # doctest: +SKIP
    >>> model = fit(ShareBoostClassifier(20), rows, client=Client())  # doctest: +SKIP
    """
    client = resolve_client(client)
    model: Any = clone(estimator)
    if not isinstance(model, (ShareBoostClassifier, SoftmaxClassifier)):
        raise KeslerError(
            f"{type(model).__name__} cannot be fitted on partitions: give a SoftmaxClassifier or a "
            "ShareBoostClassifier, or use kesler.distributed.learn for an online learner"
        )
    batches = numbered(partitions.read(client), model.class_weight)
    model.n_features_in_ = batches.kind.n_features
    if batches.kind.columns is not None:
        model.feature_names_in_ = np.array(batches.kind.columns, dtype=object)
    if isinstance(model, SoftmaxClassifier):
        fit_softmax(model, batches)
    else:
        fit_shareboost(model, batches)
    return model

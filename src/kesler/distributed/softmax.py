"""Multinomial logistic regression on partitions: Newton's method, given sums over them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from kesler.distributed.batches import Batch, Batches
from kesler.distributed.scattered import Scattered
from kesler.errors import KeslerError
from kesler.estimators.batch import is_per_class
from kesler.estimators.softmax import MARGINS, SoftmaxClassifier, largest_in, require_moderate
from kesler.solvers.design import DensePerClass, PerClassDesign, SparsePerClass
from kesler.solvers.preconditioners import ClassBlocks, Diagonal, Preconditioner
from kesler.solvers.softmax import SoftmaxLine, SoftmaxObjective, SoftmaxPoint

Floats = npt.NDArray[Any]

# Blocks of the Hessian travel to the client: all of them together hold no more numbers.
MOST_SENT = 1 << 22


def fit_softmax(model: SoftmaxClassifier, batches: Batches) -> None:
    """Find the weights of a model of which everything else is known.

    Raises
    ------
    KeslerError
        If a parameter is out of its range, or classes share weights.
    """
    model._require_parameters()
    if not is_per_class(model.hypotheses):
        raise KeslerError(
            f"hypotheses={model.hypotheses!r}: on partitions each class has weights of its own, "
            'since maps look at statistics of all rows: give hypotheses="multi"'
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
        Of the objectives of the partitions' rows, without what holds weights to zero.
    ridge : float64 array of shape (n_features, 1)
        What does.
    """

    parts: Scattered
    ridge: Floats

    def at(self, weights: Floats) -> SpreadPoint:
        """Return value and gradient at some weights."""
        points = self.parts.each(SoftmaxObjective.at, weights)
        loss, gradient = points.total(_value_and_gradient)
        pull = self.ridge * weights
        value = loss + 0.5 * float(np.vdot(pull, weights))
        return SpreadPoint(self, weights, points, value, gradient + pull)


@dataclass(frozen=True, eq=False)
class SpreadPoint:
    """The objective at some weights: `points` of the partitions stay where their rows are."""

    objective: SpreadObjective
    weights: Floats
    points: Scattered
    value: float
    gradient: Floats

    def curvature(self, direction: Floats) -> Floats:
        """Return the Hessian times a direction, in one pass over the rows."""
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
    """The objective along a direction, by what the direction does to the scores of partitions."""

    origin: SpreadPoint
    direction: Floats
    lines: Scattered

    def slope(self, share: float) -> float:
        """Return the derivative at a share of the direction."""
        first, growth = self._pulls
        return float(self.lines.total(SoftmaxLine.slope, share)) + first + share * growth

    @cached_property
    def _pulls(self) -> tuple[float, float]:
        """The derivative of the norm's part: where the line begins, and how fast it grows."""
        pull = self.origin.objective.ridge * self.direction
        return float(np.vdot(pull, self.origin.weights)), float(np.vdot(pull, self.direction))

    def at(self, share: float) -> SpreadPoint:
        """Return the point at a share of the direction, from its weights alone."""
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

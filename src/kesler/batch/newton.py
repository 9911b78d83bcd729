"""Multinomial logistic regression: a smooth objective over a design, and Newton's method for it.

Where rows are short, a few passes come nearer to the optimum than dozens of Newton's method do.
What is left is Newton's, and so is the intercept, which is held to zero here like other weights.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol, cast

import numpy as np
import numpy.typing as npt

from kesler.batch.design import Design, PerClassDesign, Preconditioner
from kesler.batch.dual_ascent import SIMD_WIDTH, compiled_rows

Floats = npt.NDArray[Any]

MOST_CONJUGATE_STEPS = 250
# Conjugate gradients stop at this share of the first residual or less, as preconditioned.
MOST_FORCING = 0.2
# A step along a direction ends where the slope is at most this share of the first one.
FLAT = 0.02
MOST_TRIALS = 60
# Beyond the share that was tried, the next is at least and at most so many times as large.
LEAST_WIDER, MOST_WIDER = 2.0, 8.0
# The slope at an end that stays is taken for this share of itself at least, time after time.
LEAST_LEFT = 0.01


class Slopes(Protocol):
    """A smooth function along a direction from a point, by the share of the direction gone."""

    def slope(self, share: float) -> float:
        """Return the derivative, cheaply."""


class Line(Slopes, Protocol):
    """A smooth objective along a direction."""

    def at(self, share: float) -> Point:
        """Return the point."""


class Point(Protocol):
    """A smooth objective at some weights, in float64."""

    @property
    def weights(self) -> Floats:
        """Where it is."""

    @property
    def value(self) -> float:
        """The objective."""

    @property
    def gradient(self) -> Floats:
        """The gradient, of the weights' shape."""

    def curvature(self, direction: Floats) -> Floats:
        """Return the Hessian times a direction, both float32 of the weights' shape."""

    def preconditioner(self) -> Preconditioner:
        """Return an approximate inverse of the Hessian."""

    def along(self, direction: Floats) -> Line:
        """Return the objective along a direction."""


class SmoothObjective(Protocol):
    """A convex function of an array of weights, twice differentiable."""

    def at(self, weights: Floats) -> Point:
        """Return what the objective is at some weights."""


@dataclass(frozen=True)
class SoftmaxObjective:
    r"""The regularised loss of multinomial logistic regression.

    .. math:: \sum_i c_i \ln \sum_k \exp(h_k(x_i) + \mu [k \ne y_i] - h_{y_i}(x_i))
        + \tfrac12 \langle \rho, W^2 \rangle

    Parameters
    ----------
    design : Design
        How scores h follow from weights W.
    labels : int64 array of shape (n_rows,)
        Classes by number.
    counts : float64 array of shape (n_rows,)
        What each row counts, c.
    n_classes : int
    ridge : float64 array that broadcasts to the weights' shape
        How much each weight is held to zero, rho.
    margin : float
        0 for the logistic loss, 1 for the loss of ShareBoost, mu.
    """

    design: Design
    labels: npt.NDArray[np.int64]
    counts: npt.NDArray[np.float64]
    n_classes: int
    ridge: Floats
    margin: float = 0.0

    def at(self, weights: Floats) -> SoftmaxPoint:
        """Return value and gradient at some weights."""
        return self.at_scores(weights, self.design.forward(weights))

    def at_scores(self, weights: Floats, scores: Floats) -> SoftmaxPoint:
        """Return value and gradient where the scores are known."""
        from kesler.compiled.batch.softmax_loss import take_losses

        coefficients, probabilities = scores.copy(), np.empty(scores.shape, dtype=np.float32)
        loss = take_losses(coefficients, self.labels, self.counts, self.margin, probabilities)
        pull = self.ridge * weights
        value = loss + 0.5 * float(np.vdot(pull, weights))
        gradient = self.design.adjoint(coefficients) + pull
        return SoftmaxPoint(self, weights, scores, value, gradient, probabilities)

    @cached_property
    def single_counts(self) -> npt.NDArray[np.float32]:
        """The counts as float32."""
        return self.counts.astype(np.float32)


@dataclass(frozen=True)
class SoftmaxPoint:
    """The objective at some weights."""

    objective: SoftmaxObjective
    weights: Floats
    scores: Floats
    value: float
    gradient: Floats
    probabilities: npt.NDArray[np.float32]

    def curvature(self, direction: Floats) -> Floats:
        """Return the Hessian times a direction, in one pass over the rows."""
        from kesler.compiled.batch.softmax_loss import curve

        counts = self.objective.single_counts
        product = self.objective.ridge.astype(np.float32) * direction
        for rows, block in self.objective.design.single.blocks():
            scores = block.forward(direction)
            curve(scores, self.probabilities[rows], counts[rows])
            product += block.adjoint(scores)
        return product

    def preconditioner(self) -> Preconditioner:
        """Return what the design makes of the Hessian's blocks or diagonal."""
        return self.objective.design.single.preconditioner(self.curvatures, self.objective.ridge)

    @property
    def curvatures(self) -> npt.NDArray[np.float32]:
        """The second derivatives of the rows' losses with respect to their scores."""
        p = self.probabilities
        return np.asarray(self.objective.single_counts[:, None] * p * (1 - p))

    def along(self, direction: Floats) -> SoftmaxLine:
        """Return the objective along a direction: one pass over the rows, none for each slope."""
        return SoftmaxLine(self, direction, self.objective.design.forward(direction))


@dataclass(frozen=True)
class SoftmaxLine:
    """The objective along a direction, by what the direction does to the scores."""

    origin: SoftmaxPoint
    direction: Floats
    change: Floats

    def slope(self, share: float) -> float:
        """Return the derivative at a share of the direction."""
        from kesler.compiled.batch.softmax_loss import slope_along

        of, start = self.origin.objective, self.origin
        loss = slope_along(start.scores, self.change, share, of.labels, of.counts, of.margin)
        first, growth = self._pulls
        return float(loss) + first + share * growth

    @cached_property
    def _pulls(self) -> tuple[float, float]:
        """The derivative of the norm's part: where the line begins, and how fast it grows."""
        pull = self.origin.objective.ridge * self.direction
        return float(np.vdot(pull, self.origin.weights)), float(np.vdot(pull, self.direction))

    def at(self, share: float) -> SoftmaxPoint:
        """Return the point at a share of the direction."""
        return self.origin.objective.at_scores(
            self.origin.weights + share * self.direction,
            self.origin.scores + share * self.change,
        )


@dataclass(frozen=True)
class Solution:
    """Where a solver stopped.

    Parameters
    ----------
    weights : float64 array
    value : float
        The objective.
    gradient_norm : float
        As a share of the gradient's norm at zero weights.
    n_iter : int
    converged : bool
        Whether the norm is at most the tolerance.
    """

    weights: Floats
    value: float
    gradient_norm: float
    n_iter: int
    converged: bool


def minimise(objective: SmoothObjective, start: Floats, tol: float, max_iter: int) -> Solution:
    """Minimise a smooth convex objective by truncated Newton steps.

    Parameters
    ----------
    objective : SmoothObjective
    start : float64 array
    tol : float
        The gradient's norm, as a share of that at zero weights, at which to stop.
    max_iter : int
        The most Newton steps.
    """
    point = objective.at(start)
    scale = _norm(objective.at(np.zeros_like(start)) if start.any() else point)
    n_iter = 0
    while _norm(point) > tol * scale and n_iter < max_iter:
        direction = newton_direction(point, min(MOST_FORCING, (_norm(point) / scale) ** 0.5))
        line = point.along(direction)
        point = line.at(flat_share(line))
        n_iter += 1
    share = _norm(point) / scale if scale else 0.0
    return Solution(point.weights, point.value, share, n_iter, share <= tol)


def _norm(point: Point) -> float:
    return float(np.linalg.norm(point.gradient))


def newton_direction(point: Point, forcing: float) -> Floats:
    """Return a step to where the gradient would vanish, by preconditioned conjugate gradients."""
    precondition = point.preconditioner()
    # Normed, so that float32 neither overflows nor vanishes.
    norm = _norm(point)
    residual = (-point.gradient / norm).astype(np.float32)
    step = np.zeros_like(residual)
    ahead = precondition(residual)
    direction, energy = ahead.copy(), float(np.vdot(residual, ahead))
    enough = forcing**2 * energy
    for _ in range(MOST_CONJUGATE_STEPS):
        product = point.curvature(direction)
        bend = float(np.vdot(direction, product))
        if not bend > 0:
            break
        step += np.float32(energy / bend) * direction
        residual -= np.float32(energy / bend) * product
        ahead = precondition(residual)
        energy, before = float(np.vdot(residual, ahead)), energy
        if energy <= enough:
            break
        direction *= np.float32(energy / before)
        direction += ahead
    return norm * (step if step.any() else direction).astype(np.float64)


def flat_share(line: Slopes, flat: float = FLAT, share: float = 1.0) -> float:
    """Return the share of a direction at which a convex function is nearly flat.

    Nearly flat is a slope of at most `flat` of the first one; `share` is tried first.

    Slopes grow along the line: goes on to where the last two point until they are no longer steep,
    then closes in by the method of Anderson and Bjorck, which soon forgets an end that is steep by
    orders of magnitude. Values are not compared, whose differences vanish in rounding near the end.
    """
    low, high = 0.0, np.inf
    first = below = line.slope(0.0)
    above, side = 0.0, 0
    for _ in range(MOST_TRIALS):
        slope = line.slope(share)
        if abs(slope) <= flat * abs(first):
            break
        wider = _wider(share - low, share, below, slope)
        if slope < 0:
            above *= max(LEAST_LEFT, 1 - slope / below) if side < 0 else 1.0
            low, below, side = share, slope, -1
        else:
            below *= max(LEAST_LEFT, 1 - slope / above) if side > 0 else 1.0
            high, above, side = share, slope, 1
        share = wider if high == np.inf else low + (high - low) * below / (below - above)
    return share


def _wider(gone: float, share: float, before: float, slope: float) -> float:
    """Return the share at which a slope vanishes that fell from one before it, within bounds."""
    ahead = share - gone * slope / (slope - before) if slope > before else np.inf
    return float(np.clip(ahead, LEAST_WIDER * share, MOST_WIDER * share))


Doubles = npt.NDArray[np.float64]

MOST_PASSES = 15
# A pass that gains more than this part of what the one before gained is the last: rows are too
# long for others to stand still.
SLOW = 0.75
# The last pass gains at most this part of the tolerance, of all that was gained.
SHARE = 0.05
# Rows that move scores by so little are let be; where rows move them by more than this on average,
# a pass hardly helps.
LEAST_PACE, MOST_PACE = 1e-100, 1e4


def approach(objective: SoftmaxObjective, tol: float, most: int) -> tuple[Doubles, int]:
    """Return weights near the optimum, and how many passes over the rows led there.

    Parameters
    ----------
    objective : SoftmaxObjective
        Over a `PerClassDesign`.
    tol : float
        How near: passes end when the objective would fall by little more than this part of it.
    most : int
        The most passes.
    """
    ascent, gained = _Ascent(objective), 0.0
    if not ascent.mean_pace <= MOST_PACE:
        return ascent.found(), 0
    n_passes, gain, before = 0, np.inf, np.inf
    while n_passes < min(most, MOST_PASSES) and gain <= SLOW * before:
        n_passes, before, gain = n_passes + 1, gain, ascent.visit_all()
        gained += gain
        if gain <= SHARE * tol * gained:
            break
    return ascent.found(), n_passes


class _Ascent:
    """The state of a climb: weights of the features and of the constant, and dual variables."""

    def __init__(self, objective: SoftmaxObjective) -> None:
        from kesler.compiled.batch import dual_ascent, dual_softmax

        self._ascend, self._margin = dual_softmax.ascend, objective.margin
        design = cast(PerClassDesign, objective.design)
        n, k, d = design.n_rows, objective.n_classes, design.X.shape[1]
        self._rows = compiled_rows(design.X, dual_ascent)
        squares = np.zeros((n, 4))
        dual_ascent.square_rows(self._rows, d, squares)
        lengths = squares[:, dual_ascent.NORM]
        self._intercept = design.intercept
        # As long as rows are: held to zero about as little as a feature would be.
        self._constant = float(np.sqrt(lengths.mean())) if design.intercept else 0.0
        lengths = lengths + self._constant**2
        counts = objective.counts / float(objective.ridge[0, 0])
        levels = np.full(n, dual_softmax.UNKNOWN)
        self._facts = np.column_stack([counts, lengths, objective.labels, levels])
        self.mean_pace = float((counts * lengths).mean())
        self._moving = np.flatnonzero(counts * lengths > LEAST_PACE)
        width = -(-k // SIMD_WIDTH) * SIMD_WIDTH
        self._weights, self._bias = np.zeros((d, width)), np.zeros(width)
        self._duals = np.eye(k)[objective.labels]
        self._orders = np.random.default_rng(0)

    def visit_all(self) -> float:
        """Visit all rows that move, in a random order; return what that gains."""
        order = self._orders.permutation(self._moving)
        tables = self._weights, self._bias, self._duals
        gain: float = self._ascend(
            self._rows, self._facts, self._margin, self._constant, order, *tables
        )
        return gain

    def found(self) -> Doubles:
        """Return the weights, those of the constant last if there is one."""
        k = self._duals.shape[1]
        constants = self._constant * self._bias[None, :k]
        return np.vstack([self._weights[:, :k], constants[: int(self._intercept)]])

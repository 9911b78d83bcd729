"""Multinomial logistic regression: its objective over a design, Newton's method and dual ascent.

For short rows, a few passes of dual ascent come closer to the optimum than dozens of passes of
Newton's method. Dual ascent regularises the intercept like the other weights; Newton's method,
which follows, solves the problem as given.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol, cast

import numpy as np
import numpy.typing as npt

from kesler.batch.design import Design, PerClassDesign, Preconditioner
from kesler.batch.dual_ascent import SIMD_WIDTH, compiled_rows
from kesler.progress import progress

Floats = npt.NDArray[Any]

MOST_CONJUGATE_STEPS = 250
# Conjugate gradients stop at this share of the first preconditioned residual, or less.
MOST_FORCING = 0.2
# A line search ends where the slope is at most this share of the first one.
FLAT = 0.02
MOST_TRIALS = 60
# Minimum and maximum growth of the step length while the line search extrapolates.
LEAST_WIDER, MOST_WIDER = 2.0, 8.0
# Minimum factor by which the slope at a retained endpoint is reduced in each iteration.
LEAST_LEFT = 0.01


class Slopes(Protocol):
    """The derivative of a smooth function along a direction, at a share of that direction."""

    def slope(self, share: float) -> float:
        """Return the derivative at a share of the direction, cheaply."""


class Line(Slopes, Protocol):
    """A smooth objective along a direction."""

    def at(self, share: float) -> Point:
        """Return the point at a share of the direction."""


class Point(Protocol):
    """A smooth objective at given weights, in float64."""

    @property
    def weights(self) -> Floats:
        """The weights."""

    @property
    def value(self) -> float:
        """The objective."""

    @property
    def gradient(self) -> Floats:
        """The gradient, of the weights' shape."""

    def curvature(self, direction: Floats) -> Floats:
        """Return the Hessian times a direction; both are float32 of the weights' shape."""

    def preconditioner(self) -> Preconditioner:
        """Return an approximate inverse of the Hessian."""

    def along(self, direction: Floats) -> Line:
        """Return the objective along a direction."""


class SmoothObjective(Protocol):
    """A convex function of an array of weights, twice differentiable."""

    def at(self, weights: Floats) -> Point:
        """Return the point at given weights."""


@dataclass(frozen=True)
class SoftmaxObjective:
    r"""The regularised loss of multinomial logistic regression.

    .. math:: \sum_i c_i \ln \sum_k \exp(h_k(x_i) + \mu [k \ne y_i] - h_{y_i}(x_i))
        + \tfrac12 \langle \rho, W^2 \rangle

    Parameters
    ----------
    design : Design
        The map from weights W to scores h.
    labels : int64 array of shape (n_rows,)
        Classes by number.
    counts : float64 array of shape (n_rows,)
        The weight of each row, c.
    n_classes : int
    ridge : float64 array that broadcasts to the weights' shape
        The regularisation of each weight, rho.
    margin : float
        mu: 0 for the logistic loss, 1 for the loss of ShareBoost.
    """

    design: Design
    labels: npt.NDArray[np.int64]
    counts: npt.NDArray[np.float64]
    n_classes: int
    ridge: Floats
    margin: float = 0.0

    def at(self, weights: Floats) -> SoftmaxPoint:
        """Return the point at given weights."""
        return self.at_scores(weights, self.design.forward(weights))

    def at_scores(self, weights: Floats, scores: Floats) -> SoftmaxPoint:
        """Return the point at given weights, with known scores."""
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
    """The objective at given weights."""

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
        """Return the design's preconditioner for the Hessian."""
        return self.objective.design.single.preconditioner(self.curvatures, self.objective.ridge)

    @property
    def curvatures(self) -> npt.NDArray[np.float32]:
        """The second derivatives of the row losses with respect to their scores."""
        p = self.probabilities
        return np.asarray(self.objective.single_counts[:, None] * p * (1 - p))

    def along(self, direction: Floats) -> SoftmaxLine:
        """Return the objective along a direction; takes one pass over the rows in total."""
        return SoftmaxLine(self, direction, self.objective.design.forward(direction))


@dataclass(frozen=True)
class SoftmaxLine:
    """The objective along a direction, computed from the change of the scores."""

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
        """The derivative of the regulariser at the start of the line, and its growth rate."""
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
    """The result of a solver.

    Parameters
    ----------
    weights : float64 array
    value : float
        The objective.
    gradient_norm : float
        The gradient's norm as a share of that at zero weights.
    n_iter : int
    converged : bool
        Whether `gradient_norm` is at most the tolerance.
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
        Maximum number of Newton steps.
    """
    point = objective.at(start)
    scale = _norm(objective.at(np.zeros_like(start)) if start.any() else point)
    n_iter = 0
    with progress("Newton", "steps", max_iter, goal=tol) as task:
        while _norm(point) > tol * scale and n_iter < max_iter:
            direction = newton_direction(point, min(MOST_FORCING, (_norm(point) / scale) ** 0.5))
            line = point.along(direction)
            point = line.at(flat_share(line))
            n_iter += 1
            task.report(n_iter, _norm(point) / scale)
    share = _norm(point) / scale if scale else 0.0
    return Solution(point.weights, point.value, share, n_iter, share <= tol)


def _norm(point: Point) -> float:
    return float(np.linalg.norm(point.gradient))


def newton_direction(point: Point, forcing: float) -> Floats:
    """Return an approximate Newton step, by preconditioned conjugate gradients."""
    precondition = point.preconditioner()
    # Normalised, so that float32 neither overflows nor underflows.
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
    """Return the share of a direction at which the slope of a convex function nearly vanishes.

    The search stops where the slope is at most `flat` times the first one; it tries `share` first.

    Slopes increase along the line. The search extrapolates from the last two slopes until the slope
    is positive, then closes in by the method of Anderson and Bjorck, which soon discounts an
    endpoint whose slope is larger by orders of magnitude. It does not compare values, since their
    differences vanish in rounding near the minimum.
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
    """Return the share at which the slope vanishes by linear extrapolation, within bounds."""
    ahead = share - gone * slope / (slope - before) if slope > before else np.inf
    return float(np.clip(ahead, LEAST_WIDER * share, MOST_WIDER * share))


Doubles = npt.NDArray[np.float64]

MOST_PASSES = 15
# Passes end if one gains more than this share of the gain of the pass before: the rows then
# interact too strongly for coordinate ascent.
SLOW = 0.75
# Passes end if one gains at most this share of the tolerance times the total gain.
SHARE = 0.05
# Rows with a smaller pace c ||x||^2 / rho are skipped; if the mean pace is above the maximum, a
# pass hardly helps.
LEAST_PACE, MOST_PACE = 1e-100, 1e4


def approach(objective: SoftmaxObjective, tol: float, most: int) -> tuple[Doubles, int]:
    """Approximate the optimum by dual ascent; return the weights and the number of passes.

    Parameters
    ----------
    objective : SoftmaxObjective
        Over a `PerClassDesign`.
    tol : float
        The relative accuracy of the objective; see `SHARE`.
    most : int
        Maximum number of passes.
    """
    ascent, gained = _Ascent(objective), 0.0
    if not ascent.mean_pace <= MOST_PACE:
        return ascent.found(), 0
    n_passes, gain, before = 0, np.inf, np.inf
    with progress("dual ascent", "passes", min(most, MOST_PASSES), goal=SHARE * tol) as task:
        while n_passes < min(most, MOST_PASSES) and gain <= SLOW * before:
            n_passes, before, gain = n_passes + 1, gain, ascent.visit_all()
            gained += gain
            if gain <= SHARE * tol * gained:
                break
            task.report(n_passes, gain / gained)
    return ascent.found(), n_passes


class _Ascent:
    """The state of dual ascent: weights, intercepts and dual variables."""

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
        # The root mean square length of the rows, so the intercept is regularised about as little
        # as a feature.
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
        """Visit all rows that move, in a random order; return the gain of the objective."""
        order = self._orders.permutation(self._moving)
        tables = self._weights, self._bias, self._duals
        gain: float = self._ascend(
            self._rows, self._facts, self._margin, self._constant, order, *tables
        )
        return gain

    def found(self) -> Doubles:
        """Return the weights, with the intercepts last if there are any."""
        k = self._duals.shape[1]
        constants = self._constant * self._bias[None, :k]
        return np.vstack([self._weights[:, :k], constants[: int(self._intercept)]])

"""Accelerated proximal steps over columns at hand, in the metric of their Gram matrix.

A step minimises the loss's tangent, a quadratic and the norm together. The quadratic is no multiple
of the squared distance but follows the columns' Gram matrix, each row of which counts as much as
its loss can curve: correlated and badly scaled columns, which products are, then cost nothing more.
What is left to acceleration is how curvature differs from class to class.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from kesler.solvers.mixed_norm_problem import (
    ROUNDING,
    ColumnModel,
    Doubles,
    Loss,
    MixedNormProblem,
)

# A row counts as curved by this much at least; no row of softmax's is curved by more than 1/2.
LEAST_CURVE, MOST_CURVE = 0.02, 0.5
# After so many steps the gap is looked at, and after so many the metric is made anew.
CHECK_EVERY, MEASURE_EVERY = 5, 10
# Sweeps of one step, which end when one moves by so small a share of the last step.
MOST_SWEEPS, SWEEP_SHARE = 50, 1e-3
# Steps grow by this factor while they descend as foreseen.
LONGER = 0.9


@dataclass(frozen=True, eq=False)
class Place:
    """Weights and intercepts with the scores that they give."""

    weights: Doubles
    intercepts: Doubles
    scores: Doubles

    def beyond(self, before: Place, share: float) -> Place:
        """Return the place a share of the way further on that led here from the place before."""
        return Place(
            self.weights + share * (self.weights - before.weights),
            self.intercepts + share * (self.intercepts - before.intercepts),
            self.scores + share * (self.scores - before.scores),
        )


@dataclass(frozen=True, eq=False)
class Metric:
    """How a quadratic that bounds the loss from above measures steps, for each class alike.

    Parameters
    ----------
    gram : float64 array of shape (n_columns, n_columns)
        Of the columns less their means.
    means : float64 array of shape (n_columns,)
        Zeros without intercepts.
    total : float
        The curvature of all rows.
    """

    gram: Doubles
    means: Doubles
    total: float

    def squared(self, step: Doubles, shift: Doubles) -> float:
        """Return the squared length of a step; `shift` is how far it moves the mean score."""
        return float(np.vdot(step, self.gram @ step)) + self.total * float(shift @ shift)


@dataclass(frozen=True, eq=False)
class AcceleratedSearch:
    """Accelerated proximal descent over columns at hand.

    Parameters
    ----------
    problem : MixedNormProblem
    X : float64 array of shape (n_rows, n_columns)
        The columns.
    alpha : float
    """

    problem: MixedNormProblem
    X: Doubles
    alpha: float

    def descend(self, model: ColumnModel, tol: float, most: int) -> tuple[ColumnModel, int]:
        """Return a model whose relative gap over these columns is `tol`, and the steps it took.

        Momentum is dropped where the objective would rise.
        """
        here = before = self._place(model.weights, model.intercepts)
        loss = self.problem.loss_at(here.scores)
        metric, curve, pace, n_steps = self._metric(loss), 1.0, 1.0, 0
        objective = self._objective(loss, here)
        length = tol * objective
        while n_steps < most:
            n_steps += 1
            pace, momentum = _next_pace(pace)
            ahead = here.beyond(before, momentum) if momentum else here
            tangent = self.problem.loss_at(ahead.scores) if momentum else loss
            there, there_loss, curve, length = self._step(ahead, tangent, metric, curve, length)
            risen = self._objective(there_loss, there) > objective
            if risen and momentum:
                before, pace, metric = here, 1.0, self._metric(loss)
                continue
            before, here, loss = here, there, there_loss
            objective = self._objective(loss, here)
            curve *= LONGER
            if n_steps % MEASURE_EVERY == 0:
                metric, curve = self._metric(loss), 1.0
            if n_steps % CHECK_EVERY == 0 and self._relative_gap(here) <= tol:
                break
        return replace(model, weights=here.weights, intercepts=here.intercepts), n_steps

    def _place(self, weights: Doubles, intercepts: Doubles) -> Place:
        return Place(weights, intercepts, self.X @ weights + intercepts)

    def _objective(self, loss: Loss, place: Place) -> float:
        return loss.value + self.alpha * self.problem.norm.of(place.weights)

    def _relative_gap(self, place: Place) -> float:
        _, loss = self.problem.best_intercepts(place.scores)
        sizes = self.problem.norm.dual_sizes(self.X.T @ loss.coefficients)
        primal, dual = self.problem.objectives(loss, place.weights, sizes, self.alpha)
        return (primal - dual) / primal

    def _metric(self, loss: Loss) -> Metric:
        """Return the Gram matrix of the columns, rows counted by how much their loss curves."""
        p = loss.probabilities
        curves = np.clip(2 * (p * (1 - p)).max(axis=1), LEAST_CURVE, MOST_CURVE)
        counts = self.problem.counts * curves
        total = float(counts.sum())
        means = counts @ self.X / total if self.problem.intercept else np.zeros(self.X.shape[1])
        gram = self.X.T @ (counts[:, None] * self.X) - total * np.outer(means, means)
        return Metric(gram, means, total)

    def _step(
        self, ahead: Place, tangent: Loss, metric: Metric, curve: float, length: float
    ) -> tuple[Place, Loss, float, float]:
        """Return where a proximal step leads, the loss there, its curvature and squared length.

        The curvature doubles until the quadratic lies above the loss, as it must once it is that
        of rows which all curve as much as any can.
        """
        gradient = self.X.T @ tangent.coefficients
        slope = tangent.coefficients.sum(axis=0)
        centred = gradient - np.outer(metric.means, slope)
        while True:
            weights = self._prox(ahead.weights, centred, metric, curve, length)
            step = weights - ahead.weights
            shift = -slope / (curve * metric.total) if self.problem.intercept else 0 * slope
            there = self._place(weights, ahead.intercepts + shift - metric.means @ step)
            loss = self.problem.loss_at(there.scores)
            squared = metric.squared(step, shift)
            foreseen = np.vdot(centred, step) + slope @ shift + curve / 2 * squared
            room = ROUNDING * abs(tangent.value)
            if loss.value - tangent.value <= foreseen + room or curve * LEAST_CURVE > 1:
                return there, loss, curve, squared
            curve *= 2

    def _prox(
        self, origin: Doubles, gradient: Doubles, metric: Metric, curve: float, length: float
    ) -> Doubles:
        """Minimise tangent, quadratic and norm together, nearly."""
        from kesler.compiled.mixed_norm import descend

        weights, euclidean = origin.copy(), self.problem.norm.euclidean
        enough = SWEEP_SHARE * length
        cap = self.alpha / curve
        descend(metric.gram, weights, gradient / curve, cap, euclidean, enough, MOST_SWEEPS)
        return weights


def _next_pace(pace: float) -> tuple[float, float]:
    """Return Nesterov's next number and the momentum that it makes."""
    following = (1 + (1 + 4 * pace * pace) ** 0.5) / 2
    return following, (pace - 1) / following

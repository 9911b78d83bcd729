"""The solver of softmax with a mixed norm, over a working set of columns.

A proximal step minimises the sum of the loss's linearisation, a quadratic and the norm. The
quadratic is the columns' Gram matrix instead of a multiple of the identity, with rows weighted by
the curvature of their losses, so that correlated and badly scaled columns, such as products, do not
slow down the solver. Acceleration handles the differences in curvature between classes.

The solver optimises over a set of columns, then adds the columns whose gradients are too large,
until the duality gap over all columns is small.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from kesler.baselines.mixed_norm_problem import (
    ROUNDING,
    ColumnModel,
    Doubles,
    Indices,
    Loss,
    MixedNormProblem,
)
from kesler.batch.dual_ascent import DualSolution
from kesler.progress import Task, progress

# Bounds on the curvature of a row; 1/2 is the maximum for softmax.
LEAST_CURVE, MOST_CURVE = 0.02, 0.5
# Number of steps between computations of the gap, and of the preconditioner.
CHECK_EVERY, MEASURE_EVERY = 5, 10
# Maximum number of sweeps per step, and the change, as a share of the last step, at which they end.
MOST_SWEEPS, SWEEP_SHARE = 50, 1e-3
# The factor of the curvature estimate after each step that descends as predicted.
LONGER = 0.9


@dataclass(frozen=True, eq=False)
class Place:
    """Weights and intercepts with their scores."""

    weights: Doubles
    intercepts: Doubles
    scores: Doubles

    def beyond(self, before: Place, share: float) -> Place:
        """Return the extrapolation of the step from `before` to here by a share."""
        return Place(
            self.weights + share * (self.weights - before.weights),
            self.intercepts + share * (self.intercepts - before.intercepts),
            self.scores + share * (self.scores - before.scores),
        )


@dataclass(frozen=True, eq=False)
class Preconditioner:
    """The metric of proximal steps, from a quadratic bound of the loss; the same for all classes.

    Parameters
    ----------
    gram : float64 array of shape (n_columns, n_columns)
        The weighted Gram matrix of the centred columns.
    means : float64 array of shape (n_columns,)
        The means of the columns; zeros without intercepts.
    total : float
        The total curvature of all rows.
    """

    gram: Doubles
    means: Doubles
    total: float

    def squared(self, step: Doubles, shift: Doubles) -> float:
        """Return the squared length of a step that changes the mean scores by `shift`."""
        return float(np.vdot(step, self.gram @ step)) + self.total * float(shift @ shift)


@dataclass(frozen=True, eq=False)
class AcceleratedSearch:
    """Accelerated proximal descent over a set of columns.

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
        """Return a model whose relative gap over these columns is `tol`, and the number of steps.

        Momentum is reset if the objective would rise.
        """
        here = before = self._place(model.weights, model.intercepts)
        loss = self.problem.loss_at(here.scores)
        preconditioner, curve, pace, n_steps = self._preconditioner(loss), 1.0, 1.0, 0
        objective = self._objective(loss, here)
        length = tol * objective
        while n_steps < most:
            n_steps += 1
            pace, momentum = _next_pace(pace)
            ahead = here.beyond(before, momentum) if momentum else here
            tangent = self.problem.loss_at(ahead.scores) if momentum else loss
            there, there_loss, curve, length = self._step(
                ahead, tangent, preconditioner, curve, length
            )
            risen = self._objective(there_loss, there) > objective
            if risen and momentum:
                before, pace, preconditioner = here, 1.0, self._preconditioner(loss)
                continue
            before, here, loss = here, there, there_loss
            objective = self._objective(loss, here)
            curve *= LONGER
            if n_steps % MEASURE_EVERY == 0:
                preconditioner, curve = self._preconditioner(loss), 1.0
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

    def _preconditioner(self, loss: Loss) -> Preconditioner:
        """Return the Gram matrix of the columns, with rows weighted by their curvature."""
        p = loss.probabilities
        curves = np.clip(2 * (p * (1 - p)).max(axis=1), LEAST_CURVE, MOST_CURVE)
        counts = self.problem.counts * curves
        total = float(counts.sum())
        means = counts @ self.X / total if self.problem.intercept else np.zeros(self.X.shape[1])
        gram = self.X.T @ (counts[:, None] * self.X) - total * np.outer(means, means)
        return Preconditioner(gram, means, total)

    def _step(
        self,
        ahead: Place,
        tangent: Loss,
        preconditioner: Preconditioner,
        curve: float,
        length: float,
    ) -> tuple[Place, Loss, float, float]:
        """Return the result of a proximal step with its loss, curvature and squared length.

        The curvature is doubled until the quadratic bounds the loss, which it must when the
        curvature of all rows is the maximum.
        """
        gradient = self.X.T @ tangent.coefficients
        slope = tangent.coefficients.sum(axis=0)
        centred = gradient - np.outer(preconditioner.means, slope)
        while True:
            weights = self._prox(ahead.weights, centred, preconditioner, curve, length)
            step = weights - ahead.weights
            shift = -slope / (curve * preconditioner.total) if self.problem.intercept else 0 * slope
            there = self._place(weights, ahead.intercepts + shift - preconditioner.means @ step)
            loss = self.problem.loss_at(there.scores)
            squared = preconditioner.squared(step, shift)
            predicted = np.vdot(centred, step) + slope @ shift + curve / 2 * squared
            slack = ROUNDING * abs(tangent.value)
            if loss.value - tangent.value <= predicted + slack or curve * LEAST_CURVE > 1:
                return there, loss, curve, squared
            curve *= 2

    def _prox(
        self,
        origin: Doubles,
        gradient: Doubles,
        preconditioner: Preconditioner,
        curve: float,
        length: float,
    ) -> Doubles:
        """Minimise the sum of linearisation, quadratic and norm approximately."""
        from kesler.compiled.batch.mixed_norm import descend

        weights, norm = origin.copy(), int(self.problem.norm.of_feature)
        enough = SWEEP_SHARE * length
        cap = self.alpha / curve
        descend(preconditioner.gram, weights, gradient / curve, cap, norm, enough, MOST_SWEEPS)
        return weights


def _next_pace(pace: float) -> tuple[float, float]:
    """Return Nesterov's next number and the resulting momentum."""
    following = (1 + (1 + 4 * pace * pace) ** 0.5) / 2
    return following, (pace - 1) / following


# Sweeps of a step end when one changes the weights by this share of the first, or after this number
# of sweeps or of multiplications, whichever is less.
JOINT_SHARE, MOST_JOINT_SWEEPS, MOST_PRODUCTS = 1e-12, 10_000, 1e9
# The ridge added to the quadratic, as a share of its mean curvature, and the share of the predicted
# decrease that a step must achieve.
RIDGE, ENOUGH = 1e-9, 1e-3


@dataclass(frozen=True, eq=False)
class NewtonSearch:
    """Proximal Newton steps over a set of columns, with the interactions between classes.

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
        """Return a model with relative gap `tol` over these columns, and the number of steps."""
        problem, weights, intercepts = self.problem, model.weights, model.intercepts
        n_steps = 0
        while True:
            scores = self.X @ weights + intercepts
            added, loss = problem.best_intercepts(scores)
            intercepts = intercepts + added
            gradient = self.X.T @ loss.coefficients
            sizes = problem.norm.dual_sizes(gradient)
            primal, dual = problem.objectives(loss, weights, sizes, self.alpha)
            if primal - dual <= tol * primal or n_steps == most:
                break
            n_steps += 1
            step, shift = self._direction(weights, gradient, loss)
            share = self._share(scores + added, weights, gradient, loss, step, shift)
            weights, intercepts = weights + share * step, intercepts + share * shift
        return replace(model, weights=weights, intercepts=intercepts), n_steps

    def _share(
        self,
        scores: Doubles,
        weights: Doubles,
        gradient: Doubles,
        loss: Loss,
        step: Doubles,
        shift: Doubles,
    ) -> float:
        """Return the share of a step that decreases the objective sufficiently."""
        norm, change = self.problem.norm, self.X @ step + shift
        here = norm.of(weights)
        predicted = np.vdot(gradient, step) + self.alpha * (norm.of(weights + step) - here)
        share, slack = 1.0, ROUNDING * loss.value
        while share > ROUNDING:
            there = self.problem.loss_at(scores + share * change).value
            increase = there - loss.value + self.alpha * (norm.of(weights + share * step) - here)
            if increase <= ENOUGH * share * predicted + slack:
                break
            share /= 2
        return share

    def _direction(
        self, weights: Doubles, gradient: Doubles, loss: Loss
    ) -> tuple[Doubles, Doubles]:
        """Return the steps of weights and intercepts that minimise quadratic plus norm."""
        from kesler.compiled.batch.mixed_norm import descend_jointly

        (n, k), hessian = weights.shape, self._hessian(loss)
        own, mixed = hessian[: n * k, : n * k], hessian[: n * k, n * k :]
        follows = np.zeros((k, n * k))
        if self.problem.intercept:
            follows = np.linalg.solve(hessian[n * k :, n * k :] + 1 / k, -mixed.T)
            own = own + mixed @ follows
        own = np.ascontiguousarray(own) + RIDGE * np.trace(own) / (n * k) * np.eye(n * k)
        blocks = own.reshape(n, k, n, k)[np.arange(n), :, np.arange(n)]
        curvatures = np.linalg.eigvalsh(blocks)[:, -1].copy()
        there, slopes = weights.copy(), gradient.copy()
        penalty = self.alpha, int(self.problem.norm.of_feature)
        most = int(min(MOST_JOINT_SWEEPS, max(100, MOST_PRODUCTS / (n * k) ** 2)))
        descend_jointly(own, curvatures, there, slopes, *penalty, JOINT_SHARE, most)
        step = there - weights
        return step, follows @ step.ravel()

    def _hessian(self, loss: Loss) -> Doubles:
        """Return the loss's Hessian; columns precede intercepts, each with all its classes."""
        counts, k = self.problem.counts, self.problem.n_classes
        columns = np.column_stack([self.X, np.ones(len(self.X))])
        wrong = loss.coefficients / counts[:, None]
        own = np.arange(len(counts)), self.problem.labels
        p, rest = wrong.copy(), 1 - wrong
        p[own], rest[own] = 1 + wrong[own], -wrong[own]
        hessian = np.empty((columns.shape[1], k, columns.shape[1], k))
        for r in range(k):
            for s in range(r + 1):
                curvature = counts * p[:, r] * (rest[:, r] if r == s else -p[:, s])
                block = columns.T @ (curvature[:, None] * columns)
                hessian[:, r, :, s] = hessian[:, s, :, r] = block
        size = columns.shape[1] * k
        return hessian.reshape(size, size)


# The initial maximum size of the set of columns, and the maximum number of columns added per round,
# as a multiple of the set.
FEWEST, MOST_GROWTH = 10, 2
# Columns are added if their gradient is above this share of alpha.
NEAR = 0.9
# A round reduces the gap over its columns to this share of the gap over all columns.
ROUND_SHARE = 0.1
# Newton steps follow after this number of steps, if there are at most this number of weights.
FIRST_STEPS, MOST_NEWTON_WEIGHTS = 60, 1500


@dataclass(frozen=True, eq=False)
class Optimum(DualSolution):
    """A model with its loss and objectives.

    Parameters
    ----------
    model : ColumnModel
    loss : float
    """

    model: ColumnModel
    loss: float


def solve(
    problem: MixedNormProblem, alpha: float, start: ColumnModel, tol: float, max_iter: int
) -> Optimum:
    """Minimise the loss plus a mixed norm to a relative duality gap.

    Parameters
    ----------
    problem : MixedNormProblem
    alpha : float above 0
    start : ColumnModel
        The initial model.
    tol : float
        The duality gap, relative to the primal objective, at which to stop.
    max_iter : int
        Maximum number of proximal steps.
    """
    with progress("mixed norm", "steps", max_iter, goal=tol) as task:
        return _solve(problem, alpha, start, tol, max_iter, task)


def _solve(
    problem: MixedNormProblem,
    alpha: float,
    start: ColumnModel,
    tol: float,
    max_iter: int,
    task: Task,
) -> Optimum:
    model, n_steps = start, 0
    while True:
        chosen = problem.columns.take(model.columns)
        added, loss = problem.best_intercepts(chosen @ model.weights + model.intercepts)
        model = replace(model, intercepts=model.intercepts + added)
        sizes = problem.columns.dual_sizes(loss.coefficients, problem.norm)
        primal, dual = problem.objectives(loss, model.weights, sizes, alpha)
        found = Optimum(primal, dual, n_steps, primal - dual <= tol * primal, model, loss.value)
        if found.converged or n_steps >= max_iter:
            return found
        task.report(n_steps, found.relative_gap)
        model = model.widened(_joining(sizes, model.columns, alpha))
        enough = max(tol / 2, ROUND_SHARE * found.relative_gap)
        model, n_more = _settle(problem, alpha, model, enough, max_iter - n_steps)
        n_steps += n_more


def _settle(
    problem: MixedNormProblem, alpha: float, model: ColumnModel, tol: float, most: int
) -> tuple[ColumnModel, int]:
    """Return a model whose relative gap over its columns is `tol`, and the number of steps.

    If many proximal steps are not enough, curvatures differ much between classes; Newton steps,
    which take this into account, follow if the problem is small enough.
    """
    columns = problem.columns.take(model.columns)
    found, n_steps = AcceleratedSearch(problem, columns, alpha).descend(
        model, tol, min(most, FIRST_STEPS)
    )
    model = found.pruned()
    n_weights = (len(model.columns) + 1) * problem.n_classes
    if n_steps < FIRST_STEPS or n_steps == most or n_weights > MOST_NEWTON_WEIGHTS:
        return model, n_steps
    newton = NewtonSearch(problem, problem.columns.take(model.columns), alpha)
    found, n_more = newton.descend(model, tol, most - n_steps)
    return found.pruned(), n_steps + n_more


def _joining(sizes: Doubles, present: Indices, alpha: float) -> Indices:
    """Return the columns to add: those with the largest gradients that may need a weight."""
    sizes = sizes.copy()
    sizes[present] = 0
    most = min(len(sizes), max(FEWEST, MOST_GROWTH * len(present)))
    largest = np.argpartition(sizes, len(sizes) - most)[len(sizes) - most :]
    return largest[sizes[largest] > NEAR * alpha].astype(np.int64)

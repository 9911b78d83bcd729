"""Proximal Newton steps over columns at hand, where classes differ much in curvature."""

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

# Sweeps of a step: they end when one moves by so small a share of the first, or after so many, or
# after so many multiplications if those are less.
JOINT_SHARE, MOST_JOINT_SWEEPS, MOST_PRODUCTS = 1e-12, 10_000, 1e9
# What is added to the quadratic, as a share of its mean curvature, and the share of what it
# foresees that must come true.
RIDGE, ENOUGH = 1e-9, 1e-3


@dataclass(frozen=True, eq=False)
class NewtonSearch:
    """Proximal Newton steps over columns at hand, which know how classes pull on one another.

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
        """Return a model whose relative gap over these columns is `tol`, and the steps it took."""
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
        """Return the share of a step that lowers the objective nearly as foreseen."""
        norm, change = self.problem.norm, self.X @ step + shift
        here = norm.of(weights)
        foreseen = np.vdot(gradient, step) + self.alpha * (norm.of(weights + step) - here)
        share, room = 1.0, ROUNDING * loss.value
        while share > ROUNDING:
            there = self.problem.loss_at(scores + share * change).value
            grown = there - loss.value + self.alpha * (norm.of(weights + share * step) - here)
            if grown <= ENOUGH * share * foreseen + room:
                break
            share /= 2
        return share

    def _direction(
        self, weights: Doubles, gradient: Doubles, loss: Loss
    ) -> tuple[Doubles, Doubles]:
        """Return where weights and intercepts go to minimise quadratic and norm together."""
        from kesler.compiled.mixed_norm import descend_jointly

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
        told = self.alpha, self.problem.norm.euclidean
        most = int(min(MOST_JOINT_SWEEPS, max(100, MOST_PRODUCTS / (n * k) ** 2)))
        descend_jointly(own, curvatures, there, slopes, *told, JOINT_SHARE, most)
        step = there - weights
        return step, follows @ step.ravel()

    def _hessian(self, loss: Loss) -> Doubles:
        """Return the loss's second derivatives, intercepts last; classes of a column in a row."""
        counts, k = self.problem.counts, self.problem.n_classes
        columns = np.column_stack([self.X, np.ones(len(self.X))])
        wrong = loss.coefficients / counts[:, None]
        own = np.arange(len(counts)), self.problem.labels
        p, rest = wrong.copy(), 1 - wrong
        p[own], rest[own] = 1 + wrong[own], -wrong[own]
        hessian = np.empty((columns.shape[1], k, columns.shape[1], k))
        for r in range(k):
            for s in range(r + 1):
                bend = counts * p[:, r] * (rest[:, r] if r == s else -p[:, s])
                block = columns.T @ (bend[:, None] * columns)
                hessian[:, r, :, s] = hessian[:, s, :, r] = block
        size = columns.shape[1] * k
        return hessian.reshape(size, size)

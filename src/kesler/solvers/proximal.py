"""Softmax under a mixed norm, solved over the few columns that matter.

The solver works on a set of columns, which it solves for and then widens by those whose gradient
is too large, until the duality gap over all columns is small.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from kesler.solvers.accelerated import AcceleratedSearch
from kesler.solvers.columns import Indices
from kesler.solvers.mixed_norm_problem import ColumnModel, Doubles, MixedNormProblem
from kesler.solvers.proximal_newton import NewtonSearch
from kesler.solvers.solution import DualSolution

# The set of columns begins with so many, and may triple from one round to the next.
FEWEST, MOST_GROWTH = 10, 2
# Columns join whose gradient is at least this share of what it may be.
NEAR = 0.9
# A round closes the gap over its columns to this share of that over all.
ROUND_SHARE = 0.1
# After so many steps Newton's take over, if there are no more weights than these.
FIRST_STEPS, MOST_NEWTON_WEIGHTS = 60, 1500


@dataclass(frozen=True, eq=False)
class Optimum(DualSolution):
    """A model, its loss, and how far its objective is from the least there is.

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
    """Minimise the loss under a mixed norm to a relative duality gap.

    Parameters
    ----------
    problem : MixedNormProblem
    alpha : float above 0
    start : ColumnModel
        Where to begin.
    tol : float
        The duality gap over the primal objective at which to stop.
    max_iter : int
        The most proximal steps.
    """
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
        model = model.widened(_joining(sizes, model.columns, alpha))
        enough = max(tol / 2, ROUND_SHARE * found.relative_gap)
        model, n_more = _settle(problem, alpha, model, enough, max_iter - n_steps)
        n_steps += n_more


def _settle(
    problem: MixedNormProblem, alpha: float, model: ColumnModel, tol: float, most: int
) -> tuple[ColumnModel, int]:
    """Return a model whose relative gap over its columns is `tol`, and how many steps it took.

    Where many steps have not led there, classes differ much in how their losses curve; Newton's
    quadratic knows, if it is not too large.
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
    """Return the columns of largest gradients that may need a weight and are not there yet."""
    sizes = sizes.copy()
    sizes[present] = 0
    most = min(len(sizes), max(FEWEST, MOST_GROWTH * len(present)))
    largest = np.argpartition(sizes, len(sizes) - most)[len(sizes) - most :]
    return largest[sizes[largest] > NEAR * alpha].astype(np.int64)

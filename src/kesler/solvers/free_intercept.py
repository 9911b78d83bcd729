"""Dual ascent with an intercept that is not regularised: proximal steps, certified by a repair.

A step holds the intercept near where the last one left it,

    min_{W, b} 1/2 ||W||^2 + 1/2 ||b - centre||^2 / s^2 + sum_i C_i max_r [cost(y_i, r)
        + <w_r - w_y, x_i> + b_r - b_y]

which is the regularised problem with one more feature, s in each row, and costs that the centre
has moved. Of dual variables the free intercept asks in addition that no class gains mass,
sum_i (C_i e_y - u_i) = 0. Those of a step nearly do; the little that is too much is moved between
classes in the rows where that costs least, and what then is their dual objective bounds the
optimum.

Rockafellar (1976), "Monotone operators and the proximal point algorithm".
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from kesler.solvers.dual_ascent import Optimum, Order, SlackProblem, solve
from kesler.solvers.solution import is_small

Doubles = npt.NDArray[np.float64]

# The first steps are solved to this gap, each next one to SHARPER of it, down to FINEST of the gap
# that is wanted in the end; below that only where the gap has not fallen to HALF.
COARSE, SHARPER, FINEST, HALF = 0.03, 0.3, 0.5, 0.5


@dataclass(frozen=True, eq=False)
class FreeOptimum(Optimum):
    """What is reported: an :class:`Optimum` and the intercept, of sum 0, that goes with it.

    Parameters
    ----------
    intercept : float64 array of shape (n_classes,)
    """

    intercept: Doubles


def solve_with_free_intercept(
    problem: SlackProblem,
    *,
    tol: float,
    max_iter: int,
    order: Order,
    random_state: np.random.RandomState,
    duals: Doubles | None = None,
    centre: Doubles | None = None,
) -> FreeOptimum:
    """Solve the problem with an intercept added to the scores, to a relative gap of `tol`.

    Parameters
    ----------
    problem : what is to be solved, rows without a constant.
    tol, max_iter, order, random_state, duals : as :func:`~kesler.solvers.dual_ascent.solve` has
        them; visits of all steps count.
    centre : the intercept to begin with; None is 0.
    """
    scale = _typical_length(problem.X)
    widened = replace(problem, X=with_constant(problem.X, scale))
    middle = np.zeros(problem.n_classes) if centre is None else centre - centre.mean()
    inner, best, n_passes, gap = max(COARSE, FINEST * tol), None, 0.0, np.inf
    while best is None or not (best.converged or n_passes >= max_iter):
        found = solve(
            replace(widened, costs=problem.costs + middle - middle[:, None]),
            tol=inner,
            max_iter=max(1, int(max_iter - n_passes)),
            order=order,
            random_state=random_state,
            duals=duals,
        )
        n_passes += found.n_passes
        middle = middle + scale * found.weights[:, -1]
        middle -= middle.mean()
        duals = found.duals
        best = _better(best, problem, found.weights[:, :-1], middle, duals, n_passes, tol)
        last, gap = gap, best.objective - best.dual_objective
        if inner > FINEST * tol:
            inner = max(SHARPER * inner, FINEST * tol)
        elif gap > HALF * last:
            inner *= HALF
    return best


def with_constant(X: Any, value: float) -> Any:
    """Return rows with one more feature, of the same value in each."""
    column: Any = np.full((X.shape[0], 1), value, dtype=X.dtype)
    if sparse.issparse(X):
        join: Any = sparse.hstack
        return join([X, sparse.csr_array(column)], format="csr")
    return np.hstack([X, column])


def _typical_length(X: Any) -> float:
    """Return the root mean square of the rows' lengths, 1 if all are 0: steps as wide as theirs."""
    rows: Any = X
    squares = rows.multiply(rows) if sparse.issparse(X) else np.square(rows)
    return float(np.sqrt(squares.sum(dtype=np.float64) / rows.shape[0])) or 1.0


def _better(
    best: FreeOptimum | None,
    problem: SlackProblem,
    weights: Doubles,
    intercept: Doubles,
    duals: Doubles,
    n_passes: float,
    tol: float,
) -> FreeOptimum:
    """Return the lower of two primal objectives and the higher of two dual ones, and where."""
    scores = problem.X @ weights.T + intercept
    objective = _objective(problem, weights, scores)
    repaired = balanced(problem, duals, scores)
    dual = _dual_objective(problem, repaired)
    if best is not None and best.objective < objective:
        objective, weights, intercept = best.objective, best.weights, best.intercept
    if best is not None and best.dual_objective > dual:
        dual, repaired = best.dual_objective, best.duals
    converged = is_small(objective - dual, objective, tol)
    return FreeOptimum(objective, dual, n_passes, converged, weights, repaired, intercept)


def _objective(problem: SlackProblem, weights: Doubles, scores: Doubles) -> float:
    own = scores[np.arange(len(scores)), problem.y]
    losses = (problem.costs[problem.y] + scores).max(axis=1) - own
    return 0.5 * float(np.square(weights).sum()) + float(problem.bounds @ losses)


def _dual_objective(problem: SlackProblem, duals: Doubles) -> float:
    weights = problem.X.T @ (problem.idle() - duals)
    costs = float((duals * problem.costs[problem.y]).sum())
    return costs - 0.5 * float(np.square(weights).sum())


def balanced(problem: SlackProblem, duals: Doubles, scores: Doubles) -> Doubles:
    """Return dual variables by which no class gains mass, near those given.

    From the class with most mass too much to that with most too little, in the rows whose margins,
    at these scores, differ least in favour of the former.
    """
    moved, margins = duals.copy(), scores + problem.costs[problem.y]
    excess = moved.sum(axis=0) - np.bincount(problem.y, problem.bounds, problem.n_classes)
    for _ in range(problem.n_classes - 1):
        giver, taker = int(excess.argmax()), int(excess.argmin())
        amount = min(excess[giver], -excess[taker])
        if amount <= 0:
            break
        rows = np.flatnonzero(moved[:, giver] > 0)
        rows = rows[np.argsort(margins[rows, giver] - margins[rows, taker], kind="stable")]
        before = np.cumsum(moved[rows, giver]) - moved[rows, giver]
        parts = np.clip(amount - before, 0.0, moved[rows, giver])
        moved[rows, giver] -= parts
        moved[rows, taker] += parts
        excess[giver] -= amount
        excess[taker] += amount
    return moved

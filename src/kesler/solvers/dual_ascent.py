"""Dual coordinate ascent: one slack a row, one hypothesis a class, solved to a duality gap."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from scipy import sparse

from kesler.errors import KeslerError
from kesler.solvers.solution import DualSolution, is_small

Order = Literal["random", "cyclic"]
Doubles = npt.NDArray[np.float64]

# Dense rows with fewer non-zeros than this are walked as sparse ones: an entry costs twice as much.
SPARSE_BELOW = 0.5
# A squared length that cannot be told from 0: such a row moves nothing.
LEAST_NORM = 1e-100
# A row is active, and moves when it is visited, while its share in the gap is above this part of
# the mean share: what is left out is nearly nothing.
WORTHWHILE = 3e-4
# Active rows are visited, so many times at most, until their shares have fallen to LOW of what they
# were, or to ENOUGH of what is wanted; then all rows are looked at again.
LOW, ENOUGH, MOST_PASSES = 0.2, 0.3, 20
# A pass over all rows that leaves their shares below so many times the gap wanted is followed by
# a look at the gap itself: shares are taken before each row moves, and overstate it.
NEAR = 1.5
# So is one by which the dual rises by no more than this part of the gap wanted.
STALLED = 0.5
# The weights reported are stretched, by so many times the tolerance, to where the objective is
# least: where nearly all rows can be had without a loss, little losses of many are what remains.
STRETCHES = np.array([-1.0, 0.0, 0.5, 1.0, 2.0, 4.0])
# Columns of the weights come in whole vectors.
LANES = 4


@dataclass(frozen=True, eq=False)
class SlackProblem:
    """What is to be solved: min 1/2 ||W||^2 + sum_i C_i max_r [cost(y_i, r) + <w_r - w_y, x_i>].

    Parameters
    ----------
    X : CSR array or array of shape (n_rows, n_features), float32 or float64
    y : int64 array of shape (n_rows,), numbers of classes
    bounds : float64 array of shape (n_rows,), the C_i, 0 or more
    costs : float64 array of shape (n_classes, n_classes), 0 on its diagonal
    """

    X: Any
    y: npt.NDArray[np.int64]
    bounds: Doubles
    costs: Doubles

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.costs)

    def idle(self) -> Doubles:
        """Return the dual variables of weights that are all 0."""
        duals = np.zeros((len(self.y), self.n_classes))
        duals[np.arange(len(self.y)), self.y] = self.bounds
        return duals


@dataclass(frozen=True, eq=False)
class Optimum(DualSolution):
    """What the solver reports.

    Parameters
    ----------
    weights : float64 array of shape (n_classes, n_features)
    duals : float64 array of shape (n_rows, n_classes), each row 0 or more and of sum C_i
    """

    weights: Doubles
    duals: Doubles


def solve(
    problem: SlackProblem,
    *,
    tol: float,
    max_iter: int,
    order: Order,
    random_state: np.random.RandomState,
    duals: Doubles | None = None,
) -> Optimum:
    """Climb the dual until the relative gap is `tol`, or each row was visited `max_iter` times.

    Parameters
    ----------
    problem : what is to be solved.
    tol, max_iter : when to stop.
    order : how the rows of a pass are ordered.
    random_state : where random orders come from.
    duals : where to begin, rows of 0 or more and of sum C_i; None begins with weights 0.
    """
    shuffle = random_state.permutation if order == "random" else np.sort
    ascent = _Ascent(problem, problem.idle() if duals is None else duals, shuffle)
    return ascent.climb(tol, max_iter)


class _Ascent:
    """The state of a climb: weights, dual variables, and each row's share in the gap."""

    def __init__(
        self,
        problem: SlackProblem,
        duals: Doubles,
        shuffle: Callable[[npt.NDArray[np.int64]], npt.NDArray[np.int64]],
    ) -> None:
        from kesler.compiled import dual_ascent as compiled

        self._compiled, self._problem, self._shuffle = compiled, problem, shuffle
        self._n, k = len(problem.y), problem.n_classes
        n_features, width = problem.X.shape[1], -(-k // LANES) * LANES
        self._rows = compiled_rows(problem.X, compiled)
        zeros = np.zeros(self._n)
        self._facts = np.column_stack([problem.bounds, zeros, problem.y, zeros])
        self._gaps = self._facts[:, compiled.GAP]
        compiled.square_rows(self._rows, n_features, self._facts)
        self._costs = np.full((k, width), compiled.FORBIDDEN)
        self._costs[:, :k] = problem.costs
        self._duals = np.zeros((self._n, width))
        self._duals[:, :k] = duals
        self._settle(_without_length(self._facts[:, compiled.NORM]))
        self._weights = np.zeros((n_features, width))
        moved = problem.idle() - self._duals[:, :k]
        if moved.any():
            self._weights[:, :k] = problem.X.T @ moved
        self._visited = np.flatnonzero(problem.bounds > 0)
        self._n_visits = 0
        self._dual = self._measure_dual()
        self._begin_mean()

    def climb(self, tol: float, max_iter: int) -> Optimum:
        """Alternate between passes over all rows and over those that are worth it.

        What is known of the gap, `share`, is the sum of the rows' shares at different times: it
        says where to go on, and `_look` whether to stop.
        """
        share, most = self._largest_loss(), max_iter * self._n
        while self._n_visits < most:
            before = self._dual
            share = min(share, self._visit(self._visited, share))
            wanted = tol * abs(self._dual + share)
            if share <= NEAR * wanted or self._dual - before <= STALLED * wanted:
                optimum = self._look(tol)
                if optimum.converged:
                    return optimum
            self._begin_mean()
            self._visit_active(share, wanted, most)
        return self._look(tol)

    def _largest_loss(self) -> float:
        """Return the sum of the losses of weights that are all 0."""
        largest = self._problem.costs.max(axis=1)[self._problem.y]
        return float(self._problem.bounds @ largest)

    def _visit_active(self, share: float, wanted: float, most: int) -> None:
        """Visit the rows that hold most of the gap until little of it is left."""
        active = self._worthwhile(self._visited, share / self._n)
        goal = max(LOW * share, ENOUGH * wanted)
        for _ in range(MOST_PASSES):
            if not len(active) or self._n_visits >= most:
                return
            left = self._visit(active, share)
            if left <= goal:
                return
            active = self._worthwhile(active, left / len(active))

    def _worthwhile(self, rows: npt.NDArray[np.int64], mean: float) -> npt.NDArray[np.int64]:
        return rows[self._gaps[rows] > WORTHWHILE * mean]

    def _visit(self, rows: npt.NDArray[np.int64], share: float) -> float:
        """Visit rows once, and return the sum of their shares before each moved."""
        least = WORTHWHILE * max(share, 0.0) / self._n
        self._dual += self._compiled.ascend(
            self._rows,
            self._facts,
            self._costs,
            self._shuffle(rows),
            least,
            self._weights,
            self._duals,
        )
        self._n_visits += len(rows)
        self._sum += self._weights
        self._n_summed += 1
        return float(self._gaps[rows].sum())

    def _begin_mean(self) -> None:
        """Begin a new mean of the weights after each pass.

        Its primal objective is lower than that of the last weights, which rows that contradict each
        other pull to and fro.
        """
        self._sum, self._n_summed = np.zeros_like(self._weights), 0

    def _look(self, tol: float) -> Optimum:
        """Measure the objectives, the primal one at multiples of the mean of the weights."""
        mean, scales = self._sum / max(self._n_summed, 1), 1 + tol * STRETCHES
        losses = np.zeros(len(scales))
        self._compiled.add_losses(self._rows, self._facts, self._costs, mean, scales, losses)
        objectives = scales**2 * self._compiled.regulariser(mean) + losses
        best = int(objectives.argmin())
        objective = float(objectives[best])
        self._dual = self._measure_dual()
        k = self._problem.n_classes
        return Optimum(
            objective,
            self._dual,
            self._n_visits / self._n,
            is_small(objective - self._dual, objective, tol),
            scales[best] * mean[:, :k].T,
            self._duals[:, :k],
        )

    def _measure_dual(self) -> float:
        costs = self._compiled.sum_costs(self._facts, self._costs, self._duals)
        return float(costs - self._compiled.regulariser(self._weights))

    def _settle(self, rows: npt.NDArray[np.int64]) -> None:
        """Give rows that move nothing their best dual variables: all on the dearest class."""
        self._duals[rows] = 0.0
        dearest = self._problem.costs.argmax(axis=1)
        self._duals[rows, dearest[self._problem.y[rows]]] = self._problem.bounds[rows]


def _without_length(norms: Doubles) -> npt.NDArray[np.int64]:
    """Return the rows of length 0, of their squared lengths."""
    if not np.isfinite(norms).all():
        row = int(np.flatnonzero(~np.isfinite(norms))[0])
        raise KeslerError(
            f"row {row} is too long for its squared length to be a float64: scale the features"
        )
    return np.flatnonzero(norms < LEAST_NORM)


def compiled_rows(X: Any, compiled: Any) -> Any:
    """Return rows as the kernels walk them: what is mostly zeros without its zeros."""
    if not sparse.issparse(X) and np.count_nonzero(X) >= SPARSE_BELOW * X.size:
        return compiled.DenseRows(_owned(X, X.dtype))
    rows = sparse.csr_array(X)
    return compiled.SparseRows(
        _owned(rows.indptr, np.int64), _owned(rows.indices, np.int32), _owned(rows.data, X.dtype)
    )


def _owned(array: Any, dtype: npt.DTypeLike) -> Any:
    """Return an array as kernels take it: in one piece, and writable though they don't write."""
    return np.require(array, dtype=dtype, requirements=["C", "A", "W"])

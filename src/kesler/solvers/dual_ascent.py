"""Dual coordinate ascent: one slack a row, one hypothesis a class, solved to a duality gap."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from scipy import sparse

from kesler.errors import KeslerError
from kesler.room import aligned_zeros
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
# were, or to what is thought to be enough; then all rows are looked at again.
LOW, MOST_PASSES = 0.2, 20
# How many times the gap the sum of the shares is taken for until both are known: shares are taken
# before each row moves.
TIMES = 1.5
# The gap is looked at too where a sweep lifts the dual by no more than this part of what is wanted.
STALLED = 0.1
# The weights reported are stretched, by so many times the tolerance, to where the objective is
# least: where nearly all rows can be had without a loss, little losses of many are what remains.
STRETCHES = np.array([-1.0, 0.0, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 2.0, 4.0])
# The dual rises slowly where a pass brings more than this part of what the last one brought.
SLOW = 0.6
# Where it does the weights of the last passes are averaged, that of number t by t to this power.
RECENCY = 3
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
        from kesler.compiled import extrapolation

        self._momentum = extrapolation
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
        self._duals = aligned_zeros(self._n, width, dtype=np.float64)
        self._duals[:, :k] = duals
        self._settle(_without_length(self._facts[:, compiled.NORM]))
        self._weights = aligned_zeros(n_features, width, dtype=np.float64)
        moved = problem.idle() - self._duals[:, :k]
        if moved.any():
            self._weights[:, :k] = problem.X.T @ moved
        self._visited = np.flatnonzero(problem.bounds > 0)
        self._n_visits = 0
        self._dual, self._gain = self._measure_dual(), np.inf
        self._previous = np.empty_like(self._duals)
        self._n_slow, self._mean = 0, self._weights

    def climb(self, tol: float, max_iter: int) -> Optimum:
        """Alternate between sweeps and, where they may have sufficed, looks at the gap itself.

        What is known of the gap otherwise, `share`, is the sum of the rows' shares at different
        times. How many times the gap that is, a look tells.
        """
        share, times, most = self._largest_loss(), TIMES, max_iter * self._n
        while self._n_visits < most:
            before = self._dual
            share = self._sweep(share, times * tol, most)
            wanted = tol * abs(self._dual + share)
            stands = self._dual - before <= STALLED * wanted or self._n_slow >= MOST_PASSES
            if stands or share <= times * wanted:
                optimum = self._look(tol)
                if optimum.converged:
                    return optimum
                times = share / (optimum.objective - optimum.dual_objective)
        return self._look(tol)

    def _sweep(self, share: float, part: float, most: int) -> float:
        """Visit all rows, then those that hold most of the gap, until little of it is left.

        Return the sum of the shares, which sufficed if it is but this part of the objective.
        """
        share = min(share, self._visit(self._visited, share))
        enough = max(LOW * share, part * abs(self._dual + share))
        active, n_passes = self._worthwhile(self._visited, share / self._n), 0
        while share > enough and len(active) and n_passes < MOST_PASSES and self._n_visits < most:
            share = self._visit(active, share)
            active, n_passes = self._worthwhile(active, share / len(active)), n_passes + 1
        return share

    def _largest_loss(self) -> float:
        """Return the sum of the losses of weights that are all 0."""
        largest = self._problem.costs.max(axis=1)[self._problem.y]
        return float(self._problem.bounds @ largest)

    def _worthwhile(self, rows: npt.NDArray[np.int64], mean: float) -> npt.NDArray[np.int64]:
        return rows[self._gaps[rows] > WORTHWHILE * mean]

    def _visit(self, rows: npt.NDArray[np.int64], share: float) -> float:
        """Visit rows once, and return the sum of their shares before each moved."""
        least, before = WORTHWHILE * max(share, 0.0) / self._n, self._dual
        if self._n_slow == 1:
            np.copyto(self._previous, self._duals)
        elif self._n_slow > 1:
            self._extrapolate(rows)
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
        self._judge(self._dual - before)
        return float(self._gaps[rows].sum())

    def _extrapolate(self, rows: npt.NDArray[np.int64]) -> None:
        """Give the dual variables of rows Nesterov's momentum.

        A row that was not visited the last time goes on as it went when it was.
        """
        before = self._compiled.regulariser(self._weights)
        self._dual += before + self._momentum.extrapolate(
            self._rows,
            self._facts,
            self._costs,
            rows,
            (self._n_slow - 1) / (self._n_slow + 2),
            self._weights,
            self._duals,
            self._previous,
        )
        self._dual -= self._compiled.regulariser(self._weights)

    def _judge(self, gain: float) -> None:
        """Note whether passes bring little, each after the other, and what their mean weights are.

        Then rows that contradict each other pull the weights to and fro: momentum helps the dual
        objective, and the mean has a lower primal one than the last weights.
        """
        if SLOW * self._gain < gain:
            if not self._n_slow:
                self._mean = self._weights.copy()
            self._n_slow += 1
            share = (RECENCY + 1) / (self._n_slow + RECENCY)
            self._momentum.draw_near(self._mean, share, self._weights)
        else:
            self._n_slow, self._mean = 0, self._weights
        self._gain = max(gain, 0.0)

    def _look(self, tol: float) -> Optimum:
        """Measure the objectives, the primal one at multiples of the mean of the weights."""
        mean, scales = self._mean, 1 + tol * STRETCHES
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

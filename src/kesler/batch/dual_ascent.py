"""Dual coordinate ascent for the multiclass SVM with one slack per row and one vector per class.

With an unregularised intercept, each proximal step regularises it towards its last value,

    min_{W, b} 1/2 ||W||^2 + 1/2 ||b - centre||^2 / s^2 + sum_i C_i max_r [cost(y_i, r)
        + <w_r - w_y, x_i> + b_r - b_y]

which is the regularised problem with one more feature of value s and costs shifted by the centre.
The unregularised intercept adds the dual constraint that no class gains mass,
sum_i (C_i e_y - u_i) = 0. The dual variables of a step nearly satisfy it; the excess is moved
between classes in the rows where that costs least, and the resulting dual objective bounds the
optimum.

Rockafellar (1976), "Monotone operators and the proximal point algorithm".
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from scipy import sparse

from kesler.errors import KeslerError, integer_of, number_of
from kesler.progress import Task, progress
from kesler.state.capacity import aligned_zeros


@dataclass(frozen=True, eq=False)
class DualSolution:
    """Objectives of a solution; the optimum lies between them.

    Parameters
    ----------
    objective, dual_objective : float
    n_passes : float
        Number of visits divided by the number of rows; or number of sweeps, including partial ones.
    converged : bool
        Whether the relative gap is at most the tolerance.
    """

    objective: float
    dual_objective: float
    n_passes: float
    converged: bool

    @property
    def relative_gap(self) -> float:
        """The duality gap divided by the primal objective."""
        gap = self.objective - self.dual_objective
        return gap / abs(self.objective) if self.objective else 0.0


def is_small(gap: float, objective: float, tol: float) -> bool:
    """Return whether a duality gap is at most the tolerance, relative to the objective."""
    return bool(gap <= tol * abs(objective))


def require_solvable(
    caps: npt.NDArray[np.float64], margins: npt.NDArray[np.float64], tol: float, max_iter: int
) -> None:
    """Raise if a parameter of the solvers is out of its range."""
    if not (np.isfinite(caps) & (caps >= 0)).all():
        raise KeslerError("C of each row must be a finite number, 0 or more")
    if not (np.isfinite(margins) & (margins >= 0)).all() or margins.diagonal().any():
        raise KeslerError("margins must be finite, 0 between a class and itself, 0 or more else")
    number_of("tol", tol, above=0)
    integer_of("max_iter", max_iter, 1)


Order = Literal["random", "cyclic"]
Doubles = npt.NDArray[np.float64]

# Dense rows with a smaller share of nonzeros are stored as sparse: a sparse entry costs twice as
# much.
SPARSE_BELOW = 0.5
# Rows with a smaller squared length count as zero rows, which do not change the weights.
LEAST_NORM = 1e-100
# A row is active, and is updated when visited, while its share in the gap is above this fraction of
# the mean share; the rest of the gap is negligible.
WORTHWHILE = 3e-4
# Active rows are visited, at most MOST_PASSES times, until their shares have fallen to LOW times
# the initial ones, or to an estimate of what is enough; then all rows are visited again.
LOW, MOST_PASSES = 0.2, 20
# The initial ratio of the sum of shares to the gap: shares are computed before each row's update.
TIMES = 1.5
# The gap is also computed if a sweep raises the dual by at most this fraction of the wanted gap.
STALLED = 0.1
# The reported weights are scaled by 1 + tol times the best of these: if nearly all rows can be
# fitted without loss, the objective consists of small losses of many rows.
STRETCHES = np.array([-1.0, 0.0, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 2.0, 4.0])
# The ascent is slow if a pass gains more than this fraction of the gain of the last pass.
SLOW = 0.6
# If it is slow, the weights of the last passes are averaged; pass t has weight t to this power.
RECENCY = 3
# The columns of the weights are padded to whole vectors.
SIMD_WIDTH = 4


@dataclass(frozen=True, eq=False)
class SlackProblem:
    """The problem min 1/2 ||W||^2 + sum_i C_i max_r [cost(y_i, r) + <w_r - w_y, x_i>].

    Parameters
    ----------
    X : CSR array or array of shape (n_rows, n_features), float32 or float64
    y : int64 array of shape (n_rows,), numbers of classes
    bounds : float64 array of shape (n_rows,), the C_i, 0 or more
    costs : float64 array of shape (n_classes, n_classes), 0 on its diagonal
    numbers : int64 array of shape (n_rows,) or None, default None
        The numbers of the rows in errors; None is their place in X.
    """

    X: Any
    y: npt.NDArray[np.int64]
    bounds: Doubles
    costs: Doubles
    numbers: npt.NDArray[np.int64] | None = None

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.costs)

    def idle(self) -> Doubles:
        """Return the dual variables at weights 0."""
        duals = np.zeros((len(self.y), self.n_classes))
        duals[np.arange(len(self.y)), self.y] = self.bounds
        return duals


@dataclass(frozen=True, eq=False)
class Optimum(DualSolution):
    """The solution of `solve`.

    Parameters
    ----------
    weights : float64 array of shape (n_classes, n_features)
    duals : float64 array of shape (n_rows, n_classes), 0 or more; row i sums to C_i
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
    """Maximise the dual until the relative gap is `tol` or after `max_iter` visits per row.

    Parameters
    ----------
    problem : the problem.
    tol, max_iter : the stopping criteria.
    order : the order of the rows in a pass.
    random_state : random number generator for random orders.
    duals : initial dual variables, 0 or more, row i with sum C_i; None starts from weights 0.
    """
    shuffle = random_state.permutation if order == "random" else np.sort
    with progress("dual ascent", "passes", max_iter, goal=tol) as task:
        ascent = _Ascent(problem, problem.idle() if duals is None else duals, shuffle, task)
        return ascent.climb(tol, max_iter)


class _Ascent:
    """The state of the ascent: weights, dual variables, and each row's share in the gap."""

    def __init__(
        self,
        problem: SlackProblem,
        duals: Doubles,
        shuffle: Callable[[npt.NDArray[np.int64]], npt.NDArray[np.int64]],
        task: Task,
    ) -> None:
        from kesler.compiled.batch import dual_ascent
        from kesler.compiled.batch import dual_ascent as compiled

        self._momentum = dual_ascent
        self._compiled, self._problem, self._shuffle = compiled, problem, shuffle
        self._task = task
        self._n, k = len(problem.y), problem.n_classes
        n_features, width = problem.X.shape[1], -(-k // SIMD_WIDTH) * SIMD_WIDTH
        self._rows = compiled_rows(problem.X, compiled)
        zeros = np.zeros(self._n)
        self._facts = np.column_stack([problem.bounds, zeros, problem.y, zeros])
        self._gaps = self._facts[:, compiled.GAP]
        compiled.square_rows(self._rows, n_features, self._facts)
        self._costs = np.full((k, width), compiled.FORBIDDEN)
        self._costs[:, :k] = problem.costs
        self._duals = aligned_zeros(self._n, width, dtype=np.float64)
        self._duals[:, :k] = duals
        self._settle(_without_length(self._facts[:, compiled.NORM], problem.numbers))
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
        """Alternate between sweeps and, when they may have been enough, computations of the gap.

        Between these, `share` estimates the gap: it is the sum of the rows' shares, computed at
        different times. Each computation of the gap updates the ratio of the two, `times`.
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
        """Visit all rows, then those with most of the gap, until little of it is left.

        Return the sum of the shares; the sweep also ends when it is below `part` of the objective.
        """
        share = min(share, self._visit(self._visited, share))
        enough = max(LOW * share, part * abs(self._dual + share))
        active, n_passes = self._worthwhile(self._visited, share / self._n), 0
        while share > enough and len(active) and n_passes < MOST_PASSES and self._n_visits < most:
            share = self._visit(active, share)
            active, n_passes = self._worthwhile(active, share / len(active)), n_passes + 1
        return share

    def _largest_loss(self) -> float:
        """Return the sum of the losses at weights 0."""
        largest = self._problem.costs.max(axis=1)[self._problem.y]
        return float(self._problem.bounds @ largest)

    def _worthwhile(self, rows: npt.NDArray[np.int64], mean: float) -> npt.NDArray[np.int64]:
        return rows[self._gaps[rows] > WORTHWHILE * mean]

    def _visit(self, rows: npt.NDArray[np.int64], share: float) -> float:
        """Visit rows once, and return the sum of their shares before each update."""
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
        share = float(self._gaps[rows].sum())
        self._task.report(self._n_visits // self._n, share / (abs(self._dual + share) or 1.0))
        return share

    def _extrapolate(self, rows: npt.NDArray[np.int64]) -> None:
        """Extrapolate the dual variables of rows with Nesterov's momentum.

        A row is extrapolated by its change since its last extrapolation.
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
        """Update the number of consecutive slow passes, and the average of their weights.

        In slow passes the weights oscillate between conflicting rows: momentum raises the dual
        objective faster, and the average has a lower primal objective than the last weights.
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
        """Compute the objectives, the primal one at multiples of the averaged weights."""
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
        """Set the dual variables of zero rows to their optimum: all on the costliest class."""
        self._duals[rows] = 0.0
        costliest = self._problem.costs.argmax(axis=1)
        self._duals[rows, costliest[self._problem.y[rows]]] = self._problem.bounds[rows]


def _without_length(norms: Doubles, numbers: npt.NDArray[np.int64] | None) -> npt.NDArray[np.int64]:
    """Return the places of zero rows, given the squared lengths and the numbers of all rows."""
    if not np.isfinite(norms).all():
        odd = np.flatnonzero(~np.isfinite(norms))
        row = int((odd if numbers is None else numbers[odd]).min())
        raise KeslerError(
            f"the squared length of row {row} overflows float64: scale the features down"
        )
    return np.flatnonzero(norms < LEAST_NORM)


def compiled_rows(X: Any, compiled: Any) -> Any:
    """Return rows in the form that kernels read; mostly zero dense rows become sparse."""
    if not sparse.issparse(X) and np.count_nonzero(X) >= SPARSE_BELOW * X.size:
        return compiled.DenseRows(_owned(X, X.dtype))
    rows = sparse.csr_array(X)
    return compiled.SparseRows(
        _owned(rows.indptr, np.int64), _owned(rows.indices, np.int32), _owned(rows.data, X.dtype)
    )


def _owned(array: Any, dtype: npt.DTypeLike) -> Any:
    """Return an array as kernels require it: contiguous, aligned and writable."""
    return np.require(array, dtype=dtype, requirements=["C", "A", "W"])


# The first step is solved to the gap COARSE, each further one to SHARPER times the gap before, down
# to FINEST times the final tolerance; below that, HALF times, only if a step did not halve the gap.
COARSE, SHARPER, FINEST, HALF = 0.03, 0.3, 0.5, 0.5


@dataclass(frozen=True, eq=False)
class FreeOptimum(Optimum):
    """The solution of `solve_with_free_intercept`: an :class:`Optimum` with an intercept of sum 0.

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
    """Solve the problem with an unregularised intercept to a relative gap of `tol`.

    Parameters
    ----------
    problem : the problem, whose rows have no constant feature.
    tol, max_iter, order, random_state, duals : as in :func:`~kesler.batch.dual_ascent.solve`;
        `max_iter` bounds the visits of all steps together.
    centre : the initial intercept; None is 0.
    """
    scale = _typical_length(problem.X)
    widened = replace(problem, X=with_constant(problem.X, scale))
    middle = np.zeros(problem.n_classes) if centre is None else centre - centre.mean()
    inner, best, n_passes, gap = max(COARSE, FINEST * tol), None, 0.0, np.inf
    with progress("free intercept", "passes", max_iter, goal=tol) as task:
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
            task.report(int(n_passes), best.relative_gap)
            last, gap = gap, best.objective - best.dual_objective
            if inner > FINEST * tol:
                inner = max(SHARPER * inner, FINEST * tol)
            elif gap > HALF * last:
                inner *= HALF
    return best


def with_constant(X: Any, value: float) -> Any:
    """Return rows with a constant last feature."""
    column: Any = np.full((X.shape[0], 1), value, dtype=X.dtype)
    if sparse.issparse(X):
        join: Any = sparse.hstack
        return join([X, sparse.csr_array(column)], format="csr")
    return np.hstack([X, column])


def _typical_length(X: Any) -> float:
    """Return the root mean square of the rows' lengths, or 1 if all are 0."""
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
    """Return the best primal and the best dual solution of the last best and a new step."""
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

    Mass is moved from the class with the largest excess to that with the largest deficit, in the
    rows whose margins at these scores favour the former least.
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


# Rows whose lead is at most this quantile of the learner's leads count as support vectors; the
# scale of its scores is unknown, so a fixed margin cannot be used.
QUANTILE = 0.5


def duals_from_scores(problem: SlackProblem, scores: Doubles, constant: float = 0.0) -> Doubles:
    """Return initial dual variables that are nonzero for the likely support vectors.

    They are u = idle + t (v - idle), where v has all of a row's C_i on its highest-scoring wrong
    class if the lead over that class is small, and 0 <= t <= 1 maximises the dual objective, which
    is at least 0, its value at weights 0. The cost is one product with the rows.

    Parameters
    ----------
    problem : the problem.
    scores : array of shape (n_rows, n_classes)
    constant : the value of a constant feature, 0 for none.
    """
    rows, costs = np.arange(len(scores)), problem.costs[problem.y]
    rivals = np.where(costs > 0, scores, -np.inf).argmax(axis=1)
    leads = scores[rows, problem.y] - scores[rows, rivals]
    taken = (leads <= np.quantile(leads, QUANTILE)) * problem.bounds
    moved = np.zeros_like(scores)
    np.add.at(moved, (rows, problem.y), taken)
    np.add.at(moved, (rows, rivals), -taken)
    weights, bias = problem.X.T @ moved, constant * moved.sum(axis=0)
    square = float(np.square(weights).sum() + np.square(bias).sum())
    gain = float(taken @ costs[rows, rivals])
    return problem.idle() - (min(1.0, gain / square) if square else 1.0) * moved

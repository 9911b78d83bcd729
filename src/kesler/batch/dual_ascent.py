"""Dual coordinate ascent: one slack a row, one hypothesis a class, solved to a duality gap.

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

from collections.abc import Callable
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from scipy import sparse

from kesler.errors import KeslerError
from kesler.state.capacity import aligned_zeros


@dataclass(frozen=True, eq=False)
class DualSolution:
    """Objectives at the end of a search; the optimum lies between them.

    Parameters
    ----------
    objective, dual_objective : float
    n_passes : float
        Visits of rows, in numbers of rows; or sweeps, those that left out some included.
    converged : bool
        Whether the gap is as small as was asked for.
    """

    objective: float
    dual_objective: float
    n_passes: float
    converged: bool

    @property
    def relative_gap(self) -> float:
        """The duality gap over the primal objective."""
        gap = self.objective - self.dual_objective
        return gap / abs(self.objective) if self.objective else 0.0


def is_small(gap: float, objective: float, tol: float) -> bool:
    """Whether a duality gap is as small as was asked for."""
    return bool(gap <= tol * abs(objective))


def require_solvable(
    caps: npt.NDArray[np.float64], margins: npt.NDArray[np.float64], tol: float, max_iter: int
) -> None:
    """Raise a sentence if a number is out of the range that the solvers name."""
    if not (np.isfinite(caps) & (caps >= 0)).all():
        raise KeslerError("C of each row must be a finite number, 0 or more")
    if not (np.isfinite(margins) & (margins >= 0)).all() or margins.diagonal().any():
        raise KeslerError("margins must be finite, 0 between a class and itself, 0 or more else")
    if not (isinstance(tol, Real) and 0 < float(tol) < np.inf):
        raise KeslerError(f"tol={tol!r} must be a finite number above 0")
    if not isinstance(max_iter, Integral) or max_iter < 1:
        raise KeslerError(f"max_iter={max_iter!r} must be a whole number from 1 on")


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
SIMD_WIDTH = 4


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
        from kesler.compiled.batch import dual_ascent
        from kesler.compiled.batch import dual_ascent as compiled

        self._momentum = dual_ascent
        self._compiled, self._problem, self._shuffle = compiled, problem, shuffle
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
    tol, max_iter, order, random_state, duals : as :func:`~kesler.batch.dual_ascent.solve` has
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


# Rows that the learner gets right by no more than this quantile of its leads are taken for support
# vectors; the scale of its scores is unknown, so that a margin of 1 means nothing to it.
QUANTILE = 0.5


def duals_from_scores(problem: SlackProblem, scores: Doubles, constant: float = 0.0) -> Doubles:
    """Return the best of the dual variables between none and one for each likely support vector.

    That is u = idle + t (v - idle), where v has all of a row's C_i on its most dangerous class if
    the lead over it is small, and 0 <= t <= 1 makes the dual objective highest: never below 0, its
    value at weights 0. What it costs is a product with the rows.

    Parameters
    ----------
    problem : what is to be solved.
    scores : array of shape (n_rows, n_classes)
    constant : the value of one more feature, the same in each row.
    """
    everyone, costs = np.arange(len(scores)), problem.costs[problem.y]
    rivals = np.where(costs > 0, scores, -np.inf).argmax(axis=1)
    leads = scores[everyone, problem.y] - scores[everyone, rivals]
    taken = (leads <= np.quantile(leads, QUANTILE)) * problem.bounds
    moved = np.zeros_like(scores)
    np.add.at(moved, (everyone, problem.y), taken)
    np.add.at(moved, (everyone, rivals), -taken)
    weights, bias = problem.X.T @ moved, constant * moved.sum(axis=0)
    square = float(np.square(weights).sum() + np.square(bias).sum())
    gain = float(taken @ costs[everyone, rivals])
    return problem.idle() - (min(1.0, gain / square) if square else 1.0) * moved

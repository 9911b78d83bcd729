"""ShareBoost's loop: alternate between choosing a candidate and solving for all weights.

The weights are solved for by limited-memory BFGS, whose initial Hessian is estimated from some rows
at the starting point: the whole Hessian if there are few weights, else its class blocks. A step
takes two products with the columns, and far fewer steps are needed than without the estimate, since
chosen features are often nearly multiples of each other and the curvatures of rows differ by orders
of magnitude.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.linalg import cho_factor, cho_solve

from kesler.batch.design import ClassBlocks, Preconditioner
from kesler.batch.newton import flat_share
from kesler.sharing.penalties import Penalty
from kesler.sharing.training_rows import RowSums, RowValues, SomeColumns, TrainingRows, pairs_of

Floats = npt.NDArray[Any]

# Number of steps after which the Hessian is estimated again: a better estimate is renewed sooner.
MEMORY_OF_WHOLE, MEMORY_OF_BLOCKS = 8, 60
# Rows from which the blocks are estimated: at least so many per column, and so many in total that
# the estimate takes about as long as a few steps.
ROWS_PER_COLUMN, STEPS_WORTH = 12, 20
# Rows per column from which the block of a pair of classes is estimated: so many, or so many of an
# average column's rows that are not far below its largest values, if those are rare, as words are.
ROWS_PER_PAIR, TELLING_ROWS = 20, 3.2
# Blocks ignore interactions of columns that are further apart than WIDEST_BLOCK in the order of
# choice, and have at most MOST_NUMBERS entries in total.
WIDEST_BLOCK, MOST_NUMBERS = 512, 1 << 25
# Values added to the diagonal of a block in turn, as a share of it.
JITTERS = (1e-8, 1e-5, 1e-2)
# The whole Hessian is used for at most so many weights and classes.
MOST_WEIGHTS, MOST_CLASSES = 1000, 16
# A line search ends where the slope is at most this share of the first one.
FLAT_ENOUGH = 0.5
# The first step length tried is this factor times the last one, at most 1.
WIDER = 4.0
# The minimum diagonal, as a share of that with equal curvatures in all rows, and its absolute
# minimum.
LEAST, TINY = 1e-7, 1e-150


@dataclass(frozen=True, eq=False)
class State:
    """Weights with their scores, residuals and objective.

    Parameters
    ----------
    weights : float64 array of shape (n_columns, n_classes)
    scores, residuals : RowValues
        The residuals are the gradient of the loss with respect to the scores.
    loss, penalty : float
    """

    weights: Floats
    scores: RowValues
    residuals: RowValues
    loss: float
    penalty: float

    @property
    def value(self) -> float:
        """The objective."""
        return self.loss + self.penalty


@dataclass(frozen=True, eq=False)
class Correction:
    """The result of a search; `excess` estimates the distance of the objective to its minimum."""

    state: State
    excess: float
    n_steps: int
    converged: bool


@dataclass(frozen=True, eq=False)
class Corrective:
    """The loss over some columns plus a penalty on all but the first `n_free` of them.

    Parameters
    ----------
    sums : RowSums
    penalty : Penalty
    n_free : int
    """

    sums: RowSums
    penalty: Penalty
    n_free: int

    def at(self, weights: Floats, scores: RowValues) -> State:
        """Return the state at weights with known scores."""
        loss, residuals = self.sums.loss(scores)
        return State(weights, scores, residuals, loss, self.penalty.value(weights[self.n_free :]))

    def gradient(self, state: State) -> Floats:
        """Return the gradient of the objective."""
        gradient = self.sums.gradient(state.residuals)
        gradient[self.n_free :] += self.penalty.gradient(state.weights[self.n_free :])
        return gradient

    def minimise(self, state: State, tol: float, floor: float, max_iter: int) -> Correction:
        """Minimise from a state until the estimated excess of the objective is within `tol`.

        Parameters
        ----------
        state : State
        tol : float
            As a share of the sum of the objective and the floor.
        floor : float
            Lets the search end if the infimum is 0 and not attained.
        max_iter : int
            Maximum number of steps.
        """
        gradient, model, share = self.gradient(state), None, 1.0
        for n_steps in range(max_iter + 1):
            if model is None or model.is_full:
                model = QuasiNewton(*self._guess(state))
            step = model.step(gradient)
            excess = min(-0.5 * float(np.vdot(step, gradient)), state.value)
            if excess <= tol * (state.value + floor) or n_steps == max_iter:
                break
            line = _Line(self, state, gradient, step)
            if not line.first_slope < 0:
                break
            share = flat_share(line, FLAT_ENOUGH, min(1.0, WIDER * share))
            before, state = state, line.at(share)
            gradient, last = self.gradient(state), gradient
            model.learn(state.weights - before.weights, gradient - last)
        return Correction(state, excess, n_steps, excess <= tol * (state.value + floor))

    def _guess(self, state: State) -> tuple[Preconditioner, int]:
        """Return an approximate inverse Hessian, and the number of steps to use it for."""
        sums, ridge = self.sums, np.zeros_like(state.weights)
        n_columns, n_classes = ridge.shape
        ridge[self.n_free :] = self.penalty.curvature(state.weights[self.n_free :])
        curvatures = sums.curvatures(state.residuals)
        # Columns that vary only in rows without curvature would otherwise have unbounded steps.
        squares = sums.squares() / sums.n_rows
        ridge += LEAST * (curvatures.sum() / n_classes) * squares[:, None] + TINY
        if ridge.size <= MOST_WEIGHTS and n_classes <= MOST_CLASSES:
            rarity = float(np.mean(sums.fourths() / sums.n_rows / np.maximum(squares**2, TINY)))
            rows_per_column = max(ROWS_PER_PAIR, TELLING_ROWS * rarity)
            wanted = _fewer(int(rows_per_column * n_columns), sums.n_rows)
            return PairBlocks.of(sums.pair_blocks(state.residuals, wanted), ridge), MEMORY_OF_WHOLE
        chunks = []
        for chunk in _chunks(n_columns, n_classes):
            width = len(range(n_columns)[chunk])
            wanted = _fewer(
                max(ROWS_PER_COLUMN * width, STEPS_WORTH * sums.n_rows // width), sums.n_rows
            )
            blocks = sums.class_blocks(state.residuals, curvatures, chunk, wanted)
            chunks.append((chunk, ClassBlocks(_factors(blocks, ridge[chunk]))))
        return ChunkedBlocks(chunks), MEMORY_OF_BLOCKS


def _chunks(n_columns: int, n_classes: int) -> list[slice]:
    """Return slices of columns whose interactions are taken into account."""
    widest = max(1, min(WIDEST_BLOCK, MOST_NUMBERS // (n_columns * n_classes)))
    return [slice(i, i + widest) for i in range(0, n_columns, widest)]


def _fewer(wanted: int, n_rows: int) -> int | None:
    """Return the number of rows to draw, None for all."""
    return wanted if wanted < n_rows else None


@dataclass(frozen=True, eq=False)
class ChunkedBlocks:
    """A block-diagonal inverse over slices of columns."""

    chunks: list[tuple[slice, ClassBlocks]]

    def __call__(self, gradient: Floats) -> Floats:
        """Return the inverse times an array of the weights' shape."""
        return np.concatenate([inverse(gradient[chunk]) for chunk, inverse in self.chunks])


@dataclass(frozen=True, eq=False)
class PairBlocks:
    """The inverse of the whole Hessian, a sum over pairs of classes."""

    factor: tuple[Floats, bool]

    @classmethod
    def of(cls, blocks: list[Floats], ridge: Floats) -> PairBlocks:
        """Return the inverse for the blocks of all pairs of classes plus a ridge."""
        n, k = ridge.shape
        hessian = np.zeros((k, n, k, n))
        for (a, b), block in zip(pairs_of(k), blocks, strict=True):
            hessian[a, :, b, :] = -(block + np.tril(block, -1).T)
            hessian[a, :, a, :] += block
            hessian[b, :, b, :] += block
        flat = np.asfortranarray(hessian.reshape(k * n, k * n))
        np.fill_diagonal(flat, np.diagonal(flat) + ridge.T.ravel())
        return cls(_factor(flat))

    def __call__(self, gradient: Floats) -> Floats:
        """Return the inverse times an array of the weights' shape."""
        solved = cho_solve(self.factor, gradient.T.ravel(), check_finite=False)
        return np.ascontiguousarray(solved.reshape(gradient.T.shape).T)


class QuasiNewton:
    """The limited-memory BFGS approximation of the inverse Hessian, from an initial guess."""

    def __init__(self, guess: Preconditioner, memory: int) -> None:
        self.guess, self.memory = guess, memory
        self.pairs: deque[tuple[Floats, Floats, float]] = deque()

    @property
    def is_full(self) -> bool:
        """Whether the memory is full, so that a new initial guess is due."""
        return len(self.pairs) >= self.memory

    def learn(self, step: Floats, change: Floats) -> None:
        """Record a step and the change of the gradient."""
        curvature = float(np.vdot(step, change))
        if curvature > 0:
            self.pairs.append((step, change, 1 / curvature))

    def step(self, gradient: Floats) -> Floats:
        """Return the quasi-Newton step, by the two-loop recursion."""
        rest, shares = gradient.copy(), []
        for step, change, inverse in reversed(self.pairs):
            shares.append(inverse * float(np.vdot(step, rest)))
            rest -= shares[-1] * change
        found = self.guess(rest)
        for (step, change, inverse), share in zip(self.pairs, reversed(shares), strict=True):
            found += (share - inverse * float(np.vdot(change, found))) * step
        return -found


@dataclass(frozen=True, eq=False)
class _Line:
    """The objective along a step, computed from the change of the scores."""

    corrective: Corrective
    start: State
    gradient: Floats
    step: Floats

    @cached_property
    def change(self) -> RowValues:
        """The change of the scores by the whole step."""
        return self.corrective.sums.forward(self.step)

    @property
    def first_slope(self) -> float:
        """The derivative at the start."""
        return float(np.vdot(self.gradient, self.step))

    def slope(self, share: float) -> float:
        """Return the derivative at a share of the step."""
        if share == 0:
            return self.first_slope
        penalty, n_free = self.corrective.penalty, self.corrective.n_free
        loss = self.corrective.sums.slope(self.start.scores, self.change, share)
        ahead = self.start.weights[n_free:] + share * self.step[n_free:]
        return loss + float(np.vdot(penalty.gradient(ahead), self.step[n_free:]))

    def at(self, share: float) -> State:
        """Return the state at a share of the step."""
        weights = self.start.weights + share * self.step
        scores = self.corrective.sums.shifted(self.start.scores, self.change, share)
        return self.corrective.at(weights, scores)


def lowest_along(corrective: Corrective, state: State, step: Floats) -> State:
    """Return the state that minimises the objective along a step."""
    line = _Line(corrective, state, corrective.gradient(state), step)
    return line.at(flat_share(line)) if line.first_slope < 0 else state


def _factors(blocks: list[Floats], ridge: Floats) -> list[tuple[Floats, bool]]:
    """Return the Cholesky factors of the classes' blocks."""
    for block, extra in zip(blocks, ridge.T, strict=True):
        np.fill_diagonal(block, np.diagonal(block) + extra)
    return [_factor(block) for block in blocks]


def _factor(block: Floats) -> tuple[Floats, bool]:
    """Return the Cholesky factor of a block, raising its diagonal until it exists."""
    diagonal = np.diagonal(block).copy()
    for jitter in JITTERS:
        np.fill_diagonal(block, diagonal * (1 + jitter))
        try:
            return cho_factor(block, lower=True, check_finite=False)
        except np.linalg.LinAlgError:
            if jitter == JITTERS[-1]:
                raise
    raise AssertionError("JITTERS is empty")


Ints = npt.NDArray[np.int64]

# Below this share of the loss at weights 0, the tolerance no longer decreases: if the classes are
# separable, the infimum of the loss is 0 and not attained.
FLOOR = 0.01
# Gradients below this share of the largest one are rounding errors.
LEAST_GRADIENT = 1e-12
# Candidates are compared with this multiple of the tolerance.
ROUGH = 30.0


@dataclass(frozen=True)
class Round:
    """One round: the chosen candidate, and the results after solving for all weights.

    Attributes
    ----------
    candidate : int
        The chosen candidate, or the number of the chosen group.
    n_chosen : int
        Number of candidates chosen so far.
    loss : float
        The loss on the training rows, without the penalty.
    gradient_norm : float
        The criterion of the choice: the sum of the absolute gradients of its columns, divided by
        their spread if gradients are scaled.
    seconds : float
        Time since the start of the fit.
    validation_error : float or None
        The error rate on the validation rows, if there are any.
    n_steps : int
        Number of steps to solve for the weights.
    """

    candidate: int
    n_chosen: int
    loss: float
    gradient_norm: float
    seconds: float
    validation_error: float | None
    n_steps: int


@dataclass(frozen=True, eq=False)
class Choice:
    """A candidate or group with the columns of its members and its gradient norm."""

    unit: int
    members: Ints
    columns: SomeColumns
    gradient_norm: float


class Greedy:
    """The greedy selection of candidates, and their weights.

    Parameters
    ----------
    rows : TrainingRows
    n_classes : int
    penalty : Penalty
    rule : str
        A key of `RULES`.
    shortlist : int or None
        Number of candidates with the largest gradients that rules other than "gradient" consider,
        None for all.
    scaled : bool
        Whether gradients are divided by the spread of columns.
    bias : bool
    groups : int64 array of shape (n_candidates,) or None
        The group of each candidate, numbered from 0.
    tol : float
    max_iter : int
        Maximum number of steps to solve for weights in a round.
    """

    def __init__(
        self,
        rows: TrainingRows,
        n_classes: int,
        penalty: Penalty,
        *,
        rule: str,
        shortlist: int | None,
        scaled: bool,
        bias: bool,
        groups: Ints | None,
        tol: float,
        max_iter: int,
    ) -> None:
        self.rows, self.n_classes, self.penalty = rows, n_classes, penalty
        self._better, self._shortlist = RULES[rule], shortlist
        self._scaled, self._bias = scaled, bias
        self._groups = groups
        self.tol, self.max_iter = tol, max_iter
        n_units = rows.n_candidates if groups is None else int(groups.max()) + 1
        self._open = np.ones(n_units, dtype=bool)
        self._first_norm = 0.0
        self.support = rows.support(bias)
        self.chosen: Ints = np.empty(0, dtype=np.int64)
        self.state = self._state_at(np.zeros((self.support.n_columns, n_classes)))
        self._floor = FLOOR * self.state.loss
        self.all_converged = True
        if bias:
            self.state = self._correct(self.state).state

    @property
    def n_units(self) -> int:
        """Number of candidates, or groups."""
        return len(self._open)

    @property
    def weights(self) -> Floats:
        """The bias (0 if there is none), followed by the weights of the uncentred chosen columns.

        The bias has mean 0, since a common shift has no effect.
        """
        weights, n_free = self.state.weights, self.support.n_free
        own = weights[n_free:]
        bias = -self.support.means[n_free:] @ own
        bias = bias + weights[:n_free].sum(axis=0)
        return np.vstack([bias - bias.mean() * n_free, own])

    def resume(self, units: Iterable[int], weights: Floats) -> None:
        """Restore an earlier selection with its weights, in the form of `weights`."""
        for unit in units:
            self._take(unit, self.rows.columns(self._members(unit)))
        own, n_free = weights[1:], self.support.n_free
        bias = weights[:1] + self.support.means[n_free:] @ own
        self.state = self._state_at(np.vstack([bias[:n_free], own]))

    def rounds(self) -> Iterator[Round]:
        """Choose candidates until none has a gain; yield after each choice."""
        start = time.perf_counter()
        while (choice := self.choose()) is not None:
            self._take(choice.unit, choice.columns)
            correction = self._correct(self._widened())
            self.state = correction.state
            yield Round(
                choice.unit,
                len(self.chosen),
                self.state.loss,
                choice.gradient_norm,
                time.perf_counter() - start,
                None,
                correction.n_steps,
            )

    def choose(self) -> Choice | None:
        """Return the next choice, None if no candidate has a gain."""
        norms = self.gradient_norms()
        self._first_norm = max(self._first_norm, float(norms.max(initial=0.0)))
        norms[~self._open] = 0.0
        choices = self._worthwhile(norms)
        if self._better is None:
            return next(choices, None)
        return self._best(islice(choices, self._shortlist))

    def gradient_norms(self) -> Floats:
        """Return the gradient norm of each candidate or group, the criterion of the choice."""
        norms = self.rows.scores(self.state.residuals)
        if self._scaled:
            spreads = self._spreads
            norms = np.divide(norms, spreads, out=np.zeros_like(norms), where=spreads > 0)
        return norms if self._groups is None else np.bincount(self._groups, norms)

    @cached_property
    def _spreads(self) -> Floats:
        return self.rows.spreads(centred=self._bias)

    def _worthwhile(self, norms: Floats) -> Iterator[Choice]:
        """Yield possible choices by falling gradient; redundant ones are excluded for good."""
        while norms.max(initial=0.0) > LEAST_GRADIENT * self._first_norm:
            unit = int(norms.argmax())
            members = self._members(unit)
            columns = self.rows.columns(members)
            if self.support.holds(columns):
                self._open[unit] = False
            else:
                yield Choice(unit, members, columns, float(norms[unit]))
            norms[unit] = 0.0

    def _best(self, choices: Iterable[Choice]) -> Choice | None:
        """Return the choice with the lowest objective by the rule."""
        assert self._better is not None
        best, lowest = None, np.inf
        for choice in choices:
            value = self._better(self, choice.columns)
            if value < lowest:
                best, lowest = choice, value
        return best

    def _take(self, unit: int, columns: SomeColumns) -> None:
        self._open[unit] = False
        self.support.append(columns)
        self.chosen = np.concatenate([self.chosen, self._members(unit)])

    def _members(self, unit: int) -> Ints:
        if self._groups is None:
            return np.array([unit])
        return np.flatnonzero(self._groups == unit)

    def _correct(self, state: State) -> Correction:
        """Solve for all weights."""
        correction = self._corrective().minimise(state, self.tol, self._floor, self.max_iter)
        self.all_converged &= correction.converged
        return correction

    def _corrective(self) -> Corrective:
        return Corrective(self.support.sums(), self.penalty, self.support.n_free)

    def _widened(self) -> State:
        """Return the state with weights 0 for new columns."""
        now = self.state
        width = self.support.n_columns - len(now.weights)
        weights = np.vstack([now.weights, np.zeros((width, self.n_classes))])
        return State(weights, now.scores, now.residuals, now.loss, now.penalty)

    def _state_at(self, weights: Floats) -> State:
        corrective = self._corrective()
        return corrective.at(weights, corrective.sums.forward(weights))

    # ---- rules that compare objectives ----------------------------------------------------------

    def along_gradient(self, columns: SomeColumns) -> float:
        """Return the lowest objective over W + a g e_j', g the gradient for the columns."""
        alone, start = self._alone(columns)
        return lowest_along(alone, start, -alone.gradient(start)).value

    def along_columns(self, columns: SomeColumns) -> float:
        """Return the lowest objective over W + u e_j'."""
        alone, start = self._alone(columns)
        return self._promise(alone, start)

    def over_support(self, columns: SomeColumns) -> float:
        """Return the lowest objective over all weights for the chosen columns and these."""
        n_columns = self.support.n_columns
        self.support.append(columns)
        start = self._widened()
        value = self._promise(self._corrective(), start)
        self.support.shorten(n_columns)
        return value

    def _promise(self, corrective: Corrective, start: State) -> float:
        """Estimate the lowest objective by a rough search, minus its estimated excess."""
        found = corrective.minimise(start, ROUGH * self.tol, self._floor, self.max_iter)
        return found.state.value - found.excess

    def _alone(self, columns: SomeColumns) -> tuple[Corrective, State]:
        """Return the objective over some columns only, added to the current scores."""
        now, sums = self.state, self.rows.sums(columns)
        zeros = np.zeros((sums.n_columns, self.n_classes))
        start = State(zeros, now.scores, now.residuals, now.loss, 0.0)
        return Corrective(sums, self.penalty, 0), start


# The criterion of each rule: None for the gradient, else the lowest objective over some weights.
RULES: dict[str, Callable[[Greedy, SomeColumns], float] | None] = {
    "gradient": None,
    "line": Greedy.along_gradient,
    "column": Greedy.along_columns,
    "full": Greedy.over_support,
}

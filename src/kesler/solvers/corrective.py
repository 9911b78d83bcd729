"""The margin softmax loss over a few dense columns, minimised from where it was minimal before.

Limited-memory BFGS whose first guess is the Hessian where it began, estimated from some rows: all
of it where there are few weights, else its blocks for each class. Two products with the columns a
step, and far fewer steps than without, since chosen features are often nearly multiples of one
another, and rows differ by orders of magnitude in how much they still weigh.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.linalg import cho_factor, cho_solve

from kesler.solvers.column_penalties import Penalty
from kesler.solvers.preconditioners import ClassBlocks, Preconditioner
from kesler.solvers.row_sums import RowSums, RowValues, pairs_of
from kesler.solvers.softmax import flat_share

Floats = npt.NDArray[Any]

# After so many steps the guess is made anew: the better it was, the sooner a new one pays.
MEMORY_OF_WHOLE, MEMORY_OF_BLOCKS = 8, 60
# Rows that the blocks are estimated from: for each column at least, and so many for all of them
# that they take about as long as a few steps.
ROWS_PER_COLUMN, STEPS_WORTH = 12, 20
# For each column of a block of two classes.
ROWS_PER_PAIR = 20
# Columns further apart than this, in the order of choice, are taken for unrelated by the blocks,
# which together hold no more numbers than the second figure.
WIDEST_BLOCK, MOST_NUMBERS = 512, 1 << 25
# What is added to the diagonal of a block, as a share of it.
JITTERS = (1e-8, 1e-5, 1e-2)
# The whole Hessian is worth its time for so many weights, of so many classes.
MOST_WEIGHTS, MOST_CLASSES = 1000, 16
# A step ends where the slope is at most this share of the first one.
FLAT_ENOUGH = 0.5
# Where the last step went a part of its way only, the next is first tried at this times that part.
WIDER = 4.0
# The least diagonal, as a share of what it were if all rows wavered alike; and if none does.
LEAST, TINY = 1e-7, 1e-150


@dataclass(frozen=True, eq=False)
class State:
    """Weights, and what follows from them.

    Parameters
    ----------
    weights : float64 array of shape (n_columns, n_classes)
    scores, residuals : values of rows
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
    """Where the search stopped: `excess` estimates how far the objective is above the lowest."""

    state: State
    excess: float
    n_steps: int
    converged: bool


@dataclass(frozen=True, eq=False)
class Corrective:
    """The loss over some columns and a penalty, which the first `n_free` of them do not bear.

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
        """Return the state at weights whose scores are known."""
        loss, residuals = self.sums.loss(scores)
        return State(weights, scores, residuals, loss, self.penalty.value(weights[self.n_free :]))

    def gradient(self, state: State) -> Floats:
        """Return the gradient of the objective."""
        gradient = self.sums.gradient(state.residuals)
        gradient[self.n_free :] += self.penalty.gradient(state.weights[self.n_free :])
        return gradient

    def minimise(self, state: State, tol: float, floor: float, max_iter: int) -> Correction:
        """Go on from a state until the objective is estimated within `tol` of the lowest.

        Parameters
        ----------
        state : State
        tol : float
            As a share of the objective and the floor together.
        floor : float
            Keeps the search from going on forever where the lowest value is 0 and infinitely far.
        max_iter : int
            The most steps.
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
        """Return about the inverse of the Hessian, and for how many steps it is good."""
        sums, ridge = self.sums, np.zeros_like(state.weights)
        n_columns, n_classes = ridge.shape
        ridge[self.n_free :] = self.penalty.curvature(state.weights[self.n_free :])
        curvatures = sums.curvatures(state.residuals)
        # Columns that vary in rows alone that are long decided would otherwise take any step.
        squares = sums.squares() / sums.n_rows
        ridge += LEAST * (curvatures.sum() / n_classes) * squares[:, None] + TINY
        if ridge.size <= MOST_WEIGHTS and n_classes <= MOST_CLASSES:
            wanted = _fewer(ROWS_PER_PAIR * n_columns, sums.n_rows)
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
    """Return runs of columns that are taken for related."""
    widest = max(1, min(WIDEST_BLOCK, MOST_NUMBERS // (n_columns * n_classes)))
    return [slice(i, i + widest) for i in range(0, n_columns, widest)]


def _fewer(wanted: int, n_rows: int) -> int | None:
    """Return how many rows to draw, None for all."""
    return wanted if wanted < n_rows else None


@dataclass(frozen=True, eq=False)
class ChunkedBlocks:
    """Blocks of columns that follow one another, each with its inverse."""

    chunks: list[tuple[slice, ClassBlocks]]

    def __call__(self, gradient: Floats) -> Floats:
        """Return the inverse times an array of the weights' shape."""
        return np.concatenate([inverse(gradient[chunk]) for chunk, inverse in self.chunks])


@dataclass(frozen=True, eq=False)
class PairBlocks:
    """The whole Hessian, a sum over pairs of classes, each estimated from rows that waver."""

    factor: tuple[Floats, bool]

    @classmethod
    def of(cls, blocks: list[Floats], ridge: Floats) -> PairBlocks:
        """Return the inverse for the blocks of the pairs of classes, and a ridge."""
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
    """What steps have taught of the inverse Hessian, beside a first guess of it."""

    def __init__(self, guess: Preconditioner, memory: int) -> None:
        self.guess, self.memory = guess, memory
        self.pairs: deque[tuple[Floats, Floats, float]] = deque()

    @property
    def is_full(self) -> bool:
        """Whether a new first guess is worth more than more steps."""
        return len(self.pairs) >= self.memory

    def learn(self, step: Floats, change: Floats) -> None:
        """Hear how a step changed the gradient."""
        bend = float(np.vdot(step, change))
        if bend > 0:
            self.pairs.append((step, change, 1 / bend))

    def step(self, gradient: Floats) -> Floats:
        """Return the step to where the gradient would vanish, by the two-loop recursion."""
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
    """The objective along a step, by what the step adds to the scores."""

    corrective: Corrective
    start: State
    gradient: Floats
    step: Floats

    @cached_property
    def change(self) -> RowValues:
        """What the whole step adds to the scores."""
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
    """Return the state where the objective is lowest along a step."""
    line = _Line(corrective, state, corrective.gradient(state), step)
    return line.at(flat_share(line)) if line.first_slope < 0 else state


def _factors(blocks: list[Floats], ridge: Floats) -> list[tuple[Floats, bool]]:
    """Return the Cholesky factors of the classes' blocks."""
    for block, extra in zip(blocks, ridge.T, strict=True):
        np.fill_diagonal(block, np.diagonal(block) + extra)
    return [_factor(block) for block in blocks]


def _factor(block: Floats) -> tuple[Floats, bool]:
    """Return the Cholesky factor of a block, whose diagonal is raised until it has one."""
    diagonal = np.diagonal(block).copy()
    for jitter in JITTERS:
        np.fill_diagonal(block, diagonal * (1 + jitter))
        try:
            return cho_factor(block, lower=True, check_finite=False)
        except np.linalg.LinAlgError:
            if jitter == JITTERS[-1]:
                raise
    raise AssertionError("there are jitters")

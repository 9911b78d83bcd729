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
from scipy.linalg import blas, cho_factor, cho_solve

from kesler.solvers.column_penalties import Penalty
from kesler.solvers.preconditioners import ClassBlocks, Preconditioner
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
class Task:
    r"""What is minimised over weights W for the columns of chosen candidates.

    .. math:: \sum_i c_i \ln \sum_r e^{h_r(x_i) + \mu [r \ne y_i] - h_{y_i}(x_i)} + \Omega(W)

    Parameters
    ----------
    labels : int64 array of shape (n_rows,)
        Classes by number.
    counts : float64 array of shape (n_rows,)
        What each row counts, c; their sum is 1.
    n_classes : int
    margin : float
        mu: 1 for the loss of ShareBoost, 0 for the logistic loss.
    penalty : Penalty
        Omega.
    """

    labels: npt.NDArray[np.int64]
    counts: Floats
    n_classes: int
    margin: float
    penalty: Penalty

    def loss(self, scores: Floats) -> tuple[float, Floats]:
        """Return the loss at some scores, and its gradient with respect to them."""
        from kesler.compiled.softmax_loss import take_losses

        residuals, unused = scores.copy(), np.empty(scores.shape, dtype=np.float32)
        value = take_losses(residuals, self.labels, self.counts, self.margin, unused)
        return float(value), residuals

    def chances(self, residuals: Floats) -> Floats:
        """Return the probabilities of the classes, without loss near 0."""
        counts = np.where(self.counts > 0, self.counts, 1.0)[:, None]
        chances = residuals / counts
        chances[np.arange(len(chances)), self.labels] += 1
        return np.maximum(chances, 0)

    def curvatures(self, residuals: Floats) -> Floats:
        """Return the second derivatives c p (1 - p) of each row, without loss near p = 1."""
        counts = np.where(self.counts > 0, self.counts, 1.0)[:, None]
        apart = np.abs(residuals)
        return apart * np.maximum(1 - apart / counts, 0)


@dataclass(frozen=True, eq=False)
class State:
    """Weights, and what follows from them.

    Parameters
    ----------
    weights : float64 array of shape (n_columns, n_classes)
    scores, residuals : float64 arrays of shape (n_rows, n_classes)
        The residuals are the gradient of the loss with respect to the scores.
    loss, penalty : float
    """

    weights: Floats
    scores: Floats
    residuals: Floats
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
    """The task over some columns, of which the first `n_free` bear no penalty.

    Parameters
    ----------
    task : Task
    rows_of_columns : array of shape (n_columns, n_rows), float32 or float64
        A column in each row, so that one more does not move the others.
    n_free : int
    """

    task: Task
    rows_of_columns: Floats
    n_free: int

    def at(self, weights: Floats, scores: Floats) -> State:
        """Return the state at weights whose scores are known."""
        loss, residuals = self.task.loss(scores)
        return State(
            weights, scores, residuals, loss, self.task.penalty.value(weights[self.n_free :])
        )

    def forward(self, weights: Floats) -> Floats:
        """Return what weights add to the scores."""
        A = self.rows_of_columns
        return np.asarray(A.T @ weights.astype(A.dtype, copy=False), dtype=np.float64)

    def gradient(self, state: State) -> Floats:
        """Return the gradient of the objective."""
        A = self.rows_of_columns
        products = A @ state.residuals.astype(A.dtype, copy=False)
        gradient = np.asarray(products, dtype=np.float64)
        gradient[self.n_free :] += self.task.penalty.gradient(state.weights[self.n_free :])
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
        A, ridge = self.rows_of_columns, np.zeros_like(state.weights)
        ridge[self.n_free :] = self.task.penalty.curvature(state.weights[self.n_free :])
        curvatures = self.task.curvatures(state.residuals)
        # Columns that vary in rows alone that are long decided would otherwise take any step.
        squares = np.einsum("ji,ji->j", A, A) / A.shape[1]
        ridge += LEAST * curvatures.mean(axis=1).sum() * squares[:, None] + TINY
        if ridge.size <= MOST_WEIGHTS and ridge.shape[1] <= MOST_CLASSES:
            chances = self.task.chances(state.residuals)
            whole = PairBlocks.estimate(A, chances, self.task.counts, ridge)
            return whole, MEMORY_OF_WHOLE
        return ChunkedBlocks.estimate(A, curvatures, ridge), MEMORY_OF_BLOCKS


@dataclass(frozen=True, eq=False)
class ChunkedBlocks:
    """Blocks of columns that follow one another, each with its inverse."""

    chunks: list[tuple[slice, ClassBlocks]]

    @classmethod
    def estimate(cls, rows_of_columns: Floats, curvatures: Floats, ridge: Floats) -> ChunkedBlocks:
        """Estimate each block from the rows that curve most."""
        n_columns, n_classes = ridge.shape
        widest = max(1, min(WIDEST_BLOCK, MOST_NUMBERS // (n_columns * n_classes)))
        chunks = [slice(i, i + widest) for i in range(0, n_columns, widest)]
        return cls(
            [
                (each, ClassBlocks(_factors(rows_of_columns[each], curvatures, ridge[each])))
                for each in chunks
            ]
        )

    def __call__(self, gradient: Floats) -> Floats:
        """Return the inverse times an array of the weights' shape."""
        return np.concatenate([inverse(gradient[chunk]) for chunk, inverse in self.chunks])


@dataclass(frozen=True, eq=False)
class PairBlocks:
    """The whole Hessian, a sum over pairs of classes, each estimated from rows that waver."""

    factor: tuple[Floats, bool]

    @classmethod
    def estimate(
        cls, rows_of_columns: Floats, chances: Floats, counts: Floats, ridge: Floats
    ) -> PairBlocks:
        """Estimate the block of each pair a, b: sum_i c_i p_ia p_ib x_i x_i'."""
        n, k = ridge.shape
        hessian, drawn = np.zeros((k, n, k, n)), np.random.default_rng(0).random(len(counts))
        for a in range(k):
            for b in range(a):
                waver = counts * chances[:, a] * chances[:, b]
                block = _block(rows_of_columns, waver, drawn, ROWS_PER_PAIR * n)
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
    def change(self) -> Floats:
        """What the whole step adds to the scores."""
        return self.corrective.forward(self.step)

    @property
    def first_slope(self) -> float:
        """The derivative at the start."""
        return float(np.vdot(self.gradient, self.step))

    def slope(self, share: float) -> float:
        """Return the derivative at a share of the step."""
        if share == 0:
            return self.first_slope
        from kesler.compiled.softmax_loss import slope_along

        of, n_free = self.corrective.task, self.corrective.n_free
        told = of.labels, of.counts, of.margin
        loss = slope_along(self.start.scores, self.change, share, *told)
        ahead = self.start.weights[n_free:] + share * self.step[n_free:]
        return float(loss) + float(np.vdot(of.penalty.gradient(ahead), self.step[n_free:]))

    def at(self, share: float) -> State:
        """Return the state at a share of the step."""
        weights = self.start.weights + share * self.step
        return self.corrective.at(weights, self.start.scores + share * self.change)


def lowest_along(corrective: Corrective, state: State, step: Floats) -> State:
    """Return the state where the objective is lowest along a step."""
    line = _Line(corrective, state, corrective.gradient(state), step)
    return line.at(flat_share(line)) if line.first_slope < 0 else state


def _factors(
    rows_of_columns: Floats, curvatures: Floats, ridge: Floats
) -> list[tuple[Floats, bool]]:
    """Return the Cholesky factors of the classes' blocks, from the rows that curve most."""
    n_rows, n_columns = len(curvatures), len(rows_of_columns)
    wanted = max(ROWS_PER_COLUMN * n_columns, STEPS_WORTH * n_rows // n_columns)
    drawn = np.random.default_rng(0).random(n_rows)
    blocks = [_block(rows_of_columns, q, drawn, wanted) for q in curvatures.T]
    for block, extra in zip(blocks, ridge.T, strict=True):
        np.fill_diagonal(block, np.diagonal(block) + extra)
    return [_factor(block) for block in blocks]


def _block(rows_of_columns: Floats, q: Floats, drawn: Floats, wanted: int) -> Floats:
    """Return sum_i q_i x_i x_i' below its diagonal, of drawn rows if fewer are wanted."""
    A, total = rows_of_columns, float(q.sum())
    if wanted < len(q) and total > 0:
        chances = np.minimum(1, wanted * (q / total))
        rows = np.flatnonzero(drawn < chances)
        A, q = A[:, rows], q[rows] / chances[rows]
    scaled = A * np.sqrt(q).astype(A.dtype)
    multiply = blas.ssyrk if A.dtype == np.float32 else blas.dsyrk
    return np.asarray(multiply(1.0, scaled.T, trans=1, lower=1), dtype=np.float64, order="F")


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

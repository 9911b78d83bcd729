"""The first steps of multinomial logistic regression: dual coordinate ascent, row after row.

Where rows are short, a few passes come nearer to the optimum than dozens of Newton's method do.
What is left is Newton's, and so is the intercept, which is held to zero here like other weights.
"""

from __future__ import annotations

from typing import cast

import numpy as np
import numpy.typing as npt

from kesler.solvers.design import PerClassDesign
from kesler.solvers.dual_ascent import LANES, compiled_rows
from kesler.solvers.softmax import SoftmaxObjective

Doubles = npt.NDArray[np.float64]

MOST_PASSES = 15
# A pass that gains more than this part of what the one before gained is the last: rows are too
# long for others to stand still.
SLOW = 0.75
# The last pass gains at most this part of the tolerance, of all that was gained.
SHARE = 0.05
# Rows that move scores by so little are let be; where rows move them by more than this on average,
# a pass hardly helps.
LEAST_PACE, MOST_PACE = 1e-100, 1e4


def approach(objective: SoftmaxObjective, tol: float, most: int) -> tuple[Doubles, int]:
    """Return weights near the optimum, and how many passes over the rows led there.

    Parameters
    ----------
    objective : SoftmaxObjective
        Over a `PerClassDesign`.
    tol : float
        How near: passes end when the objective would fall by little more than this part of it.
    most : int
        The most passes.
    """
    ascent, gained = _Ascent(objective), 0.0
    if not ascent.mean_pace <= MOST_PACE:
        return ascent.found(), 0
    n_passes, gain, before = 0, np.inf, np.inf
    while n_passes < min(most, MOST_PASSES) and gain <= SLOW * before:
        n_passes, before, gain = n_passes + 1, gain, ascent.visit_all()
        gained += gain
        if gain <= SHARE * tol * gained:
            break
    return ascent.found(), n_passes


class _Ascent:
    """The state of a climb: weights of the features and of the constant, and dual variables."""

    def __init__(self, objective: SoftmaxObjective) -> None:
        from kesler.compiled import dual_ascent, dual_softmax

        self._ascend, self._margin = dual_softmax.ascend, objective.margin
        design = cast(PerClassDesign, objective.design)
        n, k, d = design.n_rows, objective.n_classes, design.X.shape[1]
        self._rows = compiled_rows(design.X, dual_ascent)
        squares = np.zeros((n, 4))
        dual_ascent.square_rows(self._rows, d, squares)
        lengths = squares[:, dual_ascent.NORM]
        self._intercept = design.intercept
        # As long as rows are: held to zero about as little as a feature would be.
        self._constant = float(np.sqrt(lengths.mean())) if design.intercept else 0.0
        lengths = lengths + self._constant**2
        counts = objective.counts / float(objective.ridge[0, 0])
        levels = np.full(n, dual_softmax.UNKNOWN)
        self._facts = np.column_stack([counts, lengths, objective.labels, levels])
        self.mean_pace = float((counts * lengths).mean())
        self._moving = np.flatnonzero(counts * lengths > LEAST_PACE)
        width = -(-k // LANES) * LANES
        self._weights, self._bias = np.zeros((d, width)), np.zeros(width)
        self._duals = np.eye(k)[objective.labels]
        self._orders = np.random.default_rng(0)

    def visit_all(self) -> float:
        """Visit all rows that move, in a random order; return what that gains."""
        order = self._orders.permutation(self._moving)
        tables = self._weights, self._bias, self._duals
        gain: float = self._ascend(
            self._rows, self._facts, self._margin, self._constant, order, *tables
        )
        return gain

    def found(self) -> Doubles:
        """Return the weights, those of the constant last if there is one."""
        k = self._duals.shape[1]
        constants = self._constant * self._bias[None, :k]
        return np.vstack([self._weights[:, :k], constants[: int(self._intercept)]])

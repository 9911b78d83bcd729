"""Dual variables to begin with, of scores that another learner gives the rows."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from kesler.solvers.dual_ascent import SlackProblem

Doubles = npt.NDArray[np.float64]

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

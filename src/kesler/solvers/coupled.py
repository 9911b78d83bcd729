"""The multiclass support vector machine over any hypotheses, by dual coordinate ascent."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from kesler.solvers.frozen import Array, Codes
from kesler.solvers.joint_design import JointDesign
from kesler.solvers.solution import DualSolution, is_small, require_solvable

MOST_SWEEPS = 20
"""Sweeps before examples that were left out are looked at again."""


@dataclass(frozen=True, eq=False)
class CoupledOptimum(DualSolution):
    """What the solver of the coupled dual found.

    Parameters
    ----------
    weights : float64 array of shape `design.hypotheses.shape`
    duals : float64 array of shape (n_rows, n_classes)
        Rows sum to 0; `weights` is the design's adjoint of them.
    """

    weights: Array
    duals: Array


def solve_coupled(
    design: JointDesign,
    codes: Codes,
    caps: Array,
    margins: Array,
    *,
    tol: float,
    max_iter: int,
    shuffle: Callable[[Codes], Codes],
    duals: Array | None = None,
) -> CoupledOptimum:
    r"""Solve the multiclass SVM over joint features to a relative duality gap.

    .. math::
        \min_W \tfrac{1}{2} \|W\|^2 + \sum_i C_i \max_r \left[ \delta(y_i, r)
        + \langle W, \Phi(x_i, r) - \Phi(x_i, y_i) \rangle \right]

    through its dual, with :math:`W = \sum_{i, r} \alpha_i^r \Phi(x_i, r)`,

    .. math::
        \max_\alpha -\tfrac{1}{2} \|W\|^2 - \sum_{i, r} \alpha_i^r \delta(y_i, r) \quad
        \text{s.t. } \sum_r \alpha_i^r = 0, \; \alpha_i^r \le C_i [r = y_i]

    one example after the other. Each one's own problem, a quadratic program over
    the classes, is solved by pairwise steps; examples in a corner of their set that lead by more
    than the worst violation of the sweep before are left out until the others are solved, for 20
    sweeps at most.

    Parameters
    ----------
    design : JointDesign
        The rows, through hypotheses.
    codes : int64 array of shape (n_rows,)
        Right classes.
    caps : array of shape (n_rows,)
        C of each row, 0 or more. Larger values: fewer training errors, larger weights.
    margins : array of shape (n_classes, n_classes)
        What a right class asks of each other, delta; 0 on the diagonal, 0 or more elsewhere.
    tol : float above 0
        Of the duality gap, relative to the primal objective. Larger values end sooner.
    max_iter : int from 1 on
        Most sweeps.
    shuffle : callable
        Puts the numbers of rows in the order of a sweep: `Generator.permutation`, or `np.sort`.
    duals : array of shape (n_rows, n_classes) or None
        Where to begin, within the constraints; None begins with zeros.

    Returns
    -------
    Weights, duals, and how good they are.

    Raises
    ------
    KeslerError
        If a number is out of its range.

    Notes
    -----
    A visit costs O(nnz n_classes) and as much again for each of the few classes that move. Memory:
    that of the design, 8 bytes for each row and class and 8 for each feature and hypothesis.

    References
    ----------
    Crammer and Singer (2001), "On the algorithmic implementation of multiclass kernel-based vector
    machines"; Tsochantaridis, Joachims, Hofmann and Altun (2005); Keerthi, Sundararajan, Chang,
    Hsieh and Lin (2008); Platt (1998), pairwise steps.
    """
    require_solvable(caps, margins, tol, max_iter)
    search = _Search(design, codes, caps, margins, duals)
    found, left, threshold = search.measured(0, tol), MOST_SWEEPS, np.inf
    if found.converged and duals is not None:
        return found  # a sweep may raise the primal objective, though never lower the dual one
    for n in range(1, max_iter + 1):
        threshold, gap = search.sweep(shuffle(search.active), threshold)
        left -= 1
        if is_small(gap, found.objective, tol) or not left or n == max_iter:
            found = search.measured(n, tol)
            if found.converged:
                break
            search.is_active[:] = 1
            left, threshold = MOST_SWEEPS, np.inf
    return found


class _Search:
    """Weights and duals on their way to the optimum."""

    def __init__(
        self,
        design: JointDesign,
        codes: Codes,
        caps: Array,
        margins: Array,
        duals: Array | None,
    ) -> None:
        from kesler.compiled import coupled_ascent

        self.kernels, self.design, self.margins = coupled_ascent, design, margins
        self.joint = design.hypotheses.joint
        self.rows = design.hypotheses.listed(design.rows)
        self.codes, self.caps = codes, caps
        self.weights = np.zeros(design.hypotheses.shape)
        self.duals = np.zeros((len(codes), len(margins))) if duals is None else duals.copy()
        self.is_active = np.ones(len(codes), dtype=np.int64)

    @property
    def active(self) -> Codes:
        """The examples that are still visited."""
        return np.flatnonzero(self.is_active)

    def sweep(self, order: Codes, threshold: float) -> tuple[float, float]:
        """Visit examples; return the worst violation and the gap that they had."""
        found = np.empty(2)
        self.kernels.sweep(
            *(self.joint, self.rows, order, self.codes, self.caps, self.margins),
            *(np.array([threshold]), self.weights, self.duals, self.is_active, found),
        )
        return float(found[0]), float(found[1])

    def measured(self, n_passes: int, tol: float) -> CoupledOptimum:
        """Return how good the duals are, the weights computed anew from them."""
        self.weights, sums = self.design.adjoint(self.duals), np.empty(2)
        self.kernels.sum_losses(
            *(self.joint, self.rows, self.codes, self.caps, self.margins),
            *(self.weights, self.duals, sums),
        )
        half = 0.5 * float(np.sum(self.weights**2))
        objective, dual = half + float(sums[0]), -half - float(sums[1])
        converged = is_small(objective - dual, objective, tol)
        return CoupledOptimum(objective, dual, n_passes, converged, self.weights, self.duals)

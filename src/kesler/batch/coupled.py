"""Dual solvers of the multiclass support vector machine over hypotheses or a Mercer kernel."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from kesler.batch.dual_ascent import DualSolution, is_small, require_solvable
from kesler.batch.frozen import Array, Codes, JointDesign
from kesler.data.rows import Rows
from kesler.errors import KeslerError
from kesler.kernels.mercer import MercerKernel
from kesler.kernels.rbf import RBF
from kesler.parts.user_part import UserPart, fault_words, followed_by_word, require_no_faults
from kesler.progress import progress

MOST_SWEEPS = 20
"""Number of sweeps before inactive examples are visited again."""


@dataclass(frozen=True, eq=False)
class CoupledOptimum(DualSolution):
    """The solution of `solve_coupled`.

    Parameters
    ----------
    weights : float64 array of shape `design.hypotheses.shape`
    duals : float64 array of shape (n_rows, n_classes)
        Each row sums to 0; `weights` is the design's adjoint of the duals.
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

    by block coordinate ascent. The sub-problem of one example, a quadratic program over the
    classes, is solved by pairwise steps. Examples at a corner of their feasible set whose lead
    exceeds the worst violation of the previous sweep become inactive until the others are solved,
    for 20 sweeps at most.

    Parameters
    ----------
    design : JointDesign
        The joint features of the rows.
    codes : int64 array of shape (n_rows,)
        The right class of each row.
    caps : array of shape (n_rows,)
        C of each row, 0 or more. Larger values give fewer training errors and larger weights.
    margins : array of shape (n_classes, n_classes)
        The required margins delta(y, r) by which class y must lead class r; 0 on the diagonal, 0 or
        more elsewhere.
    tol : float above 0
        Tolerance of the duality gap, relative to the primal objective. Larger values stop earlier.
    max_iter : int, 1 or more
        Maximum number of sweeps.
    shuffle : callable
        Orders the row numbers of a sweep: `Generator.permutation`, or `np.sort`.
    duals : array of shape (n_rows, n_classes) or None
        Feasible initial duals; None starts from zeros.

    Returns
    -------
    Weights, duals and objectives.

    Raises
    ------
    KeslerError
        If a parameter is out of its range.

    Notes
    -----
    A visit costs O(nnz n_classes), and as much again for each of the few classes that change.
    Memory is that of the design, 8 bytes per row and class and 8 per feature and hypothesis.

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
        return found  # a sweep never lowers the dual objective, but may raise the primal one
    with progress("dual ascent", "passes", max_iter, goal=tol) as task:
        for n in range(1, max_iter + 1):
            threshold, gap = search.sweep(shuffle(search.active), threshold)
            left -= 1
            if is_small(gap, found.objective, tol) or not left or n == max_iter:
                found = search.measured(n, tol)
                if found.converged:
                    break
                search.is_active[:] = 1
                left, threshold = MOST_SWEEPS, np.inf
            task.report(n, found.relative_gap)
    return found


class _Search:
    """The state of the coordinate ascent: weights, duals and active examples."""

    def __init__(
        self,
        design: JointDesign,
        codes: Codes,
        caps: Array,
        margins: Array,
        duals: Array | None,
    ) -> None:
        from kesler.compiled.batch import coupled_ascent

        self.kernels, self.design, self.margins = coupled_ascent, design, margins
        self.joint = design.hypotheses.joint
        self.rows = design.hypotheses.listed(design.rows)
        self.codes, self.caps = codes, caps
        self.weights = np.zeros(design.hypotheses.shape)
        self.duals = np.zeros((len(codes), len(margins))) if duals is None else duals.copy()
        self.is_active = np.ones(len(codes), dtype=np.int64)

    @property
    def active(self) -> Codes:
        """The numbers of the active examples."""
        return np.flatnonzero(self.is_active)

    def sweep(self, order: Codes, threshold: float) -> tuple[float, float]:
        """Visit examples; return their worst violation and their gap before the updates."""
        found = np.empty(2)
        self.kernels.sweep(
            *(self.joint, self.rows, order, self.codes, self.caps, self.margins),
            *(np.array([threshold]), self.weights, self.duals, self.is_active, found),
        )
        self.design.hypotheses.require_no_faults()
        return float(found[0]), float(found[1])

    def measured(self, n_passes: int, tol: float) -> CoupledOptimum:
        """Return the objectives of the duals, with weights recomputed from them."""
        self.weights, sums = self.design.adjoint(self.duals), np.empty(2)
        self.kernels.sum_losses(
            *(self.joint, self.rows, self.codes, self.caps, self.margins),
            *(self.weights, self.duals, sums),
        )
        self.design.hypotheses.require_no_faults()
        half = 0.5 * float(np.sum(self.weights**2))
        objective, dual = half + float(sums[0]), -half - float(sums[1])
        converged = is_small(objective - dual, objective, tol)
        return CoupledOptimum(objective, dual, n_passes, converged, self.weights, self.duals)


MOST_ROWS = 16_384
"""Number of rows whose inner products fit into a table of 2 GiB."""
BLOCK = 1024  # rows per block of kernel evaluations
SAMPLE = 1000  # rows from which sigma="auto" estimates distances


@dataclass(frozen=True, eq=False)
class KernelOptimum(DualSolution):
    """The solution of `solve_kernel_dual`.

    Parameters
    ----------
    duals : float64 array of shape (n_rows, n_classes)
    supports : int64 array of shape (n_supports,)
        The rows with nonzero duals.
    coefficients : float64 array of shape (n_supports, n_classes)
        The score of class r is the sum over supports of K(x, x_j) coefficients[j, r].
    """

    duals: Array
    supports: Codes
    coefficients: Array


def solve_kernel_dual(
    table: Array,
    coupling: Array,
    codes: Codes,
    caps: Array,
    margins: Array,
    *,
    tol: float,
    max_iter: int,
    shuffle: Callable[[Codes], Codes],
    duals: Array | None = None,
) -> KernelOptimum:
    r"""Solve the multiclass SVM over a kernel to a relative duality gap.

    .. math::
        \max_\alpha -\tfrac{1}{2} \sum_{i, j, r, s} \alpha_i^r \alpha_j^s M_{rs} K(x_i, x_j)
        - \sum_{i, r} \alpha_i^r \delta(y_i, r) \quad
        \text{s.t. } \sum_r \alpha_i^r = 0, \; \alpha_i^r \le C_i [r = y_i]

    Parameters
    ----------
    table : array of shape (n_rows, n_rows)
        K of each pair of rows, from `kernel_table`.
    coupling : array of shape (n_classes, n_classes)
        M, the number of hypotheses that two classes share; see
        :func:`~kesler.batch.frozen.coupling_of`. The identity is one hypothesis per class.
    codes, caps, margins, tol, max_iter, shuffle, duals : as in
        :func:`~kesler.batch.coupled.solve_coupled`.

    Returns
    -------
    Duals, support rows with coefficients, and objectives.

    Raises
    ------
    KeslerError
        If a parameter is out of its range.

    Notes
    -----
    The scores of all rows are updated with the duals, so the gap is known after each sweep. A visit
    costs O(n_classes), and O(n_rows) for each class that changes. Memory is 8 bytes per pair of
    rows and 16 per row and class.

    References
    ----------
    Crammer and Singer (2001), "On the algorithmic implementation of multiclass kernel-based vector
    machines".
    """
    from kesler.compiled.batch.kernel_ascent import sweep_gram

    require_solvable(caps, margins, tol, max_iter)
    is_warm = duals is not None
    duals = np.zeros((len(codes), len(margins))) if duals is None else duals.copy()
    scores, found = table @ duals @ coupling, np.empty(2)
    # A sweep never lowers the dual objective, but may raise the primal one.
    n, is_solved = 0, is_warm and _found(scores, duals, codes, caps, margins, tol).converged
    with progress("dual ascent", "passes", max_iter, goal=tol) as task:
        while n < max_iter and not is_solved:
            n += 1
            visited = shuffle(np.arange(len(codes)))
            sweep_gram(table, coupling, visited, codes, caps, margins, scores, duals, found)
            now = _found(scores, duals, codes, caps, margins, tol)
            if now.converged or n == max_iter:
                scores = table @ duals @ coupling  # without accumulated rounding errors
                is_solved = _found(scores, duals, codes, caps, margins, tol).converged
            task.report(n, now.relative_gap)
    last = _found(scores, duals, codes, caps, margins, tol)
    supports = np.flatnonzero(duals.any(axis=1))
    return KernelOptimum(
        *(last.objective, last.dual_objective, n, last.converged),
        *(duals, supports, duals[supports] @ coupling),
    )


def _found(
    scores: Array, duals: Array, codes: Codes, caps: Array, margins: Array, tol: float
) -> DualSolution:
    """Return the objectives of duals and their scores."""
    required, half = margins[codes], 0.5 * float(np.sum(duals * scores))
    losses = (required + scores).max(axis=1) - scores[np.arange(len(codes)), codes]
    objective, dual = half + float(caps @ losses), -half - float(np.sum(duals * required))
    return DualSolution(objective, dual, 0, is_small(objective - dual, objective, tol))


# ---- inner products -----------------------------------------------------------------------------


def require_tabulable(n_rows: int) -> None:
    """Raise if a table of all pairs of rows would be too large."""
    if n_rows > MOST_ROWS:
        raise KeslerError(
            f"a kernel on {n_rows} rows would need a table of {8 * n_rows**2 / 2**30:.1f} GiB, but "
            f"{MOST_ROWS} rows are the maximum: train on fewer, leave the kernel out, or use "
            "OnlineClassifier with a budget"
        )


def kernel_table(kernel: MercerKernel, rows: Rows, others: Rows) -> Array:
    """Return K(x_i, z_j), shape (len(rows), len(others)), computed in blocks of rows.

    Raises
    ------
    KeslerError
        If the kernel needs whole vectors and rows are sparse.
    """
    if kernel.of == "vectors" and not (rows.dense and others.dense):
        raise KeslerError(
            f"the kernel {kernel!r} is given whole vectors, so it cannot be used with sparse rows: "
            "give dense rows, or a kernel from mercer_kernel(of='products')"
        )
    table: Array = np.empty((len(rows), len(others)))
    for start in range(0, len(rows), BLOCK):
        block = slice(start, start + BLOCK)
        _compare(kernel, rows[block], others, table[block])
    return table


def _compare(kernel: MercerKernel, rows: Rows, others: Rows, out: Array) -> None:
    from kesler.compiled.batch.kernel_ascent import compare_rows
    from kesler.compiled.kernels.supports import kernel_addresses
    from kesler.parts.trial_calls import try_out

    none = np.empty((len(rows), 0), dtype=np.float32), np.empty((0, 0), dtype=np.float32)
    views, panel = none if kernel.of == "products" else (_dense(rows), _dense(others).T.copy())
    inner = _inner(rows, others)
    distances = _distances(inner, rows, others)
    parameters = followed_by_word(kernel.parameters, 4)
    custom = isinstance(kernel, UserPart)
    try_out(kernel)
    address = kernel_addresses(kernel.k, kernel.of, custom=custom)[1]
    compare_rows(address, views, panel, inner, distances, parameters, out)
    require_no_faults(fault_words([(kernel, parameters)]))


def settled(kernel: MercerKernel, rows: Rows) -> MercerKernel:
    """Replace sigma="auto" of a kernel by a share of the median squared distance between rows.

    The median is over up to 1,000 evenly spaced rows; sigma is 1 if they are all equal.
    """
    if not isinstance(kernel, RBF) or not kernel.share:
        return kernel
    some = rows.take(np.unique(np.linspace(0, len(rows) - 1, SAMPLE).astype(np.int64)))
    distances = _distances(_inner(some, some), some, some)
    pairs = distances[np.triu_indices(len(some), k=1)]
    median = float(np.median(pairs)) if len(pairs) else 0.0
    return replace(kernel, sigma=max(kernel.share * median, 1e-30) if median else 1.0)


def _distances(inner: Array, rows: Rows, others: Rows) -> Array:
    """Return ||x - z||^2, clipped at 0."""
    squares = [np.asarray(_matrix(each).power(2).sum(axis=1)) for each in (rows, others)]
    distances: Array = np.maximum(squares[0][:, None] + squares[1] - 2 * inner, 0.0)
    return distances


def _inner(rows: Rows, others: Rows) -> Array:
    if rows.dense and others.dense:
        product: Array = _dense(rows).astype(float) @ _dense(others).astype(float).T
        return product
    products: Array = np.ascontiguousarray((_matrix(rows) @ _matrix(others).T).toarray())
    return products


def _dense(rows: Rows) -> npt.NDArray[np.float32]:
    return rows.values.reshape(len(rows), rows.n_features)


def _matrix(rows: Rows) -> Any:
    arrays = rows.values.astype(float), rows.indices, rows.indptr
    return sparse.csr_array(arrays, shape=rows.shape)

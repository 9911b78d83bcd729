"""The multiclass support vector machine over a Mercer kernel, from a table of inner products."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from kesler.errors import KeslerError
from kesler.kernels import RBF, MercerKernel
from kesler.rows import Rows
from kesler.solvers.frozen import Array, Codes
from kesler.solvers.solution import DualSolution, is_small, require_solvable

MOST_ROWS = 16_384
"""Rows whose inner products fit in a table of 2 GiB."""
BLOCK = 1024  # rows that are compared with all supports at a time
SAMPLE = 1000  # rows among which "auto" looks at distances


@dataclass(frozen=True, eq=False)
class KernelOptimum(DualSolution):
    """What the solver of the kernel dual found.

    Parameters
    ----------
    duals : float64 array of shape (n_rows, n_classes)
    supports : int64 array of shape (n_supports,)
        The rows whose duals are not 0.
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
        K of each two rows, from `kernel_table`.
    coupling : array of shape (n_classes, n_classes)
        M, how many hypotheses two classes have in common; see
        :func:`~kesler.solvers.frozen.coupling_of`. The identity is one hypothesis for each class.
    codes, caps, margins, tol, max_iter, shuffle, duals : as in
        :func:`~kesler.solvers.coupled.solve_coupled`.

    Returns
    -------
    Duals, the rows that support the scores, and how good they are.

    Raises
    ------
    KeslerError
        If a number is out of its range.

    Notes
    -----
    Scores of all rows are kept up, so that the gap is known after each sweep. A visit costs
    O(n_classes), and O(n_rows) for each class that moves. Memory: 8 bytes for each two rows, 16 for
    each row and class.

    References
    ----------
    Crammer and Singer (2001), "On the algorithmic implementation of multiclass kernel-based vector
    machines".
    """
    from kesler.compiled.kernel_ascent import sweep_gram

    require_solvable(caps, margins, tol, max_iter)
    is_warm = duals is not None
    duals = np.zeros((len(codes), len(margins))) if duals is None else duals.copy()
    scores, found = table @ duals @ coupling, np.empty(2)
    # A sweep may raise the primal objective, though it never lowers the dual one.
    n, is_solved = 0, is_warm and _is_solved(scores, duals, codes, caps, margins, tol)
    while n < max_iter and not is_solved:
        n += 1
        visited = shuffle(np.arange(len(codes)))
        sweep_gram(table, coupling, visited, codes, caps, margins, scores, duals, found)
        if _is_solved(scores, duals, codes, caps, margins, tol) or n == max_iter:
            scores = table @ duals @ coupling  # without what rounding has added up
            is_solved = _is_solved(scores, duals, codes, caps, margins, tol)
    objective, dual = _objectives(scores, duals, codes, caps, margins)
    supports = np.flatnonzero(duals.any(axis=1))
    return KernelOptimum(
        *(objective, dual, n, is_small(objective - dual, objective, tol)),
        *(duals, supports, duals[supports] @ coupling),
    )


def _is_solved(
    scores: Array,
    duals: Array,
    codes: Codes,
    caps: Array,
    margins: Array,
    tol: float,
) -> bool:
    objective, dual = _objectives(scores, duals, codes, caps, margins)
    return is_small(objective - dual, objective, tol)


def _objectives(
    scores: Array, duals: Array, codes: Codes, caps: Array, margins: Array
) -> tuple[float, float]:
    """Return the primal and the dual objective of duals and the scores that they lead to."""
    asked, half = margins[codes], 0.5 * float(np.sum(duals * scores))
    losses = (asked + scores).max(axis=1) - scores[np.arange(len(codes)), codes]
    return half + float(caps @ losses), -half - float(np.sum(duals * asked))


# ---- inner products -----------------------------------------------------------------------------


def require_tabulable(n_rows: int) -> None:
    """Raise if a table of all pairs of so many rows would be too large."""
    if n_rows > MOST_ROWS:
        raise KeslerError(
            f"{n_rows} rows over a kernel need a table of {8 * n_rows**2 / 2**30:.1f} GiB; at most "
            f"{MOST_ROWS} are taken: train on fewer, leave the kernel out, or learn online, as "
            "OnlineClassifier does with a budget"
        )


def kernel_table(kernel: MercerKernel, rows: Rows, others: Rows) -> Array:
    """Return K(x_i, z_j), shape (len(rows), len(others)), computed a block of rows at a time.

    Raises
    ------
    KeslerError
        If the kernel is given whole vectors and rows are sparse.
    """
    if kernel.of == "vectors" and not (rows.dense and others.dense):
        raise KeslerError(
            f"the kernel {kernel!r} is given whole vectors, so it cannot be used with sparse rows: "
            "give dense rows, or one made by mercer_kernel(of='products')"
        )
    table: Array = np.empty((len(rows), len(others)))
    for start in range(0, len(rows), BLOCK):
        block = slice(start, start + BLOCK)
        _compare(kernel, rows[block], others, table[block])
    return table


def _compare(kernel: MercerKernel, rows: Rows, others: Rows, out: Array) -> None:
    from kesler.compiled.kernel_ascent import compare_rows
    from kesler.compiled.kernels import kernel_addresses

    none = np.empty((len(rows), 0), dtype=np.float32), np.empty((0, 0), dtype=np.float32)
    views, panel = none if kernel.of == "products" else (_dense(rows), _dense(others).T.copy())
    inner = _inner(rows, others)
    distances = _distances(inner, rows, others)
    parameters = np.array([*kernel.parameters, 0.0, 0.0, 0.0, 0.0][:4])
    address = kernel_addresses(kernel.k, kernel.of)[1]
    compare_rows(address, views, panel, inner, distances, parameters, out)


def settled(kernel: MercerKernel, rows: Rows) -> MercerKernel:
    """Return the kernel with sigma="auto" as a number, a share of the median squared distance.

    Of up to 1,000 rows, spread evenly; 1 if they are all the same.
    """
    if not isinstance(kernel, RBF) or not kernel.share:
        return kernel
    some = rows.take(np.unique(np.linspace(0, len(rows) - 1, SAMPLE).astype(np.int64)))
    distances = _distances(_inner(some, some), some, some)
    pairs = distances[np.triu_indices(len(some), k=1)]
    median = float(np.median(pairs)) if len(pairs) else 0.0
    return replace(kernel, sigma=max(kernel.share * median, 1e-30) if median else 1.0)


def _distances(inner: Array, rows: Rows, others: Rows) -> Array:
    """Return ||x - z||^2; rounding leaves none below 0."""
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

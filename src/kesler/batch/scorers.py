"""What batch classifiers over any hypotheses or kernel are made of: the one place that chooses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from kesler.batch.coupled import (
    kernel_table,
    require_tabulable,
    settled,
    solve_coupled,
    solve_kernel_dual,
)
from kesler.batch.dual_ascent import DualSolution
from kesler.batch.frozen import Array, Codes, FrozenHypotheses, JointDesign, coupling_of, members_of
from kesler.data.labels import Label
from kesler.data.rows import Rows
from kesler.data.sparse_rows import as_float32
from kesler.errors import KeslerError
from kesler.parts.hypotheses import Part, PerClass, Shared, resolve_hypotheses
from kesler.parts.kernels.mercer import MercerKernel
from kesler.parts.maps import resolve_map
from kesler.parts.maps.feature_map import FeatureMap


@dataclass(frozen=True, eq=False)
class Telling:
    """Training rows, and what was told of them.

    Parameters
    ----------
    rows : Rows
    labels : sequence of labels
        Of the classes, sorted.
    codes : int64 array of shape (n_rows,)
    row_weights : array of shape (n_rows,)
        0 or more; what rows count in the statistics of their classes.
    constant : float
        The value of a feature that every row is given before its own, 0 for none.
    """

    rows: Rows
    labels: Sequence[Label]
    codes: Codes
    row_weights: Array
    constant: float

    def design(self, parts: Sequence[Part]) -> JointDesign:
        """Return the rows as hypotheses see them, by the statistics of those that weigh anything.

        Raises
        ------
        KeslerError
            If a class has no such row.
        """
        stored = np.flatnonzero(self.row_weights > 0)
        left_out = np.setdiff1d(np.arange(len(self.labels)), self.codes[stored])
        if len(left_out):
            raise KeslerError(
                f"class {self.labels[left_out[0]]!r} has no row of weight above 0: leave its rows "
                "out"
            )
        whole = len(stored) == len(self.rows)
        rows = self.rows if whole else self.rows.take(stored)
        weights = None if (self.row_weights[stored] == 1).all() else self.row_weights[stored]
        held = FrozenHypotheses(
            parts, self.labels, rows, self.codes[stored], weights, self.constant
        )
        return JointDesign(held, held.as_seen(self.rows))


@dataclass(frozen=True, eq=False)
class JointScorer:
    """Frozen hypotheses and their weights."""

    hypotheses: FrozenHypotheses
    weights: Array

    def scores(self, X: Any) -> Array:
        """Return the score of each class for each row."""
        return self.hypotheses.scores(self.hypotheses.as_seen(rows_of(X)), self.weights)


@dataclass(frozen=True, eq=False)
class KernelScorer:
    """Support vectors, their numbers, and what each counts in the score of each class."""

    kernel: MercerKernel
    numbers: Codes
    supports: Rows
    coefficients: Array
    constant: float

    def scores(self, X: Any) -> Array:
        """Return the score of each class for each row."""
        rows = _with_constant(rows_of(X), self.constant)
        scores: Array = kernel_table(self.kernel, rows, self.supports) @ self.coefficients
        return scores


def solve_svm(
    telling: Telling,
    parts: Sequence[Part],
    kernel: MercerKernel | None,
    bounds: Array,
    margins: Array,
    *,
    tol: float,
    max_iter: int,
    shuffle: Callable[[Codes], Codes],
    duals: Array | None,
) -> tuple[DualSolution, Array, JointScorer | KernelScorer]:
    """Solve the multiclass SVM over parts, or over a kernel.

    Parameters
    ----------
    telling : what was told of the rows.
    parts : the hypotheses.
    kernel : None for weights.
    bounds, margins, tol, max_iter, shuffle : caps and the rest as in
        :func:`~kesler.batch.coupled.solve_coupled`.
    duals : shares of each class in the bound of each row, 0 or more and of that sum, to begin
        with; None begins with weights 0.

    Returns
    -------
    How good the solution is, its duals in the same form, and what scores rows.

    Raises
    ------
    KeslerError
        If a kernel meets a feature map or too many rows.
    """
    targets: dict[str, Any] = {"tol": tol, "max_iter": max_iter, "shuffle": shuffle}
    idle = np.zeros_like(margins, shape=(len(bounds), len(margins)))
    idle[np.arange(len(bounds)), telling.codes] = bounds
    if duals is not None:
        targets["duals"] = idle - duals
    problem = telling.codes, bounds, margins
    if kernel is None:
        design = telling.design(parts)
        optimum = solve_coupled(design, *problem, **targets)
        return optimum, idle - optimum.duals, JointScorer(design.hypotheses, optimum.weights)
    _require_no_maps(parts, kernel)
    require_tabulable(len(telling.rows))
    rows = _with_constant(telling.rows, telling.constant)
    kernel = settled(kernel, rows)
    coupling = coupling_of([members_of(part, telling.labels) for part in parts])
    found = solve_kernel_dual(kernel_table(kernel, rows, rows), coupling, *problem, **targets)
    supports = rows.take(found.supports)
    scorer = KernelScorer(kernel, found.supports, supports, found.coefficients, telling.constant)
    return found, idle - found.duals, scorer


# ---- parameters ---------------------------------------------------------------------------------


def is_per_class(hypotheses: str | Part | list[Part]) -> bool:
    """Whether each class has one vector over the rows as they are, which has faster solvers."""
    return hypotheses in ("multi", PerClass(), [PerClass()])


def parts_of(
    hypotheses: str | Part | list[Part], feature_map: str | FeatureMap, *, dense: bool
) -> list[Part]:
    """Return the parts that parameters stand for, by the kind of the rows."""
    return resolve_hypotheses(hypotheses, lambda: Shared(resolve_map(feature_map, dense=dense)))


def rows_of(X: npt.NDArray[Any] | sparse.csr_array) -> Rows:
    """Return validated rows as kernels read them, in float32.

    Raises
    ------
    KeslerError
        If float32 cannot hold a value.
    """
    rows = Rows.from_sparse(X) if sparse.issparse(X) else Rows.from_dense(as_float32(X))
    rows.require_finite()
    return rows


def _with_constant(rows: Rows, constant: float) -> Rows:
    return rows.with_constant(constant) if constant else rows


def _require_no_maps(parts: Sequence[Part], kernel: MercerKernel) -> None:
    mapped = next((part for part in parts if part.feature_map is not None), None)
    if mapped is not None:
        raise KeslerError(
            f"{mapped!r} has a feature map, which batch learners do not take under a kernel "
            f'({kernel!r}): give hypotheses="multi" or groups without a map, leave the kernel '
            "out, or learn online"
        )

"""Solvers and scorers of batch classifiers over any hypotheses or kernel."""

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
from kesler.batch.distinct_rows import DistinctRows
from kesler.batch.dual_ascent import DualSolution
from kesler.batch.frozen import Array, Codes, FrozenHypotheses, JointDesign, coupling_of, members_of
from kesler.data.labels import Label
from kesler.data.rows import Rows
from kesler.data.sparse_rows import as_float32
from kesler.errors import KeslerError
from kesler.hypotheses import Part, PerClass, Shared, resolve_hypotheses
from kesler.kernels.mercer import MercerKernel
from kesler.maps import resolve_map
from kesler.maps.feature_map import FeatureMap


@dataclass(frozen=True, eq=False)
class Telling:
    """Training rows with their labels and weights.

    Parameters
    ----------
    rows : Rows
    labels : sequence of labels
        The labels of the classes, sorted.
    codes : int64 array of shape (n_rows,)
        The class of each row by number.
    row_weights : array of shape (n_rows,)
        The weights of rows in the statistics of their classes, above 0.
    constant : float
        The value of a constant first feature added to every row, 0 for none.
    """

    rows: Rows
    labels: Sequence[Label]
    codes: Codes
    row_weights: Array
    constant: float

    @classmethod
    def of(cls, X: Any, distinct: DistinctRows, constant: float) -> Telling:
        """Return the distinct ones of validated rows.

        Raises
        ------
        KeslerError
            If a value overflows float32.
        """
        rows = rows_of(X)
        taken = rows if distinct.are_all else rows.take(distinct.numbers)
        return cls(taken, distinct.classes.tolist(), distinct.codes, distinct.weights, constant)

    def design(self, parts: Sequence[Part]) -> JointDesign:
        """Return the design of the rows, with statistics from them."""
        weights = None if (self.row_weights == 1).all() else self.row_weights
        hypotheses = FrozenHypotheses(
            parts, self.labels, self.rows, self.codes, weights, self.constant
        )
        return JointDesign(hypotheses, hypotheses.as_seen(self.rows))


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
    """Support vectors, their row numbers, and their coefficients in the score of each class."""

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
    """Solve the multiclass SVM over the hypotheses of parts, or over a kernel.

    Parameters
    ----------
    telling : the training rows with labels and weights.
    parts : the hypotheses.
    kernel : the kernel, or None for a primal weight vector.
    bounds, margins, tol, max_iter, shuffle : `bounds` are the caps of
        :func:`~kesler.batch.coupled.solve_coupled`, the rest is as there.
    duals : initial dual variables of shape (n_rows, n_classes), 0 or more, whose rows sum to the
        bounds; None starts from weights 0.

    Returns
    -------
    The objectives of the solution, its duals in the same form, and the scorer.

    Raises
    ------
    KeslerError
        If a kernel is used with a feature map or too many rows.
    """
    options: dict[str, Any] = {"tol": tol, "max_iter": max_iter, "shuffle": shuffle}
    idle = np.zeros_like(margins, shape=(len(bounds), len(margins)))
    idle[np.arange(len(bounds)), telling.codes] = bounds
    if duals is not None:
        options["duals"] = idle - duals
    problem = telling.codes, bounds, margins
    if kernel is None:
        design = telling.design(parts)
        optimum = solve_coupled(design, *problem, **options)
        return optimum, idle - optimum.duals, JointScorer(design.hypotheses, optimum.weights)
    _require_no_maps(parts, kernel)
    require_tabulable(len(telling.rows))
    rows = _with_constant(telling.rows, telling.constant)
    kernel = settled(kernel, rows)
    coupling = coupling_of([members_of(part, telling.labels) for part in parts])
    found = solve_kernel_dual(kernel_table(kernel, rows, rows), coupling, *problem, **options)
    supports = rows.take(found.supports)
    scorer = KernelScorer(kernel, found.supports, supports, found.coefficients, telling.constant)
    return found, idle - found.duals, scorer


# ---- parameters ---------------------------------------------------------------------------------


def is_per_class(hypotheses: str | Part | list[Part]) -> bool:
    """Return whether each class has one weight vector over unmapped rows, for faster solvers."""
    return hypotheses in ("multi", PerClass(), [PerClass()])


def parts_of(
    hypotheses: str | Part | list[Part], feature_map: str | FeatureMap, *, dense: bool
) -> list[Part]:
    """Return the parts for the given parameters; default maps depend on whether rows are dense."""
    return resolve_hypotheses(hypotheses, lambda: Shared(resolve_map(feature_map, dense=dense)))


def rows_of(X: npt.NDArray[Any] | sparse.csr_array) -> Rows:
    """Return validated rows in float32, as kernels read them.

    Raises
    ------
    KeslerError
        If a value overflows float32.
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
            f"{mapped!r} has a feature map, which batch learners do not support with a kernel "
            f'({kernel!r}): give hypotheses="multi" or groups without a map, leave the kernel '
            "out, or use an online learner"
        )

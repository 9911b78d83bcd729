"""Candidate columns: what a solver that wants few of very many features asks of them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from scipy import sparse

from kesler.solvers.design import DensePerClass, PerClassDesign, SparsePerClass
from kesler.solvers.mixed_norms import MixedNorm

Doubles = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]


class Columns(Protocol):
    """Values of candidate features for the training rows, which need not exist all at once."""

    @property
    def n_rows(self) -> int:
        """How many rows there are."""

    @property
    def n_columns(self) -> int:
        """How many candidates there are."""

    def dual_sizes(self, coefficients: Doubles, norm: MixedNorm) -> Doubles:
        """Return the dual norm of each candidate's part of a gradient.

        Parameters
        ----------
        coefficients : array of shape (n_rows, n_classes)
            Derivatives with respect to the scores; the part of a candidate is the sum over the
            rows of its value times them.
        norm : MixedNorm

        Returns
        -------
        Array of shape (n_columns,)
        """

    def take(self, chosen: Indices) -> Doubles:
        """Return some candidates, of shape (n_rows, n_chosen)."""


@dataclass(frozen=True, eq=False)
class MatrixColumns:
    """The columns of a matrix as it stands.

    Parameters
    ----------
    X : array or CSR array of shape (n_rows, n_columns), float32 or float64
        Sparse rows name no feature twice.
    """

    X: Any

    @property
    def n_rows(self) -> int:
        """How many rows there are."""
        return int(self.X.shape[0])

    @property
    def n_columns(self) -> int:
        """How many columns there are."""
        return int(self.X.shape[1])

    def dual_sizes(self, coefficients: Doubles, norm: MixedNorm) -> Doubles:
        """Return the dual norm of each row of X' times the coefficients."""
        return norm.dual_sizes(np.asarray(self._design.adjoint(coefficients)))

    def take(self, chosen: Indices) -> Doubles:
        """Return a copy of some columns, dense."""
        if sparse.issparse(self.X):
            return np.asarray(self._by_column[:, chosen].toarray(), dtype=np.float64, order="C")
        return np.ascontiguousarray(self.X[:, chosen], dtype=np.float64)

    @cached_property
    def _design(self) -> PerClassDesign:
        kind = SparsePerClass if sparse.issparse(self.X) else DensePerClass
        return kind(self.X, intercept=False)

    @cached_property
    def _by_column(self) -> Any:
        return self.X.tocsc()

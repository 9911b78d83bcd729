"""Designs, linear maps from weights to the scores of rows, and preconditioners of Newton steps."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.linalg import blas, cho_factor, cho_solve

Floats = npt.NDArray[Any]

# Number of rows per column from which a block is estimated.
ROWS_PER_COLUMN = 12
# Blocks are used only if all of them together have at most this many numbers.
MOST_NUMBERS = 1 << 25
MOST_COLUMNS = 1500
# Added to a diagonal, as a share of its mean, so that directions without curvature stay finite.
JITTER = 1e-6


class Preconditioner(Protocol):
    """An approximate inverse of a Hessian."""

    def __call__(self, residual: Floats, /) -> Floats:
        """Return the inverse times an array of the weights' shape."""


@dataclass(frozen=True)
class Diagonal:
    """The inverse of the Hessian's diagonal.

    Parameters
    ----------
    diagonal : array of the weights' shape, 0 or more
    """

    diagonal: Floats

    def __post_init__(self) -> None:
        floor = max(JITTER * float(self.diagonal.mean()), float(np.finfo(np.float32).tiny))
        object.__setattr__(self, "diagonal", np.maximum(self.diagonal, floor).astype(np.float32))

    def __call__(self, residual: Floats) -> Floats:
        """Divide by the diagonal."""
        return np.asarray(residual / self.diagonal)


@dataclass(frozen=True)
class ClassBlocks:
    """The inverse of the Hessian's block diagonal, with one block per class.

    Parameters
    ----------
    factors : list of Cholesky factors, one per class
    """

    factors: list[tuple[Floats, bool]]

    @staticmethod
    def fit_in(n_features: int, n_classes: int) -> bool:
        """Return whether blocks of this size are small enough to use."""
        return n_features <= MOST_COLUMNS and n_features**2 * n_classes <= MOST_NUMBERS

    @classmethod
    def of(cls, blocks: list[Floats], ridge: Floats) -> ClassBlocks:
        """Return the inverse of blocks, given by their lower triangles, plus a ridge."""
        return cls([_factor(block, ridge) for block in blocks])

    def __call__(self, residual: Floats) -> Floats:
        """Solve for each class in turn."""
        columns = [
            cho_solve(factor, column, check_finite=False)
            for factor, column in zip(self.factors, residual.T, strict=True)
        ]
        return np.stack(columns, axis=1)


def class_blocks(
    dense_rows: Callable[[npt.NDArray[np.int64]], npt.NDArray[np.float32]],
    curvatures: Floats,
    n_columns: int,
) -> list[Floats]:
    """Estimate sum_i q_ik x_i x_i' for each class k by importance sampling of rows.

    Row i is drawn with probability min(1, m q_ik / sum_i q_ik) and weighted by its inverse.
    """
    drawn = np.random.default_rng(0).random(len(curvatures))
    return [_block(dense_rows, q, drawn, ROWS_PER_COLUMN * n_columns) for q in curvatures.T]


def _block(
    dense_rows: Callable[[npt.NDArray[np.int64]], npt.NDArray[np.float32]],
    curvatures: Floats,
    drawn: Floats,
    n_rows: int,
) -> Floats:
    wanted = n_rows / max(float(curvatures.sum()), 1e-30) * curvatures
    probabilities = np.minimum(1, wanted) if len(curvatures) > n_rows else np.ones_like(curvatures)
    rows = np.flatnonzero(drawn < probabilities)
    scale = np.sqrt(curvatures[rows] / probabilities[rows])
    scaled = dense_rows(rows) * scale[:, None].astype(np.float32)
    if not len(rows):  # BLAS does not accept empty arrays
        return np.zeros((scaled.shape[1], scaled.shape[1]), dtype=np.float32, order="F")
    return np.asarray(blas.ssyrk(1.0, scaled.T, lower=1))


def _factor(block: Floats, ridge: Floats) -> tuple[Floats, bool]:
    diagonal = np.diagonal(block) + ridge[:, 0]
    np.fill_diagonal(block, diagonal + JITTER * diagonal.mean() + np.finfo(np.float32).tiny)
    return cho_factor(block, lower=True, overwrite_a=True, check_finite=False)


Matrix = Floats | sparse.csr_array

# Size of a dense block of rows, which stays in the cache until its second product is computed.
BLOCK_BYTES = 1 << 22


class Design(ABC):
    """A linear map from weights to the scores of n_rows rows for n_classes classes.

    Attributes
    ----------
    n_rows : int
    """

    n_rows: int

    @abstractmethod
    def weights_shape(self, n_classes: int) -> tuple[int, ...]:
        """Return the shape of the weights."""

    @abstractmethod
    def forward(self, weights: Floats) -> Floats:
        """Return the scores, of shape (n_rows, n_classes) and the weights' dtype."""

    @abstractmethod
    def adjoint(self, coefficients: Floats) -> Floats:
        """Apply the adjoint map to coefficients of shape (n_rows, n_classes)."""

    @abstractmethod
    def blocks(self) -> Iterator[tuple[slice, Design]]:
        """Yield blocks of rows that stay in the cache during forward and adjoint products."""

    @abstractmethod
    def preconditioner(self, curvatures: Floats, ridge: Floats) -> Preconditioner:
        """Return an approximate inverse of the Hessian of a sum of row losses plus a ridge.

        Parameters
        ----------
        curvatures : float32 array of shape (n_rows, n_classes)
            Second derivatives of each row's loss with respect to each score.
        ridge : array of the weights' shape, or one that broadcasts to it
        """

    @property
    @abstractmethod
    def single(self) -> Design:
        """The same design in float32, for products with the Hessian."""


@dataclass(frozen=True)
class PerClassDesign(Design):
    """One weight per class and feature: scores X W, W of shape (n_features, n_classes).

    Parameters
    ----------
    X : array or CSR array of shape (n_rows, n_features), float32 or float64
    intercept : bool
        Whether the last row of the weights belongs to a constant feature of value 1.
    """

    X: Matrix
    intercept: bool

    @property
    def n_rows(self) -> int:  # type: ignore[override]
        """Number of rows."""
        return int(self.X.shape[0])

    @property
    def n_features(self) -> int:
        """Number of features, including the constant one."""
        return int(self.X.shape[1]) + self.intercept

    def weights_shape(self, n_classes: int) -> tuple[int, ...]:
        """Return (n_features, n_classes)."""
        return self.n_features, n_classes

    def forward(self, weights: Floats) -> Floats:
        """Return X W, plus the intercepts."""
        scores = self._times(np.ascontiguousarray(weights[: self.X.shape[1]]))
        if self.intercept:
            scores += weights[-1]
        return scores

    def adjoint(self, coefficients: Floats) -> Floats:
        """Return the sum over the rows of each feature times each coefficient."""
        weights = np.empty((self.n_features, coefficients.shape[1]), dtype=coefficients.dtype)
        weights[: self.X.shape[1]] = self._transposed_times(coefficients)
        if self.intercept:
            weights[-1] = coefficients.sum(axis=0)
        return weights

    def preconditioner(self, curvatures: Floats, ridge: Floats) -> Preconditioner:
        """Return the inverse of the class blocks, or of the diagonal if the blocks are large."""
        if ClassBlocks.fit_in(self.n_features, curvatures.shape[1]):
            return ClassBlocks.of(self.class_blocks(curvatures), ridge)
        return Diagonal(self.diagonal(curvatures) + ridge)

    def class_blocks(self, curvatures: Floats) -> list[Floats]:
        """Estimate the lower triangle of the Hessian's block of each class."""
        return class_blocks(self.dense_rows, curvatures, self.n_features)

    def diagonal(self, curvatures: Floats) -> Floats:
        """Return the Hessian's diagonal."""
        return self._squared().adjoint(curvatures)

    @abstractmethod
    def dense_rows(self, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.float32]:
        """Return some rows with the constant feature."""

    @abstractmethod
    def _times(self, weights: Floats) -> Floats: ...

    @abstractmethod
    def _transposed_times(self, coefficients: Floats) -> Floats: ...

    @abstractmethod
    def _squared(self) -> PerClassDesign:
        """Return the design of the squared features, in float32."""


@dataclass(frozen=True)
class DensePerClass(PerClassDesign):
    """Per-class weights over dense rows, computed by BLAS in blocks of rows."""

    X: Floats

    @cached_property
    def single(self) -> DensePerClass:
        """The same rows in float32."""
        return replace(self, X=self.X.astype(np.float32, copy=False))

    def blocks(self) -> Iterator[tuple[slice, DensePerClass]]:
        """Yield blocks of rows that fit into the cache."""
        step = max(64, BLOCK_BYTES // max(1, self.X.shape[1] * self.X.itemsize))
        for start in range(0, self.n_rows, step):
            rows = slice(start, start + step)
            yield rows, replace(self, X=self.X[rows])

    def dense_rows(self, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.float32]:
        """Return some rows with the constant feature."""
        stored = np.ones((len(rows), self.n_features), dtype=np.float32)
        stored[:, : self.X.shape[1]] = self.X[rows]
        return stored

    def _times(self, weights: Floats) -> Floats:
        if self.X.dtype == weights.dtype:
            return np.asarray(self.X @ weights)
        return np.concatenate([block._in(weights.dtype) @ weights for _, block in self.blocks()])

    def _transposed_times(self, coefficients: Floats) -> Floats:
        if self.X.dtype == coefficients.dtype:
            return np.asarray(self.X.T @ coefficients)
        parts = ((block._in(coefficients.dtype), rows) for rows, block in self.blocks())
        return np.asarray(sum(X.T @ coefficients[rows] for X, rows in parts))

    def _in(self, dtype: np.dtype[Any]) -> Floats:
        return self.X.astype(dtype)

    def _squared(self) -> DensePerClass:
        return replace(self, X=np.square(self.X, dtype=np.float32))


@dataclass(frozen=True)
class SparsePerClass(PerClassDesign):
    """Per-class weights over sparse rows: one compiled pass for each product."""

    X: sparse.csr_array

    @cached_property
    def single(self) -> SparsePerClass:
        """The same rows in float32."""
        return self._with_values(self.X.data.astype(np.float32, copy=False))

    def blocks(self) -> Iterator[tuple[slice, Design]]:
        """Yield all rows at once, since it is the weights that do not fit into the cache."""
        yield slice(0, self.n_rows), self

    def dense_rows(self, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.float32]:
        """Return some rows with the constant feature."""
        stored = np.ones((len(rows), self.n_features), dtype=np.float32)
        stored[:, : self.X.shape[1]] = self.X[rows].toarray()
        return stored

    def _times(self, weights: Floats) -> Floats:
        from kesler.compiled.batch.softmax_loss import add_scores

        scores = np.zeros((self.n_rows, weights.shape[1]), dtype=weights.dtype)
        add_scores(*self._structure, self._values(weights.dtype), weights, scores)
        return scores

    def _transposed_times(self, coefficients: Floats) -> Floats:
        from kesler.compiled.batch.softmax_loss import add_rows

        weights = np.zeros((self.X.shape[1], coefficients.shape[1]), dtype=coefficients.dtype)
        add_rows(*self._structure, self._values(coefficients.dtype), coefficients, weights)
        return weights

    @cached_property
    def _structure(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32]]:
        X = self.X
        indptr = np.ascontiguousarray(X.indptr, dtype=np.int64)
        return indptr, np.ascontiguousarray(X.indices, dtype=np.int32)

    def _values(self, dtype: np.dtype[Any]) -> Floats:
        return np.ascontiguousarray(self.X.data, dtype=dtype)

    def _squared(self) -> SparsePerClass:
        return self._with_values(np.square(self.X.data, dtype=np.float32))

    def _with_values(self, values: Floats) -> SparsePerClass:
        X = sparse.csr_array((values, self.X.indices, self.X.indptr), shape=self.X.shape)
        return replace(self, X=X)

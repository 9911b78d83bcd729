"""Designs: how the scores of rows follow from weights.

And the conditioning of Newton steps on them.
"""

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

# A block is estimated from so many rows for each of its columns.
ROWS_PER_COLUMN = 12
# Blocks are worth their time where all of them together hold no more numbers.
MOST_NUMBERS = 1 << 25
MOST_COLUMNS = 1500
# Added to a diagonal, as a share of its mean: a direction without curvature stays finite.
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
    diagonal : array of the weights' shape, none of it negative
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
    """The inverse of the Hessian without the blocks that tie one class to another.

    Parameters
    ----------
    factors : list of Cholesky factors, one a class
    """

    factors: list[tuple[Floats, bool]]

    @staticmethod
    def fit_in(n_features: int, n_classes: int) -> bool:
        """Whether blocks of this size are worth their time."""
        return n_features <= MOST_COLUMNS and n_features**2 * n_classes <= MOST_NUMBERS

    @classmethod
    def of(cls, blocks: list[Floats], ridge: Floats) -> ClassBlocks:
        """Return the inverse of blocks, given below their diagonals, plus a ridge."""
        return cls([_factor(block, ridge) for block in blocks])

    def __call__(self, residual: Floats) -> Floats:
        """Solve for one class after the other."""
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
    """Estimate sum_i q_ik x_i x_i' for each class k from the rows that curve most.

    Row i is drawn with probability min(1, m q_ik / sum_i q_ik), and counts for its inverse.
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
    if not len(rows):  # BLAS takes no empty arrays
        return np.zeros((scaled.shape[1], scaled.shape[1]), dtype=np.float32, order="F")
    return np.asarray(blas.ssyrk(1.0, scaled.T, lower=1))


def _factor(block: Floats, ridge: Floats) -> tuple[Floats, bool]:
    diagonal = np.diagonal(block) + ridge[:, 0]
    np.fill_diagonal(block, diagonal + JITTER * diagonal.mean() + np.finfo(np.float32).tiny)
    return cho_factor(block, lower=True, overwrite_a=True, check_finite=False)


Matrix = Floats | sparse.csr_array

# Rows of a dense block: it is still in the cache when the second product with it is made.
BLOCK_BYTES = 1 << 22


class Design(ABC):
    """A linear map from weights to the scores of n_rows rows for n_classes classes.

    Attributes
    ----------
    n_rows : how many rows there are.
    """

    n_rows: int

    @abstractmethod
    def weights_shape(self, n_classes: int) -> tuple[int, ...]:
        """Return the shape of the weights."""

    @abstractmethod
    def forward(self, weights: Floats) -> Floats:
        """Return the scores, of shape (n_rows, n_classes) and the type of the weights."""

    @abstractmethod
    def adjoint(self, coefficients: Floats) -> Floats:
        """Return the transposed map of coefficients of shape (n_rows, n_classes)."""

    @abstractmethod
    def blocks(self) -> Iterator[tuple[slice, Design]]:
        """Yield the rows in pieces, to go forward and back over each while it is at hand."""

    @abstractmethod
    def preconditioner(self, curvatures: Floats, ridge: Floats) -> Preconditioner:
        """Return an approximate inverse of the Hessian of a sum of row losses, plus a ridge.

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
    """Each class has a weight for each feature: scores X W, W of shape (n_features, n_classes).

    Parameters
    ----------
    X : array or CSR array of shape (n_rows, n_features), float32 or float64
    intercept : bool
        Whether the weights have a last row, that of a feature that is 1.
    """

    X: Matrix
    intercept: bool

    @property
    def n_rows(self) -> int:  # type: ignore[override]
        """How many rows there are."""
        return int(self.X.shape[0])

    @property
    def n_features(self) -> int:
        """How many features there are, the constant one among them."""
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
        """Return the sums over the rows of each feature times each coefficient."""
        weights = np.empty((self.n_features, coefficients.shape[1]), dtype=coefficients.dtype)
        weights[: self.X.shape[1]] = self._transposed_times(coefficients)
        if self.intercept:
            weights[-1] = coefficients.sum(axis=0)
        return weights

    def preconditioner(self, curvatures: Floats, ridge: Floats) -> Preconditioner:
        """Return the inverse of the blocks of the classes, or of the diagonal if they are large."""
        if ClassBlocks.fit_in(self.n_features, curvatures.shape[1]):
            return ClassBlocks.of(self.class_blocks(curvatures), ridge)
        return Diagonal(self.diagonal(curvatures) + ridge)

    def class_blocks(self, curvatures: Floats) -> list[Floats]:
        """Return the Hessian's blocks of each class, estimated, below their diagonals."""
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
    """Per-class weights over dense rows: BLAS, a block of rows at a time."""

    X: Floats

    @cached_property
    def single(self) -> DensePerClass:
        """The same rows in float32."""
        return replace(self, X=self.X.astype(np.float32, copy=False))

    def blocks(self) -> Iterator[tuple[slice, DensePerClass]]:
        """Yield as many rows at a time as a cache holds."""
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
    """Per-class weights over sparse rows: one compiled pass each way."""

    X: sparse.csr_array

    @cached_property
    def single(self) -> SparsePerClass:
        """The same rows in float32."""
        return self._with_values(self.X.data.astype(np.float32, copy=False))

    def blocks(self) -> Iterator[tuple[slice, Design]]:
        """Yield all rows at once: what does not stay in the cache are the weights."""
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
        return X.indptr.astype(np.int64, copy=False), X.indices.astype(np.int32, copy=False)

    def _values(self, dtype: np.dtype[Any]) -> Floats:
        return np.asarray(self.X.data.astype(dtype, copy=False))

    def _squared(self) -> SparsePerClass:
        return self._with_values(np.square(self.X.data, dtype=np.float32))

    def _with_values(self, values: Floats) -> SparsePerClass:
        X = sparse.csr_array((values, self.X.indices, self.X.indptr), shape=self.X.shape)
        return replace(self, X=X)

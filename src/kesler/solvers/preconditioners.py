"""Preconditioners: cheap approximate inverses of a Hessian, which shorten conjugate gradients."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
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
    chances = np.minimum(1, wanted) if len(curvatures) > n_rows else np.ones_like(curvatures)
    rows = np.flatnonzero(drawn < chances)
    scale = np.sqrt(curvatures[rows] / chances[rows])
    scaled = dense_rows(rows) * scale[:, None].astype(np.float32)
    if not len(rows):  # BLAS takes no empty arrays
        return np.zeros((scaled.shape[1], scaled.shape[1]), dtype=np.float32, order="F")
    return np.asarray(blas.ssyrk(1.0, scaled.T, lower=1))


def _factor(block: Floats, ridge: Floats) -> tuple[Floats, bool]:
    diagonal = np.diagonal(block) + ridge[:, 0]
    np.fill_diagonal(block, diagonal + JITTER * diagonal.mean() + np.finfo(np.float32).tiny)
    return cho_factor(block, lower=True, overwrite_a=True, check_finite=False)

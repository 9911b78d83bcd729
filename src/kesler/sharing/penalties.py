"""Smooth penalties on weights grouped by feature."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Doubles = npt.NDArray[np.float64]


Floats = npt.NDArray[Any]


class Penalty(ABC):
    """A smooth convex function of weights of shape (n_columns, n_classes).

    The penalty and its gradient are 0 at weights 0: columns that are not chosen do not contribute,
    and the choice of the next column depends on the loss only.
    """

    @abstractmethod
    def value(self, weights: Floats) -> float:
        """Return the penalty."""

    @abstractmethod
    def gradient(self, weights: Floats) -> Floats:
        """Return its gradient, of the weights' shape."""

    @abstractmethod
    def curvature(self, weights: Floats) -> Floats:
        """Return the diagonal of its Hessian, of the weights' shape."""


@dataclass(frozen=True)
class NoPenalty(Penalty):
    """No penalty."""

    def value(self, weights: Floats) -> float:
        """Return 0."""
        return 0.0

    def gradient(self, weights: Floats) -> Floats:
        """Return zeros."""
        return np.zeros_like(weights)

    def curvature(self, weights: Floats) -> Floats:
        """Return zeros."""
        return np.zeros_like(weights)


@dataclass(frozen=True)
class Frobenius(Penalty):
    """The strength times the sum of squared weights."""

    strength: float

    def value(self, weights: Floats) -> float:
        """Return the penalty."""
        return self.strength * float(np.vdot(weights, weights))

    def gradient(self, weights: Floats) -> Floats:
        """Return its gradient."""
        return 2 * self.strength * weights

    def curvature(self, weights: Floats) -> Floats:
        """Return the diagonal of its Hessian, the same for all weights."""
        return np.full_like(weights, 2 * self.strength)


@dataclass(frozen=True)
class SmoothAbsolute(Penalty):
    r"""A smooth approximation of the sum of all absolute weights.

    .. math:: \alpha \sum_{j r} \frac1\beta \ln \frac{e^{\beta w_{rj}} + e^{-\beta w_{rj}}}{2}

    It is at most alpha ln(2) / beta per weight below the norm, and never above.
    """

    strength: float
    sharpness: float

    def value(self, weights: Floats) -> float:
        """Return the penalty."""
        sizes = np.abs(self.sharpness * weights)
        logarithms = sizes + np.log1p(np.exp(-2 * sizes)) - np.log(2)
        return self.strength / self.sharpness * float(logarithms.sum())

    def gradient(self, weights: Floats) -> Floats:
        """Return its gradient."""
        return np.asarray(self.strength * np.tanh(self.sharpness * weights))

    def curvature(self, weights: Floats) -> Floats:
        """Return the diagonal of its Hessian."""
        pull = np.tanh(self.sharpness * weights)
        return np.asarray(self.strength * self.sharpness * (1 - pull**2))


@dataclass(frozen=True)
class SmoothLargest(Penalty):
    r"""A smooth approximation of the sum over columns of the largest absolute weight.

    .. math:: \alpha \sum_j \frac1\beta \ln \Big( \frac1{2k} \sum_{r=1}^k
        e^{\beta w_{rj}} + e^{-\beta w_{rj}} \Big)

    It is at most alpha ln(2 k) / beta per column below the norm, and never above.
    """

    strength: float
    sharpness: float

    def value(self, weights: Floats) -> float:
        """Return the penalty."""
        up, down, most = self._exponentials(weights)
        means = (up + down).sum(axis=1) / (2 * weights.shape[1])
        return self.strength / self.sharpness * float((np.log(means) + most[:, 0]).sum())

    def gradient(self, weights: Floats) -> Floats:
        """Return its gradient."""
        up, down, _ = self._exponentials(weights)
        return np.asarray(self.strength * (up - down) / (up + down).sum(axis=1, keepdims=True))

    def curvature(self, weights: Floats) -> Floats:
        """Return the diagonal of its Hessian."""
        up, down, _ = self._exponentials(weights)
        total = (up + down).sum(axis=1, keepdims=True)
        shares, pull = (up + down) / total, (up - down) / total
        return np.asarray(self.strength * self.sharpness * (shares - pull**2))

    def _exponentials(self, weights: Floats) -> tuple[Floats, Floats, Floats]:
        """Return exp(beta w - m), exp(-beta w - m) and the m of each column."""
        scaled = self.sharpness * weights
        most = np.abs(scaled).max(axis=1, keepdims=True)
        return np.exp(scaled - most), np.exp(-scaled - most), most


@dataclass(frozen=True)
class SmoothLength(Penalty):
    r"""A smooth approximation of the sum over columns of their Euclidean length.

    .. math:: \alpha \sum_j \sqrt{\|w_j\|^2 + \beta^{-2}} - \beta^{-1}

    It is at most alpha / beta per column below the norm, and never above.
    """

    strength: float
    sharpness: float

    def value(self, weights: Floats) -> float:
        """Return the penalty."""
        return self.strength * float((self._lengths(weights) - 1 / self.sharpness).sum())

    def gradient(self, weights: Floats) -> Floats:
        """Return its gradient."""
        return self.strength * weights / self._lengths(weights)

    def curvature(self, weights: Floats) -> Floats:
        """Return the diagonal of its Hessian."""
        lengths = self._lengths(weights)
        return self.strength * (1 - (weights / lengths) ** 2) / lengths

    def _lengths(self, weights: Floats) -> Floats:
        squares = np.square(weights).sum(axis=1, keepdims=True)
        return np.asarray(np.sqrt(squares + self.sharpness**-2))

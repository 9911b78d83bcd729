"""Penalties on weights whose columns belong to features: mixed norms, and smooth ones."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

Doubles = npt.NDArray[np.float64]
MixedNormName = Literal["inf-1", "2-1"]


@dataclass(frozen=True)
class MixedNorm:
    r"""The sum over features of a norm of their weights.

    .. math:: \|W\|_{\infty,1} = \sum_j \max_r |W_{jr}|, \qquad
        \|W\|_{2,1} = \sum_j \left( \sum_r W_{jr}^2 \right)^{1/2}

    Parameters
    ----------
    name : "inf-1" or "2-1"
    """

    name: MixedNormName

    @property
    def euclidean(self) -> bool:
        """Whether the norm of a feature's weights is the Euclidean one."""
        return self.name == "2-1"

    def of(self, weights: Doubles) -> float:
        """Return the norm of weights of shape (n_features, n_classes)."""
        if self.euclidean:
            return float(np.linalg.norm(weights, axis=1).sum())
        return float(np.abs(weights).max(axis=1, initial=0.0).sum())

    def dual_sizes(self, gradient: Doubles) -> Doubles:
        """Return the dual norm of each feature's part of a gradient: L1 of "inf-1", L2 of "2-1"."""
        if self.euclidean:
            return np.asarray(np.linalg.norm(gradient, axis=1))
        return np.asarray(np.abs(gradient).sum(axis=1))


Floats = npt.NDArray[Any]


class Penalty(ABC):
    """A smooth convex function of weights of shape (n_columns, n_classes).

    It is 0 at weights 0, and so is its gradient: columns that were not chosen add nothing to it,
    and which one is chosen next goes by the loss alone.
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
    """Nothing."""

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
    """The strength times the sum of the squares."""

    strength: float

    def value(self, weights: Floats) -> float:
        """Return the penalty."""
        return self.strength * float(np.vdot(weights, weights))

    def gradient(self, weights: Floats) -> Floats:
        """Return its gradient."""
        return 2 * self.strength * weights

    def curvature(self, weights: Floats) -> Floats:
        """Return the same for all weights."""
        return np.full_like(weights, 2 * self.strength)


@dataclass(frozen=True)
class SmoothLargest(Penalty):
    r"""A stand-in for the sum over columns of the largest absolute weight.

    .. math:: \alpha \sum_j \frac1\beta \ln \Big( \frac1{2k} \sum_{r=1}^k
        e^{\beta w_{rj}} + e^{-\beta w_{rj}} \Big)

    At most alpha ln(2 k) / beta a column below the norm, and never above.
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
    r"""A stand-in for the sum over columns of their Euclidean length.

    .. math:: \alpha \sum_j \sqrt{\|w_j\|^2 + \beta^{-2}} - \beta^{-1}

    At most alpha / beta a column below the norm, and never above.
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

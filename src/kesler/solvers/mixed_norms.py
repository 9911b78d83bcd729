"""Mixed norms: a norm over the classes of each feature's weights, summed over the features."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

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

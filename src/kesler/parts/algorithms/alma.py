"""ALMA: the approximate large margin algorithm, in the Euclidean norm."""
# mypy: disallow_untyped_defs=False

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Real

import numpy as np

from kesler.errors import KeslerError
from kesler.parts.algorithms.algorithm import ThresholdAlgorithm

LEAST_SCALE = 1e-15
LEAST_SHARE = 1e-4  # of its peak, below which much of a sum of squares may be rounding errors


def alma_update(parameters, positions, z, margin, weights, states, numbers):
    """Update with z / ||z||.

    Numbers are the scale, the sum of squares of the weights before it, which follows each weight as
    it is stored, the number of updates so far, and the largest sum since all weights were read.
    """
    alpha, k = parameters[0], numbers[2] + 1.0
    z_norm = 0.0
    for j in range(z.shape[0]):
        z_norm += z[j] * z[j]
    length = math.sqrt(z_norm)
    required = (1.0 - alpha) * math.sqrt(8.0 / k) / alpha
    if length == 0 or margin > required * length:
        return
    step = math.sqrt(2.0 / k)
    for j in range(z.shape[0]):
        before = np.float64(weights[positions[j]])
        weights[positions[j]] += step * z[j] / length / numbers[0]
        after = np.float64(weights[positions[j]])
        numbers[1] += (after - before) * (after + before)
    numbers[2], numbers[3] = k, max(numbers[3], numbers[1])
    w_norm = numbers[0] * numbers[0] * numbers[1]
    if w_norm > 1:
        numbers[0] /= math.sqrt(w_norm)
    if numbers[0] < LEAST_SCALE or numbers[1] < LEAST_SHARE * numbers[3]:
        numbers[1] = 0.0
        for i in range(weights.shape[0]):
            weights[i] *= numbers[0]
            numbers[1] += np.float64(weights[i]) * np.float64(weights[i])
        numbers[0], numbers[3] = 1.0, numbers[1]


@dataclass(frozen=True)
class ALMA(ThresholdAlgorithm):
    r"""Steps that shorten with the number of updates, and weights projected onto a ball.

    .. math:: w := \Pi_{\|w\| \le 1} \big(w + \sqrt{2 / k}\, \hat z\big)
        \;\text{if}\; \langle w, \hat z \rangle \le (1 - \alpha) \sqrt{8 / k} / \alpha,
        \quad \hat z = z / \|z\|

    with k the number of updates so far, this one included.

    Parameters
    ----------
    alpha : float in (0, 1], default 0.9
        The share of the largest margin that may be missed: a share of 1 - alpha is reached. With
        smaller values, more trials cause an update; with 1, only mistakes do.

    Raises
    ------
    KeslerError
        If alpha is not in (0, 1].

    Notes
    -----
    Costs O(nnz) per trial. The length of z has no effect.

    References
    ----------
    Gentile (2001), "A new approximate maximal margin classification algorithm", Figure 1 with
    p = 2, B = sqrt(8) / alpha and C = sqrt(2).

    Examples
    --------
    >>> from kesler.algorithms import ALMA
    >>> ALMA(alpha=0.5)
    ALMA(alpha=0.5)
    """

    alpha: float = 0.9

    update = staticmethod(alma_update)

    def __post_init__(self) -> None:
        if not (isinstance(self.alpha, Real) and 0 < self.alpha <= 1):
            raise KeslerError(
                f"ALMA(alpha={self.alpha!r}): alpha must lie above 0 and not above 1: it is the "
                "share of the largest margin that may be missed"
            )
        object.__setattr__(self, "alpha", float(self.alpha))

    @property
    def parameters(self) -> tuple[float, ...]:
        """The share of the margin that may be missed."""
        return (self.alpha,)

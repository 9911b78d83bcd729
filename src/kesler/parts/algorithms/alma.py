"""ALMA: the approximate large margin algorithm, in the Euclidean norm."""
# mypy: disallow_untyped_defs=False

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Real

from kesler.errors import KeslerError
from kesler.parts.algorithms.algorithm import ThresholdAlgorithm

LEAST_SCALE = 1e-15


def alma_update(parameters, positions, z, margin, weights, states, numbers):
    """Update with z / ||z||; numbers are the scale, ||w||^2 and the number of updates so far."""
    alpha, k = parameters[0], numbers[2] + 1.0
    z_norm = 0.0
    for j in range(z.shape[0]):
        z_norm += z[j] * z[j]
    length = math.sqrt(z_norm)
    required = (1.0 - alpha) * math.sqrt(8.0 / k) / alpha
    if length == 0 or margin > required * length:
        return
    step = math.sqrt(2.0 / k)
    w_norm = numbers[1] + 2.0 * step * margin / length + step * step
    for j in range(z.shape[0]):
        weights[positions[j]] += step * z[j] / length / numbers[0]
    if w_norm > 1:
        numbers[0] /= math.sqrt(w_norm)
        w_norm = 1.0
        if numbers[0] < LEAST_SCALE:
            for i in range(weights.shape[0]):
                weights[i] *= numbers[0]
            numbers[0] = 1.0
    numbers[1], numbers[2] = w_norm, k


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

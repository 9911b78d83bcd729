"""ALMA: the approximate large margin algorithm, in the Euclidean norm and in others."""
# mypy: disallow_untyped_defs=False

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from kesler.algorithms.algorithm import ThresholdAlgorithm, Update
from kesler.errors import keep_number

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


def alma_p_update(parameters, positions, z, margin, weights, states, numbers):
    """Add z / ||z||_p to the sums v; the weights follow from them by the link of the p-norm.

    The sums are stored divided by a factor, so that a projection changes that alone, and weights as
    (|v| / reference)^(p - 1). Numbers are the scale of the weights, the sum of (|v| / reference)^p,
    the number of updates so far, the largest such sum since all weights were computed, the factor
    and the reference.
    """
    alpha, p, k = parameters[0], parameters[1], numbers[2] + 1.0
    largest, total = 0.0, 0.0
    for j in range(z.shape[0]):
        largest = max(largest, abs(z[j]))
    if largest == 0:
        return
    for j in range(z.shape[0]):
        total += (abs(z[j]) / largest) ** p
    length = largest * total ** (1.0 / p)
    if margin > (1.0 - alpha) * math.sqrt(8.0 * (p - 1.0) / k) / alpha * length:
        return
    sums, factor, reference = states[0], numbers[4] if k > 1 else 1.0, numbers[5]
    step, is_stale = math.sqrt(2.0 / ((p - 1.0) * k)) / length / factor, reference == 0
    for j in range(z.shape[0]):
        i = positions[j]
        before = abs(sums[i])
        sums[i] += step * z[j]
        after = abs(sums[i])
        if is_stale or after > 2.0 * reference:
            is_stale = True
            continue
        numbers[1] += (after / reference) ** p - (before / reference) ** p
        weights[i] = math.copysign((after / reference) ** (p - 1.0), sums[i])
    numbers[3] = max(numbers[3], numbers[1])
    if is_stale or numbers[1] < LEAST_SHARE * numbers[3]:
        reference, numbers[1] = 0.0, 0.0
        for i in range(weights.shape[0]):
            sums[i] *= factor
            reference = max(reference, abs(sums[i]))
        factor = 1.0
        for i in range(weights.shape[0]):
            share = abs(sums[i]) / reference if reference > 0 else 0.0
            weights[i] = math.copysign(share ** (p - 1.0), sums[i])
            numbers[1] += share**p
        numbers[3] = numbers[1]
    size = numbers[1] ** (1.0 / p)
    factor /= max(1.0, factor * reference * size)
    numbers[0] = factor * reference * size ** (2.0 - p) if size > 0 else 1.0
    numbers[2], numbers[4], numbers[5] = k, factor, reference


@dataclass(frozen=True)
class ALMA(ThresholdAlgorithm):
    r"""Steps that shorten with the number of updates, and weights projected onto a ball.

    .. math:: w := \Pi_{\|w\|_q \le 1}\, f^{-1}\Big(f(w) + \sqrt{\tfrac{2}{(p - 1) k}}\,
        \hat z\Big) \;\text{if}\; \langle w, \hat z \rangle \le
        (1 - \alpha) \frac{\sqrt{8 (p - 1)}}{\alpha \sqrt k},
        \quad \hat z = z / \|z\|_p, \; f = \nabla \tfrac12 \|\cdot\|_q^2

    with 1/p + 1/q = 1 and k the number of updates so far, this one included. The projection divides
    by the norm. With p = 2, f is the identity and all norms are Euclidean.

    Parameters
    ----------
    alpha : float in (0, 1], default 0.9
        The share of the largest margin that may be missed: a share of 1 - alpha is reached. With
        smaller values, more trials cause an update; with 1, only mistakes do.
    p : float in [2, 100], default 2.0
        The margin is measured for instances of p-norm 1 and weights of q-norm 1. Larger values suit
        targets in which few of many features are relevant; theory suggests 2 ln(n) for n features.

    Raises
    ------
    KeslerError
        If alpha is not in (0, 1] or p not in [2, 100].

    Notes
    -----
    Costs O(nnz) per trial. The length of z has no effect. With p above 2, updated weights cost two
    powers each, all weights are computed anew when the largest sum has doubled, and a weight takes
    8 more bytes.

    References
    ----------
    Gentile (2001), "A new approximate maximal margin classification algorithm", Figure 1 with
    B = sqrt(8) / alpha and C = sqrt(2).

    Examples
    --------
    >>> from kesler.algorithms import ALMA
    >>> ALMA(alpha=0.5)
    ALMA(alpha=0.5, p=2.0)
    """

    alpha: float = 0.9
    p: float = 2.0

    def __post_init__(self) -> None:
        why = ": it is the share of the largest margin that may be missed"
        keep_number(self, "alpha", why, above=0, most=1)
        why = ": 2 is the Euclidean norm, and beyond 100 powers overflow float32"
        keep_number(self, "p", why, least=2, most=100)

    @property
    def update(self) -> Update:  # type: ignore[override]
        """The function that is compiled: without sums if weights equal them."""
        return alma_update if self.p == 2 else alma_p_update

    @property
    def needs_products_only(self) -> bool:  # type: ignore[override]
        """Whether inner products determine the update: that of the Euclidean norm."""
        return self.p == 2

    @property
    def n_states(self) -> int:  # type: ignore[override]
        """The number of values stored beside each weight: its sum, unless it is the sum itself."""
        return int(self.p != 2)

    @property
    def parameters(self) -> tuple[float, ...]:
        """The share of the margin that may be missed, and the exponent of the norm."""
        return (self.alpha, self.p)

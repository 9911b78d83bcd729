"""ROMMA: the relaxed online maximum margin algorithm."""
# mypy: disallow_untyped_defs=False

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kesler.algorithms.algorithm import ThresholdAlgorithm

LEAST_SCALE = 1e-15
LEAST_SHARE = 1e-4  # of its peak, below which much of a sum of squares may be rounding errors
# Below this share of their norms, the angle between w and z is a rounding error of float32.
PARALLEL = 1e-6


def romma_update(parameters, positions, z, margin, weights, states, numbers):
    """Compute the shortest w with <w, w_t> >= ||w_t||^2 and <w, z> >= 1.

    Numbers are the scale, the sum of squares of the weights before it, and the largest such sum
    since all weights were read. The sum follows each weight as it is stored: by the formula of the
    update it would be that of weights which are not rounded, and drift away from these.
    """
    if margin > 0 and (parameters[0] == 0 or margin >= 1):
        return
    z_norm, w_norm = 0.0, numbers[0] * numbers[0] * numbers[1]
    for j in range(z.shape[0]):
        z_norm += z[j] * z[j]
    if z_norm == 0:
        return
    keep, add = 0.0, 1.0 / z_norm  # if only the second constraint is active
    if w_norm > 0 and margin < z_norm * w_norm:
        determinant = z_norm * w_norm - margin * margin
        if determinant <= PARALLEL * z_norm * w_norm:  # z is opposite to w: no w satisfies both
            return
        keep, add = (z_norm * w_norm - margin) / determinant, w_norm * (1.0 - margin) / determinant
    numbers[0] *= keep
    is_in_range = LEAST_SCALE < numbers[0] < 1.0 / LEAST_SCALE
    if not (is_in_range and numbers[1] >= LEAST_SHARE * numbers[2]):
        numbers[1] = 0.0
        for i in range(weights.shape[0]):
            weights[i] *= numbers[0]
            numbers[1] += np.float64(weights[i]) * np.float64(weights[i])
        numbers[0], numbers[2] = 1.0, numbers[1]
    for j in range(z.shape[0]):
        before = np.float64(weights[positions[j]])
        weights[positions[j]] += add * z[j] / numbers[0]
        after = np.float64(weights[positions[j]])
        numbers[1] += (after - before) * (after + before)
    numbers[2] = max(numbers[2], numbers[1])


@dataclass(frozen=True)
class ROMMA(ThresholdAlgorithm):
    r"""The shortest weights that satisfy this instance and a half-space for all previous ones.

    .. math:: w := \arg\min \|u\| \;\text{s.t.}\; \langle u, w_t \rangle \ge \|w_t\|^2, \;
        \langle u, z \rangle \ge 1

    Parameters
    ----------
    aggressive : bool, default False
        Whether to update if the margin is below 1, not only on mistakes.

    Notes
    -----
    Makes no more than :math:`R^2 \|u\|^2` mistakes if some u has a margin of 1 on every z, of norm
    at most R. Costs O(nnz) per trial: one factor scales all weights.

    References
    ----------
    Li and Long (2002), "The relaxed online maximum margin algorithm".

    Examples
    --------
    >>> from kesler.algorithms import ROMMA
    >>> ROMMA()
    ROMMA(aggressive=False)
    """

    aggressive: bool = False

    update = staticmethod(romma_update)
    needs_products_only = True

    @property
    def parameters(self) -> tuple[float, ...]:
        """Whether the algorithm is aggressive, as a number."""
        return (float(self.aggressive),)

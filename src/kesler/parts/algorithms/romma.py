"""ROMMA: the relaxed online maximum margin algorithm."""
# mypy: disallow_untyped_defs=False

from __future__ import annotations

from dataclasses import dataclass

from kesler.parts.algorithms.algorithm import ThresholdAlgorithm

LEAST_SCALE = 1e-15
# Under this share of their norms, what parts w and z is what float32 rounds off.
PARALLEL = 1e-6


def romma_update(parameters, positions, z, margin, weights, states, numbers):
    """numbers: the scale, ||w||^2. The shortest w with <w, w_t> >= ||w_t||^2 and <w, z> >= 1."""
    if margin > 0 and (parameters[0] == 0 or margin >= 1):
        return
    z_norm, w_norm = 0.0, numbers[1]
    for j in range(z.shape[0]):
        z_norm += z[j] * z[j]
    if z_norm == 0:
        return
    keep, add = 0.0, 1.0 / z_norm  # where the second constraint alone decides
    if w_norm > 0 and margin < z_norm * w_norm:
        capacity = z_norm * w_norm - margin * margin
        if capacity <= PARALLEL * z_norm * w_norm:  # z points against w: no w can do both
            return
        keep, add = (z_norm * w_norm - margin) / capacity, w_norm * (1.0 - margin) / capacity
    numbers[1] = keep * keep * w_norm + 2.0 * keep * add * margin + add * add * z_norm
    numbers[0] *= keep
    if not LEAST_SCALE < numbers[0] < 1.0 / LEAST_SCALE:
        for i in range(weights.shape[0]):
            weights[i] *= numbers[0]
        numbers[0] = 1.0
    for j in range(z.shape[0]):
        weights[positions[j]] += add * z[j] / numbers[0]


@dataclass(frozen=True)
class ROMMA(ThresholdAlgorithm):
    r"""The shortest weights that satisfy this instance, and a half-space for all before it.

    .. math:: w := \arg\min \|u\| \;\text{s.t.}\; \langle u, w_t \rangle \ge \|w_t\|^2, \;
        \langle u, z \rangle \ge 1

    Parameters
    ----------
    aggressive : bool, default False
        Whether to move wherever the margin is below 1, not only on mistakes.

    Notes
    -----
    Makes no more than :math:`R^2 \|u\|^2` mistakes if some u has a margin of 1 on every z, of norm
    at most R. Costs O(nnz) a trial: all weights shrink by one number.

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

    @property
    def parameters(self) -> tuple[float, ...]:
        """Whether it is aggressive."""
        return (float(self.aggressive),)

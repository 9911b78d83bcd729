"""Linear-threshold algorithms, which :class:`~kesler.LinearMax` turns into multiclass learners."""

from __future__ import annotations

from collections.abc import Callable

from kesler.algorithms.algorithm import CustomAlgorithm, ThresholdAlgorithm, threshold_algorithm
from kesler.algorithms.alma import ALMA
from kesler.algorithms.quasi_additive import QuasiAdditive, RivalStep
from kesler.algorithms.romma import ROMMA
from kesler.links.exponential import Exponential
from kesler.links.p_norm import PNorm
from kesler.parts.user_part import part_of

__all__ = [
    "ALGORITHMS",
    "ALMA",
    "ROMMA",
    "Algorithm",
    "CustomAlgorithm",
    "QuasiAdditive",
    "RivalStep",
    "ThresholdAlgorithm",
    "resolve_algorithm",
    "threshold_algorithm",
]

Algorithm = ThresholdAlgorithm | QuasiAdditive

ALGORITHMS: dict[str, Callable[..., Algorithm]] = {
    "perceptron": QuasiAdditive,
    "wma": lambda alpha=2.0: QuasiAdditive(Exponential(alpha, balanced=False)),
    "winnow": lambda alpha=2.0: QuasiAdditive(Exponential(alpha)),
    "p-norm": lambda p=8.0: QuasiAdditive(PNorm(p)),
    "romma": ROMMA,
    "alma": ALMA,
    "alma-p": lambda alpha=0.9, p=8.0: ALMA(alpha, p),
}
"""The algorithms by their names in :class:`~kesler.LinearMax`."""


def resolve_algorithm(algorithm: str | Algorithm) -> Algorithm:
    """Return the algorithm of this name, or the algorithm itself.

    Examples
    --------
    >>> resolve_algorithm("wma").link
    Exponential(alpha=2.0, balanced=False, total=1.0, exact=False)
    """
    more = (
        ", an object of kesler.algorithms, or a function decorated with kesler.threshold_algorithm"
    )
    return part_of("algorithm", algorithm, Algorithm, ALGORITHMS, more)

"""Linear-threshold algorithms, which :class:`~kesler.LinearMax` turns into multiclass learners."""

from kesler.parts.algorithms import ALGORITHMS, Algorithm, resolve_algorithm
from kesler.parts.algorithms.algorithm import (
    CustomAlgorithm,
    ThresholdAlgorithm,
    threshold_algorithm,
)
from kesler.parts.algorithms.alma import ALMA
from kesler.parts.algorithms.quasi_additive import QuasiAdditive, RivalStep
from kesler.parts.algorithms.romma import ROMMA

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

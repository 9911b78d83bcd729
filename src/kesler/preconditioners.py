"""Preconditioners: a step size for each weight."""

from kesler.parts.preconditioners import (
    PRECONDITIONERS,
    AdaGrad,
    CoinBetting,
    Confidence,
    CustomMetric,
    DistanceAdaGrad,
    Euclidean,
    Preconditioner,
    ScaleFree,
    SecondOrder,
    SoftConfidence,
    preconditioner,
    resolve_preconditioner,
)

__all__ = [
    "PRECONDITIONERS",
    "AdaGrad",
    "CoinBetting",
    "Confidence",
    "CustomMetric",
    "DistanceAdaGrad",
    "Euclidean",
    "Preconditioner",
    "ScaleFree",
    "SecondOrder",
    "SoftConfidence",
    "preconditioner",
    "resolve_preconditioner",
]

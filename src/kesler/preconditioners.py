"""Preconditioners: a step size for each weight."""

from kesler.parts.preconditioners import (
    PRECONDITIONERS,
    AdaGrad,
    Confidence,
    CustomMetric,
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
    "Confidence",
    "CustomMetric",
    "Euclidean",
    "Preconditioner",
    "ScaleFree",
    "SecondOrder",
    "SoftConfidence",
    "preconditioner",
    "resolve_preconditioner",
]

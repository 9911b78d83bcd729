"""Preconditioners: a step size for each weight."""

from kesler.parts.preconditioners import (
    EUCLIDEAN,
    PRECONDITIONERS,
    AdaGrad,
    Confidence,
    CustomMetric,
    Euclidean,
    Preconditioner,
    Rate,
    ScaleFree,
    SoftConfidence,
    preconditioner,
    require_above_zero,
    resolve_preconditioner,
)

__all__ = [
    "EUCLIDEAN",
    "PRECONDITIONERS",
    "AdaGrad",
    "Confidence",
    "CustomMetric",
    "Euclidean",
    "Preconditioner",
    "Rate",
    "ScaleFree",
    "SoftConfidence",
    "preconditioner",
    "require_above_zero",
    "resolve_preconditioner",
]

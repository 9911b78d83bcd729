"""Preconditioners: a step size for each weight."""

from kesler.parts.preconditioners import (
    EUCLIDEAN,
    OURS,
    PRECONDITIONERS,
    AdaGrad,
    Confidence,
    CustomMetric,
    Euclidean,
    Preconditioner,
    Rate,
    ScaleFree,
    SoftConfidence,
    named_metrics,
    preconditioner,
    require_above_zero,
    resolve_preconditioner,
)

__all__ = [
    "EUCLIDEAN",
    "OURS",
    "PRECONDITIONERS",
    "AdaGrad",
    "Confidence",
    "CustomMetric",
    "Euclidean",
    "Preconditioner",
    "Rate",
    "ScaleFree",
    "SoftConfidence",
    "named_metrics",
    "preconditioner",
    "require_above_zero",
    "resolve_preconditioner",
]

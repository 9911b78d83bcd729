"""Hypotheses: which classes share a weight vector, over which features."""

from kesler.parts.hypotheses import Grouped, Ordered, Part, PerClass, Shared, resolve_hypotheses

__all__ = [
    "Grouped",
    "Ordered",
    "Part",
    "PerClass",
    "Shared",
    "resolve_hypotheses",
]

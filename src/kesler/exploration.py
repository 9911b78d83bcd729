"""Exploration: which class is shown, where only the shown class is judged."""

from kesler.parts.exploration import (
    EXPLORATIONS,
    Exploration,
    Greedy,
    InverseGap,
    Uniform,
    resolve_exploration,
)

__all__ = [
    "EXPLORATIONS",
    "Exploration",
    "Greedy",
    "InverseGap",
    "Uniform",
    "resolve_exploration",
]

"""Preprocessing: transformations of a row that use statistics of earlier rows only."""

from kesler.parts.preprocessing import (
    COUNTS,
    PREPROCESSINGS,
    RANGES,
    Z_SCORES,
    Counts,
    Preprocessing,
    Ranges,
    ZScores,
    resolve_preprocessing,
)

__all__ = [
    "COUNTS",
    "PREPROCESSINGS",
    "RANGES",
    "Z_SCORES",
    "Counts",
    "Preprocessing",
    "Ranges",
    "ZScores",
    "resolve_preprocessing",
]

"""Preprocessing: transformations of a row that use statistics of earlier rows only."""

from kesler.parts.preprocessing import (
    PREPROCESSINGS,
    Counts,
    Preprocessing,
    Ranges,
    ZScores,
    resolve_preprocessing,
)

__all__ = [
    "PREPROCESSINGS",
    "Counts",
    "Preprocessing",
    "Ranges",
    "ZScores",
    "resolve_preprocessing",
]

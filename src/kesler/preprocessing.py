"""Preprocessing: transformations of a row that use statistics of earlier rows only."""

from kesler.parts.preprocessing import (
    PREPROCESSINGS,
    Bins,
    Concatenated,
    Counts,
    Pairs,
    Preprocessing,
    RandomFourier,
    Ranges,
    ZScores,
    resolve_preprocessing,
)
from kesler.parts.replay import Replay

__all__ = [
    "PREPROCESSINGS",
    "Bins",
    "Concatenated",
    "Counts",
    "Pairs",
    "Preprocessing",
    "RandomFourier",
    "Ranges",
    "Replay",
    "ZScores",
    "resolve_preprocessing",
]

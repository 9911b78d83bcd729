"""Streams that drift by construction: river's generators with fixed seeds, 10,000 rows each.

A sudden stream changes to another concept after each quarter of its rows; a gradual one draws rows
of the second concept ever more often around the middle; in a moving one, the concept itself moves
with every row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import chain, islice
from typing import Any

import numpy as np

from kesler import KeslerError
from sets import Features, RealSet

N_ROWS, WIDTH = 10_000, 2_000
BY_CONSTRUCTION = "drift by construction"

Pairs = Iterable[tuple[dict[Any, Any], Any]]
"""Rows and labels of a generator."""


def generators() -> Any:
    """Return river's generators."""
    try:
        from river.datasets import synth
    except ImportError as error:
        raise KeslerError("it needs river: install it with pip install river") from error
    return synth


def sea(variant: int) -> Any:
    """Return a sum of two of three features compared with a threshold, one of four."""
    return generators().SEA(variant=variant, noise=0.1, seed=variant)


def agrawal(function: int) -> Any:
    """Return applicants for a loan, judged by one of ten functions."""
    return generators().Agrawal(classification_function=function, seed=function, perturbation=0.05)


def led(n_swapped: int) -> Any:
    """Return the segments of a digit's display among 17 random ones, with some swapped."""
    settings = {"noise_percentage": 0.1, "irrelevant_features": True}
    return generators().LEDDrift(seed=n_swapped, n_drift_features=n_swapped, **settings)


def sudden(concept: Callable[[int], Any], *variants: int) -> Pairs:
    """Return concepts one after another."""
    return chain.from_iterable(concept(each).take(N_ROWS // len(variants)) for each in variants)


def gradual(concept: Callable[[int], Any], before: int, after: int) -> Pairs:
    """Return a concept that changes to another around the middle."""
    streams = {"stream": concept(before), "drift_stream": concept(after)}
    drift = generators().ConceptDriftStream(**streams, position=N_ROWS // 2, width=WIDTH, seed=0)
    return islice(drift, N_ROWS)


def moving_centres(speed: float) -> Pairs:
    """Return four classes of 50 Gaussian clusters whose centres move."""
    sizes = {"n_classes": 4, "n_features": 10, "n_centroids": 50, "n_drift_centroids": 50}
    clusters = generators().RandomRBFDrift(seed_model=0, seed_sample=0, change_speed=speed, **sizes)
    return clusters.take(N_ROWS)


def moving_plane(change: float) -> Pairs:
    """Return two classes on the sides of a hyperplane that moves."""
    plane = generators().Hyperplane(seed=0, n_features=10, n_drift_features=10, mag_change=change)
    return plane.take(N_ROWS)


def rows_of(pairs: Pairs) -> tuple[Features, Any]:
    """Return generated rows as an array, and their labels."""
    rows, labels = zip(*pairs, strict=True)
    return np.array([[*row.values()] for row in rows], dtype=np.float32), np.array(labels)


def _drift(name: str, generate: Callable[[], Pairs]) -> RealSet:
    return RealSet(name, "dense", BY_CONSTRUCTION, lambda: rows_of(generate()))


DRIFTS = (
    _drift("SEA, sudden", lambda: sudden(sea, 0, 1, 2, 3)),
    _drift("SEA, gradual", lambda: gradual(sea, 0, 3)),
    _drift("Agrawal, sudden", lambda: sudden(agrawal, 0, 2, 4, 6)),
    _drift("Agrawal, gradual", lambda: gradual(agrawal, 0, 4)),
    _drift("LED, sudden", lambda: sudden(led, 1, 3, 5, 7)),
    _drift("LED, gradual", lambda: gradual(led, 1, 7)),
    _drift("clusters, slow", lambda: moving_centres(1e-4)),
    _drift("clusters, fast", lambda: moving_centres(1e-3)),
    _drift("hyperplane, slow", lambda: moving_plane(1e-3)),
    _drift("hyperplane, fast", lambda: moving_plane(1e-1)),
)
"""Ten streams, two of each generator."""

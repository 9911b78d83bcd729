"""The oracle of preprocessing: each row from the list of those before it, in float64 NumPy.

Written from the definitions: Salton and Buckley (1988) for damping, idf and length; for z-scores
mean and deviation themselves, of the values as they were taken in.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kesler.preprocessing import Counts, Ranges

Array = NDArray[np.float64]
FURTHEST = 30.0  # deviations from the mean that a value counts as, at most


def counts(x: Array, running: Array, w: Array, part: Any) -> Array:
    """sign(x) (1 + ln |x|) from 1 on, times sqrt(ln((t + 1) / (n + 1/2))), of length 1."""
    size = np.abs(x)
    damped = np.sign(x) * (1 + np.log(np.maximum(size, 1)))
    v = np.where(size >= 1, damped, x) if part.damped else x
    if part.idf:
        v = v * np.sqrt(np.log((w.sum() + 1) / (w @ (running != 0) + 0.5)))
    length = np.sqrt((v**2).sum())
    return v / length if part.unit and length > 0 else v


def z_scores(x: Array, running: Array, w: Array, part: Any) -> Array:
    """(x - mean) / deviation within the clip, x among the rows as one; 0 where all are equal."""
    mean, deviation = moments(np.vstack([running, taken_in(x, running, w)]), np.append(w, 1.0))
    z = np.divide(x - mean, deviation, out=0 * x, where=deviation > 0)
    return np.clip(z, -part.clip, part.clip)


def moments(running: Array, w: Array) -> tuple[Array, Array]:
    """Return mean and deviation of each column, 0 for one of equal values."""
    mean = np.average(running, axis=0, weights=w)
    deviation = np.sqrt(np.average((running - mean) ** 2, axis=0, weights=w))
    return mean, np.where(np.ptp(running, axis=0) == 0, 0.0, deviation)


def taken_in(x: Array, running: Array, w: Array) -> Array:
    """Return x as z-scores take it in: no further from the mean than so many deviations."""
    if len(running) == 0:
        return x
    mean, deviation = moments(running, w)
    most = FURTHEST * deviation
    return np.where(deviation > 0, mean + np.clip(x - mean, -most, most), x)


def width(X: Array) -> Array:
    """Return the range of each column."""
    return np.ptp(X, axis=0)


def followed(X: Array) -> Array:
    """Return the rows as ranges take them: no further than 1,000 of these beyond them."""
    rows = [X[0]]
    for x in X[1:]:
        lowest, highest = np.min(rows, axis=0), np.max(rows, axis=0)
        beyond = 1000 * (highest - lowest)
        near = np.clip(x, lowest - beyond, highest + beyond)
        rows.append(np.where(beyond > 0, near, x))
    return np.array(rows)


def in_ranges(X: Array) -> Array:
    """Return the last row from the first one on, in units of the ranges; 0 where constant."""
    return np.divide(X[-1] - X[0], width(X), out=0 * X[0], where=width(X) > 0)


def conditioned(part: Any, X: Any, weights: Any = None) -> Array:
    """Return all rows of a stream as their trials see them, rounded to float32."""
    X = np.asarray(X, dtype=np.float64)
    if part is None:
        return X
    if isinstance(part, Ranges):
        rows = followed(X) if len(X) else X
        return np.array([in_ranges(rows[: t + 1]) for t in range(len(X))])
    w = np.ones(len(X)) if weights is None else np.asarray(weights, dtype=np.float64)
    running, rows = X[:0], []
    for t, x in enumerate(X):
        of_counts = isinstance(part, Counts)
        rows.append((counts if of_counts else z_scores)(x, running, w[:t], part))
        taken = x if of_counts else taken_in(x, running, w[:t])
        running = np.vstack([running, taken])
    return np.array(rows, dtype=np.float32).astype(np.float64)

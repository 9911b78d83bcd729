"""The oracle of preprocessing: each row from the list of those before it, in float64 NumPy.

Written from the definitions: Salton and Buckley (1988) for damping, idf and length; the divergence
of the classes of a feature's rows from those of all rows; for z-scores mean and deviation
themselves, of the values as they were taken in.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kesler.preprocessing import Counts, Ranges

Array = NDArray[np.float64]
FURTHEST = 30.0  # deviations from the mean that a value counts as, at most


def n_log_n(n: Array) -> Array:
    """n ln(n), which is 0 at 0."""
    return n * np.log(np.where(n > 0, n, 1.0))


def gained(running: Array, w: Array, labels: Any) -> Array:
    """sum_r n_r ln(n_r / n), minus the log of the share of its class so far for each row."""
    labels, occurs = np.asarray(labels), running != 0
    total = -n_log_n(w @ occurs)
    for r in set(labels.tolist()):
        total += n_log_n(w[labels == r] @ occurs[labels == r])
    for t in np.flatnonzero(w):
        so_far = w[: t + 1]
        share = so_far[labels[: t + 1] == labels[t]].sum() / so_far.sum()
        total -= np.where(occurs[t], w[t] * np.log(share), 0.0)
    return total


def counts(x: Array, running: Array, w: Array, part: Any, labels: Any = None) -> Array:
    """sign(x) (1 + ln |x|) from 1 on, times sqrt(ln((t + 1) / (n + 1/2))), of length 1.

    With information times sqrt(1/10 + D / (n + 3)), each row of its own class if none is given.
    """
    size = np.abs(x)
    damped = np.sign(x) * (1 + np.log(np.maximum(size, 1)))
    v = np.where(size >= 1, damped, x) if part.damped else x
    if part.idf:
        v = v * np.sqrt(np.log((w.sum() + 1) / (w @ (running != 0) + 0.5)))
    if part.information:
        labels = np.arange(len(running)) if labels is None else labels
        n = w @ (running != 0)
        v = v * np.sqrt(0.1 + np.maximum(gained(running, w, labels), 0) / (n + 3))
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


def conditioned(part: Any, X: Any, weights: Any = None, labels: Any = None) -> Array:
    """Return all rows of a stream as their trials see them, rounded to float32.

    The labels matter to information; each row has its own class if there are none.
    """
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
        known = None if labels is None else labels[:t]
        seen = (
            counts(x, running, w[:t], part, known)
            if of_counts
            else z_scores(x, running, w[:t], part)
        )
        rows.append(seen)
        taken = x if of_counts else taken_in(x, running, w[:t])
        running = np.vstack([running, taken])
    return np.array(rows, dtype=np.float32).astype(np.float64)

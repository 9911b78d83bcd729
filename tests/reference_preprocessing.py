"""The oracle of preprocessing: each row from the list of those before it, in float64 NumPy.

Written from the definitions: Salton and Buckley (1988) for damping, idf and length; the divergence
of the classes of a feature's rows from those of all rows; for z-scores mean and deviation
themselves, of the values as they were taken in; Rahimi and Recht (2007) for random features;
quantiles by sorting all rows until the last time that they were recomputed, which are at most 512.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

import reference_relevance
from kesler.preprocessing import Bins, Concatenated, Counts, Pairs, RandomFourier, Ranges, ZScores

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
    """(x - mean) / deviation within the clip, x among the rows as one; 0 where all are equal.

    What is missing gives 0 as well.
    """
    mean, deviation = moments(np.vstack([running, taken_in(x, running, w)]), np.append(w, 1.0))
    z = np.divide(x - mean, deviation, out=0 * x, where=deviation > 0)
    return np.where(np.isnan(x), 0.0, np.clip(z, -part.clip, part.clip))


def moments(running: Array, w: Array) -> tuple[Array, Array]:
    """Return mean and deviation of what is known of each column, 0 for one of equal values."""
    found = [moments_of(column[~np.isnan(column)], w[~np.isnan(column)]) for column in running.T]
    return np.array([mean for mean, _ in found]), np.array([deviation for _, deviation in found])


def moments_of(column: Array, w: Array) -> tuple[float, float]:
    """Return mean and deviation of values; 0 for those of none, or of equal ones."""
    if not len(column):
        return 0.0, 0.0
    mean = np.average(column, weights=w)
    deviation = np.sqrt(np.average((column - mean) ** 2, weights=w))
    return float(mean), 0.0 if np.ptp(column) == 0 else float(deviation)


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
    """Return the rows as ranges take them: no further than 1,000 of these beyond them.

    What is missing is in the middle of its range, and 0 in the first row.
    """
    rows = [np.nan_to_num(X[0], nan=0.0)]
    for row in X[1:]:
        lowest, highest = np.min(rows, axis=0), np.max(rows, axis=0)
        x = np.where(np.isnan(row), 0.5 * lowest + 0.5 * highest, row)
        beyond = 1000 * (highest - lowest)
        near = np.clip(x, lowest - beyond, highest + beyond)
        rows.append(np.where(beyond > 0, near, x))
    return np.array(rows)


def given_scales(part: Any) -> Array | float:
    """Return the given weights of columns in units of their root mean square, 1 without any."""
    if part.weights is None:
        return 1.0
    weights = np.array(part.weights)
    return np.asarray(weights / np.sqrt(np.mean(weights**2)))


def in_ranges(X: Array) -> Array:
    """Return the last row from the first one on, in units of the ranges; 0 where constant."""
    return np.divide(X[-1] - X[0], width(X), out=0 * X[0], where=width(X) > 0)


# ---- expansions ---------------------------------------------------------------------------------


def times(n_rows: int) -> list[int]:
    """Return after how many rows quantiles are recomputed: at growth by a half."""
    found = [1]
    while found[-1] < n_rows:
        found.append(max(found[-1] + 1, int(1.5 * found[-1])))
    return found


def edges(values: Array, n_bins: int) -> Array:
    """Return the middles between the values where a bin ends; between all, if they are so few."""
    values = values[~np.isnan(values)]
    distinct = np.unique(values)
    if len(distinct) <= n_bins:
        return np.asarray((distinct[1:] + distinct[:-1]) / 2)
    ends = np.arange(1, n_bins) * len(values) // n_bins
    ordered = np.sort(values)
    return np.unique((ordered[ends - 1] + ordered[ends]) / 2)


def in_bins(X: Array, n_bins: int) -> NDArray[np.int64]:
    """Return the number of the bin of each value, -1 of none, by the quantiles of earlier rows."""
    numbers, known = np.zeros(X.shape, dtype=np.int64), 0
    for t, x in enumerate(X):
        known = max([n for n in times(len(X)) if n <= t], default=0)
        for j, value in enumerate(x):
            if known:
                numbers[t, j] = (edges(X[:known, j], n_bins) < value).sum()
    return np.where(np.isnan(X), -1, numbers)


def one_hot(numbers: NDArray[np.int64], width: int) -> Array:
    """Return a 1 for each number, in blocks of a width; -1 has none."""
    return np.vstack([np.eye(width), np.zeros(width)])[numbers].reshape(len(numbers), -1)


def block(part: Any, X: Array, Z: Array, w: Array, y: Any) -> Array:
    """Return the features of all rows; Z are their z-scores, y their classes."""
    if isinstance(part, ZScores):
        return Z
    if isinstance(part, Bins):
        n_bins = part.bins_of(X.shape[1])
        return one_hot(in_bins(X, n_bins), n_bins) if n_bins else X[:, :0]
    if isinstance(part, Pairs):
        B = part.n_bins
        numbers, pairs = in_bins(X, B), part.pairs_of(X.shape[1])
        one, other = numbers[:, pairs[:, 0]], numbers[:, pairs[:, 1]]
        cells = np.where((one < 0) | (other < 0), -1, B * one + other)
        return one_hot(cells, B * B)
    lengths = (Z**2).sum(axis=1)
    before = np.concatenate([[0], np.cumsum(w * lengths)[:-1]])
    mean = (before + lengths) / (np.concatenate([[0], np.cumsum(w)[:-1]]) + 1)
    omega, phases = part.draw(X.shape[1])
    if part.information:
        Z = Z * reference_relevance.by_row(Z, y, w, part.weights and given_scales(part))
    scale = np.sqrt(part.bandwidth_of(X.shape[1]) * 2 * mean)[:, None]
    projected = np.divide(
        Z @ omega.astype(float), scale, out=np.zeros((len(X), len(phases))), where=scale > 0
    )
    return np.asarray(np.sqrt(2) * np.cos(projected + phases))


def expanded(part: Any, X: Array, weights: Any, y: Any) -> Array:
    """Return the blocks of all rows, one beside the other."""
    w = np.ones(len(X)) if weights is None else np.asarray(weights, dtype=float)
    blocks = part.blocks
    clip = next((each.clip for each in blocks if isinstance(each, ZScores)), 4.0)
    Z = conditioned(ZScores(clip), X, weights)
    return np.hstack([block(each, X, Z, w, y) for each in blocks])


def conditioned(part: Any, X: Any, weights: Any = None, labels: Any = None) -> Array:
    """Return all rows of a stream as their trials see them, rounded to float32.

    The labels matter to information; each row has its own class if there are none.
    """
    X = np.asarray(X, dtype=np.float64)
    own = np.arange(len(X)) if labels is None else np.asarray(labels)
    if part is None:
        return X
    if isinstance(part, (Bins, Concatenated, Pairs, RandomFourier)):
        return expanded(part, X, weights, own)
    if isinstance(part, Ranges):
        rows = followed(X) if len(X) else X
        return np.array([in_ranges(rows[: t + 1]) for t in range(len(X))]) * given_scales(part)
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

"""Multinomial logistic regression: passes over sparse rows, and over the scores of all rows.

Weights have the shape (n_features, n_classes), so that inner loops run over classes.
"""
# mypy: disallow_untyped_defs=False, disallow_untyped_calls=False

from __future__ import annotations

import math

from numba import types

from kesler.compiled.jit.decorators import DOUBLE_TABLE, FLOAT_TABLE, inlined, kernel
from kesler.compiled.jit.pointers import fetch

# Number of entries by which weights are prefetched ahead, and of weights in a cache line.
AHEAD, LINE = 12, 16

_TABLES = {types.float32: FLOAT_TABLE, types.float64: DOUBLE_TABLE}


def _read(kind, n_dimensions=1):
    """Return the type of read-only arrays, since user arrays may be memory maps."""
    return types.Array(kind, n_dimensions, "C", readonly=True)


_SPARSE = [
    types.void(_read(types.int64), _read(types.int32), _read(kind), _read(kind, 2), _TABLES[kind])
    for kind in (types.float32, types.float64)
]


@inlined
def fetch_ahead(table, indices, entry):
    """Prefetch the weights of the entry `AHEAD` entries later."""
    later = entry + AHEAD
    if later < indices.shape[0]:
        for column in range(0, table.shape[1], LINE):
            fetch(table, indices[later] * table.shape[1] + column)


@kernel(_SPARSE)
def add_scores(indptr, indices, values, weights, scores):
    """Add the scores of each row's features to its scores."""
    n_classes = weights.shape[1]
    for i in range(scores.shape[0]):
        for entry in range(indptr[i], indptr[i + 1]):
            fetch_ahead(weights, indices, entry)
            feature, value = indices[entry], values[entry]
            for k in range(n_classes):
                scores[i, k] += value * weights[feature, k]


@kernel(_SPARSE)
def add_rows(indptr, indices, values, coefficients, weights):
    """Add each row, times its coefficient for each class, to the weights of that class."""
    n_classes = weights.shape[1]
    for i in range(coefficients.shape[0]):
        for entry in range(indptr[i], indptr[i + 1]):
            fetch_ahead(weights, indices, entry)
            feature, value = indices[entry], values[entry]
            for k in range(n_classes):
                weights[feature, k] += value * coefficients[i, k]


@kernel(
    types.float64(
        DOUBLE_TABLE, _read(types.int64), _read(types.float64), types.float64, FLOAT_TABLE
    )
)
def take_losses(scores, labels, counts, margin, probabilities):
    """Return the sum of the losses; overwrite scores by its gradient with respect to them.

    A row of weight c has the loss c ln sum_k exp(s_k + margin [k != y] - s_y).
    """
    n_classes = scores.shape[1]
    loss = 0.0
    for i in range(scores.shape[0]):
        y, count = labels[i], counts[i]
        own, most = scores[i, y], 0.0
        for k in range(n_classes):
            scores[i, k] -= own
            if k != y:
                scores[i, k] += margin
            most = max(most, scores[i, k])
        total = 0.0
        for k in range(n_classes):
            scores[i, k] = math.exp(scores[i, k] - most)
            total += scores[i, k]
        loss += count * (math.log(total) + most)
        for k in range(n_classes):
            probability = scores[i, k] / total
            probabilities[i, k] = probability
            scores[i, k] = count * (probability - (1.0 if k == y else 0.0))
    return loss


@kernel(types.void(FLOAT_TABLE, _read(types.float32, 2), _read(types.float32)))
def curve(directions, probabilities, counts):
    """Multiply changes of scores by the second derivatives: v becomes c (p v - p <p, v>).

    The change of the most probable class is subtracted first, so that float32 suffices near p = 1.
    """
    n_classes = directions.shape[1]
    for i in range(directions.shape[0]):
        top = 0
        for k in range(n_classes):
            if probabilities[i, k] > probabilities[i, top]:
                top = k
        own, mean = directions[i, top], types.float32(0.0)
        for k in range(n_classes):
            directions[i, k] -= own
            mean += probabilities[i, k] * directions[i, k]
        for k in range(n_classes):
            directions[i, k] = counts[i] * probabilities[i, k] * (directions[i, k] - mean)


@kernel(
    types.float64(
        _read(types.float64, 2),
        _read(types.float64, 2),
        types.float64,
        _read(types.int64),
        _read(types.float64),
        types.float64,
    )
)
def slope_along(scores, change, share, labels, counts, margin):
    """Return the derivative of the sum of the losses at `share` of a change of the scores."""
    n_classes = scores.shape[1]
    slope = 0.0
    for i in range(scores.shape[0]):
        y = labels[i]
        own = scores[i, y] + share * change[i, y]
        most = 0.0
        for k in range(n_classes):
            if k != y:
                most = max(most, scores[i, k] + share * change[i, k] - own + margin)
        total, mean = math.exp(-most), 0.0
        for k in range(n_classes):
            if k != y:
                lead = scores[i, k] + share * change[i, k] - own + margin
                exponential = math.exp(lead - most)
                total += exponential
                mean += exponential * (change[i, k] - change[i, y])
        slope += counts[i] * mean / total
    return slope

"""The distance of a row to the nearest of the last rows, as evidence of a new class.

See `kesler.learner.uncertainty` for the model.
"""
# mypy: disallow_untyped_defs=False, disallow_untyped_calls=False

from __future__ import annotations

import math

import numpy as np

from kesler.compiled.jit.decorators import inlined
from kesler.compiled.jit.simd import SIMD_WIDTH, load, spread, squared, total_of
from kesler.compiled.trial.preprocessing import is_missing

NOBODY = -1  # the number of no class
FURTHEST_RATIO = 6.0
FEWEST_ROWS = 5
LEAST_SQUARE, FURTHEST_SQUARE = 1e-6, 1e30
# The least variance of a feature that counts, and its least ratio to the squared mean: below it,
# float32 cannot tell the values apart.
LEAST_VARIANCE, LEAST_RATIO = 1e-30, 1e-14
# What is added to the variances of the regression at each of its steps.
DRIFT = 1e-5


@inlined
def lay_out(memory, values, row, inverse):
    """Copy a row to whole cache lines, and compute the inverse variances of its features.

    A feature that is missing is copied as its mean.
    """
    n = memory.counts.n_rows
    for j in range(values.shape[0]):
        row[j] = np.float32(memory.moments[j, 0]) if is_missing(values[j]) else values[j]
        variance = memory.moments[j, 1] / max(1, n)
        least = max(LEAST_VARIANCE, LEAST_RATIO * squared(memory.moments[j, 0]))
        inverse[j] = 1.0 / variance if variance > least else 0.0


@inlined
def square_between(a, b, inverse):
    """Return the squared distance of two rows in standard deviations."""
    line = spread(np.float32(0))
    for j in range(0, a.shape[0], SIMD_WIDTH):
        step = load(a, j) + load(b, j) * np.float32(-1)
        line = line + step * step * load(inverse, j)
    return np.float64(total_of(line))


@inlined
def nearest(memory, row, inverse, y, squares):
    """Write the squared distances to the nearest row, and to the nearest not of class y.

    Return whether a row of class y is remembered.
    """
    squares[0], squares[1], has_own = FURTHEST_SQUARE, FURTHEST_SQUARE, False
    for i in range(min(memory.counts.n_rows, memory.rows.shape[0])):
        square = square_between(memory.rows[i], row, inverse)
        squares[0] = min(squares[0], square)
        if memory.codes[i] == y:
            has_own = True
        else:
            squares[1] = min(squares[1], square)
    return has_own


@inlined
def log_distance(square, n_features):
    """Return the logarithm of the distance for a feature."""
    return 0.5 * math.log(square / n_features + LEAST_SQUARE)


@inlined
def ratio_of(memory, distance):
    """Return the log of how much likelier a distance is for a row of a new class, at most 6."""
    ratio = memory.weights[0] + memory.weights[1] * distance
    return min(FURTHEST_RATIO, max(-FURTHEST_RATIO, ratio))


@inlined
def is_comparable(memory, square):
    """Return whether a distance to the nearest row is evidence."""
    return memory.counts.n_rows >= FEWEST_ROWS and square < FURTHEST_SQUARE


@inlined
def learn_distances(memory, squares, n_features):
    """Learn from a row of a known class, once with the rows of its class, once without."""
    if not (is_comparable(memory, squares[0]) and squares[1] < FURTHEST_SQUARE):
        return
    for is_other in range(2):
        distance = log_distance(squares[is_other], n_features)
        learn_distance(memory.weights, memory.covariance, distance, is_other)


@inlined
def learn_distance(weights, covariance, distance, is_other):
    """Take a step of an extended Kalman filter: a logistic regression on a log distance."""
    p = 1.0 / (1.0 + math.exp(-max(-30.0, min(30.0, weights[0] + weights[1] * distance))))
    covariance[0, 0] += DRIFT
    covariance[1, 1] += DRIFT
    first = covariance[0, 0] + covariance[0, 1] * distance
    second = covariance[1, 0] + covariance[1, 1] * distance
    variance = max(p * (1.0 - p), 1e-4)
    gain = 1.0 / (1.0 + variance * (first + second * distance))
    weights[0] += gain * first * (is_other - p)
    weights[1] += gain * second * (is_other - p)
    covariance[0, 0] -= variance * gain * first * first
    covariance[0, 1] -= variance * gain * first * second
    covariance[1, 0] -= variance * gain * first * second
    covariance[1, 1] -= variance * gain * second * second


@inlined
def remember(memory, row, n_features, y):
    """Store a row in place of the oldest one; update the moments of features."""
    n_rows, n_slots = memory.counts.n_rows + 1, memory.rows.shape[0]
    slot = memory.counts.n_rows % n_slots
    for j in range(n_features):
        distance = row[j] - memory.moments[j, 0]
        memory.moments[j, 0] += distance / n_rows
        memory.moments[j, 1] += distance * (row[j] - memory.moments[j, 0])
        memory.rows[slot, j] = row[j]
    memory.codes[slot] = y
    memory.counts.n_rows = n_rows

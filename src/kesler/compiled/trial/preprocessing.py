"""Preprocessing: what is done to a row before the trial, and what is kept of it after."""
# mypy: disallow_untyped_defs=False, disallow_untyped_calls=False

from __future__ import annotations

import math

import numpy as np

from kesler.compiled.jit.decorators import always_inlined, inlined
from kesler.compiled.jit.simd import largest, squared_length_from
from kesler.compiled.trial.variants import preprocess_ranges

NONE, COUNTS, Z_SCORES, RANGES = range(4)
# Parameters of the methods.
DAMPED, IDF, UNIT = range(3)
CLIP = 0
# Columns of what is kept of each feature.
N_ROWS = 0
MEAN, SQUARES = range(2)
ORIGIN, LOWEST, HIGHEST = range(3)
# A value is taken in at no more than so many deviations from the mean: few enough for a broken
# value not to hide all later ones, and many enough to follow a stream that changes its scale.
FURTHEST = 30.0
# Less than this is none: far below what differences of float32 numbers leave.
LEAST_VARIANCE = 1e-200
# Beyond this size values count as of it, and ranges below its inverse as none: whatever the range
# was when a value came, float32 holds it, and what it is in later units.
LARGEST_VALUE = 1e36
# A value counts as no further than so many ranges beyond its range: one broken row must not hide
# all others, and a stream whose scale jumps is followed within a few rows.
MOST_WIDTHS = 1000.0


@always_inlined
def is_preprocessed(learner):
    """Whether anything is done to rows."""
    return learner.preprocessing.method != NONE


@inlined
def preprocess(learner, indices, values, scratch):
    """Set scratch.conditioned to the values of a row as the trial sees them."""
    first = learner.preprocessing.n_constant
    for j in range(first):
        scratch.conditioned[j] = values[j]
    if learner.preprocessing.method == COUNTS:
        preprocess_counts(learner, indices, values, first, scratch)
    elif learner.preprocessing.method == Z_SCORES:
        condition_scores(learner, indices, values, first, scratch)
    else:
        preprocess_ranges(learner, indices, values, first, scratch)


@inlined
def preprocess_counts(learner, indices, values, first, scratch):
    """Damp counts, raise what few rows had, and scale what comes out to length 1."""
    parameters, out = learner.preprocessing.parameters, scratch.exact
    damped, with_idf = parameters[DAMPED] != 0, parameters[IDF] != 0
    n_rows, decay = learner.preprocessing.seen.n_rows, learner.decay.row.weight
    # Unsigned, so that no loop asks whether it counts from the end.
    start, stop = np.uintp(first), np.uintp(values.shape[0])
    # Asked of all at once: most rows hold none, and a loop without the question is one of vectors.
    holds_more = damped and largest(values) > 1
    for j in range(start, stop):
        v = np.float64(values[j])
        if holds_more and abs(v) > 1:
            v = np.float64(math.copysign(1 + math.log(abs(v)), v))
        if with_idf:
            # No feature was in more rows than there were: the logarithm is above 0.
            n_with = learner.preprocessing.statistics[indices[j], N_ROWS]
            v *= math.sqrt(math.log((n_rows + decay) / (n_with + 0.5 * decay)))
        out[j] = v
    total = 0.0
    if parameters[UNIT] != 0:
        total = squared_length_from(out, first, values.shape[0])
    scale = 1 / math.sqrt(total) if total > 0 else 1.0
    for j in range(start, stop):
        scratch.conditioned[j] = np.float32(scale * out[j])


@inlined
def condition_scores(learner, indices, values, first, scratch):
    """Measure each feature in deviations from its mean, this row among the others."""
    clip, n_rows = learner.preprocessing.parameters[CLIP], learner.preprocessing.seen.n_rows
    decay = learner.decay.row.weight
    for j in range(first, values.shape[0]):
        value = np.float64(values[j])
        mean, squares = with_value(learner, indices[j], value, n_rows, decay)
        z = 0.0
        if squares > LEAST_VARIANCE * (n_rows + decay):
            z = (value - mean) / math.sqrt(squares / (n_rows + decay))
        scratch.conditioned[j] = np.float32(min(clip, max(-clip, z)))


@always_inlined
def dense_condition_ranges(learner, indices, values, first, scratch):
    """Measure each feature from its first value on, in units of its range with this row."""
    for j in range(first, values.shape[0]):
        offset, unit = in_range(learner, indices[j], values[j])
        scratch.conditioned[j] = offset * unit


@inlined
def in_range(learner, feature, value):
    """Return how far a value is from the feature's first, and 1 over the range that it leaves."""
    value = within_bounds(learner, feature, value)
    origin, lowest, highest = with_extremes(learner, feature, value)
    width = highest - lowest
    unit = 1 / width if width > 1 / LARGEST_VALUE else 0.0
    return np.float32(value - origin), np.float32(unit)


@inlined
def within_bounds(learner, feature, value):
    """Return a value in double, no larger than ranges bear, nor much beyond that of its feature."""
    value = min(LARGEST_VALUE, max(-LARGEST_VALUE, np.float64(value)))
    running = learner.preprocessing.statistics
    lowest, highest = running[feature, LOWEST], running[feature, HIGHEST]
    beyond = MOST_WIDTHS * (highest - lowest)
    if learner.preprocessing.seen.n_rows == 0 or not beyond > 0:
        return value
    return min(highest + beyond, max(lowest - beyond, value))


@inlined
def with_extremes(learner, feature, value):
    """Return the first, the least and the greatest value of a feature, one value more counted in.

    A feature that no row has had was 0 in all of them.
    """
    if learner.preprocessing.seen.n_rows == 0:
        return value, value, value
    running = learner.preprocessing.statistics
    lowest, highest = min(running[feature, LOWEST], value), max(running[feature, HIGHEST], value)
    return running[feature, ORIGIN], lowest, highest


@always_inlined
def remember(learner, indices, values, weight):
    """Take a row in, after its trial, as so many rows."""
    first, n_before = learner.preprocessing.n_constant, learner.preprocessing.seen.n_rows
    running = learner.preprocessing.statistics
    if learner.preprocessing.method == Z_SCORES:
        for j in range(first, values.shape[0]):
            f = indices[j]
            running[f, MEAN], running[f, SQUARES] = with_value(
                learner, f, np.float64(values[j]), n_before, weight
            )
    elif learner.preprocessing.method == RANGES:
        for j in range(first, values.shape[0]):
            f = indices[j]
            extremes = with_extremes(learner, f, within_bounds(learner, f, values[j]))
            running[f, ORIGIN], running[f, LOWEST], running[f, HIGHEST] = extremes
    elif running.shape[1] != 0:
        for j in range(first, values.shape[0]):
            if values[j] != 0:
                running[indices[j], N_ROWS] += weight
    learner.preprocessing.seen.n_rows = n_before + weight


@inlined
def with_value(learner, feature, value, n_before, weight):
    """Return the mean and the sum of squares about it, one value more counted in (West 1979)."""
    running = learner.preprocessing.statistics
    mean, squares = running[feature, MEAN], running[feature, SQUARES]
    gap = value - mean
    if squares > LEAST_VARIANCE * n_before:
        most = FURTHEST * math.sqrt(squares / n_before)
        gap = min(most, max(-most, gap))
    share = weight / (n_before + weight)
    return mean + share * gap, squares + n_before * share * gap * gap

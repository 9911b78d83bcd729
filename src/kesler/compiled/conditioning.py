"""Conditioning: what is done to a row before the trial, and what is kept of it after."""
# mypy: disallow_untyped_defs=False, disallow_untyped_calls=False

from __future__ import annotations

import math

import numpy as np

from kesler.compiled.jit import always_inlined, by_learner, inlined
from kesler.compiled.lengths import largest, squared_length_from
from kesler.compiled.worth import WORTH

# Of `conditioning`: the method, and how many features stand before those that it is applied to.
METHOD, N_CONSTANT = range(2)
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
def is_conditioned(learner):
    """Whether anything is done to rows."""
    return learner.conditioning[METHOD] != NONE


@inlined
def condition(learner, indices, values, scratch):
    """Set scratch.conditioned to the values of a row as the trial sees them."""
    first = learner.conditioning[N_CONSTANT]
    for j in range(first):
        scratch.conditioned[j] = values[j]
    if learner.conditioning[METHOD] == COUNTS:
        condition_counts(learner, indices, values, first, scratch)
    elif learner.conditioning[METHOD] == Z_SCORES:
        condition_scores(learner, indices, values, first, scratch)
    else:
        condition_ranges(learner, indices, values, first, scratch)


@inlined
def condition_counts(learner, indices, values, first, scratch):
    """Damp counts, raise what few rows had, and scale what comes out to length 1."""
    parameters, out = learner.conditioning_parameters, scratch.exact
    damped, with_idf = parameters[DAMPED] != 0, parameters[IDF] != 0
    n_rows, worth = learner.past_rows[0], learner.forgetting[WORTH]
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
            n_with = learner.past[indices[j], N_ROWS]
            v *= math.sqrt(math.log((n_rows + worth) / (n_with + 0.5 * worth)))
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
    clip, n_rows = learner.conditioning_parameters[CLIP], learner.past_rows[0]
    worth = learner.forgetting[WORTH]
    for j in range(first, values.shape[0]):
        value = np.float64(values[j])
        mean, squares = with_value(learner, indices[j], value, n_rows, worth)
        z = 0.0
        if squares > LEAST_VARIANCE * (n_rows + worth):
            z = (value - mean) / math.sqrt(squares / (n_rows + worth))
        scratch.conditioned[j] = np.float32(min(clip, max(-clip, z)))


@by_learner
def condition_ranges(learner, indices, values, first, scratch):
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
    lowest, highest = learner.past[feature, LOWEST], learner.past[feature, HIGHEST]
    beyond = MOST_WIDTHS * (highest - lowest)
    if learner.past_rows[0] == 0 or not beyond > 0:
        return value
    return min(highest + beyond, max(lowest - beyond, value))


@inlined
def with_extremes(learner, feature, value):
    """Return the first, the least and the greatest value of a feature, one value more counted in.

    A feature that no row has had was 0 in all of them.
    """
    if learner.past_rows[0] == 0:
        return value, value, value
    past = learner.past
    lowest, highest = min(past[feature, LOWEST], value), max(past[feature, HIGHEST], value)
    return past[feature, ORIGIN], lowest, highest


@always_inlined
def remember(learner, indices, values, weight):
    """Take a row in, after its trial, as so many rows."""
    first, n_before = learner.conditioning[N_CONSTANT], learner.past_rows[0]
    if learner.conditioning[METHOD] == Z_SCORES:
        for j in range(first, values.shape[0]):
            f = indices[j]
            learner.past[f, MEAN], learner.past[f, SQUARES] = with_value(
                learner, f, np.float64(values[j]), n_before, weight
            )
    elif learner.conditioning[METHOD] == RANGES:
        for j in range(first, values.shape[0]):
            f = indices[j]
            extremes = with_extremes(learner, f, within_bounds(learner, f, values[j]))
            learner.past[f, ORIGIN], learner.past[f, LOWEST], learner.past[f, HIGHEST] = extremes
    elif learner.past.shape[1] != 0:
        for j in range(first, values.shape[0]):
            if values[j] != 0:
                learner.past[indices[j], N_ROWS] += weight
    learner.past_rows[0] = n_before + weight


@inlined
def with_value(learner, feature, value, n_before, weight):
    """Return the mean and the sum of squares about it, one value more counted in (West 1979)."""
    mean, squares = learner.past[feature, MEAN], learner.past[feature, SQUARES]
    gap = value - mean
    if squares > LEAST_VARIANCE * n_before:
        most = FURTHEST * math.sqrt(squares / n_before)
        gap = min(most, max(-most, gap))
    share = weight / (n_before + weight)
    return mean + share * gap, squares + n_before * share * gap * gap

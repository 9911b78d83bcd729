"""Preprocessing of rows before the trial, and its running statistics, updated after the trial."""
# mypy: disallow_untyped_defs=False, disallow_untyped_calls=False

from __future__ import annotations

import math

import numpy as np

from kesler.codes import Method
from kesler.compiled.jit.decorators import always_inlined, inlined
from kesler.compiled.jit.simd import largest, squared_length_from
from kesler.compiled.trial.relevance import add_value, has_relevance, weigh_if_due
from kesler.compiled.trial.variants import preprocess_ranges

NONE = int(Method.NONE)
COUNTS = int(Method.COUNTS)
Z_SCORES = int(Method.Z_SCORES)
RANGES = int(Method.RANGES)
# The statistic of each class that information is computed from, as in `records`.
CONTRAST = 3
# Parameters of the methods.
DAMPED, IDF, UNIT, INFORMATION = range(4)
CLIP = 0
# Columns of the running statistics of each feature.
N_ROWS, GAINED = range(2)
MEAN, SQUARES = range(2)
ORIGIN, LOWEST, HIGHEST = range(3)
# Statistics clip values to this many deviations from the mean: few enough that an outlier does not
# mask all later values, and many enough to follow a stream that changes its scale.
FURTHEST = 30.0
# A smaller variance counts as 0: it is far below that of differences of float32 numbers.
LEAST_VARIANCE = 1e-200
# The weight of a feature that says nothing of the class, and the number of rows in which a feature
# must occur before half of what it has said is believed; see `kesler.preprocessing.Counts`.
UNINFORMATIVE, DOUBTFUL = 0.1, 3.0
# Values are clipped to this size, and ranges below its inverse count as 0: float32 can represent a
# value, in its own units and in later ones, whatever the range was.
LARGEST_VALUE = 1e36
# Values are clipped to this many ranges beyond their range: an outlier must not mask all other
# rows, and a stream whose scale jumps is followed within a few rows.
MOST_WIDTHS = 1000.0


@always_inlined
def is_preprocessed(learner):
    """Return whether rows are preprocessed."""
    return learner.preprocessing.method != NONE


@inlined
def preprocess(learner, indices, values, scratch):
    """Write the preprocessed values of a row to scratch.conditioned."""
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
    """Damp counts, raise those of rare features, and scale the row to length 1."""
    parameters, out = learner.preprocessing.parameters, scratch.exact
    damped, with_idf = parameters[DAMPED] != 0, parameters[IDF] != 0
    with_information = parameters[INFORMATION] != 0
    n_rows, decay = learner.preprocessing.seen.n_rows, learner.decay.row.weight
    # Unsigned indices spare the loops the test for negative ones.
    start, stop = np.uintp(first), np.uintp(values.shape[0])
    # One test per row: most rows have no such value, and a loop without a branch vectorises.
    exceeds_one = damped and largest(values) > 1
    for j in range(start, stop):
        v = np.float64(values[j])
        if exceeds_one and abs(v) > 1:
            v = np.float64(math.copysign(1 + math.log(abs(v)), v))
        if with_idf:
            # No feature occurs in more rows than there are: the logarithm is positive.
            n_with = learner.preprocessing.statistics[indices[j], N_ROWS]
            v *= math.sqrt(math.log((n_rows + decay) / (n_with + 0.5 * decay)))
        if with_information:
            row = learner.preprocessing.statistics[indices[j]]
            gained = max(0.0, row[GAINED]) / (row[N_ROWS] + DOUBTFUL * decay)
            v *= math.sqrt(UNINFORMATIVE + gained)
        out[j] = v
    total = 0.0
    if parameters[UNIT] != 0:
        total = squared_length_from(out, first, values.shape[0])
    scale = 1 / math.sqrt(total) if total > 0 else 1.0
    for j in range(start, stop):
        scratch.conditioned[j] = np.float32(scale * out[j])


@always_inlined
def is_missing(value):
    """Return whether a value is missing: NaN."""
    return value != value


@inlined
def condition_scores(learner, indices, values, first, scratch):
    """Express each feature in deviations from its mean, with this row included in both."""
    clip, n_rows = learner.preprocessing.parameters[CLIP], learner.preprocessing.seen.n_rows
    running, missing = learner.preprocessing.statistics, learner.preprocessing.missing
    decay = learner.decay.row.weight
    for j in range(first, values.shape[0]):
        f, z = indices[j], 0.0
        if not is_missing(values[j]):
            z = score_with(running, f, np.float64(values[j]), n_rows - missing[f], decay)
        scratch.conditioned[j] = np.float32(min(clip, max(-clip, z)))


@always_inlined
def dense_condition_ranges(learner, indices, values, first, scratch):
    """Express each feature relative to its first value, in units of its range with this row."""
    for j in range(first, values.shape[0]):
        offset, unit = in_range(learner, indices[j], values[j])
        scratch.conditioned[j] = offset * unit


@inlined
def in_range(learner, feature, value):
    """Return a value minus the first one of the feature, and its weight over the range with it."""
    value = within_bounds(learner, feature, value)
    origin, lowest, highest = with_extremes(learner, feature, value)
    width, weights = highest - lowest, learner.preprocessing.parameters
    unit = 1 / width if width > 1 / LARGEST_VALUE else 0.0
    if feature < weights.shape[0]:
        unit *= weights[feature]
    return np.float32(value - origin), np.float32(unit)


@inlined
def within_bounds(learner, feature, value):
    """Return a value in float64, clipped to LARGEST_VALUE and to a multiple of its range.

    A missing value is the middle of the range, 0 in the first row.
    """
    running = learner.preprocessing.statistics
    lowest, highest = running[feature, LOWEST], running[feature, HIGHEST]
    if is_missing(value):
        return 0.0 if learner.preprocessing.seen.n_rows == 0 else 0.5 * lowest + 0.5 * highest
    value = min(LARGEST_VALUE, max(-LARGEST_VALUE, np.float64(value)))
    beyond = MOST_WIDTHS * (highest - lowest)
    if learner.preprocessing.seen.n_rows == 0 or not beyond > 0:
        return value
    return min(highest + beyond, max(lowest - beyond, value))


@inlined
def with_extremes(learner, feature, value):
    """Return the first, the smallest and the largest value of a feature, including this value.

    A feature that has occurred in no row was 0 in all of them.
    """
    if learner.preprocessing.seen.n_rows == 0:
        return value, value, value
    running = learner.preprocessing.statistics
    lowest, highest = min(running[feature, LOWEST], value), max(running[feature, HIGHEST], value)
    return running[feature, ORIGIN], lowest, highest


@always_inlined
def remember(learner, indices, values, codes, levels, weight):
    """Add a row to the running statistics after its trial, with its weight.

    The statistics of the classes contain the row already.
    """
    first, n_before = learner.preprocessing.n_constant, learner.preprocessing.seen.n_rows
    running = learner.preprocessing.statistics
    if learner.preprocessing.method == Z_SCORES:
        for j in range(first, values.shape[0]):
            f, missing = indices[j], learner.preprocessing.missing
            if is_missing(values[j]):
                missing[f] += weight
                continue
            n_known = n_before - missing[f]
            moments = with_value(running, f, np.float64(values[j]), n_known, weight)
            running[f, MEAN], running[f, SQUARES] = moments
    elif learner.preprocessing.method == RANGES:
        for j in range(first, values.shape[0]):
            f = indices[j]
            value = within_bounds(learner, f, values[j])
            extremes = with_extremes(learner, f, value)
            running[f, ORIGIN], running[f, LOWEST], running[f, HIGHEST] = extremes
            if has_relevance(learner.relevance):
                tell_of_classes(learner, f, value - extremes[0], codes, levels, weight)
        if has_relevance(learner.relevance):
            count_classes(learner, codes, levels, weight)
            row = learner.decay.row.weight
            weigh_if_due(learner.relevance, learner.counts.n_trials, row)
    elif running.shape[1] != 0:
        for j in range(first, values.shape[0]):
            if values[j] != 0:
                running[indices[j], N_ROWS] += weight
        if learner.preprocessing.parameters[INFORMATION] != 0:
            for i in range(codes.shape[0]):
                if levels[i] == 0 and learner.statistics.amounts[codes[i]] > 0:
                    gain(learner, indices, values, codes[i], n_best(levels), weight)
    learner.preprocessing.seen.n_rows = n_before + weight


@inlined
def tell_of_classes(learner, feature, value, codes, levels, weight):
    """Add a value to the sums of the classes of a row, which have equal shares of it."""
    share = weight / n_best(levels)
    for i in range(codes.shape[0]):
        if levels[i] == 0:
            add_value(learner.relevance, feature, value, codes[i], share)


@inlined
def count_classes(learner, codes, levels, weight):
    """Add the weight of a row to the amounts of its classes, in equal shares."""
    for i in range(codes.shape[0]):
        if levels[i] == 0:
            learner.relevance.amounts[codes[i]] += weight / n_best(levels)


@inlined
def n_best(levels):
    """Return the number of classes at the top of a target."""
    n = 0
    for i in range(levels.shape[0]):
        n += levels[i] == 0
    return n


@inlined
def gain(learner, indices, values, y, n_labels, weight):
    """Add what the features of a row have said of its class y, one of several of equal share."""
    running, layer = learner.preprocessing.statistics, 0
    while learner.statistics.kinds[layer] != CONTRAST:
        layer += 1
    counts = learner.statistics.sums[layer]
    prior = weight * math.log(learner.statistics.amounts[y] / learner.statistics.total.amount)
    for j in range(learner.preprocessing.n_constant, values.shape[0]):
        if values[j] != 0:
            f = indices[j]
            of_class = growth(np.float64(counts[f, y]), weight)
            running[f, GAINED] += (of_class - growth(running[f, N_ROWS], weight) - prior) / n_labels


@inlined
def growth(n, weight):
    """Return the increase of n ln(n) by its last summand."""
    before = n - weight
    return n * math.log(n) - (before * math.log(before) if before > 0 else 0.0) if n > 0 else 0.0


@always_inlined
def score_with(running, feature, value, n_before, weight):
    """Return the deviation of a value from the mean in standard deviations, both including it."""
    mean, squares = with_value(running, feature, value, n_before, weight)
    if squares > LEAST_VARIANCE * (n_before + weight):
        return (value - mean) / math.sqrt(squares / (n_before + weight))
    return 0.0


@always_inlined
def with_value(running, feature, value, n_before, weight):
    """Return the mean and the sum of squared deviations, including this value (West 1979)."""
    mean, squares = running[feature, MEAN], running[feature, SQUARES]
    gap = value - mean
    if squares > LEAST_VARIANCE * n_before:
        most = FURTHEST * math.sqrt(squares / n_before)
        gap = min(most, max(-most, gap))
    share = weight / (n_before + weight)
    return mean + share * gap, squares + n_before * share * gap * gap

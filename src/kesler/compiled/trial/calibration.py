"""Calibration: probabilities of classes, learnt from each target before it updates the weights.

See `kesler.learner.calibration` for the model.
"""
# mypy: disallow_untyped_defs=False, disallow_untyped_calls=False

from __future__ import annotations

import math

import numpy as np
from numba import types

from kesler.compiled.jit.decorators import (
    DOUBLE_TABLE,
    FLOAT_TABLE,
    always_inlined,
    inlined,
    kernel,
)
from kesler.compiled.jit.record_types import record_type
from kesler.compiled.jit.simd import SIMD_WIDTH, larger, load, spread, total_of, whole_lines, widen
from kesler.compiled.trial.variants import moments, soften
from kesler.state.records import CALIBRATION

DISCOUNT = 0.99
# The minimum weight of a row, so that scores whose scale has jumped are not taken for lapses.
LEAST = 0.01
# The lower bound of beta (score - highest score): e^-80 is practically 0.
FURTHEST = -80.0
# The bound of log-odds: beyond it, probabilities are 0 or 1 up to rounding.
LARGEST_ODDS = 80.0
NOTHING_LEFT = 1e-30
COLDEST, HOTTEST = 1e60, 1e-60


@inlined
def exponential(t):
    """Return e^t for -80 <= t <= 0 with relative error 1e-7, in float32 only: eight lanes wide.

    The polynomial is that of Moshier's Cephes library (1989), as in `kesler.kernels.rbf`.
    """
    n = np.floor(t * np.float32(1.44269504) + np.float32(0.5))
    f = t - n * np.float32(0.693359375)
    f = f + n * np.float32(2.12194440e-4)
    p = np.float32(1.9875691500e-4)
    p = p * f + np.float32(1.3981999507e-3)
    p = p * f + np.float32(8.3334519073e-3)
    p = p * f + np.float32(4.1665795894e-2)
    p = p * f + np.float32(1.6666665459e-1)
    p = p * f + np.float32(5.0000001201e-1)
    p = p * f * f + f + np.float32(1)
    return p * np.int32((np.int32(n) + 127) << 23).view(np.float32)


@inlined
def probability(odds):
    """Return 1 / (1 + exp(-odds))."""
    if odds > 0:
        return 1.0 / (1.0 + math.exp(-odds))
    rising = math.exp(max(odds, -2 * LARGEST_ODDS))
    return rising / (1.0 + rising)


@inlined
def below(inverse, score, top):
    """Return beta (score - top), but at least FURTHEST."""
    z = inverse * (np.float64(score) - top)
    return np.float32(z if z >= FURTHEST else FURTHEST)


@inlined
def temper(calibration, scores, k, top):
    """Return the inverse temperature, initially the one that puts the extreme scores 2 apart."""
    if calibration.information > 0:
        return calibration.inverse
    lowest = top
    for r in range(k):
        lowest = min(lowest, np.float64(scores[r]))
    spread = top - lowest
    return 2.0 / spread if 0 < spread and spread < np.inf else 0.0


@inlined
def far_below(inverse, score, top):
    """Return beta (score - top) as `below` does, in float64."""
    z = inverse * (np.float64(score) - top)
    return z if z > FURTHEST else FURTHEST


@inlined
def of_score(inverse, score, top):
    """Return e^(beta (score - top))."""
    return exponential(below(inverse, score, top))


# Sums over classes have sixteen lanes, by the index of the class; arrays have whole lines; after
# the last class e^z is 0. Classes of score 0 are counted, not summed: where few classes have a
# weight for a feature of the row, that skips all the others.


@always_inlined
def dense_soften(learner, inverse, scores, k, top, exponentials):
    """Compute exponentials[r] = e^z, z = beta (score of r - top), 0 for a score of 0.

    Return the sum of e^z over all classes, and the share of those of score 0 in it.
    """
    n_zeros = 0
    for r in range(k):
        share = of_score(inverse, scores[r], top)
        exponentials[r] = share if scores[r] != 0 else np.float32(0)
        n_zeros += scores[r] == 0
    for r in range(k, whole_lines(k)):
        exponentials[r] = 0
    line = spread(0.0)
    for r in range(0, k, SIMD_WIDTH):
        line = line + widen(load(exponentials, r))
    of_zeros = shared_by_zeros(inverse, n_zeros, top)
    return total_of(line) + of_zeros, of_zeros


@inlined
def shared_by_zeros(inverse, n_zeros, top):
    """Return the sum of e^(beta (score - top)) over classes of score 0.

    Without such classes, the highest score may be negative, and e^z would have no bound.
    """
    return n_zeros * np.float64(of_score(inverse, np.float32(0), max(top, 0.0)))


@always_inlined
def dense_moments(learner, inverse, scores, k, top, exponentials):
    """Return the sums of e^z z and of e^z z^2 over the scores that are not 0."""
    least, nothing = spread(FURTHEST), spread(0.0)
    first_line, second_line = nothing, nothing
    for r in range(0, k, SIMD_WIDTH):
        z = larger((widen(load(scores, r)) - top) * inverse, least)
        share = widen(load(exponentials, r)) * z
        first_line = first_line + share
        second_line = second_line + share * z
    return total_of(first_line), total_of(second_line)


@inlined
def chance(share, total, lapse, k):
    """Return the probability of a class."""
    return (1.0 - lapse) * (np.float64(share) / total) + lapse / k


@always_inlined
def calibrate(learner, scores, k, winner, said, y, exponentials, probabilities, t):
    """Learn from the target y; write the earlier probabilities to probabilities[t], if requested.

    The winner has the highest score. The probabilities are those of the class `said` and of y, both
    NaN if y is new, and of each class that has a column. A target has no effect if it is new, or if
    all classes have the same score.
    """
    calibration = learner.calibration
    if probabilities.shape[0]:
        probabilities[t, 0], probabilities[t, 1] = np.nan, np.nan
    if k == 0:
        return
    top = np.float64(scores[winner])
    inverse = temper(calibration, scores, k, top)
    total, of_zeros = soften(learner, inverse, scores, k, top, exponentials)
    lapse = calibration.lapses / calibration.n_targets
    if probabilities.shape[0]:
        if y < k:
            probabilities[t, 0] = chance(of_score(inverse, scores[said], top), total, lapse, k)
            probabilities[t, 1] = chance(of_score(inverse, scores[y], top), total, lapse, k)
        for r in range(min(k, probabilities.shape[1] - 2)):
            probabilities[t, 2 + r] = chance(of_score(inverse, scores[r], top), total, lapse, k)
    if k > 1 and y < k and inverse > 0 and np.isfinite(top):
        if calibration.information == 0:
            calibration.inverse, calibration.information = inverse, 1.0
        first, second = moments(learner, inverse, scores, k, top, exponentials)
        z = far_below(inverse, np.float32(0), max(top, 0.0))
        mean = (first + of_zeros * z) / total
        square = (second + of_zeros * z * z) / total
        slope = mean - np.float64(below(inverse, scores[y], top))
        lapsed = lapse / k / chance(of_score(inverse, scores[y], top), total, lapse, k)
        learn(calibration, slope, square - mean * mean, lapsed)


@inlined
def learn(calibration, slope, variance, lapsed):
    """Take a Newton step in log beta, of at most 1, and update the lapses."""
    counts = max(LEAST, 1.0 - lapsed)
    information = DISCOUNT * calibration.information + counts * max(0.0, variance)
    calibration.information = max(NOTHING_LEFT, information)
    step = max(-1.0, min(1.0, counts * slope / calibration.information))
    inverse = calibration.inverse * math.exp(-step)
    calibration.inverse = min(COLDEST, max(HOTTEST, inverse))
    calibration.lapses = DISCOUNT * calibration.lapses + lapsed
    calibration.n_targets = DISCOUNT * calibration.n_targets + 1.0


@inlined
def parameters_of(calibration, scores, k, top):
    """Return the inverse temperature, the sum of e^(beta (score - top)), and the lapses."""
    inverse, total = temper(calibration, scores, k, top), 0.0
    for r in range(k):
        total += of_score(inverse, scores[r], top)
    return inverse, total, calibration.lapses / calibration.n_targets


@inlined
def median_rank(learner, scores, k, winner):
    """Return the lowest rank that at least half of the probability is at or below.

    It minimises the expected absolute error. The winner, which has the highest score, is returned
    if scores are not finite.
    """
    if winner < 0 or not np.isfinite(scores[winner]):
        return winner
    top = np.float64(scores[winner])
    inverse, total, lapse = parameters_of(learner.calibration, scores, k, top)
    below_or_at = 0.0
    for i in range(k - 1):
        r = learner.ranks.order[i]
        below_or_at += chance(of_score(inverse, scores[r], top), total, lapse, k)
        if below_or_at >= 0.5:
            return np.int32(r)
    return np.int32(learner.ranks.order[k - 1])


@inlined
def nearest_class(learner, scores, k, winner):
    """Return the class of the least expected distance in the tree of classes.

    The distance of two classes is the number of nodes above only one of them. If P(v) is the
    probability of the classes below node v, its expectation for class s is a constant plus the sum
    of 1 - 2 P(v) over the nodes above s. The winner, which has the highest score, is returned if
    scores are not finite, and if it is among the nearest.
    """
    if winner < 0 or not np.isfinite(scores[winner]):
        return winner
    starts, members, masses = learner.tree.starts, learner.tree.members, learner.tree.masses
    top = np.float64(scores[winner])
    inverse, total, lapse = parameters_of(learner.calibration, scores, k, top)
    masses[:] = 0
    for r in range(k):
        share = chance(of_score(inverse, scores[r], top), total, lapse, k)
        for m in range(starts[r], starts[r + 1]):
            masses[members[m]] += share
    nearest = winner
    least = expected_distance(learner.tree, nearest)
    for r in range(k):
        distance = expected_distance(learner.tree, r)
        if distance < least:
            nearest, least = r, distance
    return np.int32(nearest)


@inlined
def expected_distance(tree, r):
    """Return the expected distance from class r, less a constant that all classes share."""
    distance = 0.0
    for m in range(tree.starts[r], tree.starts[r + 1]):
        distance += 1.0 - 2.0 * tree.masses[tree.members[m]]
    return distance


@kernel(types.void(record_type(CALIBRATION), FLOAT_TABLE, DOUBLE_TABLE))
def tell(calibration, scores, probabilities):
    """Write the probability of each class; there must be at least one class."""
    k = scores.shape[1]
    exponentials = np.empty(whole_lines(k), np.float32)
    lapse = calibration.lapses / calibration.n_targets
    for t in range(scores.shape[0]):
        top = np.float64(scores[t, 0])
        for r in range(1, k):
            top = max(top, np.float64(scores[t, r]))
        inverse = temper(calibration, scores[t], k, top)
        total, _ = dense_soften(calibration, inverse, scores[t], k, top, exponentials)
        for r in range(k):
            probabilities[t, r] = chance(of_score(inverse, scores[t, r], top), total, lapse, k)

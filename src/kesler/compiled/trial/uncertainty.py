"""Uncertainty: the probability of a new class, confidence and prediction sets, learnt online.

See `kesler.learner.uncertainty` for the models.
"""
# mypy: disallow_untyped_defs=False, disallow_untyped_calls=False

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import types

from kesler.compiled.jit.decorators import (
    DOUBLE_TABLE,
    FLOAT_STACK,
    FLOAT_TABLE,
    INDICES,
    INT,
    allocating,
    inlined,
    kernel,
)
from kesler.compiled.jit.pointers import pointer_reader, put, stay_apart
from kesler.compiled.jit.record_types import tuple_type
from kesler.compiled.jit.simd import squared, whole_lines
from kesler.compiled.trial.nearest_rows import (
    is_comparable,
    lay_out,
    learn_distances,
    log_distance,
    nearest,
    ratio_of,
    remember,
)
from kesler.state.uncertainty import (
    BY_CLASS,
    CONFIDENCE,
    COVERAGES,
    COVERED,
    CURRENT,
    MEAN,
    MOST_PENALISED,
    N_EVIDENCE,
    N_MEASURES,
    N_PRIORS,
    NEW,
    PENALTY,
    PREDICTED,
    SIZE,
    Uncertainties,
)

UNCERTAINTIES = tuple_type(Uncertainties)
uncertainties_at = pointer_reader(UNCERTAINTIES)

N_COVERAGES = len(COVERAGES)
HIGHEST, STANDING_OUT, LEAD = range(N_MEASURES)

# Probabilities are kept from 0 and 1 by this much, before their logit is taken.
LEAST, LEAST_PRIOR, MOST_PRIOR = 1e-4, 1e-5, 0.999
# The part of the weights that estimates share at each row: of the prior, and of the three beyond.
SHARED_PRIOR, SHARED = 0.002, 3e-4
FURTHEST, FEWEST_MEASURED = 4.0, 5.0
# What is added to the variances of the regression of right predictions at each row.
DRIFT = 1e-4
# The step of each threshold, and that of the offsets of classes.
STEPS = (0.06, 0.06, 0.08, 0.3)
STEP_OF_CLASS = 0.05
# The weight of the last row in the mean of a threshold.
PART_OF_MEAN = 0.005
DECAYS = tuple(0.5 ** (1 / half_life) for half_life in (30.0, 100.0, 300.0, 1000.0))


@inlined
def logit(p):
    """Return log(p / (1 - p))."""
    return math.log(p / (1.0 - p))


@inlined
def logistic(z):
    """Return 1 / (1 + exp(-z)), between 1e-6 and 1 - 1e-6."""
    p = 1.0 / (1.0 + math.exp(-max(-30.0, min(30.0, z))))
    return min(1.0 - 1e-6, max(1e-6, p))


# ---- how often new classes come ------------------------------------------------------------------


@inlined
def estimate(arrivals, k, estimates):
    """Compute the estimates of the probability of a new class from arrivals; return their mean."""
    n, once = arrivals.counts.n_rows, arrivals.counts.n_once
    estimates[0] = (once + 0.5) / (n + 1)
    estimates[1] = (k + 0.5) / (n + 1)
    estimates[2] = (1 + 0.5 * k) / (1 + n)
    estimates[3] = (1 + 0.3 * k) / (1 + n)
    estimates[4] = 3 / (3 + n)
    for j in range(arrivals.decayed.shape[0]):
        estimates[5 + j] = (arrivals.decayed[j, 0] + 0.5) / (arrivals.decayed[j, 1] + 1)
    mean = 0.0
    for j in range(N_PRIORS):
        estimates[j] = min(MOST_PRIOR, max(LEAST_PRIOR, estimates[j]))
        mean += arrivals.priors[j] * estimates[j]
    return min(MOST_PRIOR, max(LEAST_PRIOR, mean))


@inlined
def count_arrival(arrivals, estimates, y, is_new):
    """Learn from the class of a row how often new classes come."""
    reweigh(arrivals.priors, estimates, is_new, SHARED_PRIOR)
    for j in range(arrivals.decayed.shape[0]):
        arrivals.decayed[j, 0] = arrivals.decayed[j, 0] * DECAYS[j] + is_new
        arrivals.decayed[j, 1] = arrivals.decayed[j, 1] * DECAYS[j] + 1
    arrivals.counts.n_rows += 1
    arrivals.n_rows[y] += 1
    if arrivals.n_rows[y] == 1:
        arrivals.counts.n_once += 1
    elif arrivals.n_rows[y] == 2:
        arrivals.counts.n_once -= 1


@inlined
def reweigh(weights, estimates, happened, shared):
    """Update the weights of estimates of a probability by Bayes' rule, then share a part."""
    n, total = weights.shape[0], 0.0
    for j in range(n):
        weights[j] *= estimates[j] if happened else 1.0 - estimates[j]
        total += weights[j]
    for j in range(n):
        weights[j] = (1.0 - shared) * weights[j] / total + shared / n


# ---- what scores say -----------------------------------------------------------------------------


@inlined
def measure(scores, k, measures):
    """Write the measures of the scores of k classes, NaN where they are not defined."""
    highest, second, total = -np.inf, -np.inf, 0.0
    for r in range(k):
        score = np.float64(scores[r])
        total += score
        if score > highest:
            highest, second = score, highest
        elif score > second:
            second = score
    mean, squares = total / max(1, k), 0.0
    for r in range(k):
        squares += squared(np.float64(scores[r]) - mean)
    measures[HIGHEST] = highest if k else np.nan
    stands_out = k > 2 and squares > 0
    measures[STANDING_OUT] = (highest - mean) / math.sqrt(squares / k) if stands_out else np.nan
    measures[LEAD] = highest - second if k > 1 else np.nan


@inlined
def standardised(spread, x):
    """Return x in standard deviations from the mean of earlier rows, 0 where that is not known."""
    if spread[0] < FEWEST_MEASURED or spread[2] <= 0 or not np.isfinite(x):
        return 0.0
    z = (x - spread[1]) / math.sqrt(spread[2] / spread[0])
    return min(FURTHEST, max(-FURTHEST, z))


@inlined
def add_measure(spread, x):
    """Add a number to the mean and the squared deviations, if it is finite."""
    if np.isfinite(x):
        spread[0] += 1
        distance = x - spread[1]
        spread[1] += distance / spread[0]
        spread[2] += distance * (x - spread[1])


@inlined
def measure_members(u, scores, t, k, measures, evidence):
    """Measure the scores of row t; write the means over members, in standard deviations.

    evidence[2] and [3] receive those of a new class; the mean of the lead is returned.
    """
    n_members, lead = scores.shape[0], 0.0
    evidence[2], evidence[3] = 0.0, 0.0
    for i in range(n_members):
        measure(scores[i, t], k, measures[i])
        evidence[2] += standardised(u.spread[i, HIGHEST], measures[i, HIGHEST]) / n_members
        evidence[3] += (
            standardised(u.spread[i, STANDING_OUT], measures[i, STANDING_OUT]) / n_members
        )
        lead += standardised(u.spread[i, LEAD], measures[i, LEAD]) / n_members
    return lead


# ---- logistic regressions ------------------------------------------------------------------------


@inlined
def scored(weights, evidence):
    """Return the probability of a logistic regression."""
    z = 0.0
    for i in range(weights.shape[0]):
        z += weights[i] * evidence[i]
    return logistic(z)


@inlined
def filter_step(weights, covariance, evidence, happened, p, column):
    """Take a step of an extended Kalman filter from what was predicted with probability p."""
    n, variance, total = weights.shape[0], p * (1.0 - p), 0.0
    for i in range(n):
        column[i] = 0.0
        for j in range(n):
            column[i] += covariance[i, j] * evidence[j]
        total += column[i] * evidence[i]
    gain = 1.0 / (1.0 + variance * total)
    for i in range(n):
        weights[i] += gain * column[i] * (happened - p)
        for j in range(n):
            covariance[i, j] -= variance * gain * column[i] * column[j]


@inlined
def probability_of_new(u, prior, evidence, opinions):
    """Return the probability of a new class: the weighted mean of three opinions."""
    remembers = u.memory.rows.shape[0] > 0
    evidence[0], evidence[1] = 1.0, logit(prior)
    opinions[0] = prior
    scores = 0.5 if remembers else 0.7
    standing = 0.2 if remembers else 0.3
    z = -0.3 + 1.05 * evidence[1] - scores * evidence[2] - standing * evidence[3]
    opinions[1] = logistic(z + 0.6 * evidence[4])
    opinions[2] = scored(u.new_class, evidence)
    p = 0.0
    for j in range(3):
        p += u.mixed[j] * opinions[j]
    return p


@inlined
def confidence_of(u, said, new, lead, reasons):
    """Return the probability that the prediction is right, given its own one."""
    p = min(1.0 - LEAST, max(LEAST, said * (1.0 - new)))
    reasons[0], reasons[1], reasons[2] = 1.0, logit(p), lead
    return scored(u.confidence, reasons)


# ---- prediction sets -----------------------------------------------------------------------------


@inlined
def mass(probabilities, t, new, k, r):
    """Return the probability of class r, or of a new one if r is k."""
    return new if r == k else (1.0 - new) * probabilities[t, 2 + r]


@inlined
def nonconformity(above, own, rank):
    """Return the score of a class, given the probability of the classes above it."""
    return above + 0.5 * own + PENALTY * min(MOST_PENALISED, max(0, rank - 1))


@inlined
def nonconformity_of(probabilities, t, new, k, y):
    """Return the score of class y, or of a new class if y is k."""
    own, above, rank = mass(probabilities, t, new, k, y), 0.0, 0
    for r in range(k + 1):
        other = mass(probabilities, t, new, k, r)
        if other > own or (other == own and r < y):
            above += other
            rank += 1
    return nonconformity(above, own, rank)


class Ranking(NamedTuple):
    """Scratch arrays for the classes of a row by probability, each of shape (classes + 1,).

    masses : the probability of each class, and last of a new one; order : a heap of the classes
    that have not been taken, with the likeliest on top.
    """

    masses: npt.NDArray[np.float64]
    order: npt.NDArray[np.int64]


@allocating
def new_ranking(n):
    """Return scratch arrays for n classes, a new one among them."""
    return Ranking(np.empty(n), np.empty(n, np.int64))


@inlined
def rank_classes(ranking, probabilities, t, new, k):
    """Arrange the k classes of row t, and a new one, for `likeliest`."""
    for r in range(k + 1):
        ranking.masses[r], ranking.order[r] = mass(probabilities, t, new, k, r), r
    for place in range((k + 1) // 2 - 1, -1, -1):
        sift(ranking, place, k + 1)


@inlined
def comes_before(ranking, r, s):
    """Return whether class r comes before class s in the order of `nonconformity_of`."""
    own, other = ranking.masses[r], ranking.masses[s]
    return own > other or (own == other and r < s)


@inlined
def sift(ranking, place, n):
    """Move the class at a place of a heap of n classes below those that come before it."""
    order = ranking.order
    r = order[place]
    while 2 * place + 1 < n:
        child = 2 * place + 1
        if child + 1 < n and comes_before(ranking, order[child + 1], order[child]):
            child += 1
        if not comes_before(ranking, order[child], r):
            break
        order[place] = order[child]
        place = child
    order[place] = r


@inlined
def likeliest(ranking, n):
    """Take the likeliest of the n classes that are left from the heap, and return it."""
    r = ranking.order[0]
    ranking.order[0] = ranking.order[n - 1]
    sift(ranking, 0, n - 1)
    return r


@inlined
def bound_of(u, c, r, k, by_class):
    """Return the threshold of class r, or of a new class if r is k, for coverage c."""
    if not by_class:
        return u.thresholds[c, CURRENT]
    return u.by_class[c, CURRENT] + (u.of_new[c] if r == k else u.offsets[r, c])


@inlined
def highest_bound(u, k):
    """Return the largest threshold of a class, for any coverage."""
    found = -np.inf
    for c in range(N_COVERAGES):
        found = max(found, bound_of(u, c, k, k, False), bound_of(u, c, k, k, True))
        for r in range(k):
            found = max(found, bound_of(u, c, r, k, True))
    return found


@inlined
def move(thresholds, c, missed):
    """Move the threshold for coverage c, and its mean, after a target was outside or not."""
    thresholds[c, CURRENT] += STEPS[c] * (missed - (1.0 - COVERAGES[c]))
    thresholds[c, MEAN] += PART_OF_MEAN * (thresholds[c, CURRENT] - thresholds[c, MEAN])


@inlined
def track(u, c, score, y, k):
    """Move the thresholds for coverage c after the score of the target; y is k for a new class."""
    allowed = 1.0 - COVERAGES[c]
    move(u.thresholds, c, score > u.thresholds[c, CURRENT])
    missed = score > bound_of(u, c, y, k, True)
    move(u.by_class, c, missed)
    if y == k:
        u.of_new[c] += STEP_OF_CLASS * (missed - allowed)
    else:
        u.offsets[y, c] += STEP_OF_CLASS * (missed - allowed)


@inlined
def trace_sets(u, k, score, y, ranking, trace):
    """Write whether each set contains the target, and its size, given the classes of the row.

    Scores grow along the classes, so that none is inside after the first one above all thresholds.
    """
    for c in range(N_COVERAGES):
        trace[COVERED + c] = score <= bound_of(u, c, y, k, False)
        trace[BY_CLASS + COVERED + c] = score <= bound_of(u, c, y, k, True)
        trace[SIZE + c] = trace[BY_CLASS + SIZE + c] = 0.0
    most, above = highest_bound(u, k), 0.0
    for rank in range(k + 1):
        r = likeliest(ranking, k + 1 - rank)
        own = ranking.masses[r]
        found = nonconformity(above, own, rank)
        if found > most:
            break
        for c in range(N_COVERAGES):
            trace[SIZE + c] += found <= bound_of(u, c, r, k, False)
            trace[BY_CLASS + SIZE + c] += found <= bound_of(u, c, r, k, True)
        above += own


# ---- rows ----------------------------------------------------------------------------------------


@inlined
def are_probabilities(probabilities, t, k):
    """Return whether a row holds the probability of each known class."""
    for r in range(k):
        if not np.isfinite(probabilities[t, 2 + r]):
            return False
    return True


@inlined
def learn_new_class(u, scores, scratch, is_new):
    """Learn from whether the class was new what the evidence says."""
    p, happened = scratch.opinions[2], np.float64(is_new)
    reweigh(u.mixed, scratch.opinions, is_new, SHARED)
    filter_step(u.new_class, u.new_class_covariance, scratch.evidence, happened, p, scratch.column)
    for i in range(scores.shape[0]):
        for j in range(N_MEASURES):
            add_measure(u.spread[i, j], scratch.measures[i, j])


@inlined
def learn_confidence(u, reasons, is_right, p, column):
    """Learn from whether the prediction was right the confidence in the next ones."""
    for i in range(3):
        u.confidence_covariance[i, i] += DRIFT
    filter_step(u.confidence, u.confidence_covariance, reasons, np.float64(is_right), p, column)


class Scratch(NamedTuple):
    """Scratch arrays of a row."""

    estimates: npt.NDArray[np.float64]
    evidence: npt.NDArray[np.float64]
    reasons: npt.NDArray[np.float64]
    opinions: npt.NDArray[np.float64]
    measures: npt.NDArray[np.float64]
    column: npt.NDArray[np.float64]
    squares: npt.NDArray[np.float64]
    none: npt.NDArray[np.float64]
    row: npt.NDArray[np.float32]
    inverse: npt.NDArray[np.float32]
    ranking: Ranking


@allocating
def new_scratch(n_members, n_features, n_ranked):
    """Return scratch arrays for scores of members, features of rows, and classes to be ranked."""
    width = whole_lines(n_features)
    return Scratch(
        np.empty(N_PRIORS),
        np.zeros(N_EVIDENCE),
        np.empty(3),
        np.empty(3),
        np.empty((n_members, N_MEASURES)),
        np.empty(N_EVIDENCE),
        np.empty(2),
        np.empty(0),
        np.zeros(width, np.float32),
        np.zeros(width, np.float32),
        new_ranking(n_ranked),
    )


@inlined
def nearest_evidence(memory, values, y, scratch):
    """Write the evidence of the nearest row remembered; return whether one is of class y."""
    lay_out(memory, values, scratch.row, scratch.inverse)
    has_own = nearest(memory, scratch.row, scratch.inverse, y, scratch.squares)
    square = scratch.squares[0]
    distance = log_distance(square, values.shape[0])
    scratch.evidence[4] = ratio_of(memory, distance) if is_comparable(memory, square) else 0.0
    return has_own


@inlined
def begin(traces, t):
    """Write what is said of a row before any class is known: that its class is new."""
    if traces.shape[0]:
        traces[t, NEW], traces[t, CONFIDENCE], traces[t, PREDICTED] = 1.0, 0.0, 0.0
        traces[t, COVERED:] = 1.0


@inlined
def observe_row(u, scores, probabilities, t, k, n_scored, said, y, is_new, prior, scratch, trace):
    """Say how sure row t is, then learn from its target; y is k or more if it is none of k classes.

    n_scored : the number of classes that have scores.
    """
    lead = measure_members(u, scores, t, n_scored, scratch.measures, scratch.evidence)
    new = probability_of_new(u, prior, scratch.evidence, scratch.opinions)
    p = confidence_of(u, probabilities[t, 2 + said], new, lead, scratch.reasons)
    target = min(y, k)
    score = nonconformity_of(probabilities, t, new, k, target)
    if trace.shape[0]:
        trace[NEW], trace[CONFIDENCE], trace[PREDICTED] = new, p, probabilities[t, 2 + said]
        rank_classes(scratch.ranking, probabilities, t, new, k)
        trace_sets(u, k, score, target, scratch.ranking, trace)
    for c in range(N_COVERAGES):
        track(u, c, score, target, k)
    learn_new_class(u, scores, scratch, is_new)
    learn_confidence(u, scratch.reasons, said == y, p, scratch.column)


@inlined
def observe_all(u, n_known, scores, probabilities, predictions, codes, inputs, traces, scratch):
    """Observe one row after the other."""
    stay_apart()
    k, remembers, has_own = n_known, u.memory.rows.shape[0] > 0, False
    for t in range(codes.shape[0]):
        y = np.int64(codes[t])
        prior = estimate(u.arrivals, k, scratch.estimates)
        if remembers:
            has_own = nearest_evidence(u.memory, inputs[t], y, scratch)
        if k == 0:
            begin(traces, t)
        elif are_probabilities(probabilities, t, k):
            trace, said = traces[t] if traces.shape[0] else scratch.none, predictions[t]
            observe_row(u, scores, probabilities, t, k, k, said, y, y >= k, prior, scratch, trace)
        if remembers:
            if has_own:
                learn_distances(u.memory, scratch.squares, inputs.shape[1])
            remember(u.memory, scratch.row, inputs.shape[1], y)
        count_arrival(u.arrivals, scratch.estimates, y, y >= k)
        k = max(k, y + 1)


@kernel(types.void(UNCERTAINTIES, INT))
def write_arguments(u, address):
    """Write the state to an address, from which other kernels read it."""
    put(u, address)


@kernel(
    types.void(INT, INT, FLOAT_STACK, DOUBLE_TABLE, INDICES, INDICES, FLOAT_TABLE, DOUBLE_TABLE)
)
def observe(address, n_known, scores, probabilities, predictions, codes, inputs, traces):
    """Observe rows with the scores and probabilities that they had before they were learnt.

    n_known : number of classes known before the first row; scores : (members, rows, classes);
    probabilities : (rows, 2 + classes), as `calibrate` writes them; predictions, codes : the
    predicted class and the target of each row; inputs : (rows, features) for the memory, or no
    rows; traces : (rows, N_TRACED), receives what was said of each row, or no rows.
    """
    n_ranked = probabilities.shape[1] if traces.shape[0] else 0
    u, scratch = uncertainties_at(address), new_scratch(scores.shape[0], inputs.shape[1], n_ranked)
    observe_all(u, n_known, scores, probabilities, predictions, codes, inputs, traces, scratch)

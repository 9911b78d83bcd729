"""Prediction sets of other targets: intervals of ranks, and labels that are surely relevant.

See `kesler.learner.uncertainty` for the models.
"""
# mypy: disallow_untyped_defs=False, disallow_untyped_calls=False

from __future__ import annotations

import numpy as np
from numba import types

from kesler.compiled.jit.decorators import (
    DOUBLE_TABLE,
    INDICES,
    INT,
    INTS,
    inlined,
    kernel,
)
from kesler.compiled.trial.uncertain_answers import FLAGS
from kesler.compiled.trial.uncertainty import N_COVERAGES, move
from kesler.state.uncertainty import COVERED, CURRENT, SIZE


@inlined
def track_one(thresholds, score):
    """Move the threshold of each coverage after the score of a target."""
    for c in range(N_COVERAGES):
        move(thresholds, c, score > thresholds[c, CURRENT])


# ---- ranks ---------------------------------------------------------------------------------------


@inlined
def known_ranks(order, k, known):
    """List the classes below k in the order of their ranks; return their number."""
    n = 0
    for i in range(order.shape[0]):
        if order[i] < k:
            known[n] = order[i]
            n += 1
    return n


@inlined
def grow(probabilities, t, known, n, said, scores):
    """Score each class by the interval that grows from the predicted one until it is inside.

    The interval takes the likelier of its two neighbours, the lower rank if they are equal.
    """
    first = 0
    while known[first] != said:
        first += 1
    low, high, r, above = first, first, said, 0.0
    for _ in range(n):
        own = probabilities[t, 2 + r]
        scores[r] = above + 0.5 * own
        above += own
        below_is = probabilities[t, 2 + known[low - 1]] if low > 0 else -1.0
        above_is = probabilities[t, 2 + known[high + 1]] if high + 1 < n else -1.0
        if low > 0 and below_is >= above_is:
            low -= 1
            r = known[low]
        elif high + 1 < n:
            high += 1
            r = known[high]


@kernel(types.void(DOUBLE_TABLE, INT, DOUBLE_TABLE, INDICES, INDICES, INTS, DOUBLE_TABLE))
def observe_ranks(thresholds, n_known, probabilities, predictions, codes, order, traces):
    """Observe rows of ranks; arguments as for `kesler.compiled.trial.uncertainty.observe`.

    order : the classes in the order of their ranks, after the last row. A new rank is traced as
    outside of the interval, and does not move thresholds.
    """
    known, scores, k = np.empty_like(order), np.empty(order.shape[0]), n_known
    for t in range(codes.shape[0]):
        y, n = np.int64(codes[t]), 0
        if k > 0:
            n = known_ranks(order, k, known)
            grow(probabilities, t, known, n, predictions[t], scores)
        if traces.shape[0]:
            for c in range(N_COVERAGES):
                traces[t, COVERED + c] = y < k and scores[y] <= thresholds[c, CURRENT]
                traces[t, SIZE + c] = 0.0
                for i in range(n):
                    traces[t, SIZE + c] += scores[known[i]] <= thresholds[c, CURRENT]
        if y < k:
            track_one(thresholds, scores[y])
        k = max(k, y + 1)


@kernel(types.void(DOUBLE_TABLE, INDICES, INTS, types.float64, types.boolean, FLAGS))
def choose_ranks(probabilities, predictions, order, bound, is_empty_allowed, chosen):
    """Mark the classes of the interval of each row."""
    scores, n = np.empty(order.shape[0]), order.shape[0]
    for t in range(chosen.shape[0]):
        grow(probabilities, t, order, n, predictions[t], scores)
        for r in range(n):
            chosen[t, r] = scores[r] <= bound
        if not is_empty_allowed:
            chosen[t, predictions[t]] = True


# ---- label sets ----------------------------------------------------------------------------------


@inlined
def mark_relevant(codes, levels, is_relevant, value):
    """Set the marks of the relevant labels of a target."""
    for i in range(codes.shape[0]):
        if levels[i] == 0:
            is_relevant[codes[i]] = value


@kernel(types.void(DOUBLE_TABLE, INT, INT, DOUBLE_TABLE, INTS, INDICES, INDICES, DOUBLE_TABLE))
def observe_labels(thresholds, first, n_known, probabilities, indptr, codes, levels, traces):
    """Observe rows of label sets, of which those from number `first` on have labels.

    The score of a target is the highest probability of a label that is not relevant.
    """
    is_relevant, k = np.zeros(probabilities.shape[1], np.bool_), n_known
    for t in range(indptr.shape[0] - 1):
        named, level = codes[indptr[t] : indptr[t + 1]], levels[indptr[t] : indptr[t + 1]]
        mark_relevant(named, level, is_relevant, True)
        score = 0.0
        for r in range(first, k):
            if not is_relevant[r]:
                score = max(score, probabilities[t, r])
        mark_relevant(named, level, is_relevant, False)
        if traces.shape[0]:
            for c in range(N_COVERAGES):
                traces[t, COVERED + c] = score <= thresholds[c, CURRENT]
                traces[t, SIZE + c] = 0.0
                for r in range(first, k):
                    traces[t, SIZE + c] += probabilities[t, r] > thresholds[c, CURRENT]
        if k > first:
            track_one(thresholds, score)
        for i in range(named.shape[0]):
            k = max(k, named[i] + 1)

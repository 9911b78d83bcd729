"""Scores over sparse rows of weights, of the classes that have a weight on the row; 0 for others.

Sums have the order of `products.add_products`, one feature after the other, so that they have its
bits: a class without a weight adds 0 x, which changes nothing.
"""
# mypy: disallow_untyped_defs=False, disallow_untyped_calls=False

from __future__ import annotations

import numpy as np

from kesler.compiled.calibration import far_below, moments, of_score, shared_by_zeros, soften
from kesler.compiled.choices import is_ahead
from kesler.compiled.jit import inlined
from kesler.compiled.lanes import LANES, load, spread, store, total_of, whole_lines
from kesler.compiled.products import add_products
from kesler.compiled.scores import (
    best,
    best_but,
    clear,
    finite,
    score,
)
from kesler.compiled.sparse_rows import (
    ALL,
    IN_TABLE,
    N_REACHED,
    UNKNOWN,
    WINNER,
    SparseLearner,
    before_last,
)


@score.register(SparseLearner)
def sparse_score(learner, indices, values, k, scratch, scores):
    """scores[r] = <w_r, x>; list the classes that have a weight on the row."""
    forget_scores(learner, k)
    reaches_all = False
    for j in range(indices.shape[0]):
        reaches_all |= learner.counts[indices[j]] == IN_TABLE
    learner.reach[N_REACHED] = ALL if reaches_all else 0
    width = whole_lines(k)
    for j in range(indices.shape[0]):
        if learner.counts[indices[j]] == IN_TABLE:
            add_row(learner, indices[j], values[j : j + 1], width, scratch)
        else:
            add_entries(learner, indices[j], values[j])
    if not reaches_all:
        list_reached(learner, k)


@inlined
def forget_scores(learner, k):
    """Let all scores be 0 again."""
    n = learner.reach[N_REACHED]
    if n == ALL:
        clear(learner.scores, whole_lines(k))
    for i in range(n):
        learner.scores[learner.reached[i]] = 0
    learner.reach[WINNER] = UNKNOWN


@inlined
def add_row(learner, i, x, width, scratch):
    """Add the products x w of a feature in the table."""
    scratch.row[0] = learner.heads[i]
    add_products(scratch.row, x, scratch.row[:0], learner.table, 0, width, learner.scores)


@inlined
def add_entries(learner, i, x):
    """Add the products x w of a feature, and mark its classes.

    Where all classes count as reached nobody looks for marks: there are none.
    """
    owners, weights, scores, marks = learner.owners, learner.values, learner.scores, learner.marks
    marked = np.uint8(learner.reach[N_REACHED] != ALL)
    n, unit = np.int64(learner.counts[i]), np.int64(learner.heads[i])
    while n > 0:
        before, first = before_last(n), unit * LANES
        for e in range(np.uintp(first), np.uintp(first + n - before)):
            r = np.uintp(owners[e])
            scores[r] += x * weights[e]
            marks[r] = marked
        n, unit = before, np.int64(learner.links[unit])


@inlined
def list_reached(learner, k):
    """List the marked classes, first met first, and take their marks away."""
    n, words, marks, reached = np.uintp(0), learner.mark_words, learner.marks, learner.reached
    for word in range(np.uintp((k + 7) // 8)):
        if words[word] != 0:
            for r in range(np.uintp(8 * word), np.uintp(8 * word + 8)):
                reached[n] = r  # whether it is or not: which way to go could not be foreseen
                n += np.uintp(marks[r])
            words[word] = 0
    learner.reach[N_REACHED] = np.int64(n)


# ---- what a trial asks of scores -----------------------------------------------------------------


@finite.register(SparseLearner)
def sparse_finite(learner, scores, k):
    """Whether every score is a number."""
    n, odd = learner.reach[N_REACHED], False
    if n == ALL:
        for r in range(k):
            odd |= not abs(scores[r]) < np.inf
    for i in range(n):
        odd |= not abs(scores[learner.reached[i]]) < np.inf
    return not odd


@best.register(SparseLearner)
def sparse_best(learner, scores, k):
    """Return the class of highest score, the first met among equals, or -1."""
    if learner.reach[WINNER] == UNKNOWN:
        learner.reach[WINNER] = find_best(learner, scores, k, -1)
    return learner.reach[WINNER]


@best_but.register(SparseLearner)
def sparse_best_but(learner, scores, k, y):
    """Return the class of highest score but y: the one of highest score, if that is not y."""
    winner = best(learner, scores, k)
    if winner != y:
        return winner
    own, scores[y] = scores[y], -np.inf
    winner = find_best(learner, scores, k, y) if k > 1 else -1
    scores[y] = own
    return winner


@inlined
def find_best(learner, scores, k, y):
    """Return the class of highest score: one of those reached, or the first of the others but y."""
    n = learner.reach[N_REACHED]
    if n == ALL:
        return best(learner.scores, scores, k)  # an array is no learner: the version for tables
    winner = first_unreached(learner, y)
    if winner >= k:
        winner = learner.reached[0] if n else -1
    for i in range(n):
        r = learner.reached[i]
        if is_ahead(scores, r, winner):
            winner = r
    return winner


@inlined
def first_unreached(learner, y):
    """Return the first class without a weight on the row but y; it may not be met yet."""
    r, i, n = 0, 0, learner.reach[N_REACHED]
    while r == y or (i < n and learner.reached[i] == r):
        i += i < n and learner.reached[i] == r
        r += 1
    return r


# ---- what calibration sums over ------------------------------------------------------------------


@soften.register(SparseLearner)
def sparse_soften(learner, inverse, scores, k, top, exponentials):
    """As `calibration.soften`, of the classes reached."""
    n = learner.reach[N_REACHED]
    if n == ALL:
        return soften(scores, inverse, scores, k, top, exponentials)
    lanes, n_zeros = learner.lanes, k - n
    store(lanes, 0, spread(0.0))
    for i in range(n):
        r = learner.reached[i]
        share = of_score(inverse, scores[r], top)
        exponentials[r] = share if scores[r] != 0 else np.float32(0)
        n_zeros += scores[r] == 0
    for i in range(n):
        r = learner.reached[i]
        lanes[r % LANES] += np.float64(exponentials[r])
    of_zeros = shared_by_zeros(inverse, n_zeros, top)
    return total_of(load(lanes, 0)) + of_zeros, of_zeros


@moments.register(SparseLearner)
def sparse_moments(learner, inverse, scores, k, top, exponentials):
    """As `calibration.moments`, over the classes reached."""
    n = learner.reach[N_REACHED]
    if n == ALL:
        return moments(scores, inverse, scores, k, top, exponentials)
    lanes = learner.lanes
    store(lanes, 0, spread(0.0))
    store(lanes, LANES, spread(0.0))
    for i in range(n):
        r = learner.reached[i]
        z = far_below(inverse, scores[r], top)
        share = np.float64(exponentials[r]) * z
        lanes[r % LANES] += share
        lanes[LANES + r % LANES] += share * z
    return total_of(load(lanes, 0)), total_of(load(lanes, LANES))

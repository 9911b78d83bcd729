"""Candidates: the classes whose rows had the features of a row most often.

A class has n log((T + 1) / (n_i + 1/2))^2 points for each feature i of the row, which n of its rows
have had, and n_i of all T rows: frequent classes have more. With points divided by the number of
rows of the class, or by its root, the right class was less often among the candidates. The feature
of the intercept, which all rows have, gives none. Features are visited in the order of their
numbers of entries, the fewest first, up to a budget of entries. A number counts as the least power
of two of which it is three quarters at most.
"""
# mypy: disallow_untyped_defs=False, disallow_untyped_calls=False

from __future__ import annotations

import math

import numpy as np

from kesler.compiled.candidates.entries import NONE
from kesler.compiled.jit.decorators import inlined
from kesler.compiled.jit.simd import squared
from kesler.compiled.trial.records import COUNT

FEATURE_BITS = 32  # of a feature in the key that features are sorted by
LEAST_POWER = 2


@inlined
def choose(learner, candidates, indices, k):
    """List the candidates among k classes in the order of their numbers; return how many."""
    choice, first = candidates.choice, candidates.n_virtual
    if k - first <= candidates.most:
        for r in range(k):
            choice.classes[r] = r
        return k
    n_touched = add_points(learner, candidates, indices)
    n = 0
    for i in range(n_touched):
        r = choice.touched[i]
        n = offer(choice, n, candidates.most, r, choice.points[r])
    frequent, has_points = candidates.recall.frequent, choice.points[candidates.recall.frequent] > 0
    for i in range(n_touched):
        choice.points[choice.touched[i]] = 0.0
    if n < candidates.most and not has_points:
        choice.classes[n] = frequent
        n += 1
    for r in range(first):
        choice.classes[n] = r
        n += 1
    sort(choice.classes, n)
    return n


@inlined
def add_points(learner, candidates, indices):
    """Add the points of each feature to the classes that had it; return how many have points."""
    n_touched, visited, keys = 0, 0, candidates.choice.keys
    for j in range(list_features(candidates, indices[learner.preprocessing.n_constant :])):
        p, i = keys[j] >> FEATURE_BITS, keys[j] & ((1 << FEATURE_BITS) - 1)
        if visited > 0 and visited + (1 << p) > candidates.budget:
            return n_touched
        visited += 1 << p
        n_touched = add_points_of(learner, candidates, i, n_touched)
    return n_touched


@inlined
def power_for(n):
    """Return p of the power of two that n entries count as."""
    p = LEAST_POWER
    while 4 * n > 3 << p:
        p += 1
    return p


@inlined
def list_features(candidates, indices):
    """List the features of a row that have entries, of the fewest first; return how many.

    Of numbers that count as equal, the first seen comes first, in whatever order the row has them.
    """
    counts, keys, n = candidates.entries.counts, candidates.choice.keys, 0
    for j in range(indices.shape[0]):
        n_entries = np.int64(counts[indices[j]])
        if n_entries:
            keys[n] = (np.int64(power_for(n_entries)) << FEATURE_BITS) | np.int64(indices[j])
            n += 1
    sort(keys, n)
    return n


@inlined
def add_points_of(learner, candidates, i, n_touched):
    """Add the points of one feature."""
    entries, choice = candidates.entries, candidates.choice
    rarity = (learner.statistics.total.amount + 1) / (learner.statistics.pooled[i, COUNT] + 0.5)
    factor = squared(math.log(rarity))
    last = entries.numbers.shape[1] - 1
    for e in range(entries.starts[i], entries.starts[i] + entries.lengths[i]):
        r = entries.owners[e]
        points = np.float64(entries.numbers[e, last]) * factor
        # Points are not above 0 in a file that was altered.
        if (r == NONE) | (not points > 0):
            continue
        if choice.points[r] == 0:
            choice.touched[n_touched] = r
            n_touched += 1
        choice.points[r] += points
    return n_touched


@inlined
def is_behind(choice, a, b):
    """Return whether candidate a has fewer points than b, or as many and came later."""
    if choice.worth[a] != choice.worth[b]:
        return choice.worth[a] < choice.worth[b]
    return choice.classes[a] > choice.classes[b]


@inlined
def swap(choice, a, b):
    """Exchange two candidates."""
    choice.worth[a], choice.worth[b] = choice.worth[b], choice.worth[a]
    choice.classes[a], choice.classes[b] = choice.classes[b], choice.classes[a]


@inlined
def offer(choice, n, most, r, points):
    """Add a class to the best ones, a heap with the last of them on top; return how many it has."""
    if n < most:
        at = n
        choice.classes[at], choice.worth[at] = r, points
        while at > 0 and is_behind(choice, at, (at - 1) // 2):
            swap(choice, at, (at - 1) // 2)
            at = (at - 1) // 2
        return n + 1
    if points < choice.worth[0] or (points == choice.worth[0] and r > choice.classes[0]):
        return n
    choice.classes[0], choice.worth[0] = r, points
    at = 0
    while 2 * at + 1 < n:
        below = 2 * at + 1
        if below + 1 < n and is_behind(choice, below + 1, below):
            below += 1
        if not is_behind(choice, below, at):
            break
        swap(choice, at, below)
        at = below
    return n


@inlined
def sort(numbers, n):
    """Sort the first n numbers (Shell 1959; the gaps are those of Ciura 2001)."""
    for gap in (1750, 701, 301, 132, 57, 23, 10, 4, 1):
        for i in range(gap, n):
            number, at = numbers[i], i
            while at >= gap and numbers[at - gap] > number:
                numbers[at] = numbers[at - gap]
                at -= gap
            numbers[at] = number

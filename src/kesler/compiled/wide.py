"""Wide moves: where most classes move, the loops run over classes, a feature after the other.

They do what the walk of `moves.py` does, number by number, for parts that have one hypothesis a
class over x itself, or one for all classes over a map, whose views are kept from the scoring.
"""
# mypy: disallow_untyped_defs=False, disallow_untyped_calls=False

from __future__ import annotations

import numpy as np

from kesler.compiled.jit import inlined
from kesler.compiled.learner import (
    ALL,
    EUCLIDEAN,
    FIRST_SEEN,
    GATHER,
    GIVEN,
    ITSELF,
    KIND,
    LANES,
    MAP,
    MEASURE,
    METRIC,
    NO_UNIT,
    OFFSET,
    ONE_VS_REST,
    PER_CLASS,
    SHARE,
    SHARED,
    TASK,
    THE_REST,
    UNIT,
)
from kesler.compiled.rates import gathered, rate_of, scale_of


@inlined
def is_wide_part(learner, part):
    """Whether there are loops over classes for a part."""
    kind, view = learner.parts[part, KIND], learner.parts[part, MAP]
    return (kind == PER_CLASS and view == ITSELF) or (kind == SHARED and view > GIVEN)


@inlined
def is_wide_trial(learner, n, k, scratch):
    """Whether a rule that asks for all classes moves, or measures, so many of them."""
    selection = learner.rule[1]
    plain = learner.states.shape[0] == 0 and learner.metric[TASK] != MEASURE
    return (selection == ONE_VS_REST or selection == ALL) and 2 * n >= k and plain


@inlined
def width_of(k, room):
    """Return k rounded up to full vectors."""
    return min(room, (k + LANES - 1) // LANES * LANES)


@inlined
def spread_coefficients(n_moved, k, scratch, solver):
    """Write the coefficients of the classes that move among zeros, in full vectors."""
    wide = scratch.wide
    for r in range(width_of(k, wide.shape[0])):
        wide[r] = 0
    for i in range(n_moved):
        r = solver.moved[i]
        wide[r] = np.float32(solver.coefficients[r])


@inlined
def change_widely(learner, part, indices, values, k, scratch):
    """Move, or gather evidence for, the hypotheses of one part along the spread coefficients."""
    if learner.parts[part, KIND] == SHARED:
        change_shared(learner, part, indices, k, scratch)
    elif learner.metric[TASK] == GATHER:
        gather_own(learner, part, indices, values, k, scratch.wide)
    elif learner.metric[METRIC] == EUCLIDEAN and learner.metric[UNIT] == NO_UNIT:
        move_own_plainly(learner, part, indices, values, k, scratch.wide)
    else:
        move_own(learner, part, indices, values, k, scratch.wide)


@inlined
def gather_own(learner, part, indices, values, k, wide):
    """evidence[i, r] += share (c_r x_i)^2."""
    start = np.uintp(learner.parts[part, OFFSET])
    width = np.uintp(width_of(k, wide.shape[0]))
    share = np.float32(learner.metric_numbers[SHARE])
    evidence = learner.evidence
    for j in range(indices.shape[0]):
        x, i = values[j], np.uintp(indices[j])
        for r in range(width):
            evidence[i, start + r] = gathered(evidence[i, start + r], share, wide[r] * x)


@inlined
def move_own(learner, part, indices, values, k, wide):
    """weights[i, r] += c_r x_i rate[i, r]."""
    start = np.uintp(learner.parts[part, OFFSET])
    width = np.uintp(width_of(k, wide.shape[0]))
    kind, evidence, weights = learner.metric[METRIC], learner.evidence, learner.weights
    for j in range(indices.shape[0]):
        x, i = values[j], np.uintp(indices[j])
        scale = scale_of(learner, indices[j])
        if kind == EUCLIDEAN:
            for r in range(width):
                weights[i, start + r] += wide[r] * x * scale
            continue
        for r in range(width):
            rate = rate_of(kind, evidence[i, start + r]) * scale
            weights[i, start + r] += wide[r] * x * rate


@inlined
def move_own_plainly(learner, part, indices, values, k, wide):
    """weights[i, r] += c_r x_i."""
    start = np.uintp(learner.parts[part, OFFSET])
    width, weights = np.uintp(width_of(k, wide.shape[0])), learner.weights
    for j in range(indices.shape[0]):
        x, i = values[j], np.uintp(indices[j])
        for r in range(width):
            weights[i, start + r] += wide[r] * x


@inlined
def change_shared(learner, part, indices, k, scratch):
    """weights[i] += rate[i] sum_r c_r phi_i(x, r), or evidence[i] += share sum_r (c_r phi_i)^2."""
    column = learner.parts[part, OFFSET]
    table, wide = scratch.tables[part], scratch.wide
    n_known = min(k, learner.counters[FIRST_SEEN])
    kind, share = learner.metric[METRIC], np.float32(learner.metric_numbers[SHARE])
    for j in range(indices.shape[0]):
        i = indices[j]
        if learner.metric[TASK] == GATHER:
            amount = np.sqrt(square_of(table[j], wide, n_known))
            learner.evidence[i, column] = gathered(learner.evidence[i, column], share, amount)
            continue
        amount = product_of(table[j], wide, n_known)
        evidence = np.float32(0) if kind == EUCLIDEAN else learner.evidence[i, column]
        rate = rate_of(kind, evidence) * scale_of(learner, i)
        learner.weights[i, column] += amount * rate


@inlined
def product_of(one, other, n):
    """Return <one, other> of the first n numbers, four sums at a time: none waits for another."""
    a, b, c, d = np.float32(0), np.float32(0), np.float32(0), np.float32(0)
    r = 0
    while r + 4 <= n:
        a += one[r] * other[r]
        b += one[r + 1] * other[r + 1]
        c += one[r + 2] * other[r + 2]
        d += one[r + 3] * other[r + 3]
        r += 4
    while r < n:
        a += one[r] * other[r]
        r += 1
    return (a + b) + (c + d)


@inlined
def square_of(one, other, n):
    """Return the sum of the squares of one_r other_r, as `product_of` sums."""
    a, b, c, d = np.float32(0), np.float32(0), np.float32(0), np.float32(0)
    r = 0
    while r + 4 <= n:
        a += (one[r] * other[r]) ** 2
        b += (one[r + 1] * other[r + 1]) ** 2
        c += (one[r + 2] * other[r + 2]) ** 2
        d += (one[r + 3] * other[r + 3]) ** 2
        r += 4
    while r < n:
        a += (one[r] * other[r]) ** 2
        r += 1
    return (a + b) + (c + d)


@inlined
def add_view_lengths(learner, part, indices, values, k, y, scratch):
    """lengths[s] += <d, d> in the metric, d = phi(x, y) - phi(x, s), or phi(x, s) for y THE_REST.

    That is over the hypotheses of a wide part.
    """
    if learner.parts[part, KIND] == SHARED:
        add_shared_lengths(learner, part, indices, k, y, scratch)
        return
    lengths = scratch.lengths
    add_own_lengths(learner, part, indices, values, k, lengths)
    if y != THE_REST:
        own = lengths[y]
        for s in range(k):
            lengths[s] += own


@inlined
def add_own_lengths(learner, part, indices, values, k, lengths):
    """lengths[r] += sum_i x_i^2 rate[i, r]."""
    start, width = np.uintp(learner.parts[part, OFFSET]), np.uintp(k)
    kind, evidence = learner.metric[METRIC], learner.evidence
    for j in range(indices.shape[0]):
        x, i = values[j], np.uintp(indices[j])
        scaled = x * x * scale_of(learner, indices[j])
        if kind == EUCLIDEAN:
            for r in range(width):
                lengths[r] += scaled
            continue
        for r in range(width):
            lengths[r] += scaled * rate_of(kind, evidence[i, start + r])


@inlined
def add_shared_lengths(learner, part, indices, k, y, scratch):
    """lengths[s] += sum_i rate[i] (phi_i(x, y) - phi_i(x, s))^2; phi(x, y) is 0 for THE_REST."""
    column, kind = learner.parts[part, OFFSET], learner.metric[METRIC]
    table, lengths = scratch.tables[part], scratch.lengths
    for j in range(indices.shape[0]):
        i = indices[j]
        evidence = np.float32(0) if kind == EUCLIDEAN else learner.evidence[i, column]
        rate = rate_of(kind, evidence) * scale_of(learner, i)
        own = np.float32(0) if y == THE_REST else table[j, y]
        for s in range(k):
            gap = own - table[j, s]
            lengths[s] += rate * (gap * gap)

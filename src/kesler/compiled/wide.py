"""Wide moves: where most classes move, the loops run over classes, a feature after the other.

They do what the walk of `moves.py` does, number by number, for parts that have one hypothesis a
class over x itself, or one for all classes over a map, whose views are kept from the scoring.
"""
# mypy: disallow_untyped_defs=False, disallow_untyped_calls=False

from __future__ import annotations

import numpy as np

from kesler.compiled.jit import by_learner, inlined
from kesler.compiled.learner import (
    ADAPTIVE,
    CONFIDENT,
    EUCLIDEAN,
    GATHER,
    GIVEN,
    ITSELF,
    KIND,
    LARGEST,
    MAP,
    METRIC,
    OFFSET,
    PER_CLASS,
    SHARE,
    SHARED,
    TASK,
    THE_REST,
    WIDE,
    asks_for_all,
)
from kesler.compiled.rates import begin_walk, gathered, rate_of, scale_of
from kesler.compiled.worth import WORTH


@inlined
def is_wide_part(learner, part):
    """Whether there are loops over classes for a part."""
    kind, view = learner.parts[part, KIND], learner.parts[part, MAP]
    return (kind == PER_CLASS and view == ITSELF) or (kind == SHARED and view > GIVEN)


@by_learner
def choose_loops(learner, m, k, solver):
    """Choose loops over classes where a rule has asked for all classes and found enough pairs.

    A class alone is visited in strides of a row, at several times the cost of one in a vector.
    """
    plain = learner.states.shape[0] == 0
    solver.counts[WIDE] = asks_for_all(learner.rule[1]) and 8 * m >= k and plain


@inlined
def width_of(k, room):
    """Return k rounded up to vectors of eight: the columns behind hold zeros."""
    return min(room, (k + 7) // 8 * 8)


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
    """Move, or gather evidence for, the hypotheses of one part along the spread coefficients.

    Evidence is gathered before all else, and the rates that follow are kept for the trial.
    What a shared one moves by was summed when it was asked whether it can (`moves.is_movable`).
    """
    gathers, kind = learner.metric[TASK] == GATHER, learner.metric[METRIC]
    weights, evidence, wide = learner.weights, learner.evidence, scratch.wide
    first, share = learner.parts[part, OFFSET], np.float32(learner.metric_numbers[SHARE])
    if learner.parts[part, KIND] == SHARED:
        rates = scratch.shared_rates[part]
        if gathers:
            gather_shared(evidence, first, indices, scratch.tables[part], k, wide, share)
            find_rates(learner, first, indices, rates)
            return
        if kind != ADAPTIVE:
            find_rates(learner, first, indices, rates)
        move_shared(weights, first, indices, scratch.amounts[part], rates)
        return
    width = width_of(k, wide.shape[0])
    if kind == ADAPTIVE and not gathers:
        move_adaptively(weights, indices, values, first, width, wide, scratch.rates[part])
        return
    scales = scratch.scales
    find_scales(learner, indices, scales)
    if gathers:
        rates = scratch.rates[part]
        gather_rows(evidence, indices, values, first, width, wide, share, scales, rates)
    elif kind == CONFIDENT:
        worth = np.float32(learner.forgetting[WORTH])
        move_confidently(weights, evidence, indices, values, first, width, wide, scales, worth)
    else:
        move_rows(weights, indices, values, first, width, wide, scales)


@inlined
def add_view_lengths(learner, part, indices, values, k, y, scratch):
    """lengths[s] += <d, d> in the metric, d = phi(x, y) - phi(x, s), or phi(x, s) for y THE_REST.

    That is over the hypotheses of a wide part.
    """
    first, kind, lengths = learner.parts[part, OFFSET], learner.metric[METRIC], scratch.lengths
    if learner.parts[part, KIND] == SHARED:
        rates = scratch.shared_rates[part]
        if kind != ADAPTIVE:
            find_rates(learner, first, indices, rates)
        add_shared_lengths(scratch.tables[part], rates, indices.shape[0], k, y, lengths)
        return
    width = width_of(k, lengths.shape[0])
    if kind == ADAPTIVE:
        add_lengths(values, width, scratch.rates[part], lengths)
    else:
        find_scales(learner, indices, scratch.scales)
        evidence, worth = learner.evidence, np.float32(learner.forgetting[WORTH])
        scales = scratch.scales
        add_row_lengths(evidence, kind, indices, values, first, width, scales, worth, lengths)
    if y != THE_REST:
        own = lengths[y]
        for s in range(k):
            lengths[s] += own


@inlined
def find_scales(learner, indices, scales):
    """scales[j] = what the rates of the j-th entry's weights are multiplied by."""
    walk = begin_walk(learner)
    for j in range(indices.shape[0]):
        scales[j] = scale_of(learner, walk, indices[j])


@inlined
def find_rates(learner, column, indices, rates):
    """rates[j] = the step size of the j-th entry's weight in one hypothesis."""
    walk = begin_walk(learner)
    for j in range(indices.shape[0]):
        evidence = np.float32(0)
        if walk.kind != EUCLIDEAN:
            evidence = learner.evidence[indices[j], column]
        rates[j] = rate_of(walk.kind, evidence, walk.worth) * scale_of(learner, walk, indices[j])


# ---- loops over arrays alone: what vectorises is a function of its own ---------------------------


@inlined
def gather_rows(evidence, indices, values, first, width, wide, share, scales, rates):
    """evidence[i, r] += share (c_r x_i)^2; rates[j, r] = scale_i / sqrt(evidence[i, r])."""
    start, stop = np.uintp(first), np.uintp(width)
    for j in range(indices.shape[0]):
        x, i, scale = values[j], np.uintp(indices[j]), scales[j]
        row = np.uintp(j)
        for r in range(stop):
            grown = gathered(evidence[i, start + r], share, wide[r] * x)
            evidence[i, start + r] = grown
            rates[row, r] = rate_of(ADAPTIVE, grown, np.float32(1)) * scale


@inlined
def move_rows(weights, indices, values, first, width, wide, scales):
    """weights[i, r] += c_r x_i scale_i."""
    start, stop = np.uintp(first), np.uintp(width)
    for j in range(indices.shape[0]):
        x, i, scale = values[j], np.uintp(indices[j]), scales[j]
        for r in range(stop):
            weights[i, start + r] += wide[r] * x * scale


@inlined
def move_adaptively(weights, indices, values, first, width, wide, rates):
    """weights[i, r] += c_r x_i rate[i, r]."""
    start, stop = np.uintp(first), np.uintp(width)
    for j in range(indices.shape[0]):
        x, i, row = values[j], np.uintp(indices[j]), np.uintp(j)
        for r in range(stop):
            weights[i, start + r] += wide[r] * x * rates[row, r]


@inlined
def move_confidently(weights, evidence, indices, values, first, width, wide, scales, worth):
    """weights[i, r] += c_r x_i scale_i / (1 + evidence[i, r])."""
    start, stop = np.uintp(first), np.uintp(width)
    for j in range(indices.shape[0]):
        x, i, scale = values[j], np.uintp(indices[j]), scales[j]
        for r in range(stop):
            rate = rate_of(CONFIDENT, evidence[i, start + r], worth) * scale
            weights[i, start + r] += wide[r] * x * rate


@inlined
def add_row_lengths(evidence, kind, indices, values, first, width, scales, worth, lengths):
    """lengths[r] += sum_i x_i^2 rate[i, r]."""
    start, stop = np.uintp(first), np.uintp(width)
    for j in range(indices.shape[0]):
        scaled, i = values[j] * scales[j] * values[j], np.uintp(indices[j])
        if kind == CONFIDENT:
            for r in range(stop):
                lengths[r] += scaled * rate_of(CONFIDENT, evidence[i, start + r], worth)
        else:
            for r in range(stop):
                lengths[r] += scaled


@inlined
def add_lengths(values, width, rates, lengths):
    """lengths[r] += sum_i x_i^2 rate[i, r]."""
    stop = np.uintp(width)
    for j in range(values.shape[0]):
        squared, row = values[j] * values[j], np.uintp(j)
        for r in range(stop):
            lengths[r] += squared * rates[row, r]


@inlined
def gather_shared(evidence, column, indices, table, n, wide, share):
    """evidence[i] += share sum_r (c_r phi_i(x, r))^2."""
    stop, c = np.uintp(n), np.uintp(column)
    one, two, three, four = np.uintp(1), np.uintp(2), np.uintp(3), np.uintp(4)
    for j in range(indices.shape[0]):
        row, i, r = np.uintp(j), np.uintp(indices[j]), np.uintp(0)
        t, u, v, w = np.float32(0), np.float32(0), np.float32(0), np.float32(0)
        while r < stop:  # behind the classes there are zeros, to full vectors
            p, q = wide[r] * table[row, r], wide[r + one] * table[row, r + one]
            s, z = wide[r + two] * table[row, r + two], wide[r + three] * table[row, r + three]
            t += p * p
            u += q * q
            v += s * s
            w += z * z
            r += four
        total = share * ((t + u) + (v + w))
        evidence[i, c] = min(evidence[i, c] + total, np.float32(LARGEST))


@inlined
def sum_views(table, n_entries, n, wide, sums):
    """sums[j] = sum_r c_r phi_i(x, r) at the j-th entry, four sums at a time: none waits."""
    stop = np.uintp(n)
    one, two, three, four = np.uintp(1), np.uintp(2), np.uintp(3), np.uintp(4)
    for j in range(n_entries):
        row, r = np.uintp(j), np.uintp(0)
        a, b, c, d = np.float32(0), np.float32(0), np.float32(0), np.float32(0)
        while r < stop:
            a += wide[r] * table[row, r]
            b += wide[r + one] * table[row, r + one]
            c += wide[r + two] * table[row, r + two]
            d += wide[r + three] * table[row, r + three]
            r += four
        sums[j] = (a + b) + (c + d)


@inlined
def move_shared(weights, column, indices, sums, rates):
    """weights[i] += rate[i] sums[i]."""
    c = np.uintp(column)
    for j in range(indices.shape[0]):
        weights[np.uintp(indices[j]), c] += sums[j] * rates[j]


@inlined
def add_shared_lengths(table, rates, n_entries, n, y, lengths):
    """lengths[s] += sum_i rate[i] (phi_i(x, y) - phi_i(x, s))^2; phi(x, y) is 0 for THE_REST."""
    stop = np.uintp(n)
    for j in range(n_entries):
        row, rate, own = np.uintp(j), rates[j], np.float32(0)
        if y != THE_REST:
            own = table[row, np.uintp(y)]
        for s in range(stop):
            gap = own - table[row, s]
            lengths[s] += rate * (gap * gap)


@inlined
def add_table_scores(weights, column, lift, indices, table, width, scores):
    """scores[r] += sum_i (weights[i] + lift) phi_i(x, r)."""
    stop, c = np.uintp(width), np.uintp(column)
    for j in range(indices.shape[0]):
        row, weight = np.uintp(j), weights[np.uintp(indices[j]), c] + lift
        for r in range(stop):
            scores[r] += weight * table[row, r]

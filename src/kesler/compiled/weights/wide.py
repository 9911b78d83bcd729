"""Wide updates: where many classes are updated, the loops run over classes, feature by feature.

They do what the pass of `moves.py` does, number by number, for parts that have one hypothesis per
class over x itself, or one for all classes over a map whose views the scoring has stored. Most
process whole lines of classes, updated or not; adaptive rates, whose roots take longer than all
the rest, are computed only for the updated classes, unless these are the majority.
"""
# mypy: disallow_untyped_defs=False, disallow_untyped_calls=False

from __future__ import annotations

import numpy as np

from kesler.compiled.jit.decorators import always_inlined, inlined
from kesler.compiled.jit.simd import (
    SIMD_WIDTH,
    first_of,
    load,
    spread,
    store,
    total_of,
    whole_lines,
)
from kesler.compiled.trial.records import (
    ADAPTIVE,
    CONFIDENT,
    EUCLIDEAN,
    GATHER,
    GIVEN,
    ITSELF,
    LARGEST,
    PER_CLASS,
    SHARED,
    THE_REST,
    asks_for_all,
    is_vs_rest,
)
from kesler.compiled.weights.links import begin_walk, gathered, rate_of, scale_of
from kesler.compiled.weights.preconditioners import are_plain_steps
from kesler.compiled.weights.scores import add_products


@always_inlined
def is_wide(learner, solver):
    """Return whether a trial uses loops over classes (see `dense_choose_loops`)."""
    return asks_for_all(learner.rule.selection) and solver.status[0].is_wide


@inlined
def is_wide_part(learner, part, solver):
    """Return whether a part has loops over classes, in a trial that uses such loops."""
    kind, view = learner.parts.kind[part], learner.parts.map[part]
    if kind == PER_CLASS:
        return view == ITSELF
    return kind == SHARED and view > GIVEN and not solver.status[0].has_few


@always_inlined
def dense_choose_loops(learner, m, k, scratch, solver):
    """Choose loops over classes if a rule asks for all classes and there are enough pairs.

    A single class is accessed in strides of a row, at several times the cost of a class in a
    vector; a single stored view of a class, at many times that cost. `scratch.chosen` is set to the
    number of the classes for which adaptive rates are computed, followed by these classes; the
    number is 0 if they are computed for all.
    """
    kind = learner.preconditioner.kind
    plain = learner.weights.states.shape[0] == 0 and are_plain_steps(learner)
    is_adaptive = kind == ADAPTIVE
    chooses = is_adaptive and is_vs_rest(learner.rule.selection) and 2 * m < k
    solver.status[0].has_few = 32 * m < k
    has_enough = chooses or 8 * m >= k
    solver.status[0].is_wide = asks_for_all(learner.rule.selection) and has_enough and plain
    scratch.chosen[0] = 0
    if chooses:
        scratch.chosen[0] = m
        for j in range(m):
            scratch.chosen[1 + j] = max(solver.better[j], solver.worse[j])


@inlined
def spread_coefficients(n_moved, k, scratch, solver):
    """Write the coefficients of all classes, 0 for those not updated, in whole lines."""
    wide = scratch.wide
    for r in range(whole_lines(k)):
        wide[r] = 0
    for i in range(n_moved):
        r = solver.moved[i]
        wide[r] = np.float32(solver.coefficients[r])


@inlined
def change_widely(learner, part, indices, values, k, scratch):
    """Update, or gather evidence for, the hypotheses of one part, given coefficients in lines.

    Evidence is gathered first, and the resulting rates are stored for the trial. The update of a
    shared hypothesis has been summed by the test of its size (`moves.dense_is_movable`).
    """
    gathers, kind = learner.preconditioner.walk.task == GATHER, learner.preconditioner.kind
    weights, evidence, wide = learner.weights.values, learner.preconditioner.evidence, scratch.wide
    first, share = learner.parts.offset[part], np.float32(learner.preconditioner.rates.share)
    if learner.parts.kind[part] == SHARED:
        rates = scratch.shared_rates[part]
        if gathers:
            n, sums = indices.shape[0], scratch.amounts[part]
            if is_packed(scratch, k):
                pack_views(scratch.tables[part], n, scratch.chosen, scratch.packed[part])
            sum_views(part, n, k, 2, scratch)
            find_scales(learner, indices, scratch.scales)
            gather_shared(evidence, first, indices, sums, share, rates)
            turn_to_rates(rates, 0, scratch.scales, n)
            return
        if kind != ADAPTIVE:
            find_rates(learner, first, indices, rates)
        move_shared(weights, first, indices, scratch.amounts[part], rates)
        return
    width, chosen = whole_lines(k), scratch.chosen[1 : 1 + scratch.chosen[0]]
    if kind == ADAPTIVE and not gathers and chosen.shape[0]:
        move_chosen(weights, indices, values, first, chosen, wide, scratch.packed[part])
        return
    if kind == ADAPTIVE and not gathers:
        move_adaptively(weights, indices, values, first, width, wide, scratch.rates[part])
        return
    scales = scratch.scales
    find_scales(learner, indices, scales)
    if gathers and chosen.shape[0]:
        rates = scratch.packed[part]
        gather_chosen(evidence, indices, values, first, chosen, wide, share, scales, rates)
    elif gathers:
        rates = scratch.rates[part]
        gather_rows(evidence, indices, values, first, width, wide, share, scales, rates)
    elif kind == CONFIDENT:
        decay = np.float32(learner.decay.row.weight)
        move_confidently(weights, evidence, indices, values, first, width, wide, scales, decay)
    else:
        move_rows(weights, indices, values, first, width, wide, scales)


@inlined
def add_view_lengths(learner, part, indices, values, k, y, scratch):
    """Add <d, d> under the preconditioner, over the hypotheses of a wide part, to lengths[s].

    d = phi(x, y) - phi(x, s), or phi(x, s) if y is THE_REST.
    """
    first, kind, lengths = learner.parts.offset[part], learner.preconditioner.kind, scratch.lengths
    if learner.parts.kind[part] == SHARED:
        rates = scratch.shared_rates[part]
        if kind != ADAPTIVE:
            find_rates(learner, first, indices, rates)
        n = indices.shape[0]
        if is_packed(scratch, k):
            add_packed_lengths(scratch.packed[part], rates, n, scratch.chosen, lengths)
        else:
            add_shared_lengths(scratch.tables[part], rates, n, k, y, lengths)
        return
    width, chosen = whole_lines(k), scratch.chosen[1 : 1 + scratch.chosen[0]]
    if kind == ADAPTIVE and chosen.shape[0]:
        add_chosen_lengths(values, chosen, scratch.packed[part], scratch.phi, lengths)
    elif kind == ADAPTIVE:
        add_lengths(scratch.entries, values, scratch.phi, width, scratch.rates[part], lengths)
    else:
        find_scales(learner, indices, scratch.scales)
        evidence, decay = learner.preconditioner.evidence, np.float32(learner.decay.row.weight)
        scales = scratch.scales
        add_row_lengths(evidence, kind, indices, values, first, width, scales, decay, lengths)
    if y != THE_REST:
        own = lengths[y]
        for s in range(k):
            lengths[s] += own


@inlined
def find_scales(learner, indices, scales):
    """Set scales[j] to the factor of the rates of the weights of entry j."""
    walk = begin_walk(learner)
    for j in range(indices.shape[0]):
        scales[j] = scale_of(learner, walk, indices[j])


@inlined
def find_rates(learner, column, indices, rates):
    """Set rates[j] to the step size of the weight of entry j in one hypothesis."""
    walk = begin_walk(learner)
    for j in range(indices.shape[0]):
        evidence = np.float32(0)
        if walk.kind != EUCLIDEAN:
            evidence = learner.preconditioner.evidence[indices[j], column]
        rates[j] = rate_of(walk.kind, evidence, walk.decay) * scale_of(learner, walk, indices[j])


# ---- loops over arrays only: each loop that vectorises is a separate function --------------------
# Columns are processed in whole lines. Coefficients after the last class are 0: a shared hypothesis
# that is stored there is rewritten unchanged.


@inlined
def gather_rows(evidence, indices, values, first, width, wide, share, scales, rates):
    """Add share (c_r x_i)^2 to evidence[i, r]; set rates[j, r] = scale_i / sqrt(evidence[i, r])."""
    start, stop = np.uintp(first), np.uintp(width)
    for j in range(indices.shape[0]):
        x, i, scale = values[j], np.uintp(indices[j]), scales[j]
        row = np.uintp(j)
        for r in range(stop):
            enlarged = gathered(evidence[i, start + r], share, wide[r] * x)
            evidence[i, start + r] = enlarged
            rates[row, r] = rate_of(ADAPTIVE, enlarged, np.float32(1)) * scale


@inlined
def turn_to_rates(rates, start, scales, n):
    """Replace n values of evidence, from index `start` on, by scale_j / sqrt(evidence)."""
    for j in range(n):
        rate = rate_of(ADAPTIVE, rates[np.uintp(start + j)], np.float32(1))
        rates[np.uintp(start + j)] = rate * scales[j]


@inlined
def gather_chosen(evidence, indices, values, first, chosen, wide, share, scales, rates):
    """Do as `gather_rows` for some classes only; rates are stored by class, in whole lines."""
    n = indices.shape[0]
    for c in range(chosen.shape[0]):
        column, start = np.uintp(first + chosen[c]), np.uintp(c * whole_lines(n))
        coefficient = wide[np.uintp(chosen[c])]
        for j in range(np.uintp(n)):
            i = np.uintp(indices[j])
            enlarged = gathered(evidence[i, column], share, coefficient * values[j])
            evidence[i, column] = enlarged
            rates[start + j] = enlarged
        turn_to_rates(rates, start, scales, n)


@inlined
def move_chosen(weights, indices, values, first, chosen, wide, rates):
    """Add c_r x_i rate[i, r] to weights[i, r], for some classes only."""
    n = indices.shape[0]
    for c in range(chosen.shape[0]):
        column, start = np.uintp(first + chosen[c]), np.uintp(c * whole_lines(n))
        coefficient = wide[np.uintp(chosen[c])]
        for j in range(np.uintp(n)):
            weights[np.uintp(indices[j]), column] += coefficient * values[j] * rates[start + j]


@inlined
def add_chosen_lengths(values, chosen, rates, squares, lengths):
    """Add sum_i x_i^2 rate[i, r] to lengths[r], for some classes only."""
    n = values.shape[0]
    for j in range(n):
        squares[j] = values[j] * values[j]
    for c in range(chosen.shape[0]):
        lengths[chosen[c]] += product_from(rates, c * whole_lines(n), squares, n)


@inlined
def product_from(numbers, start, others, n):
    """Return the inner product of n numbers, from index `start` on, and the first n others."""
    line, in_lines, total = spread(np.float32(0)), n // SIMD_WIDTH * SIMD_WIDTH, np.float32(0)
    for j in range(0, in_lines, SIMD_WIDTH):
        line = line + load(numbers, start + j) * load(others, j)
    for j in range(in_lines, n):
        total += numbers[start + j] * others[j]
    return total_of(line) + total


@inlined
def move_rows(weights, indices, values, first, width, wide, scales):
    """Add c_r x_i scale_i to weights[i, r]."""
    for j in range(indices.shape[0]):
        x, scale, start = values[j], scales[j], indices[j] * weights.shape[1] + first
        for r in range(0, width, SIMD_WIDTH):
            store(weights, start + r, load(weights, start + r) + load(wide, r) * x * scale)


@inlined
def move_adaptively(weights, indices, values, first, width, wide, rates):
    """Add c_r x_i rate[i, r] to weights[i, r]."""
    for j in range(indices.shape[0]):
        x, start, row = values[j], indices[j] * weights.shape[1] + first, j * rates.shape[1]
        for r in range(0, width, SIMD_WIDTH):
            amount = load(wide, r) * x * load(rates, row + r)
            store(weights, start + r, load(weights, start + r) + amount)


@inlined
def move_confidently(weights, evidence, indices, values, first, width, wide, scales, decay):
    """Add c_r x_i scale_i / (1 + evidence[i, r]) to weights[i, r]."""
    start, stop = np.uintp(first), np.uintp(width)
    for j in range(indices.shape[0]):
        x, i, scale = values[j], np.uintp(indices[j]), scales[j]
        for r in range(stop):
            rate = rate_of(CONFIDENT, evidence[i, start + r], decay) * scale
            weights[i, start + r] += wide[r] * x * rate


@inlined
def add_row_lengths(evidence, kind, indices, values, first, width, scales, decay, lengths):
    """Add sum_i x_i^2 rate[i, r] to lengths[r], with rates computed from the evidence."""
    start, stop = np.uintp(first), np.uintp(width)
    for j in range(indices.shape[0]):
        scaled, i = values[j] * scales[j] * values[j], np.uintp(indices[j])
        if kind == CONFIDENT:
            for r in range(stop):
                lengths[r] += scaled * rate_of(CONFIDENT, evidence[i, start + r], decay)
        else:
            for r in range(stop):
                lengths[r] += scaled


@inlined
def add_lengths(entries, values, squares, width, rates, lengths):
    """Add sum_i x_i^2 rate[i, r] to lengths[r]."""
    n = values.shape[0]
    for j in range(n):
        squares[j] = values[j] * values[j]
    add_products(entries[:n], squares[:n], entries[:0], rates, 0, width, lengths)


@inlined
def gather_shared(evidence, column, indices, squares, share, enlarged):
    """Add share squares[j] to evidence[i], and set enlarged[j] to the sum, at entry j."""
    c = np.uintp(column)
    for j in range(indices.shape[0]):
        i = np.uintp(indices[j])
        enlarged[j] = min(evidence[i, c] + share * squares[j], np.float32(LARGEST))
        evidence[i, c] = enlarged[j]


@inlined
def is_packed(scratch, k):
    """Return whether the chosen classes are so few that their views are copied to packed arrays.

    Reading one class from the table reads a line of sixteen classes for each feature.
    """
    return 0 < 4 * scratch.chosen[0] <= k


@inlined
def pack_views(table, n, chosen, packed):
    """Copy the views of the classes `chosen`, class by class, each to the start of a line."""
    for c in range(chosen[0]):
        r, start = np.uintp(chosen[1 + c]), np.uintp(c * whole_lines(n))
        for j in range(np.uintp(n)):
            packed[start + j] = table[j, r]


@inlined
def sum_views(part, n, k, power, scratch):
    """Compute amounts[j] = sum_r (c_r phi_i(x, r))^power at entry j, for power 1 or 2."""
    sums = scratch.amounts[part]
    if is_packed(scratch, k):
        sum_packed(scratch.packed[part], n, scratch.wide, scratch.chosen, power, sums)
    else:
        sum_lines(scratch.tables[part], n, k, scratch.wide, power, sums)


@inlined
def sum_packed(packed, n, wide, chosen, power, sums):
    """Sum the views of the classes `chosen`, sixteen features at a time."""
    nothing, width = spread(np.float32(0)), whole_lines(n)
    for j in range(0, n, SIMD_WIDTH):
        line = nothing
        for c in range(chosen[0]):
            amount = load(packed, c * width + j) * wide[np.uintp(chosen[1 + c])]
            line = line + (amount * amount if power == 2 else amount)
        store(sums, j, line)


@inlined
def sum_lines(table, n_entries, n, wide, power, sums):
    """Sum the views of all classes, as described in `sum_views`."""
    nothing = spread(np.float32(0))
    for j in range(n_entries):
        line = nothing
        for r in range(0, n, SIMD_WIDTH):
            amount = load(wide, r) * load(table, j * table.shape[1] + r)
            line = line + (amount * amount if power == 2 else amount)
        sums[j] = total_of(line)


@inlined
def move_shared(weights, column, indices, sums, rates):
    """Add rate[i] sums[i] to weights[i]."""
    c = np.uintp(column)
    for j in range(indices.shape[0]):
        weights[np.uintp(indices[j]), c] += sums[j] * rates[j]


@inlined
def add_packed_lengths(packed, rates, n, chosen, lengths):
    """Add sum_i rate[i] phi_i(x, r)^2 to lengths[r], for the classes `chosen`."""
    width = whole_lines(n)
    for c in range(chosen[0]):
        line = spread(np.float32(0))
        for j in range(0, n, SIMD_WIDTH):
            views = load(packed, c * width + j)
            line = line + first_of(views * views * load(rates, j), n - j)
        lengths[np.uintp(chosen[1 + c])] += total_of(line)


@inlined
def add_shared_lengths(table, rates, n_entries, n, y, lengths):
    """Add sum_i rate[i] (phi_i(x, y) - phi_i(x, s))^2 to lengths[s]; phi(x, THE_REST) is 0.

    Two lines are processed at a time, since an addition waits for the previous one; an odd last
    line is paired with itself.
    """
    for s in range(0, n, 2 * SIMD_WIDTH):
        t = s + SIMD_WIDTH if s + SIMD_WIDTH < n else s
        line, other, own = load(lengths, s), load(lengths, t), np.float32(0)
        for j in range(n_entries):
            if y != THE_REST:
                own = table[np.uintp(j), np.uintp(y)]
            row, rate = j * table.shape[1], rates[j]
            gap, beside = load(table, row + s) - own, load(table, row + t) - own
            line = line + gap * gap * rate
            other = other + beside * beside * rate
        store(lengths, s, line)
        store(lengths, t, other)

"""Ordered parts: one direction for all ranks, and a threshold between any two neighbouring ranks.

Column 0 of such a part is w; column 1 + r belongs to class r and is minus the threshold below it,
in units of the constant feature, number 0, the first entry of every row. With the known ranks in
order, numbered from 0, phi(x, r) contains r times the rest of the row and the constant once for
each of the r thresholds below it.
"""
# mypy: disallow_untyped_defs=False, disallow_untyped_calls=False

from __future__ import annotations

import numpy as np

from kesler.compiled.jit.decorators import always_inlined, inlined
from kesler.compiled.jit.simd import squared, with_power
from kesler.compiled.trial.records import ORDERED
from kesler.compiled.weights.links import (
    begin_walk,
    bring_up_to_date,
    change,
    change_sum,
    has_linked_means,
    meet_weights,
)


@inlined
def add_ordered_scores(learner, part, indices, values, k, scores):
    """Add the sum over the thresholds below r of <w, x> - threshold to scores[r]."""
    offset = learner.parts.offset[part]
    along = 0.0
    for j in range(1, indices.shape[0]):
        along += np.float64(values[j]) * np.float64(learner.weights.values[indices[j], offset])
    total = 0.0
    for i in range(1, k):
        r = learner.ranks.order[i]
        total += along + np.float64(values[0]) * np.float64(
            learner.weights.values[0, offset + 1 + r]
        )
        scores[r] += np.float32(total)


@inlined
def add_ordered_products(learner, rest, values, s, k, out):
    """Add <phi(x, r), phi(x, s)> to out[r], for r < k, given ||x||^2 without the constant."""
    constant = squared(np.float64(values[0]))
    there = learner.ranks.positions[s]
    for r in range(k):
        here = learner.ranks.positions[r]
        out[r] += here * there * rest + min(here, there) * constant


@inlined
def ordered_pair_norm(learner, rest, values, r, s):
    """Return ||phi(x, r) - phi(x, s)||^2, given ||x||^2 without the constant feature."""
    apart = abs(learner.ranks.positions[r] - learner.ranks.positions[s])
    return apart * apart * rest + apart * squared(np.float64(values[0]))


@inlined
def with_ordered_powers(learner, values, r, s, exponent, total):
    """Add the powers of phi(x, r) - phi(x, s) to the sum of powers of a norm."""
    apart = abs(learner.ranks.positions[r] - learner.ranks.positions[s])
    for j in range(1, values.shape[0]):
        total = with_power(total, apart * np.float64(values[j]), 1, exponent)
    return with_power(total, np.float64(values[0]), apart, exponent)


@inlined
def ordered_length(learner, rest, values, r):
    """Return ||phi(x, r)||^2, given ||x||^2 without the constant feature."""
    here = learner.ranks.positions[r]
    return here * here * rest + here * squared(np.float64(values[0]))


@inlined
def squared_length_of_rest(values):
    """Return ||x||^2 without the constant feature, in float64."""
    total = 0.0
    for j in range(1, values.shape[0]):
        total += np.float64(values[j]) * np.float64(values[j])
    return total


@inlined
def largest_ordered_step(learner, n_moved, solver):
    """Return a bound on the factor of a feature in the change of any weight."""
    total = 0.0
    for i in range(n_moved):
        r = solver.moved[i]
        total += abs(solver.coefficients[r]) * (learner.ranks.positions[r] + 1)
    return total


@inlined
def move_ordered(learner, part, indices, values, scratch, solver):
    """Add coefficient phi(x, r) of every class r.

    A threshold changes by the sum of the coefficients of all ranks above it, w by the sum of these
    sums over the thresholds.
    """
    offset, walk = learner.parts.offset[part], begin_walk(learner)
    above, along = 0.0, 0.0
    for i in range(learner.counts.n_classes - 1, 0, -1):
        r = learner.ranks.order[i]
        above += solver.coefficients[r]
        along += above
        amount = np.float32(above) * values[0]
        change(learner, walk, 0, offset + 1 + r, amount, values[0], scratch.out)
    for j in range(1, indices.shape[0]):
        amount = np.float32(along) * values[j]
        change(learner, walk, indices[j], offset, amount, values[j], scratch.out)


@always_inlined
def place_rank(learner, y):
    """Insert a new rank, class y, at its position among the y known ones."""
    order, positions = learner.ranks.order, learner.ranks.positions
    place = y
    while place > 0 and learner.ranks.places[order[place - 1]] > learner.ranks.places[y]:
        order[place] = order[place - 1]
        positions[order[place]] = place
        place -= 1
    order[place], positions[y] = y, place


@always_inlined
def dense_insert_rank(learner, y, out):
    """Insert a new rank, class y, at its position among the y known ones, with a threshold."""
    place_rank(learner, y)
    for part in range(learner.parts.kind.shape[0]):
        if learner.parts.kind[part] != ORDERED:
            continue
        start = learner.parts.offset[part] + 1
        if learner.link.address != 0:
            begin_linked_threshold(learner, start, y, out)
        elif y > 1:
            begin_threshold(learner, learner.weights.values[0], start, y)
            # With the sums of its neighbours an average covers as many trials as theirs.
            for i in range(learner.weights.states.shape[0]):
                begin_threshold(learner, learner.weights.states[i, 0], start, y)
            if learner.preconditioner.evidence.shape[0]:
                begin_evidence(learner, learner.preconditioner.evidence[0], start, y)
            if learner.preconditioner.sums.shape[0]:
                begin_evidence(learner, learner.preconditioner.sums[0], start, y)
                begin_evidence(learner, learner.preconditioner.winnings[0], start, y)
                begin_evidence(learner, learner.preconditioner.sizes[0], start, y)


@inlined
def begin_evidence(learner, evidence, start, y):
    """Give the threshold that y introduces the evidence of its neighbour."""
    place, order = learner.ranks.positions[y], learner.ranks.order
    if 0 < place < y:
        evidence[start + y] = evidence[start + order[place + 1]]
    elif place == 0:
        evidence[start + order[1]] = evidence[start + order[2]]
    else:
        evidence[start + y] = evidence[start + order[y - 1]]


@inlined
def begin_linked_threshold(learner, start, y, out):
    """Compute the initial sum of the threshold that y introduces, and the weight from it.

    A link does not decrease, so that thresholds have the order of their sums.
    """
    if y == 0:
        return
    meet_weights(learner, 1, out)
    if y > 1:
        sums = learner.weights.states[0, 0]
        begin_threshold(learner, sums, start, y)
        new = start + (y if learner.ranks.positions[y] > 0 else learner.ranks.order[1])
        begun, sums[new] = sums[new], 0.0
        change_sum(learner, 0, new, begun, out)
        if has_linked_means(learner):
            begin_mean_threshold(learner, start, y)


@inlined
def begin_mean_threshold(learner, start, y):
    """Compute the initial mean of the threshold that y introduces from those of the others."""
    for column in range(start, start + y + 1):
        bring_up_to_date(learner, 0, column)
    begin_threshold(learner, learner.weights.states[1, 0], start, y)


@inlined
def begin_threshold(learner, weights, start, y):
    """Compute the initial value of the threshold that y introduces from the other thresholds.

    Between two ranks, it is the threshold there, so that no other rank loses an instance. At an
    end, it is as far beyond the last threshold as thresholds are apart on average.
    """
    order, place = learner.ranks.order, learner.ranks.positions[y]
    if 0 < place < y:
        weights[start + y] = weights[start + order[place + 1]]
        return
    # The first rank has no threshold below it: the rank that was first gets the new one instead.
    new, last, first = order[y], order[y - 1], order[1]
    if place == 0:
        new, last, first = order[1], order[2], order[y]
    apart = weights[start + last] - weights[start + first]
    weights[start + new] = weights[start + last] + apart / max(1, y - 2)

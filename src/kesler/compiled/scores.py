"""Scores: what each class gets for a row."""
# mypy: disallow_untyped_defs=False, disallow_untyped_calls=False

from __future__ import annotations

import numpy as np

from kesler.compiled.given import add_given_scores
from kesler.compiled.jit import always_inlined, by_learner, inlined
from kesler.compiled.learner import (
    FACTOR,
    FIRST_SEEN,
    GIVEN,
    ITSELF,
    KIND,
    LANES,
    MAP,
    OFFSET,
    ORDERED,
    PER_CLASS,
    SHARED,
    STATISTIC,
    WIDTH,
)
from kesler.compiled.maps import PHI, PROJECT, TABLE, call_map
from kesler.compiled.ordered import add_ordered_scores
from kesler.compiled.wide import add_table_scores, width_of
from kesler.compiled.worth import lift_of


@by_learner
def prepare(learner, indices, values, scratch):
    """Set up what scores of this row alone go by: nothing, where there are weights."""


@by_learner
def keep_up(learner, indices, values, scratch):
    """Let units follow a row that is about to be learnt from: nothing, where there are weights."""


@inlined
def clear(array, n):
    """Set the first n numbers to 0 (a slice would compile four times as long)."""
    for i in range(n):
        array[i] = 0


@always_inlined
def add_products(indices, values, weights, offset, width, out):
    """out[r] += sum_i x_i weights[i, offset + r], four features a sweep to spare stores.

    Unsigned indices spare the loop the question whether they count from the end.
    """
    n = indices.shape[0]
    start, stop = np.uintp(offset), np.uintp(width)
    j = 0
    while j + 4 <= n:
        x1, x2, x3, x4 = values[j], values[j + 1], values[j + 2], values[j + 3]
        i1, i2 = np.uintp(indices[j]), np.uintp(indices[j + 1])
        i3, i4 = np.uintp(indices[j + 2]), np.uintp(indices[j + 3])
        for r in range(stop):
            s = start + r
            pair = x1 * weights[i1, s] + x2 * weights[i2, s]
            out[r] += pair + (x3 * weights[i3, s] + x4 * weights[i4, s])
        j += 4
    while j < n:
        x1, i1 = values[j], np.uintp(indices[j])
        for r in range(stop):
            out[r] += x1 * weights[i1, start + r]
        j += 1


@inlined
def whole_lanes(k, room):
    """Return k rounded up to full vectors: columns without a class hold zeros."""
    return min(room, (k + LANES - 1) // LANES * LANES)


@inlined
def class_vectors(learner, part, indices, k, vectors):
    """vectors[j, r] = weight of feature indices[j] summed over the hypotheses of class r."""
    kind, offset = learner.parts[part, KIND], learner.parts[part, OFFSET]
    for j in range(indices.shape[0]):
        row = learner.weights[indices[j]]
        for r in range(k):
            if kind == PER_CLASS:
                vectors[j, r] = row[offset + r]
            else:
                total = np.float32(0)
                for m in range(learner.member_starts[part, r], learner.member_starts[part, r + 1]):
                    total += row[offset + learner.members[m]]
                vectors[j, r] = total


@always_inlined
def add_plain_scores(learner, part, indices, values, k, column, scores):
    """Scores of a part whose view of x is x itself."""
    kind, offset = learner.parts[part, KIND], learner.parts[part, OFFSET]
    if kind == PER_CLASS:
        add_products(
            indices, values, learner.weights, offset, whole_lanes(k, scores.shape[0]), scores
        )
        return
    width = learner.parts[part, WIDTH]
    clear(column, width)
    add_products(indices, values, learner.weights, offset, width, column)
    for r in range(min(k, learner.counters[FIRST_SEEN])):
        for m in range(learner.member_starts[part, r], learner.member_starts[part, r + 1]):
            scores[r] += column[learner.members[m]]


@inlined
def add_mapped_scores(learner, part, indices, values, k, scratch, scores):
    """Scores of a part whose view of x is phi(x, r)."""
    n = indices.shape[0]
    k = min(k, learner.counters[FIRST_SEEN])
    if learner.parts[part, KIND] == SHARED and scratch.tables.shape[0]:
        keep_views(learner, part, indices, values, k, scratch)
        column, table = learner.parts[part, OFFSET], scratch.tables[part]
        width = width_of(k, scores.shape[0])
        lift = lift_of(learner, part)
        add_table_scores(learner.weights, column, lift, indices, table, width, scores)
        return
    if learner.parts[part, KIND] == SHARED:
        vectors = scratch.narrow[:n]
        lift = lift_of(learner, part)
        for j in range(n):
            vectors[j, 0] = learner.weights[indices[j], learner.parts[part, OFFSET]] + lift
    else:
        vectors = scratch.vectors[:n]
        class_vectors(learner, part, indices, k, vectors)
    of_map(learner, part, PROJECT, indices, values, vectors, k, scores, scratch.products)


@inlined
def keep_views(learner, part, indices, values, k, scratch):
    """Keep the views of a shared part, which are wanted again."""
    table = scratch.tables[part]
    of_map(learner, part, TABLE, indices, values, table, k, scratch.phi, scratch.products)


@inlined
def of_map(learner, part, task, indices, values, vectors, k, out, products):
    """Call the loops of the part's map; see `kesler.compiled.maps.map_loops`."""
    call_map(
        learner.parts[part, MAP],
        task,
        indices,
        values,
        vectors,
        learner.statistics,
        learner.totals,
        learner.divisors,
        learner.pooled,
        learner.parts[part, STATISTIC],
        k,
        learner.map_parameters[part],
        out,
        products,
    )


@inlined
def phi_of(learner, part, indices, values, r, scratch, out):
    """out[j] = phi(x, r) at the j-th entry of the row, kept from the scoring or computed."""
    if learner.parts[part, KIND] == SHARED and scratch.tables.shape[0]:
        for j in range(indices.shape[0]):
            out[j] = scratch.tables[part, j, r]
    else:
        compute_phi(learner, part, indices, values, r, scratch, out)


@inlined
def compute_phi(learner, part, indices, values, r, scratch, out):
    """out[j] = phi(x, r) at the j-th entry of the row; that of a virtual class is 0."""
    if r >= learner.counters[FIRST_SEEN]:
        clear(out, indices.shape[0])
        return
    of_map(learner, part, PHI, indices, values, scratch.narrow, r, out, scratch.products)


@by_learner
def score(learner, indices, values, k, scratch, scores):
    """Fink (2006) Eq. 7: scores[r] = sum over the hypotheses t of class r of <w^t, phi^t(x, r)>."""
    clear(scores, whole_lanes(k, scores.shape[0]))
    for part in range(learner.parts.shape[0]):
        if learner.parts[part, KIND] == ORDERED:
            add_ordered_scores(learner, part, indices, values, k, scores)
        elif learner.parts[part, MAP] == ITSELF:
            add_plain_scores(learner, part, indices, values, k, scratch.column, scores)
        elif learner.parts[part, MAP] == GIVEN:
            add_given_scores(learner, part, k, scratch.views, scores)
        else:
            add_mapped_scores(learner, part, indices, values, k, scratch, scores)
    if learner.link[1]:
        factor = np.float32(learner.numbers[FACTOR])
        for r in range(k):
            scores[r] *= factor


@inlined
def best(scores, k, excluded):
    """Return the class of highest score but `excluded`, the first met among equals, or -1."""
    winner = -1
    for r in range(k):
        if r != excluded and (winner < 0 or scores[r] > scores[winner]):
            winner = r
    return winner

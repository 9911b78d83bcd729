"""Scores: what each class gets for a row."""
# mypy: disallow_untyped_defs=False, disallow_untyped_calls=False

from __future__ import annotations

import numpy as np

from kesler.compiled.given import add_given_scores
from kesler.compiled.jit import always_inlined, by_learner, inlined
from kesler.compiled.lanes import (
    LANES,
    first_of,
    highest_of,
    holds,
    larger,
    load,
    spread,
    store,
    whole_lines,
)
from kesler.compiled.learner import (
    FACTOR,
    FIRST_SEEN,
    GIVEN,
    ITSELF,
    KIND,
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
from kesler.compiled.products import add_products
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
def add_plain_scores(learner, part, indices, values, k, scratch, scores):
    """Scores of a part whose view of x is x itself.

    Whole lines of classes are summed; behind the last class others' columns may stand.
    """
    kind, offset, column = learner.parts[part, KIND], learner.parts[part, OFFSET], scratch.column
    if kind == PER_CLASS:
        upcoming, width = scratch.words[scratch.upcoming[0] : scratch.upcoming[1]], whole_lines(k)
        add_products(indices, values, upcoming, learner.weights, offset, width, scores)
        last = width - LANES
        if k < width:
            store(scores, last, first_of(load(scores, last), k - last))
        return
    width = learner.parts[part, WIDTH]
    clear(column, width)
    add_products(indices, values, indices[:0], learner.weights, offset, width, column)
    for r in range(min(k, learner.counters[FIRST_SEEN])):
        for m in range(learner.member_starts[part, r], learner.member_starts[part, r + 1]):
            scores[r] += column[learner.members[m]]


@inlined
def add_mapped_scores(learner, part, indices, values, k, scratch, scores):
    """Scores of a part whose view of x is phi(x, r)."""
    k, weights = min(k, learner.counters[FIRST_SEEN]), scratch.phi[: indices.shape[0]]
    task, vectors = PROJECT, scratch.vectors
    if learner.parts[part, KIND] == SHARED:
        weigh_views(learner, part, indices, weights)
        if scratch.tables.shape[0]:  # these views are wanted again
            task, vectors = TABLE, scratch.tables[part]
    else:
        class_vectors(learner, part, indices, k, vectors)
        weights = weights[:0]
    products = scratch.products
    of_map(learner, part, task, indices, values, vectors, weights, k, scores, products)


@inlined
def weigh_views(learner, part, indices, weights):
    """weights[j] = that of the j-th entry's view in a shared part."""
    lift, column = lift_of(learner, part), np.uintp(learner.parts[part, OFFSET])
    for j in range(indices.shape[0]):
        weights[j] = learner.weights[np.uintp(indices[j]), column] + lift


@inlined
def of_map(learner, part, task, indices, values, vectors, weights, k, out, products):
    """Call the loops of the part's map; see `kesler.compiled.maps.map_loops`."""
    call_map(
        learner.parts[part, MAP],
        task,
        indices,
        values,
        vectors,
        weights,
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
    vectors, products = scratch.vectors, scratch.products
    of_map(learner, part, PHI, indices, values, vectors, values[:0], r, out, products)


@by_learner
def score(learner, indices, values, k, scratch, scores):
    """Fink (2006) Eq. 7: scores[r] = sum over the hypotheses t of class r of <w^t, phi^t(x, r)>."""
    clear(scores, whole_lines(k))
    for part in range(learner.parts.shape[0]):
        if learner.parts[part, KIND] == ORDERED:
            add_ordered_scores(learner, part, indices, values, k, scores)
        elif learner.parts[part, MAP] == ITSELF:
            add_plain_scores(learner, part, indices, values, k, scratch, scores)
        elif learner.parts[part, MAP] == GIVEN:
            add_given_scores(learner, part, k, scratch.views, scores)
        else:
            add_mapped_scores(learner, part, indices, values, k, scratch, scores)
    if learner.link[1]:
        factor = np.float32(learner.numbers[FACTOR])
        for r in range(k):
            scores[r] *= factor


@by_learner
def finite(learner, scores, k):
    """Whether every score is a number."""
    odd = 0
    for r in range(k):
        odd |= not abs(scores[r]) < np.inf  # and no way out, so that it becomes a loop of vectors
    return odd == 0


@by_learner
def best(learner, scores, k):
    """Return the class of highest score, the first met among equals, or -1 if there is none."""
    in_lines = k // LANES * LANES
    line = spread(scores.dtype.type(-np.inf))
    for r in range(0, in_lines, LANES):
        line = larger(load(scores, r), line)
    highest = highest_of(line)
    for r in range(in_lines, k):
        highest = max(highest, scores[r])
    start = 0
    while start < in_lines and not holds(load(scores, start), highest):
        start += LANES
    for r in range(start, k):
        if scores[r] == highest:
            return r
    return min(k, 1) - 1


@by_learner
def best_but(learner, scores, k, y):
    """Return the class of highest score but y, the first met among equals, or -1."""
    if k < 2:
        return -1
    own, scores[y] = scores[y], -np.inf
    winner = best(learner, scores, k)
    scores[y] = own
    return winner

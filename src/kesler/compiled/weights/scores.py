"""Scores: what each class gets for a row.

A row's features stand anywhere in tables that no cache holds: a trial would wait for memory longer
than it computes.
"""
# mypy: disallow_untyped_defs=False, disallow_untyped_calls=False

from __future__ import annotations

import numpy as np

from kesler.compiled.jit.decorators import always_inlined, inlined
from kesler.compiled.jit.pointers import fetch, fetch_near
from kesler.compiled.jit.simd import (
    SIMD_WIDTH,
    first_of,
    highest_of,
    holds,
    larger,
    load,
    spread,
    store,
    whole_lines,
)
from kesler.compiled.trial.decay import decay_offset_of
from kesler.compiled.trial.records import GIVEN, ITSELF, ORDERED, OWN_SCALE, PER_CLASS, SHARED
from kesler.compiled.views.given import add_given_scores
from kesler.compiled.views.maps import PHI, PROJECT, TABLE, Kept, Operands, call_map
from kesler.compiled.weights.ordered import add_ordered_scores

# Tables smaller than this stay in a core's own cache, in numbers.
LEAST = 1 << 17
# Beyond so many cache lines in a row the machine fetches the next by itself.
MOST_LINES = 8
# Rows of so many numbers are few enough for the cache that is nearest.
NARROW = 3 * SIMD_WIDTH


@always_inlined
def dense_fetch_ahead(learner, rows, t, k, scratch):
    """Ask for what a trial on row t will read, if there is one.

    More than a few lines at a time would be waited for: where scores go through all weights of a
    row, they ask for those of the next on the way (`products.add_products`). Before the first row
    there is no such way.
    """
    too_few = learner.weights.values.shape[0] * learner.weights.values.shape[1] < LEAST
    if too_few or t + 1 >= rows.indptr.shape[0]:
        scratch.upcoming[1] = scratch.upcoming[0]
        return
    scratch.upcoming[0], scratch.upcoming[1] = rows.indptr[t], rows.indptr[t + 1]
    indices = rows.indices[rows.indptr[t] : rows.indptr[t + 1]]
    fetch_entries(rows, t)
    width, on_the_way = 0, False
    for part in range(learner.parts.kind.shape[0]):
        kind = learner.parts.kind[part]
        if kind != SHARED:
            width = max(width, learner.parts.offset[part] + learner.parts.width[part])
        on_the_way |= t > 0 and kind == PER_CLASS and learner.parts.map[part] == ITSELF
    if not on_the_way:
        fetch_rows(learner.weights.values, indices, 0, width)
    if learner.preconditioner.evidence.shape[0]:
        fetch_rows(learner.preconditioner.evidence, indices, 0, width)
    for part in range(learner.parts.kind.shape[0]):
        column = learner.parts.offset[part]
        if learner.parts.kind[part] == SHARED and column >= whole_lines(width):
            fetch_rows(learner.weights.values, indices, column, 1)
            if learner.preconditioner.evidence.shape[0]:
                fetch_rows(learner.preconditioner.evidence, indices, column, 1)
    for layer in range(learner.statistics.sums.shape[0]):
        fetch_rows(learner.statistics.sums[layer], indices, 0, k)
    if learner.statistics.pooled.shape[1]:
        fetch_rows(learner.statistics.pooled, indices, 0, 1)


@inlined
def fetch_entries(rows, t):
    """Ask for the values of row t, and for the indices of the next one, which are read first.

    They follow each other, but so much is read between two rows that no machine sees that.
    """
    for j in range(rows.indptr[t], rows.indptr[t + 1], SIMD_WIDTH):
        fetch_near(rows.values, j)
    if t + 2 < rows.indptr.shape[0]:
        for j in range(rows.indptr[t + 1], rows.indptr[t + 2], SIMD_WIDTH):
            fetch_near(rows.indices, j)


@inlined
def fetch_rows(table, indices, first, width):
    """Ask for so many columns of the features of a row."""
    for column in range(first, first + min(width, MOST_LINES * SIMD_WIDTH), SIMD_WIDTH):
        for j in range(indices.shape[0]):
            if width <= NARROW:
                fetch_near(table, indices[j] * table.shape[1] + column)
            else:
                fetch(table, indices[j] * table.shape[1] + column)


@always_inlined
def add_products(indices, values, upcoming, weights, offset, width, out):
    """out[r] += x_i weights[i, offset + r], i by i, asking for the weights of upcoming features.

    Each class by itself, so that no vector changes a bit. A sum waits for the one before: those of
    many classes are under way at a time, and stay in registers from the first feature to the last.
    """
    in_lines = width // SIMD_WIDTH * SIMD_WIDTH
    nothing, start = upcoming[:0], 0
    while start + 4 * SIMD_WIDTH <= in_lines:
        asked = upcoming if start < MOST_LINES * SIMD_WIDTH else nothing
        add_four_lines(indices, values, asked, weights, offset + start, out, start)
        start += 4 * SIMD_WIDTH
    while start + 2 * SIMD_WIDTH <= in_lines:
        asked = upcoming if start < MOST_LINES * SIMD_WIDTH else nothing
        add_two_lines(indices, values, asked, weights, offset + start, out, start)
        start += 2 * SIMD_WIDTH
    while start < in_lines:
        asked = upcoming if start < MOST_LINES * SIMD_WIDTH else nothing
        add_line(indices, values, asked, weights, offset + start, out, start)
        start += SIMD_WIDTH
    for r in range(in_lines, width):
        for j in range(indices.shape[0]):
            out[r] += weights.dtype.type(values[j]) * weights[indices[j], offset + r]


@always_inlined
def add_four_lines(indices, values, upcoming, weights, column, out, r):
    """Add the products of the classes of four cache lines."""
    row, number = weights.shape[1], weights.dtype.type
    a, b = load(out, r), load(out, r + SIMD_WIDTH)
    c, d = load(out, r + 2 * SIMD_WIDTH), load(out, r + 3 * SIMD_WIDTH)
    for j in range(indices.shape[0]):
        x, start = number(values[j]), indices[j] * row + column
        if j < upcoming.shape[0]:
            ahead = upcoming[j] * row + column
            fetch(weights, ahead)
            fetch(weights, ahead + SIMD_WIDTH)
            fetch(weights, ahead + 2 * SIMD_WIDTH)
            fetch(weights, ahead + 3 * SIMD_WIDTH)
        a = a + load(weights, start) * x
        b = b + load(weights, start + SIMD_WIDTH) * x
        c = c + load(weights, start + 2 * SIMD_WIDTH) * x
        d = d + load(weights, start + 3 * SIMD_WIDTH) * x
    fetch_rest(indices, upcoming, weights, column, 4 * SIMD_WIDTH)
    store(out, r, a)
    store(out, r + SIMD_WIDTH, b)
    store(out, r + 2 * SIMD_WIDTH, c)
    store(out, r + 3 * SIMD_WIDTH, d)


@always_inlined
def add_two_lines(indices, values, upcoming, weights, column, out, r):
    """Add the products of the classes of two cache lines."""
    row, number = weights.shape[1], weights.dtype.type
    a, b = load(out, r), load(out, r + SIMD_WIDTH)
    for j in range(indices.shape[0]):
        x, start = number(values[j]), indices[j] * row + column
        if j < upcoming.shape[0]:
            ahead = upcoming[j] * row + column
            fetch_near(weights, ahead)
            fetch_near(weights, ahead + SIMD_WIDTH)
        a = a + load(weights, start) * x
        b = b + load(weights, start + SIMD_WIDTH) * x
    fetch_rest(indices, upcoming, weights, column, 2 * SIMD_WIDTH)
    store(out, r, a)
    store(out, r + SIMD_WIDTH, b)


@always_inlined
def add_line(indices, values, upcoming, weights, column, out, r):
    """Add the products of the classes of one cache line."""
    row, number = weights.shape[1], weights.dtype.type
    a = load(out, r)
    for j in range(indices.shape[0]):
        x, start = number(values[j]), indices[j] * row + column
        if j < upcoming.shape[0]:
            fetch_near(weights, upcoming[j] * row + column)
        a = a + load(weights, start) * x
    fetch_rest(indices, upcoming, weights, column, SIMD_WIDTH)
    store(out, r, a)


@always_inlined
def fetch_rest(indices, upcoming, weights, column, width):
    """Ask for the weights of the upcoming features of which there are more than of these."""
    for j in range(indices.shape[0], upcoming.shape[0]):
        for r in range(0, width, SIMD_WIDTH):
            fetch(weights, upcoming[j] * weights.shape[1] + column + r)


@always_inlined
def dense_prepare(learner, indices, values, scratch):
    """Set up what scores of this row alone go by: nothing, where there are weights."""


@always_inlined
def dense_keep_up(learner, indices, values, scratch):
    """Let units follow a row that is about to be learnt from: nothing, where there are weights."""


@inlined
def clear(array, n):
    """Set the first n numbers to 0 (a slice would compile four times as long)."""
    for i in range(n):
        array[i] = 0


@inlined
def class_vectors(learner, part, indices, k, vectors):
    """vectors[j, r] = weight of feature indices[j] summed over the hypotheses of class r."""
    kind, offset = learner.parts.kind[part], learner.parts.offset[part]
    for j in range(indices.shape[0]):
        row = learner.weights.values[indices[j]]
        for r in range(k):
            if kind == PER_CLASS:
                vectors[j, r] = row[offset + r]
            else:
                total = np.float32(0)
                for m in range(
                    learner.parts.member_starts[part, r], learner.parts.member_starts[part, r + 1]
                ):
                    total += row[offset + learner.parts.members[m]]
                vectors[j, r] = total


@always_inlined
def add_plain_scores(learner, part, indices, values, k, scratch, scores):
    """Scores of a part whose view of x is x itself.

    Whole lines of classes are summed; behind the last class others' columns may stand.
    """
    kind, offset, column = learner.parts.kind[part], learner.parts.offset[part], scratch.column
    if kind == PER_CLASS:
        upcoming, width = scratch.words[scratch.upcoming[0] : scratch.upcoming[1]], whole_lines(k)
        add_products(indices, values, upcoming, learner.weights.values, offset, width, scores)
        last = width - SIMD_WIDTH
        if k < width:
            store(scores, last, first_of(load(scores, last), k - last))
        return
    width = learner.parts.width[part]
    clear(column, width)
    add_products(indices, values, indices[:0], learner.weights.values, offset, width, column)
    for r in range(min(k, learner.counts.n_classes)):
        for m in range(
            learner.parts.member_starts[part, r], learner.parts.member_starts[part, r + 1]
        ):
            scores[r] += column[learner.parts.members[m]]


@inlined
def add_mapped_scores(learner, part, indices, values, k, scratch, scores):
    """Scores of a part whose view of x is phi(x, r)."""
    k, weights = min(k, learner.counts.n_classes), scratch.phi[: indices.shape[0]]
    task, vectors = PROJECT, scratch.vectors
    if learner.parts.kind[part] == SHARED:
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
    decay_offset, column = decay_offset_of(learner, part), np.uintp(learner.parts.offset[part])
    for j in range(indices.shape[0]):
        weights[j] = learner.weights.values[np.uintp(indices[j]), column] + decay_offset


@inlined
def of_map(learner, part, task, indices, values, vectors, weights, k, out, products):
    """Call the loops of the part's map; see `kesler.compiled.views.maps.run`."""
    call_map(
        learner.parts.map[part],
        task,
        indices,
        values,
        Kept(
            learner.statistics.sums,
            learner.statistics.totals,
            learner.statistics.divisors,
            learner.statistics.pooled,
        ),
        learner.parts.statistic[part],
        k,
        learner.parts.map_parameters[part],
        Operands(vectors, weights, out, products),
    )


@inlined
def phi_of(learner, part, indices, values, r, scratch, out):
    """out[j] = phi(x, r) at the j-th entry of the row, kept from the scoring or computed."""
    if learner.parts.kind[part] == SHARED and scratch.tables.shape[0]:
        for j in range(indices.shape[0]):
            out[j] = scratch.tables[part, j, r]
    else:
        compute_phi(learner, part, indices, values, r, scratch, out)


@inlined
def compute_phi(learner, part, indices, values, r, scratch, out):
    """out[j] = phi(x, r) at the j-th entry of the row; that of a virtual class is 0."""
    if r >= learner.counts.n_classes:
        clear(out, indices.shape[0])
        return
    vectors, products = scratch.vectors, scratch.products
    of_map(learner, part, PHI, indices, values, vectors, values[:0], r, out, products)


@inlined
def scale_of_weights(learner):
    """Return what weights are to be multiplied by, where a link or an algorithm says so."""
    if learner.link.scale_source == OWN_SCALE:
        return learner.algorithm.numbers[0]
    return learner.link.scale.value


@always_inlined
def dense_score(learner, indices, values, k, scratch, scores):
    """Fink (2006) Eq. 7: scores[r] = sum over the hypotheses t of class r of <w^t, phi^t(x, r)>."""
    clear(scores, whole_lines(k))
    for part in range(learner.parts.kind.shape[0]):
        if learner.parts.kind[part] == ORDERED:
            add_ordered_scores(learner, part, indices, values, k, scores)
        elif learner.parts.map[part] == ITSELF:
            add_plain_scores(learner, part, indices, values, k, scratch, scores)
        elif learner.parts.map[part] == GIVEN:
            add_given_scores(learner, part, k, scratch.views, scores)
        else:
            add_mapped_scores(learner, part, indices, values, k, scratch, scores)
    if learner.link.scale_source:
        factor = np.float32(scale_of_weights(learner))
        for r in range(k):
            scores[r] *= factor


@always_inlined
def dense_finite(learner, scores, k):
    """Whether every score is a number."""
    odd = 0
    for r in range(k):
        odd |= not abs(scores[r]) < np.inf  # and no way out, so that it becomes a loop of vectors
    return odd == 0


@always_inlined
def dense_best(learner, scores, k):
    """Return the class of highest score, the first seen among equals, or -1 if there is none."""
    in_lines = k // SIMD_WIDTH * SIMD_WIDTH
    line = spread(scores.dtype.type(-np.inf))
    for r in range(0, in_lines, SIMD_WIDTH):
        line = larger(load(scores, r), line)
    highest = highest_of(line)
    for r in range(in_lines, k):
        highest = max(highest, scores[r])
    start = 0
    while start < in_lines and not holds(load(scores, start), highest):
        start += SIMD_WIDTH
    for r in range(start, k):
        if scores[r] == highest:
            return r
    return min(k, 1) - 1


@always_inlined
def dense_best_but(learner, scores, k, y):
    """Return the class of highest score but y, the first seen among equals, or -1."""
    if k < 2:
        return -1
    own, scores[y] = scores[y], -np.inf
    winner = dense_best(learner, scores, k)
    scores[y] = own
    return winner

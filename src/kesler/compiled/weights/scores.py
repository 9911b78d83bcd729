"""Scores of the classes for a row.

The features of a row are scattered over tables that exceed the caches: without prefetching, a trial
would wait for memory longer than it computes.
"""
# mypy: disallow_untyped_defs=False, disallow_untyped_calls=False

from __future__ import annotations

import numpy as np

from kesler.compiled.jit.decorators import always_inlined, inlined
from kesler.compiled.jit.pointers import fetch
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

# Tables of fewer numbers than this fit in the cache of one core.
LEAST = 1 << 17
# After this many consecutive cache lines the hardware prefetches the next ones.
MOST_LINES = 8


@always_inlined
def dense_fetch_ahead(learner, rows, t, k, scratch):
    """Prefetch what a trial on row t will read, if there is such a row.

    More than a few lines at a time would have to be waited for: where scores read all weights of a
    row, they prefetch those of the next row at the same time (`add_products`). Before the first row
    there are no such scores.
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
    """Prefetch the values of row t, and the indices of the next one, which are read first.

    They are consecutive, but too much is read between two rows for the hardware to detect that.
    """
    for j in range(rows.indptr[t], rows.indptr[t + 1], SIMD_WIDTH):
        fetch(rows.values, j)
    if t + 2 < rows.indptr.shape[0]:
        for j in range(rows.indptr[t + 1], rows.indptr[t + 2], SIMD_WIDTH):
            fetch(rows.indices, j)


@inlined
def fetch_rows(table, indices, first, width):
    """Prefetch `width` columns of a table for the features of a row."""
    for column in range(first, first + min(width, MOST_LINES * SIMD_WIDTH), SIMD_WIDTH):
        for j in range(indices.shape[0]):
            fetch(table, indices[j] * table.shape[1] + column)


@always_inlined
def add_products(indices, values, upcoming, weights, offset, width, out):
    """Add x_i weights[i, offset + r] to out[r], i by i, and prefetch the upcoming features.

    Each class is summed separately, so that vectorisation does not change any bit. An addition
    waits for the previous one: the sums of many classes are computed at the same time, and stay in
    registers from the first feature to the last.
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
    """Add the products of four lines of classes."""
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
    """Add the products of two lines of classes."""
    row, number = weights.shape[1], weights.dtype.type
    a, b = load(out, r), load(out, r + SIMD_WIDTH)
    for j in range(indices.shape[0]):
        x, start = number(values[j]), indices[j] * row + column
        if j < upcoming.shape[0]:
            ahead = upcoming[j] * row + column
            fetch(weights, ahead)
            fetch(weights, ahead + SIMD_WIDTH)
        a = a + load(weights, start) * x
        b = b + load(weights, start + SIMD_WIDTH) * x
    fetch_rest(indices, upcoming, weights, column, 2 * SIMD_WIDTH)
    store(out, r, a)
    store(out, r + SIMD_WIDTH, b)


@always_inlined
def add_line(indices, values, upcoming, weights, column, out, r):
    """Add the products of one line of classes."""
    row, number = weights.shape[1], weights.dtype.type
    a = load(out, r)
    for j in range(indices.shape[0]):
        x, start = number(values[j]), indices[j] * row + column
        if j < upcoming.shape[0]:
            fetch(weights, upcoming[j] * row + column)
        a = a + load(weights, start) * x
    fetch_rest(indices, upcoming, weights, column, SIMD_WIDTH)
    store(out, r, a)


@always_inlined
def fetch_rest(indices, upcoming, weights, column, width):
    """Prefetch the weights of the upcoming features in excess of the current ones."""
    for j in range(indices.shape[0], upcoming.shape[0]):
        for r in range(0, width, SIMD_WIDTH):
            fetch(weights, upcoming[j] * weights.shape[1] + column + r)


@always_inlined
def dense_prepare(learner, indices, values, scratch):
    """Do nothing: weights need no preparation for the scores of a row."""


@always_inlined
def dense_keep_up(learner, indices, values, scratch):
    """Do nothing: weights have no units that depend on the row to be learnt from."""


@inlined
def clear(array, n):
    """Set the first n numbers to 0 (a slice would take four times as long to compile)."""
    for i in range(n):
        array[i] = 0


@inlined
def class_vectors(learner, part, indices, k, vectors):
    """Set vectors[j, r] to the weight of feature indices[j] summed over the hypotheses of r."""
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
    """Add the scores of a part whose view of x is x itself.

    Whole lines of classes are summed; after the last class there may be columns of other parts.
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
    """Add the scores of a part whose view of x is phi(x, r)."""
    k, weights = min(k, learner.counts.n_classes), scratch.phi[: indices.shape[0]]
    task, vectors = PROJECT, scratch.vectors
    if learner.parts.kind[part] == SHARED:
        weigh_views(learner, part, indices, weights)
        if scratch.tables.shape[0]:  # these views are needed again
            task, vectors = TABLE, scratch.tables[part]
    else:
        class_vectors(learner, part, indices, k, vectors)
        weights = weights[:0]
    products = scratch.products
    of_map(learner, part, task, indices, values, vectors, weights, k, scores, products)


@inlined
def weigh_views(learner, part, indices, weights):
    """Set weights[j] to the weight of the view of entry j in a shared part."""
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
    """Set out[j] to phi(x, r) at entry j of the row, as stored by the scoring or computed."""
    if learner.parts.kind[part] == SHARED and scratch.tables.shape[0]:
        for j in range(indices.shape[0]):
            out[j] = scratch.tables[part, j, r]
    else:
        compute_phi(learner, part, indices, values, r, scratch, out)


@inlined
def compute_phi(learner, part, indices, values, r, scratch, out):
    """Compute out[j] = phi(x, r) at entry j of the row, 0 for a virtual class."""
    if r >= learner.counts.n_classes:
        clear(out, indices.shape[0])
        return
    vectors, products = scratch.vectors, scratch.products
    of_map(learner, part, PHI, indices, values, vectors, values[:0], r, out, products)


@inlined
def scale_of_weights(learner):
    """Return the factor of all weights, as defined by the link or the algorithm."""
    if learner.link.scale_source == OWN_SCALE:
        return learner.algorithm.numbers[0]
    return learner.link.scale.value


@always_inlined
def dense_score(learner, indices, values, k, scratch, scores):
    """Compute scores[r] = sum_t <w^t, phi^t(x, r)> over hypotheses t of r (Fink 2006, Eq. 7)."""
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
    """Return whether every score is finite."""
    not_finite = 0
    for r in range(k):
        not_finite |= not abs(scores[r]) < np.inf  # no early exit: the loop vectorises
    return not_finite == 0


@always_inlined
def dense_best(learner, scores, k):
    """Return the class of the highest score, the first seen if tied, or -1 if there is none."""
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
    """Return the class of the highest score except y, the first seen if tied, or -1."""
    if k < 2:
        return -1
    own, scores[y] = scores[y], -np.inf
    winner = dense_best(learner, scores, k)
    scores[y] = own
    return winner

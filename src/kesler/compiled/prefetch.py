"""Prefetching: what the next trial reads is on its way while this one computes.

A row's features stand anywhere in tables that no cache holds: a trial would wait for memory longer
than it computes.
"""
# mypy: disallow_untyped_defs=False, disallow_untyped_calls=False

from __future__ import annotations

from kesler.compiled.fetch import fetch, fetch_near
from kesler.compiled.jit import by_learner, inlined
from kesler.compiled.lanes import LANES, whole_lines
from kesler.compiled.learner import ITSELF, KIND, MAP, OFFSET, PER_CLASS, SHARED, WIDTH

# Tables smaller than this stay in a core's own cache, in numbers.
LEAST = 1 << 17
# Beyond so many cache lines in a row the machine fetches the next by itself.
MOST_LINES = 8
# Rows of so many numbers are few enough for the cache that is nearest.
NARROW = 3 * LANES


@by_learner
def fetch_ahead(learner, rows, t, k, scratch):
    """Ask for what a trial on row t will read, if there is one.

    More than a few lines at a time would be waited for: where scores go through all weights of a
    row, they ask for those of the next on the way (`products.add_products`). Before the first row
    there is no such way.
    """
    too_few = learner.weights.shape[0] * learner.weights.shape[1] < LEAST
    if too_few or t + 1 >= rows.indptr.shape[0]:
        scratch.upcoming[1] = scratch.upcoming[0]
        return
    scratch.upcoming[0], scratch.upcoming[1] = rows.indptr[t], rows.indptr[t + 1]
    indices = rows.indices[rows.indptr[t] : rows.indptr[t + 1]]
    fetch_entries(rows, t)
    width, on_the_way = 0, False
    for part in range(learner.parts.shape[0]):
        kind = learner.parts[part, KIND]
        if kind != SHARED:
            width = max(width, learner.parts[part, OFFSET] + learner.parts[part, WIDTH])
        on_the_way |= t > 0 and kind == PER_CLASS and learner.parts[part, MAP] == ITSELF
    if not on_the_way:
        fetch_rows(learner.weights, indices, 0, width)
    if learner.evidence.shape[0]:
        fetch_rows(learner.evidence, indices, 0, width)
    for part in range(learner.parts.shape[0]):
        column = learner.parts[part, OFFSET]
        if learner.parts[part, KIND] == SHARED and column >= whole_lines(width):
            fetch_rows(learner.weights, indices, column, 1)
            if learner.evidence.shape[0]:
                fetch_rows(learner.evidence, indices, column, 1)
    for layer in range(learner.statistics.shape[0]):
        fetch_rows(learner.statistics[layer], indices, 0, k)
    if learner.pooled.shape[1]:
        fetch_rows(learner.pooled, indices, 0, 1)


@inlined
def fetch_entries(rows, t):
    """Ask for the values of row t, and for the indices of the next one, which are read first.

    They follow each other, but so much is read between two rows that no machine sees that.
    """
    for j in range(rows.indptr[t], rows.indptr[t + 1], LANES):
        fetch_near(rows.values, j)
    if t + 2 < rows.indptr.shape[0]:
        for j in range(rows.indptr[t + 1], rows.indptr[t + 2], LANES):
            fetch_near(rows.indices, j)


@inlined
def fetch_rows(table, indices, first, width):
    """Ask for so many columns of the features of a row."""
    for column in range(first, first + min(width, MOST_LINES * LANES), LANES):
        for j in range(indices.shape[0]):
            if width <= NARROW:
                fetch_near(table, indices[j] * table.shape[1] + column)
            else:
                fetch(table, indices[j] * table.shape[1] + column)

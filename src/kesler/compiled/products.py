"""Products: the entries of a row times the rows of a table that they stand for, summed by class."""
# mypy: disallow_untyped_defs=False, disallow_untyped_calls=False

from __future__ import annotations

from kesler.compiled.fetch import fetch, fetch_near
from kesler.compiled.jit import always_inlined
from kesler.compiled.lanes import LANES, load, store
from kesler.compiled.prefetch import MOST_LINES


@always_inlined
def add_products(indices, values, upcoming, weights, offset, width, out):
    """out[r] += x_i weights[i, offset + r], i by i, asking for the weights of upcoming features.

    Each class by itself, so that no vector changes a bit. A sum waits for the one before: those of
    many classes are under way at a time, and stay in registers from the first feature to the last.
    """
    in_lines = width // LANES * LANES
    nothing, start = upcoming[:0], 0
    while start + 4 * LANES <= in_lines:
        asked = upcoming if start < MOST_LINES * LANES else nothing
        add_four_lines(indices, values, asked, weights, offset + start, out, start)
        start += 4 * LANES
    while start + 2 * LANES <= in_lines:
        asked = upcoming if start < MOST_LINES * LANES else nothing
        add_two_lines(indices, values, asked, weights, offset + start, out, start)
        start += 2 * LANES
    while start < in_lines:
        asked = upcoming if start < MOST_LINES * LANES else nothing
        add_line(indices, values, asked, weights, offset + start, out, start)
        start += LANES
    for r in range(in_lines, width):
        for j in range(indices.shape[0]):
            out[r] += weights.dtype.type(values[j]) * weights[indices[j], offset + r]


@always_inlined
def add_four_lines(indices, values, upcoming, weights, column, out, r):
    """Add the products of the classes of four cache lines."""
    row, number = weights.shape[1], weights.dtype.type
    a, b = load(out, r), load(out, r + LANES)
    c, d = load(out, r + 2 * LANES), load(out, r + 3 * LANES)
    for j in range(indices.shape[0]):
        x, start = number(values[j]), indices[j] * row + column
        if j < upcoming.shape[0]:
            ahead = upcoming[j] * row + column
            fetch(weights, ahead)
            fetch(weights, ahead + LANES)
            fetch(weights, ahead + 2 * LANES)
            fetch(weights, ahead + 3 * LANES)
        a = a + load(weights, start) * x
        b = b + load(weights, start + LANES) * x
        c = c + load(weights, start + 2 * LANES) * x
        d = d + load(weights, start + 3 * LANES) * x
    fetch_rest(indices, upcoming, weights, column, 4 * LANES)
    store(out, r, a)
    store(out, r + LANES, b)
    store(out, r + 2 * LANES, c)
    store(out, r + 3 * LANES, d)


@always_inlined
def add_two_lines(indices, values, upcoming, weights, column, out, r):
    """Add the products of the classes of two cache lines."""
    row, number = weights.shape[1], weights.dtype.type
    a, b = load(out, r), load(out, r + LANES)
    for j in range(indices.shape[0]):
        x, start = number(values[j]), indices[j] * row + column
        if j < upcoming.shape[0]:
            ahead = upcoming[j] * row + column
            fetch_near(weights, ahead)
            fetch_near(weights, ahead + LANES)
        a = a + load(weights, start) * x
        b = b + load(weights, start + LANES) * x
    fetch_rest(indices, upcoming, weights, column, 2 * LANES)
    store(out, r, a)
    store(out, r + LANES, b)


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
    fetch_rest(indices, upcoming, weights, column, LANES)
    store(out, r, a)


@always_inlined
def fetch_rest(indices, upcoming, weights, column, width):
    """Ask for the weights of the upcoming features of which there are more than of these."""
    for j in range(indices.shape[0], upcoming.shape[0]):
        for r in range(0, width, LANES):
            fetch(weights, upcoming[j] * weights.shape[1] + column + r)

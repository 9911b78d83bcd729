"""Sparse rows of weights: of each feature the classes that have one, or all classes where most do.

The entries of a feature, (class, weight), stand in runs of 16, 16, 32, 64 and so on: an entry never
moves, and at most half of the room is unused. A feature with entries for so many classes that a
further run would take more memory than a weight for every class is given just that: a row of a
dense table. Nothing that is computed from weights depends on which of the two holds them.
"""
# mypy: disallow_untyped_defs=False, disallow_untyped_calls=False

from __future__ import annotations

import numpy as np

from kesler.compiled.jit.decorators import inlined
from kesler.compiled.jit.simd import SIMD_WIDTH

# The count of a feature whose weights stand in the table.
IN_TABLE = -1
# No run.
NONE = -1
# A feature moves to the table with weights for an eighth to a sixteenth of the classes that there
# is room for: they take a few times the memory there, and a fraction of the time.
SHARE = 8
# Of `pool`: the units of the runs given out and the rows of the table in use; how many of each a
# row that there was no room for asks for.
UNITS, ROWS, MORE_UNITS, MORE_ROWS = range(4)
# The classes that one trial may move.
MOST_MOVED = 2
# Of `reach`: how many classes have a weight on the row, the one of highest score, and how many rows
# of a task there was room for.
N_REACHED, WINNER, N_DONE = range(3)
# What stands there where all classes may have one, and where the winner is not known yet.
ALL, UNKNOWN = -1, -2


# ---- runs ----------------------------------------------------------------------------------------


@inlined
def before_last(n):
    """Return how many of n entries stand before the last run."""
    if n <= SIMD_WIDTH:
        return 0
    before = SIMD_WIDTH
    while 2 * before < n:
        before *= 2
    return before


@inlined
def capacity_of(n):
    """Return how many entries there is room for in the runs of n."""
    if n == 0:
        return 0
    return SIMD_WIDTH if n <= SIMD_WIDTH else 2 * before_last(n)


@inlined
def most_entries(n_classes):
    """Return how many entries a feature has at most: a power of two times SIMD_WIDTH."""
    most = SIMD_WIDTH
    while 2 * most * SHARE <= n_classes:
        most *= 2
    return most


@inlined
def power_of(units):
    """Return the p of 2^p units."""
    p = 0
    while units > 1:
        units //= 2
        p += 1
    return p


@inlined
def add_run(rows, i, n):
    """Give a feature, whose n entries fill its runs, one run more: as long as all of them."""
    units = max(1, n // SIMD_WIDTH)
    p = power_of(units)
    unit = rows.spare[p]
    if unit == NONE:
        unit = rows.pool.n_units
        rows.pool.n_units += units
    else:
        rows.spare[p] = rows.links[unit]
    for e in range(unit * SIMD_WIDTH, (unit + units) * SIMD_WIDTH):
        rows.owners[e] = NONE
    rows.links[unit] = rows.heads[i] if n else NONE
    rows.heads[i] = unit


@inlined
def free_runs(rows, i):
    """Let others have the runs of a feature."""
    n, unit = np.int64(rows.counts[i]), np.int64(rows.heads[i])
    while n > 0:
        before = before_last(n)
        p = power_of(max(1, before // SIMD_WIDTH))
        following = np.int64(rows.links[unit])
        rows.links[unit] = rows.spare[p]
        rows.spare[p] = unit
        n, unit = before, following


# ---- entries -------------------------------------------------------------------------------------


@inlined
def place_of(rows, i, r):
    """Return where the entry of class r stands among those of feature i, NONE if it has none."""
    n, unit, owners = np.int64(rows.counts[i]), np.int64(rows.heads[i]), rows.owners
    while n > 0:
        before, first = before_last(n), unit * SIMD_WIDTH
        for block in range(first, first + n - before, SIMD_WIDTH):
            hit = np.int32(NONE)
            for j in range(SIMD_WIDTH):  # no way out: it is one comparison of vectors
                if owners[np.uintp(block + j)] == r:
                    hit = np.int32(j)
            if hit != NONE:
                return block + hit
        n, unit = before, np.int64(rows.links[unit])
    return NONE


@inlined
def add_to_weight(rows, i, r, amount):
    """Add to the weight of feature i for class r. There is room for an entry more."""
    if rows.counts[i] != IN_TABLE:
        place = place_of(rows, i, r)
        if place != NONE:
            rows.values[place] += amount
            return
        if rows.counts[i] < most_entries(rows.table.shape[1]):
            append(rows, i, r, amount)
            return
        move_to_table(rows, i)
    rows.table[rows.heads[i], r] += amount


@inlined
def append(rows, i, r, weight):
    """Add an entry to those of a feature."""
    n = np.int64(rows.counts[i])
    if n == capacity_of(n):
        add_run(rows, i, n)
    place = np.int64(rows.heads[i]) * SIMD_WIDTH + n - before_last(n + 1)
    rows.owners[place], rows.values[place] = r, weight
    rows.counts[i] = n + 1


@inlined
def move_to_table(rows, i):
    """Give a feature a row of the table."""
    row = rows.table[rows.pool.n_rows]
    n, unit = np.int64(rows.counts[i]), np.int64(rows.heads[i])
    while n > 0:
        before, first = before_last(n), unit * SIMD_WIDTH
        for e in range(first, first + n - before):
            row[rows.owners[e]] = rows.values[e]
        n, unit = before, np.int64(rows.links[unit])
    free_runs(rows, i)
    rows.heads[i], rows.counts[i] = rows.pool.n_rows, IN_TABLE
    rows.pool.n_rows += 1


@inlined
def has_capacity_for(rows, indices):
    """Whether there is room for what a trial on a row may add; else write down what it asks for."""
    units, lines, most = np.int64(0), np.int64(0), most_entries(rows.table.shape[1])
    for j in range(indices.shape[0]):
        n = np.int64(rows.counts[indices[j]])
        if n != IN_TABLE:
            capacity = capacity_of(n)
            if n + MOST_MOVED > capacity and capacity < most:
                units += max(1, capacity // SIMD_WIDTH)
            lines += n + MOST_MOVED > most
    pool = rows.pool
    pool[MORE_UNITS], pool[MORE_ROWS] = units, lines
    return pool[UNITS] + units <= rows.links.shape[0] and (
        pool[ROWS] + lines <= rows.table.shape[0]
    )

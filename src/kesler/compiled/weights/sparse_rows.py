"""Sparse rows of weights: for each feature the classes that have a weight, or all classes.

The entries of a feature, (class, weight), are stored in runs of 16, 16, 32, 64 and so on: an entry
is never moved within the runs, and at most half of the capacity is unused. A feature with entries
for many classes (see `SHARE`) is moved to a row of a dense table, with a weight for every class. No
result depends on which of the two stores the weights.
"""
# mypy: disallow_untyped_defs=False, disallow_untyped_calls=False

from __future__ import annotations

import numpy as np

from kesler.compiled.jit.decorators import inlined
from kesler.compiled.jit.simd import SIMD_WIDTH

# The count of a feature whose weights are in the table.
IN_TABLE = -1
# No run, entry or class.
NONE = -1
# A feature is moved to the table when it has weights for a sixteenth to an eighth of the capacity
# for classes: there they take a few times the memory, and a fraction of the time.
SHARE = 8
# The maximum number of classes that one trial updates.
MOST_MOVED = 2
# The values of the first field if all classes may have a weight, of the second if it is unknown.
ALL, UNKNOWN = -1, -2


# ---- runs ----------------------------------------------------------------------------------------


@inlined
def before_last(n):
    """Return how many of n entries precede the last run."""
    if n <= SIMD_WIDTH:
        return 0
    before = SIMD_WIDTH
    while 2 * before < n:
        before *= 2
    return before


@inlined
def capacity_of(n):
    """Return the capacity of the runs of n entries."""
    if n == 0:
        return 0
    return SIMD_WIDTH if n <= SIMD_WIDTH else 2 * before_last(n)


@inlined
def most_entries(n_classes):
    """Return the maximum number of entries of a feature: a power of two times SIMD_WIDTH."""
    most = SIMD_WIDTH
    while 2 * most * SHARE <= n_classes:
        most *= 2
    return most


@inlined
def power_of(units):
    """Return p for 2^p units."""
    p = 0
    while units > 1:
        units //= 2
        p += 1
    return p


@inlined
def add_run(rows, i, n):
    """Add a run to a feature whose n entries fill its runs; it is as long as all of them."""
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
    """Free the runs of a feature for other features."""
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
    """Return the index of the entry of class r and feature i, NONE if there is none."""
    n, unit, owners = np.int64(rows.counts[i]), np.int64(rows.heads[i]), rows.owners
    while n > 0:
        before, first = before_last(n), unit * SIMD_WIDTH
        for block in range(first, first + n - before, SIMD_WIDTH):
            hit = np.int32(NONE)
            for j in range(SIMD_WIDTH):  # no early exit: this is one comparison of vectors
                if owners[np.uintp(block + j)] == r:
                    hit = np.int32(j)
            if hit != NONE:
                return block + hit
        n, unit = before, np.int64(rows.links[unit])
    return NONE


@inlined
def add_to_weight(rows, i, r, amount):
    """Add to the weight of feature i for class r; there must be capacity for another entry."""
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
    """Append an entry to those of a feature."""
    n = np.int64(rows.counts[i])
    if n == capacity_of(n):
        add_run(rows, i, n)
    place = np.int64(rows.heads[i]) * SIMD_WIDTH + n - before_last(n + 1)
    rows.owners[place], rows.values[place] = r, weight
    rows.counts[i] = n + 1


@inlined
def move_to_table(rows, i):
    """Move the weights of a feature to a row of the table."""
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
    """Return whether there is capacity for a trial on a row; write what it requires to `pool`."""
    units, n_rows, most = np.int64(0), np.int64(0), most_entries(rows.table.shape[1])
    for j in range(indices.shape[0]):
        n = np.int64(rows.counts[indices[j]])
        if n != IN_TABLE:
            capacity = capacity_of(n)
            if n + MOST_MOVED > capacity and capacity < most:
                units += max(1, capacity // SIMD_WIDTH)
            n_rows += n + MOST_MOVED > most
    pool = rows.pool
    pool.more_units, pool.more_rows = units, n_rows
    has_rows = pool.n_rows + n_rows <= rows.table.shape[0]
    return has_rows and pool.n_units + units <= rows.links.shape[0]

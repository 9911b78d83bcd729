"""Entries: hash tables of classes, one for each feature, in blocks of one pool.

A block has 2^p places, of which three quarters are used at most. Which place an entry has depends
on the order in which entries came, but no result does.
"""
# mypy: disallow_untyped_defs=False, disallow_untyped_calls=False

from __future__ import annotations

import numpy as np
from numba import types

from kesler.compiled.jit.decorators import FLOAT_TABLE, INDICES, INTS, inlined, kernel
from kesler.compiled.jit.record_types import tuple_type
from kesler.state.candidates import Entries

NONE = -1
LEAST_POWER = 2
# The golden ratio times 2^32, by which hashes are spread (Knuth 1973, section 6.4).
GOLDEN = np.uint64(2654435769)
WORD = np.uint64(0xFFFFFFFF)


@inlined
def power_for(n):
    """Return p of the block of n entries."""
    p = LEAST_POWER
    while 4 * n > 3 << p:
        p += 1
    return p


@inlined
def hashed(r, p):
    """Return the first place for a class in a block of 2^p."""
    return np.int64(((np.uint64(r) * GOLDEN) & WORD) >> np.uint64(32 - p))


@inlined
def place_of(entries, i, r):
    """Return the place of the entry of class r and feature i, NONE if there is none."""
    p = np.int64(entries.powers[i])
    if p == NONE:
        return NONE
    start, last = entries.starts[i], (1 << p) - 1
    at = hashed(r, p)
    while True:
        owner = entries.owners[start + at]
        if owner == r:
            return start + at
        if owner == NONE:
            return NONE
        at = (at + 1) & last


@inlined
def free_place(entries, start, p, r):
    """Return the place that a new entry of class r takes in a block."""
    last, at = (1 << p) - 1, hashed(r, p)
    while entries.owners[start + at] != NONE:
        at = (at + 1) & last
    return start + at


@inlined
def add_block(entries, p):
    """Return the start of a block whose places are free; there must be capacity."""
    start = entries.spare[p]
    if start == NONE:
        start = entries.pool.n_used
        entries.pool.n_used += 1 << p
    else:
        entries.spare[p] = entries.owners[start]
    for e in range(start, start + (1 << p)):
        entries.owners[e] = NONE
    return start


@inlined
def enlarge(entries, i, p):
    """Move the entries of a feature to a block of 2^p places."""
    start, before = entries.starts[i], np.int64(entries.powers[i])
    new = add_block(entries, p)
    if before != NONE:
        for e in range(start, start + (1 << before)):
            owner = entries.owners[e]
            if owner != NONE:
                place = free_place(entries, new, p, owner)
                entries.owners[place] = owner
                for n in range(entries.numbers.shape[1]):
                    entries.numbers[place, n] = entries.numbers[e, n]
        entries.owners[start] = np.int32(entries.spare[before])
        entries.spare[before] = start
    entries.starts[i], entries.powers[i] = new, p


@inlined
def append(entries, i, r):
    """Return the place of a new entry of class r and feature i; its numbers are not set."""
    n = np.int64(entries.counts[i]) + 1
    p = power_for(n)
    if p > entries.powers[i]:
        enlarge(entries, i, p)
    place = free_place(entries, entries.starts[i], np.int64(entries.powers[i]), r)
    entries.owners[place] = r
    entries.counts[i] = n
    return place


@inlined
def has_capacity_for(entries, indices, n_more):
    """Return whether each feature of a row may have more entries; note what that takes.

    Those of several classes may take one block after another, which are shorter than the last.
    """
    needed, times = np.int64(0), min(n_more, 2)
    for j in range(indices.shape[0]):
        p = power_for(np.int64(entries.counts[indices[j]]) + n_more)
        if n_more and p > entries.powers[indices[j]]:
            needed += times << p
    entries.pool.n_needed = needed
    return entries.pool.n_used + needed <= entries.owners.shape[0]


# ---- reading and writing all entries -------------------------------------------------------------

ENTRIES = tuple_type(Entries)


@kernel(types.void(ENTRIES, INTS, INDICES, FLOAT_TABLE))
def take(entries, starts, classes, numbers):
    """Store a list of entries for each feature, which must have none; there must be capacity."""
    for i in range(starts.shape[0] - 1):
        if starts[i + 1] > starts[i]:
            enlarge(entries, i, power_for(starts[i + 1] - starts[i]))
        for e in range(starts[i], starts[i + 1]):
            place = append(entries, i, classes[e])
            for n in range(numbers.shape[1]):
                entries.numbers[place, n] = numbers[e, n]


@kernel(types.void(ENTRIES, INTS, INDICES, FLOAT_TABLE))
def get(entries, starts, classes, numbers):
    """List the entries of each feature, in no particular order of classes."""
    for i in range(starts.shape[0] - 1):
        at, p = starts[i], np.int64(entries.powers[i])
        for e in range(entries.starts[i], entries.starts[i] + (1 << p if p != NONE else 0)):
            if entries.owners[e] != NONE:
                classes[at] = entries.owners[e]
                for n in range(numbers.shape[1]):
                    numbers[at, n] = entries.numbers[e, n]
                at += 1

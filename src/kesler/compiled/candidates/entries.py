"""Entries: the classes that each feature met, in blocks of one pool.

A block of up to 768 entries is a list without gaps: reading it from end to end takes no longer than
looking 64 classes up. A longer one is a hash table, of which three quarters are used at most. Which
place an entry has depends on the order in which entries came, but no result does.
"""
# mypy: disallow_untyped_defs=False, disallow_untyped_calls=False

from __future__ import annotations

import numpy as np
from numba import types

from kesler.compiled.jit.decorators import FLOAT_TABLE, INDICES, INTS, inlined, kernel
from kesler.compiled.jit.record_types import tuple_type
from kesler.state.candidates import Entries

NONE = -1
MOST_LISTED = 768
# The golden ratio times 2^32, by which hashes are spread (Knuth 1973, section 6.4).
GOLDEN = np.uint64(2654435769)
WORD = np.uint64(0xFFFFFFFF)
WORD_BITS = np.uint64(32)
# The lengths of blocks, each a quarter longer than the one before at most, add up to less than
# this multiple of the last.
SUM_OF_LENGTHS = 7


@inlined
def size_of(n):
    """Return the number of the least length of n places or more, and that length.

    The lengths are 1, 2, 3, 4, and from there on four between two powers of two.
    """
    if n <= 4:
        return n - 1, n
    number, step = 4, 1
    while n > 8 * step:
        number += 4
        step *= 2
    steps = (n + step - 1) // step
    return number + steps - 5, steps * step


@inlined
def is_listed(length):
    """Return whether a block of a length is a list."""
    return length <= MOST_LISTED


@inlined
def length_for(n):
    """Return the length of the block of n entries."""
    return size_of(n if n <= MOST_LISTED else n + n // 3 + 1)[1]


@inlined
def hashed(r, length):
    """Return the first place for a class in a hash table of a length."""
    spread = (np.uint64(r) * GOLDEN) & WORD
    return np.int64((spread * np.uint64(length)) >> WORD_BITS)


@inlined
def place_of(entries, i, r):
    """Return the place of the entry of class r and feature i, which has a hash table, or NONE."""
    start, length = entries.starts[i], np.int64(entries.lengths[i])
    at = hashed(r, length)
    while True:
        owner = entries.owners[start + at]
        if owner == r:
            return start + at
        if owner == NONE:
            return NONE
        at = at + 1 if at + 1 < length else 0


@inlined
def free_place(entries, start, length, n, r):
    """Return the place that a new entry of class r takes in a block of n entries."""
    if is_listed(length):
        return start + n
    at = hashed(r, length)
    while entries.owners[start + at] != NONE:
        at = at + 1 if at + 1 < length else 0
    return start + at


@inlined
def add_block(entries, length):
    """Return the start of a block whose places are free; there must be capacity."""
    number, _ = size_of(length)
    start = entries.spare[number]
    if start == NONE:
        start = entries.pool.n_used
        entries.pool.n_used += length
    else:
        entries.spare[number] = entries.owners[start]
    for e in range(start, start + length):
        entries.owners[e] = NONE
    return start


@inlined
def enlarge(entries, i, length):
    """Move the entries of a feature to a block of a length."""
    start, before, n = entries.starts[i], np.int64(entries.lengths[i]), 0
    new = add_block(entries, length)
    for e in range(start, start + before):
        owner = entries.owners[e]
        if owner != NONE:
            place = free_place(entries, new, length, n, owner)
            n += 1
            entries.owners[place] = owner
            for m in range(entries.numbers.shape[1]):
                entries.numbers[place, m] = entries.numbers[e, m]
    if before:
        number, _ = size_of(before)
        entries.owners[start] = np.int32(entries.spare[number])
        entries.spare[number] = start
    entries.starts[i], entries.lengths[i] = new, length


@inlined
def append(entries, i, r):
    """Return the place of a new entry of class r and feature i; its numbers are not set."""
    n = np.int64(entries.counts[i])
    length = length_for(n + 1)
    if length > entries.lengths[i]:
        enlarge(entries, i, length)
    place = free_place(entries, entries.starts[i], np.int64(entries.lengths[i]), n, r)
    entries.owners[place] = r
    entries.counts[i] = n + 1
    return place


@inlined
def has_capacity_for(entries, indices, n_more):
    """Return whether each feature of a row may have more entries; note what that takes.

    Those of several classes may take one block after another.
    """
    needed, times = np.int64(0), min(n_more, SUM_OF_LENGTHS)
    for j in range(indices.shape[0]):
        length = length_for(np.int64(entries.counts[indices[j]]) + n_more)
        if n_more and length > entries.lengths[indices[j]]:
            needed += times * length
    entries.pool.n_needed = needed
    return entries.pool.n_used + needed <= entries.owners.shape[0]


# ---- reading and writing all entries -------------------------------------------------------------

ENTRIES = tuple_type(Entries)


@kernel(types.void(ENTRIES, INTS, INDICES, FLOAT_TABLE))
def take(entries, starts, classes, numbers):
    """Store a list of entries for each feature, which must have none; there must be capacity."""
    for i in range(starts.shape[0] - 1):
        if starts[i + 1] > starts[i]:
            enlarge(entries, i, length_for(starts[i + 1] - starts[i]))
        for e in range(starts[i], starts[i + 1]):
            place = append(entries, i, classes[e])
            for n in range(numbers.shape[1]):
                entries.numbers[place, n] = numbers[e, n]


@kernel(types.void(ENTRIES, INTS, INDICES, FLOAT_TABLE))
def get(entries, starts, classes, numbers):
    """List the entries of each feature, in no particular order of classes."""
    for i in range(starts.shape[0] - 1):
        at = starts[i]
        for e in range(entries.starts[i], entries.starts[i] + entries.lengths[i]):
            if entries.owners[e] != NONE:
                classes[at] = entries.owners[e]
                for n in range(numbers.shape[1]):
                    numbers[at, n] = entries.numbers[e, n]
                at += 1

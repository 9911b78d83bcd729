"""The kernel that counts the terms of texts: words, runs of words, runs of characters."""
# mypy: disallow_untyped_defs=False, disallow_untyped_calls=False

from __future__ import annotations

import numpy as np
from numba import types

from kesler.compiled.jit.decorators import INT, INTS, inlined, kernel

LETTERS = types.Array(types.uint32, 1, "C")
PRIME, MASK = 0x01000193, 0xFFFFFFFF  # of the hash FNV-1a of 32 bits


@inlined
def hash_of(letters, start, end):
    """Return a hash of some letters."""
    found = np.int64(0x811C9DC5)
    for i in range(start, end):
        found = ((found ^ np.int64(letters[i])) * PRIME) & MASK
    return found ^ (found >> 15)


@inlined
def are_alike(letters, one, other, length):
    """Return whether so many letters are the same from two places on."""
    for i in range(length):
        if letters[one + i] != letters[other + i]:
            return False
    return True


@inlined
def code_of(letters, starts, ends, term, table, firsts, n_codes):
    """Return the code of a term; a term that is met first gets the next one, n_codes."""
    start, length, last = starts[term], ends[term] - starts[term], len(table) - 1
    place = hash_of(letters, start, start + length) & last
    while table[place] != 0:
        first = firsts[table[place] - 1]
        if ends[first] - starts[first] == length:
            if are_alike(letters, starts[first], start, length):
                return table[place] - 1
        place = (place + 1) & last
    table[place] = n_codes + 1
    firsts[n_codes] = term
    return n_codes


@kernel(INT(LETTERS, INTS, INTS, INTS, INTS, INTS, INTS, INTS, INTS, INTS))
def count_terms(letters, starts, ends, n_terms, table, places, firsts, codes, counts, sizes):
    """Count the different terms of each text; return the number of different terms of all.

    Parameters
    ----------
    letters : the code points of all texts.
    starts, ends : where each term begins and ends, text by text.
    n_terms : the number of terms of each text.
    table : zeros, as many as a power of 2 that exceeds the number of terms.
    places : -1 for each term.
    firsts : filled with the first term of each code.
    codes, counts : filled with the different terms of each text, in order, and how often it has
        them.
    sizes : filled with the number of different terms of each text.
    """
    n_codes = at = term = 0
    for text in range(len(n_terms)):
        begin = at
        for _ in range(n_terms[text]):
            code = code_of(letters, starts, ends, term, table, firsts, n_codes)
            n_codes = max(n_codes, code + 1)
            term += 1
            if places[code] >= begin:
                counts[places[code]] += 1
                continue
            places[code], codes[at], counts[at] = at, code, 1
            at += 1
        sizes[text] = at - begin
    return n_codes

"""The kernel that reads lines of the svmlight format."""
# mypy: disallow_untyped_defs=False, disallow_untyped_calls=False

from __future__ import annotations

import numpy as np
from numba import types

from kesler.compiled.jit.decorators import INTS, inlined, kernel
from kesler.compiled.readers.lexing import (
    BYTES,
    CLOCK,
    COLON,
    CROWDED,
    DRAFT,
    ENDED,
    ENTRY,
    FULL,
    HASH,
    LINE,
    MINUS,
    NEWLINE,
    POSITION,
    REFUSED,
    ROW,
    byte,
    digits_at,
    is_blank,
    is_digit,
    is_kind,
    is_settled,
    number_at,
    past_blanks,
    past_line,
    past_token,
)

MOST_INDEX_DIGITS = 10
MAX_FEATURES = np.iinfo(np.int32).max
SPREAD = 0x9E3779B1


@inlined
def _row(text, i, is_utf8, kind, at, draft, seen):
    """Read the row at i; return its end, and FULL or why it was not read."""
    start, end, i = _label(text, i, is_utf8)
    if i < 0 or not is_kind(text, start, end, kind):
        return i, REFUSED
    first = entry = at[ENTRY]
    last, is_sorted = -1, True
    while True:
        i = past_blanks(text, i)
        if byte(text, i) == NEWLINE or byte(text, i) == HASH:
            break
        i, index = _index(text, i)
        if i < 0:
            return i, REFUSED
        i, value, is_certain = number_at(text, i)
        if i < 0 or not _ends_feature(byte(text, i)) or not is_settled(value, is_certain):
            return i, REFUSED
        if entry == len(draft.indices):
            return i, CROWDED
        draft.indices[entry] = index
        draft.values[entry] = value
        is_sorted &= index > last
        last = index
        entry += 1
    if not (is_utf8 or _is_ascii(text, i)):
        return i, REFUSED
    if not is_sorted and _has_twice(draft.indices[first:entry], at, seen):
        return i, REFUSED
    row = at[ROW]
    draft.labels[row, 0], draft.labels[row, 1] = start, end
    draft.weights[row] = 1.0
    at[ROW], at[ENTRY] = row + 1, entry
    draft.indptr[row + 1] = entry
    return i, FULL


@inlined
def _label(text, i, is_utf8):
    """Return the start and end of the label, and the start of the features (-1 if it is odd)."""
    end = past_token(text, i, HASH, is_utf8)
    if end < 0:
        return i, i, -1
    digit = i + 1 if byte(text, i) == MINUS else i
    colon = digit
    while is_digit(byte(text, colon)):
        colon += 1
    if colon > digit and byte(text, colon) == COLON:
        return i, i, i
    rest = past_blanks(text, end)
    if _is_query(text, rest):
        rest = past_token(text, rest, HASH, is_utf8)
    return i, end, rest


@inlined
def _is_query(text, i):
    """Return whether there is ``qid:`` at i; comparisons do not go beyond the end of a line."""
    return (
        byte(text, i) == 0x71
        and byte(text, i + 1) == 0x69
        and byte(text, i + 2) == 0x64
        and byte(text, i + 3) == COLON
    )


@inlined
def _index(text, i):
    """Read the index at i; return the start of its value (-1 if it is not plain), and the index."""
    start = i
    i, index = digits_at(text, i, 0, MOST_INDEX_DIGITS)
    is_plain = i > start and index < MAX_FEATURES
    return (i + 1 if is_plain and byte(text, i) == COLON else -1), index


@inlined
def _ends_feature(character):
    return is_blank(character) or character == NEWLINE or character == HASH


@inlined
def _is_ascii(text, i):
    """Return whether the rest of a line is ASCII."""
    while byte(text, i) != NEWLINE:
        if byte(text, i) >= 0x80:
            return False
        i += 1
    return True


@inlined
def _has_twice(indices, at, seen):
    """Return whether an index occurs twice, by a hash table of the indices of this row."""
    at[CLOCK] += 1
    size = 1
    while size < 2 * len(indices):
        size *= 2
    for index in indices:
        mark = (at[CLOCK] << 31) + index
        slot = (np.int64(index) * SPREAD >> 16) & (size - 1)
        while seen[slot] >> 31 == at[CLOCK]:
            if seen[slot] == mark:
                return True
            slot = (slot + 1) & (size - 1)
        seen[slot] = mark
    return False


@kernel(types.int64(BYTES, types.boolean, types.int64, types.int64, INTS, DRAFT, INTS))
def scan_svmlight(text, is_utf8, n_rows, kind, at, draft, seen):
    """Read rows until there are n_rows; return why reading stopped.

    `text` ends with a complete line. `seen` is a hash table with space for twice as many numbers as
    the draft has entries.
    """
    while at[ROW] < n_rows:
        if at[POSITION] == len(text):
            return ENDED
        i = past_blanks(text, at[POSITION])
        if byte(text, i) != NEWLINE and byte(text, i) != HASH:
            i, stop = _row(text, i, is_utf8, kind, at, draft, seen)
            if stop != FULL:
                return stop
        at[POSITION] = past_line(text, i)
        at[LINE] += 1
    return FULL

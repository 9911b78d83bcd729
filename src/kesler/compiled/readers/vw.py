"""The kernel that reads lines of Vowpal Wabbit's text format."""
# mypy: disallow_untyped_defs=False, disallow_untyped_calls=False

from __future__ import annotations

import numpy as np
from numba import types

from kesler.compiled.jit.decorators import DOUBLES, INT_TABLE, INTS, always_inlined, inlined, kernel
from kesler.compiled.jit.pointers import fetch
from kesler.compiled.readers.lexing import (
    BAR,
    BYTES,
    CARET,
    COLON,
    COSTS,
    CROWDED,
    DRAFT,
    ENDED,
    ENTERED,
    ENTRY,
    FULL,
    LARGEST,
    LINE,
    NAME_TABLE,
    NAMELESS,
    NEWLINE,
    NUMBER,
    POSITION,
    REFUSED,
    ROW,
    ZERO,
    byte,
    code_of,
    home_of,
    is_blank,
    is_digit,
    is_kind,
    is_odd,
    is_settled,
    next_stop,
    number_at,
    past_blanks,
    past_token,
    prefix_code,
    slot_of,
    slot_part,
    stops_from,
)

APOSTROPHE, SMALL_A, SMALL_Z = 0x27, 0x61, 0x7A
MOST_TOKENS = 3  # before the features: label, importance and tag
MOST_COSTS = 64  # of a label: each is compared with all before
# The columns of `tokens` for each feature: both parts of the code of its name, the first slot for
# this code, and the starts and ends of its namespace and its name.
FIRST, REST, HOME, NAMESPACE, NAMESPACE_END, NAME, NAME_END = range(7)
TOKEN = 7  # numbers of a feature


@inlined
def _row(text, i, is_utf8, kind, at, draft, tokens, values, names):
    """Read the row at i; return its end, and FULL or why it was not read."""
    if kind == COSTS:
        i, start, end, weight = _costs(text, i, is_utf8, tokens)
    else:
        i, start, end, weight = _head(text, i, is_utf8)
    if i < 0 or (kind != COSTS and not is_kind(text, start, end, kind)):
        return i, REFUSED
    first, row = at[ENTRY], at[ROW]
    capacity = len(draft.indices) - first
    i, n_tokens, has_doubt = _features(text, i, is_utf8, capacity, tokens, values, names)
    if n_tokens < 0:
        return i, -n_tokens
    n_entries = _numbered(text, n_tokens, first, draft.indices, tokens, values, names)
    if n_entries < 0:
        return i, -n_entries
    if (has_doubt and n_entries < n_tokens) or not _can_be_held(values[:n_entries]):
        return i, REFUSED
    for j in range(n_entries):
        draft.values[first + j] = values[j]
    entry = first + n_entries
    draft.labels[row, 0], draft.labels[row, 1] = start, end
    draft.weights[row] = weight
    at[ROW], at[ENTRY] = row + 1, entry
    draft.indptr[row + 1] = entry
    return i, FULL


@inlined
def _features(text, i, is_utf8, capacity, tokens, values, names):
    """Read the names and values of the features from i on, and prefetch the slots of the names.

    Return their end, their number, and whether a value may be rounded incorrectly. If reading
    stopped, the number is the negative reason.
    """
    space, space_end, n_before, scale, prefix = i, i, 0, 1.0, 0
    base, stops = i, stops_from(text, i)
    n, has_doubt = 0, False
    while byte(text, i) != NEWLINE:
        if byte(text, i) == BAR:
            space = i + 1
            i, space_end, scale, base, stops = _namespace(text, space, is_utf8, base, stops)
            if i < 0:
                return i, -REFUSED, False
            n_before = space_end - space + 1
            prefix = prefix_code(text, space, space_end)
        else:
            name = i
            name_end, base, stops = _past_name(text, i, is_utf8, base, stops)
            i, value, is_certain = _value(text, name, name_end)
            if i < 0 or not (is_certain or (scale == 1.0 and is_settled(value, False))):
                return i, -REFUSED, False
            if n == capacity:
                return i, -CROWDED, False
            first, rest = code_of(text, name, name_end, prefix, n_before)
            home = home_of(names, first, rest)
            fetch(names.slots, home)
            tokens[n, FIRST], tokens[n, REST], tokens[n, HOME] = first, rest, home
            tokens[n, NAMESPACE], tokens[n, NAMESPACE_END] = space, space_end
            tokens[n, NAME], tokens[n, NAME_END] = name, name_end
            values[n] = 0.0 + scale * value
            has_doubt |= not is_certain
            n += 1
        i = past_blanks(text, i)
    return i, n, has_doubt


@inlined
def _numbered(text, n_tokens, first, indices, tokens, values, names):
    """Write the numbers of the features, adding up duplicates; return how many features there are.

    If there is no space for a name, return the negative reason.
    """
    n = 0
    for t in range(n_tokens):
        slot = _slot(text, tokens[t], names)
        if slot < 0:
            return -NAMELESS
        number, seen = slot_part(names, slot, NUMBER), slot_part(names, slot, ENTERED)
        if first <= seen < first + n and indices[seen] == number:
            values[seen - first] += values[t]
        else:
            names.slots[np.uintp(slot + ENTERED)] = first + n
            indices[first + n] = number
            values[n] = values[t]
            n += 1
    return n


@always_inlined
def _slot(text, token, names):
    space, name = (token[NAMESPACE], token[NAMESPACE_END]), (token[NAME], token[NAME_END])
    return slot_of(names, token[HOME], token[FIRST], token[REST], text, space, name)


@inlined
def _head(text, i, is_utf8):
    """Return the start of the features, the start and end of the label, and the importance.

    The start of the features is -1 if the text before them is not plain.
    """
    n_tokens, last = 0, i
    start = end = second = second_end = 0
    while True:
        i = past_blanks(text, i)
        if byte(text, i) == BAR:
            break
        if byte(text, i) == NEWLINE:
            return -1, 0, 0, 1.0
        last = i
        i = past_token(text, i, BAR, is_utf8)
        if i < 0:
            return -1, 0, 0, 1.0
        if n_tokens == 0:
            start, end = last, i
        elif n_tokens == 1:
            second, second_end = last, i
        n_tokens += 1
        if n_tokens > MOST_TOKENS:
            return -1, 0, 0, 1.0
    if n_tokens > 0 and (byte(text, last) == APOSTROPHE or not is_blank(byte(text, i - 1))):
        n_tokens -= 1
    if n_tokens == 0:
        return i, i, i, 1.0
    if n_tokens == 1:
        return i, start, end, 1.0
    stop, weight, is_certain = number_at(text, second)
    if n_tokens > 2 or stop != second_end or not (is_certain and 0.0 <= weight <= LARGEST):
        return -1, 0, 0, 1.0
    return i, start, end, weight


@inlined
def _costs(text, i, is_utf8, tokens):
    """Return what `_head` does, of a label that is the costs of different classes.

    Names are compared by their text, and so must be words or numbers without sign, fraction and
    leading zeros.
    """
    n, first, last = 0, i, i
    while True:
        i = past_blanks(text, i)
        if byte(text, i) == BAR:
            break
        if n == tokens.shape[0] or n == MOST_COSTS or byte(text, i) == NEWLINE:
            return -1, 0, 0, 1.0
        end = past_token(text, i, BAR, is_utf8)
        colon = _priced_name(text, i, end)
        if colon < 0:
            return -1, 0, 0, 1.0
        for j in range(n):
            if _is_same(text, tokens[j, NAME], tokens[j, NAME_END], i, colon):
                return -1, 0, 0, 1.0
        tokens[n, NAME], tokens[n, NAME_END] = i, colon
        first, last = (i if n == 0 else first), end
        n, i = n + 1, end
    if n == 0 or not is_blank(byte(text, i - 1)):
        return -1, 0, 0, 1.0
    return i, first, last, 1.0


@inlined
def _priced_name(text, start, end):
    """Return the end of the name of a token name:cost, -1 if it is not plain."""
    if end < 0:
        return -1
    colon = end - 1
    while colon > start and byte(text, colon) != COLON:
        colon -= 1
    stop, cost, _ = number_at(text, colon + 1)
    if colon == start or stop != end or not 0.0 <= cost <= LARGEST:
        return -1
    character = byte(text, start)
    if is_digit(character):
        for j in range(start, colon):
            if not is_digit(byte(text, j)):
                return -1
        return -1 if character == ZERO and colon > start + 1 else colon
    return colon if SMALL_A <= character | 0x20 <= SMALL_Z else -1


@inlined
def _is_same(text, start, end, other, other_end):
    """Return whether two pieces of a text are equal."""
    if end - start != other_end - other:
        return False
    for j in range(end - start):
        if byte(text, start + j) != byte(text, other + j):
            return False
    return True


@inlined
def _namespace(text, i, is_utf8, base, stops):
    """Return the start of features, the end of the namespace, its scale, and the window of stops.

    The start of the features is -1 if the namespace is not plain.
    """
    if _ends_feature(byte(text, i)):
        return i, i, 1.0, base, stops
    end, base, stops = _past_name(text, i, is_utf8, base, stops)
    rest, scale, is_certain = _value(text, i, end)
    for j in range(i, end):
        is_certain &= byte(text, j) != CARET
    return (rest if is_certain else -1), end, scale, base, stops


@always_inlined
def _past_name(text, i, is_utf8, base, stops):
    """Return the end of the name at i (-1 if it is odd), and the window of stops."""
    while True:
        i, base, stops = next_stop(text, i, base, stops)
        character = byte(text, i)
        if _ends_feature(character) or character == COLON:
            return i, base, stops
        if is_odd(text, i, is_utf8):
            return -1, base, stops
        i += 1


@always_inlined
def _value(text, name, end):
    """Return the end of the feature with a name, its value, and whether it is correctly rounded.

    The end is -1 if the feature is not plain.
    """
    if end <= name:
        return -1, 1.0, False
    if byte(text, end) != COLON:
        return end, 1.0, True
    i, value, is_certain = number_at(text, end + 1)
    if i < 0 or not _ends_feature(byte(text, i)):
        return -1, 1.0, False
    return i, value, is_certain


@inlined
def _ends_feature(character):
    return is_blank(character) or character == NEWLINE or character == BAR


@inlined
def _can_be_held(values):
    """Return whether all values are within the range of float32."""
    for value in values:
        if not abs(value) <= LARGEST:
            return False
    return True


@kernel(
    types.int64(
        BYTES,
        types.boolean,
        types.int64,
        types.int64,
        INTS,
        DRAFT,
        INT_TABLE,
        DOUBLES,
        NAME_TABLE,
    )
)
def scan_vw(text, is_utf8, n_rows, kind, at, draft, tokens, values, names):
    """Read rows until there are n_rows; return why reading stopped.

    `text` ends with a complete line; `tokens` and `values` are buffers for one row, with `TOKEN`
    numbers and one number per entry of the draft. New names are added to the table, even those of a
    line that is rejected later.
    """
    while at[ROW] < n_rows:
        if at[POSITION] == len(text):
            return ENDED
        i = past_blanks(text, at[POSITION])
        if byte(text, i) != NEWLINE:
            i, stop = _row(text, i, is_utf8, kind, at, draft, tokens, values, names)
            if stop != FULL:
                return stop
        at[POSITION] = i + 1
        at[LINE] += 1
    return FULL

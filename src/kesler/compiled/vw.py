"""Lines of Vowpal Wabbit's text format, many at once."""
# mypy: disallow_untyped_defs=False, disallow_untyped_calls=False

from __future__ import annotations

from numba import types

from kesler.compiled.fetch import fetch_near
from kesler.compiled.jit import INT_TABLE, INTS, inlined, kernel
from kesler.compiled.lexing import (
    BAR,
    BYTES,
    CLOCK,
    COLON,
    CROWDED,
    DRAFT,
    ENDED,
    ENTRY,
    FULL,
    LARGEST,
    LINE,
    NAMELESS,
    NEWLINE,
    POSITION,
    REFUSED,
    ROW,
    SPACE,
    byte,
    is_blank,
    is_kind,
    is_odd,
    is_settled,
    number_at,
    past_blanks,
    past_token,
)
from kesler.compiled.name_table import (
    CARET,
    NAME_TABLE,
    NUMBER,
    STAMP,
    code_with,
    finished,
    home_of,
    slot_of,
)

APOSTROPHE = 0x27
MOST_TOKENS = 3  # before the features: label, importance and tag


@inlined
def _row(text, i, is_utf8, kind, at, draft, tokens, names):
    """Read the row that begins at i; return where it ends, and FULL or why it was not read."""
    i, start, end, weight = _head(text, i, is_utf8)
    if i < 0 or not is_kind(text, start, end, kind):
        return i, REFUSED
    i, n_tokens, has_doubt = _features(text, i, is_utf8, at[ENTRY], draft, tokens, names)
    if n_tokens < 0:
        return i, -n_tokens
    n_entries = _numbered(text, n_tokens, at, draft, tokens, names)
    if n_entries < 0:
        return i, -n_entries
    first, row = at[ENTRY], at[ROW]
    entry = first + n_entries
    if (has_doubt and n_entries < n_tokens) or not _can_be_held(draft.values[first:entry]):
        return i, REFUSED
    draft.labels[row, 0], draft.labels[row, 1] = start, end
    draft.weights[row] = weight
    at[ROW], at[ENTRY] = row + 1, entry
    draft.indptr[row + 1] = entry
    return i, FULL


@inlined
def _features(text, i, is_utf8, first, draft, tokens, names):
    """Note the names and values of the features from i on, and ask for the slots of the names.

    Return where they end, how many there are, and whether a value is in doubt; or why not, negated.
    """
    space, space_end, n_before, scale, seed = i, i, 0, 1.0, 0
    n, has_doubt = 0, False
    while byte(text, i) != NEWLINE:
        if byte(text, i) == BAR:
            space = i + 1
            i, space_end, scale, seed = _namespace(text, space, is_utf8)
            if i < 0:
                return i, -REFUSED, False
            n_before = space_end - space + 1
        else:
            name = i
            i, name_end, code, value, is_certain = _feature(text, i, seed, n_before, is_utf8)
            if i < 0 or not (is_certain or (scale == 1.0 and is_settled(value, False))):
                return i, -REFUSED, False
            if first + n == len(draft.indices):
                return i, -CROWDED, False
            code = finished(code, n_before + name_end - name)
            fetch_near(names.slots, home_of(names, code) * names.slots.shape[1])
            tokens[n, 0], tokens[n, 1], tokens[n, 2] = code, space, space_end
            tokens[n, 3], tokens[n, 4] = name, name_end
            draft.values[first + n] = 0.0 + scale * value
            has_doubt |= not is_certain
            n += 1
        i = past_blanks(text, i)
    return i, n, has_doubt


@inlined
def _numbered(text, n_tokens, at, draft, tokens, names):
    """Give the features noted their numbers, those of a name together; return how many there are.

    Or why not, negated.
    """
    at[CLOCK] += len(draft.indices)  # what was stamped before stands before this row
    first, n = at[ENTRY], 0
    for t in range(n_tokens):
        token = tokens[t]
        slot = slot_of(names, token[0], text, token[1], token[2], token[3], token[4])
        if slot < 0:
            return -NAMELESS
        value = draft.values[first + t]
        place = names.slots[slot, STAMP] - at[CLOCK]
        if place < 0:
            names.slots[slot, STAMP] = at[CLOCK] + n
            draft.indices[first + n] = names.slots[slot, NUMBER] - 1
            draft.values[first + n] = value
            n += 1
        else:
            draft.values[first + place] += value
    return n


@inlined
def _head(text, i, is_utf8):
    """Return where the features begin, where the label begins and ends, and the importance.

    The features begin at -1 if what stands before them is not plain.
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
def _namespace(text, i, is_utf8):
    """Return where features begin, the namespace ends, its scale, and what codes begin with.

    The features begin at -1 if it is not plain.
    """
    space, space_end, seed, scale = i, i, 0, 1.0
    if not _ends_feature(byte(text, i)):
        i, space_end, seed, scale, is_certain = _feature(text, i, 0, 0, is_utf8)
        if not is_certain:
            i = -1
    return i, space_end, scale, code_with(seed, space_end - space, CARET)


@inlined
def _feature(text, i, code, n_bytes, is_utf8):
    """Return where the feature at i ends, where its name does, the code, the value, its certainty.

    It ends at -1 if it is not plain.
    """
    name = i
    while True:
        character = byte(text, i)
        if character <= SPACE or character >= 0x80:
            if is_blank(character) or character == NEWLINE:
                break
            if is_odd(text, i, is_utf8):
                return -1, i, code, 1.0, False
        elif character == COLON or character == BAR:
            break
        code = code_with(code, n_bytes + i - name, character)
        i += 1
    end, value, is_certain = i, 1.0, True
    if byte(text, i) == COLON:
        i, value, is_certain = number_at(text, i + 1)
    if i < 0 or end == name or not _ends_feature(byte(text, i)):
        return -1, end, code, 1.0, False
    return i, end, code, value, is_certain


@inlined
def _ends_feature(character):
    return is_blank(character) or character == NEWLINE or character == BAR


@inlined
def _can_be_held(values):
    """Whether float32 can hold them."""
    for value in values:
        if not abs(value) <= LARGEST:
            return False
    return True


@kernel(
    types.int64(BYTES, types.boolean, types.int64, types.int64, INTS, DRAFT, INT_TABLE, NAME_TABLE)
)
def scan_vw(text, is_utf8, n_rows, kind, at, draft, tokens, names):
    """Read rows until there are n_rows; return why it stopped.

    `text` ends with a line; `tokens` is room for five numbers for each entry of the draft. Names
    that are new join the table, also those of a line that is refused in the end.
    """
    while at[ROW] < n_rows:
        if at[POSITION] == len(text):
            return ENDED
        i = past_blanks(text, at[POSITION])
        if byte(text, i) != NEWLINE:
            i, stop = _row(text, i, is_utf8, kind, at, draft, tokens, names)
            if stop != FULL:
                return stop
        at[POSITION] = i + 1
        at[LINE] += 1
    return FULL

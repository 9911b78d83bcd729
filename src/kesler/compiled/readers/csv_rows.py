"""The kernel that reads rows of a CSV table."""
# mypy: disallow_untyped_defs=False, disallow_untyped_calls=False

from __future__ import annotations

from numba import types

from kesler.compiled.jit.decorators import INT_TABLE, INTS, inlined, kernel
from kesler.compiled.readers.lexing import (
    BYTES,
    CLOCK,
    CROWDED,
    DOT,
    DRAFT,
    ENDED,
    ENTRY,
    FULL,
    LINE,
    NEWLINE,
    POSITION,
    REFUSED,
    ROW,
    SPACE,
    byte,
    is_digit,
    is_odd,
    is_settled,
    number_at,
)

QUOTE, RETURN, UNDERLINE, SMALL_I, SMALL_N = 0x22, 0x0D, 0x5F, 0x69, 0x6E
LONGEST = 1 << 17  # of a row; longer rows may have cells that Python's csv module rejects


@inlined
def _row(
    text, i, is_utf8, delimiter, requires_label, is_dense, takes_text, columns, at, draft, words
):
    """Read the row at i; return the start of the next line, and FULL or why it was not read."""
    begin, entry = i, at[ENTRY]
    start = end = i
    first, last, n_words = entry, len(columns) - 1, at[CLOCK]
    for place in range(len(columns)):
        column = columns[place]
        if column < 0:
            i, start, end = _label(text, i, is_utf8, delimiter)
            if i < 0 or (requires_label and start == end):
                return i, REFUSED
        else:
            cell = i
            i, value, is_there = _value(text, i, delimiter)
            if i < 0 and takes_text:
                i, word, word_end = _label(text, cell, is_utf8, delimiter)
                if i < 0 or not _is_word(text, word, word_end):
                    return i, REFUSED
                value, is_there = 1.0, True
                if n_words < len(words):
                    words[n_words, 0], words[n_words, 1] = entry, column
                    words[n_words, 2], words[n_words, 3] = word, word_end
                n_words += 1
            if i < 0 or (is_dense and not is_there):
                return i, REFUSED
            if is_there:
                slot = first + column if is_dense else entry
                if slot >= len(draft.indices):
                    return i, CROWDED
                draft.indices[slot] = column
                draft.values[slot] = value
                entry += 1
        if place < last:
            if byte(text, i) != delimiter:
                return i, REFUSED
            i += 1
    i = _end(text, _past_empty_cells(text, i, delimiter))
    if i < 0 or i - begin > LONGEST:
        return i, REFUSED
    row = at[ROW]
    draft.labels[row, 0], draft.labels[row, 1] = start, end
    draft.weights[row] = 1.0
    at[ROW], at[ENTRY], at[CLOCK] = row + 1, entry, n_words
    draft.indptr[row + 1] = entry
    return i, FULL


@inlined
def _value(text, i, delimiter):
    """Read the number in the cell at i; return the cell's end, the number, and whether it exists.

    The end is -1 if the cell is not plain.
    """
    is_quoted = byte(text, i) == QUOTE
    if is_quoted:
        i += 1
    i = _past_spaces(text, i)
    value, is_there = 0.0, not _ends_cell(byte(text, i), delimiter, is_quoted)
    if is_there:
        i, value, is_certain = number_at(text, i)
        if i < 0 or not is_settled(value, is_certain):
            return -1, value, is_there
        i = _past_spaces(text, i)
    if not _ends_cell(byte(text, i), delimiter, is_quoted):
        return -1, value, is_there
    return (i + 1 if is_quoted else i), value, is_there


@inlined
def _label(text, i, is_utf8, delimiter):
    """Return the end of the cell at i, and the start and end of its text without spaces.

    The end of the cell is -1 if it is not plain.
    """
    is_quoted = byte(text, i) == QUOTE
    if is_quoted:
        i += 1
    start = i = _past_spaces(text, i)
    while not _ends_cell(byte(text, i), delimiter, is_quoted):
        character = byte(text, i)
        if character == QUOTE:
            return -1, start, i
        if (character < SPACE or character >= 0x80) and is_odd(text, i, is_utf8):
            return -1, start, i
        i += 1
    end = i
    while end > start and byte(text, end - 1) == SPACE:
        end -= 1
    if is_quoted:
        i = i + 1 if byte(text, i) == QUOTE else -1
    return i, start, end


@inlined
def _is_word(text, start, end):
    """Return whether a nonempty text is certainly not a number, infinity or NaN."""
    for i in range(start, end):
        character = byte(text, i)
        small = character | 0x20
        is_letter = 0x61 <= small <= 0x7A
        is_of_number = is_digit(character) or (SPACE <= character <= DOT) or character == UNDERLINE
        if is_letter and i == start:
            is_of_number = small == SMALL_I or small == SMALL_N
        elif is_letter:  # infinity, NaN, an exponent
            is_of_number = small == 0x61 or small == 0x65 or small == 0x66 or small == 0x69
            is_of_number |= small == SMALL_N or small == 0x74 or small == 0x79
        if not is_of_number:
            return True
    return False


@inlined
def _ends_cell(character, delimiter, is_quoted):
    if is_quoted:
        return character == QUOTE
    return character == delimiter or character == NEWLINE or character == RETURN


@inlined
def _past_spaces(text, i):
    while byte(text, i) == SPACE:
        i += 1
    return i


@inlined
def _past_empty_cells(text, i, delimiter):
    """Return the end of the empty cells that begin with a delimiter at i."""
    if byte(text, i) == delimiter:
        while byte(text, i) == delimiter or byte(text, i) == SPACE:
            i += 1
    return i


@inlined
def _end(text, i):
    """Return the start of the next line if this one ends at i, else -1."""
    if byte(text, i) == RETURN:
        i += 1
    return i + 1 if byte(text, i) == NEWLINE else -1


@kernel(
    types.int64(
        BYTES,
        types.boolean,
        types.int64,
        types.int64,
        types.boolean,
        types.boolean,
        types.boolean,
        INTS,
        INTS,
        DRAFT,
        INT_TABLE,
    )
)
def scan_csv(
    text,
    is_utf8,
    n_rows,
    delimiter,
    requires_label,
    is_dense,
    takes_text,
    columns,
    at,
    draft,
    words,
):
    """Read rows until there are n_rows; return why reading stopped.

    `text` ends with a complete line. `columns` has the number of the feature in each column, -1 for
    the labels; if the table is dense, the number is also the feature's position in the row. If
    `takes_text`, each row of `words` gets the entry, column, start and end of a text value;
    at[CLOCK] counts them. It should have as many rows as the draft has entries.
    """
    while at[ROW] < n_rows:
        i = at[POSITION]
        if i == len(text):
            return ENDED
        end = _end(text, i)
        if end < 0:
            parts = requires_label, is_dense, takes_text, columns, at, draft, words
            end, stop = _row(text, i, is_utf8, delimiter, *parts)
            if stop != FULL:
                return stop
        at[POSITION] = end
        at[LINE] += 1
    return FULL

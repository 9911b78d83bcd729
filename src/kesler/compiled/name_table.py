"""The table of names: text to numbers, in the order in which names are met."""
# mypy: disallow_untyped_defs=False, disallow_untyped_calls=False

from __future__ import annotations

from collections import namedtuple

from numba import types

from kesler.compiled.jit import INDICES, INT_TABLE, INTS, always_inlined, inlined, kernel
from kesler.compiled.lexing import BYTES, NEWLINE, byte

# slots: an open-addressing table; each row, side by side in memory since it is met at
# random, is a code, a number counted from 1 (0 where there is none), a stamp of when the name was
# last met, and where its letters begin.
# letters: the names, each ended by NEWLINE, which no name holds. ends: where each ends; how many
# there are. size: how many there are, and how many letters.
NameTable = namedtuple("NameTable", ("slots", "letters", "ends", "size"))

NAME_TABLE = types.NamedTuple(
    (INT_TABLE, types.Array(types.uint8, 1, "C"), INTS, INTS),
    NameTable,
)

CODE, NUMBER, STAMP, START = range(4)
CARET = 0x5E  # stands between a namespace and a name
SHORT = 7  # so many bytes fit into a code
LONG = 0x7F << 56
PRIME = 16777619  # of FNV-1a
SPREADS = (0x9E3779B1, 0x27D4EB3)  # products stay below 2^63
LOW, LOWER = (1 << 32) - 1, (1 << 28) - 1


@always_inlined
def code_with(code, n_bytes, character):
    """Return the code of a text of so many bytes and one more: its bytes, later their hash."""
    if n_bytes < SHORT:
        return code | character << 8 * n_bytes
    return ((((code ^ code >> 24) & LOW) ^ character) * PRIME) & LOW


@always_inlined
def finished(code, n_bytes):
    """Return the code of a whole name; that of a short one is no other's."""
    return code | n_bytes << 56 if n_bytes <= SHORT else code | LONG


@always_inlined
def home_of(names, code):
    """Return the first slot at which a name of this code may stand."""
    mixed = (code & LOWER) * SPREADS[0] + (code >> 28) * SPREADS[1]
    return (mixed >> 24) & (len(names.slots) - 1)


@inlined
def slot_of(names, code, text, space, space_end, name, name_end):
    """Return the slot of a name of this code in this namespace, which joins if it is new.

    -1 if there is no room for it.
    """
    n_bytes = space_end - space + 1 + name_end - name
    last = len(names.slots) - 1
    slot = home_of(names, code)
    while names.slots[slot, NUMBER] > 0:
        if names.slots[slot, CODE] == code:
            start = names.slots[slot, START]
            if n_bytes <= SHORT or _is_name(
                names.letters, start, text, space, space_end, name, name_end
            ):
                return slot
        slot = (slot + 1) & last
    number, start = names.size[0], names.size[1]
    end = start + n_bytes
    if 2 * number > last or number == len(names.ends) or end >= len(names.letters):
        return -1
    _write(names.letters, start, text, space, space_end, name, name_end)
    names.slots[slot, CODE], names.slots[slot, NUMBER] = code, number + 1
    names.slots[slot, STAMP], names.slots[slot, START] = -1, start
    names.ends[number] = end
    names.size[0], names.size[1] = number + 1, end + 1
    return slot


@inlined
def _is_name(letters, i, text, space, space_end, name, name_end):
    for j in range(space, space_end):
        if byte(letters, i) != byte(text, j):
            return False
        i += 1
    if byte(letters, i) != CARET:
        return False
    i += 1
    for j in range(name, name_end):
        if byte(letters, i) != byte(text, j):
            return False
        i += 1
    return byte(letters, i) == NEWLINE


@inlined
def _write(letters, i, text, space, space_end, name, name_end):
    for j in range(space, space_end):
        letters[i] = byte(text, j)
        i += 1
    letters[i] = CARET
    i += 1
    for j in range(name, name_end):
        letters[i] = byte(text, j)
        i += 1
    letters[i] = NEWLINE


@kernel(types.int64(BYTES, INTS, types.int64, INDICES, NAME_TABLE))
def number_names(text, ends, n_done, numbers, names):
    """Give names their numbers, but the first n_done; return how many have one.

    Each is ended by NEWLINE and holds a caret, at the first of which its namespace is taken to end.
    """
    start = ends[n_done - 1] + 1 if n_done else 0
    for i in range(n_done, len(numbers)):
        code, caret = 0, -1
        for j in range(start, ends[i]):
            code = code_with(code, j - start, byte(text, j))
            if caret < 0 and byte(text, j) == CARET:
                caret = j
        code = finished(code, ends[i] - start)
        slot = slot_of(names, code, text, start, caret, caret + 1, ends[i])
        if slot < 0:
            return i
        numbers[i] = names.slots[slot, NUMBER] - 1
        start = ends[i] + 1
    return len(numbers)

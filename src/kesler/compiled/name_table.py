"""The table of names: text to numbers, in the order in which names are met."""
# mypy: disallow_untyped_defs=False, disallow_untyped_calls=False

from __future__ import annotations

from collections import namedtuple

from numba import types

from kesler.compiled.jit import INDICES, INT_TABLE, INTS, always_inlined, inlined, kernel
from kesler.compiled.lexing import BYTES, NEWLINE, byte
from kesler.compiled.many_bytes import BEYOND, WORD, is_same, low_bytes, word_from

# slots: an open-addressing table; each row, side by side in memory since it is met at random, is a
# code and, in one number, the name's own and, above it, at which entry the name was last met.
# letters: the names, each ended by NEWLINE, which no name holds, and room beyond. ends: where each
# ends. size: how many names there are, and letters.
NameTable = namedtuple("NameTable", ("slots", "letters", "ends", "size"))

NAME_TABLE = types.NamedTuple(
    (INT_TABLE, types.Array(types.uint8, 1, "C"), INTS, INTS),
    NameTable,
)

CODE, NUMBER = range(2)
NO_CODE = 0  # stands where there is no name
HALF = 32  # bits
CARET = 0x5E  # stands between a namespace, which holds none, and a name
SHORT = 7  # so many bytes fit into a code
LONG = 0x7F << 56
SPREADS = (0x9E3779B1, 0x27D4EB3, 0x1B873593)  # products stay below 2^63
LOW, LOWER = (1 << 32) - 1, (1 << 28) - 1


@inlined
def prefix_code(text, start, end):
    """Return the code of a namespace and the caret after it: its bytes, or their hash."""
    n = end - start
    if n < SHORT:
        return low_bytes(word_from(text, start), n) | CARET << 8 * n
    return _mixed(_hashed(text, start, n, 0), CARET)


@always_inlined
def code_of(text, start, end, prefix, n_before):
    """Return the code of a name after a prefix of so many bytes; that of a short one is its own."""
    n = end - start
    if n_before + n <= SHORT:
        own = low_bytes(word_from(text, start), n)
        return prefix | own << 8 * n_before | (n_before + n) << 56
    return _hashed(text, start, n, prefix) | LONG


@inlined
def _hashed(text, i, n, code):
    while n >= WORD:
        code = _mixed(code, word_from(text, i))
        i, n = i + WORD, n - WORD
    return _mixed(code, low_bytes(word_from(text, i), n)) if n > 0 else code


@always_inlined
def _mixed(code, word):
    """Return a number below 2^56 that depends on both."""
    low, high = (code ^ word) & LOW, (code >> 24 ^ word >> 32) & LOW
    mixed = low * SPREADS[1] + high * SPREADS[2]
    return (mixed ^ mixed >> 29) & ((1 << 56) - 1)


@always_inlined
def home_of(names, code):
    """Return the first slot at which a name of this code may stand."""
    mixed = (code & LOWER) * SPREADS[0] + (code >> 28) * SPREADS[1]
    return (mixed >> 24) & (len(names.slots) - 1)


@always_inlined
def slot_of(names, slot, code, text, space, name):
    """Return the slot of a name of this code, looked for from its home on; it joins if it is new.

    Namespace and name are given by where they begin and end. -1 if there is no room for it.
    """
    last = len(names.slots) - 1
    while names.slots[slot, CODE] != NO_CODE:
        if names.slots[slot, CODE] == code and (
            code < LONG or _is_name(names, number_in(names, slot), text, space, name)
        ):
            return slot
        slot = (slot + 1) & last
    return _joined(names, slot, code, text, space, name)


@always_inlined
def number_in(names, slot):
    """Return the number of the name in a slot."""
    return names.slots[slot, NUMBER] & LOW


@always_inlined
def entry_in(names, slot):
    """Return the entry at which the name in a slot was last met."""
    return names.slots[slot, NUMBER] >> HALF


@always_inlined
def meet(names, slot, entry):
    """Note the entry at which the name in a slot is met."""
    names.slots[slot, NUMBER] = names.slots[slot, NUMBER] & LOW | entry << HALF


@inlined
def _is_name(names, number, text, space, name):
    start = names.ends[number - 1] + 1 if number > 0 else 0
    n_before, n = space[1] - space[0], name[1] - name[0]
    caret = start + n_before
    return (
        names.ends[number] == caret + 1 + n
        and is_same(names.letters, caret + 1, text, name[0], n)
        and byte(names.letters, caret) == CARET
        and is_same(names.letters, start, text, space[0], n_before)
    )


@inlined
def _joined(names, slot, code, text, space, name):
    number, i = names.size[0], names.size[1]
    end = i + space[1] - space[0] + 1 + name[1] - name[0]
    if number == len(names.ends) or end + BEYOND >= len(names.letters):
        return -1
    for j in range(space[0], space[1]):
        names.letters[i] = byte(text, j)
        i += 1
    names.letters[i] = CARET
    i += 1
    for j in range(name[0], name[1]):
        names.letters[i] = byte(text, j)
        i += 1
    names.letters[end] = NEWLINE
    names.slots[slot, CODE], names.slots[slot, NUMBER] = code, number
    names.ends[number] = end
    names.size[0], names.size[1] = number + 1, end + 1
    return slot


@kernel(types.int64(BYTES, INTS, types.int64, INDICES, NAME_TABLE))
def number_names(text, ends, n_done, numbers, names):
    """Give names their numbers, but the first n_done; return how many have one.

    Each is ended by NEWLINE and holds a caret, at the first of which its namespace is taken to end;
    after the last there is room.
    """
    start = ends[n_done - 1] + 1 if n_done else 0
    for i in range(n_done, len(numbers)):
        caret = start
        while byte(text, caret) != CARET:
            caret += 1
        prefix = prefix_code(text, start, caret)
        code = code_of(text, caret + 1, ends[i], prefix, caret + 1 - start)
        home, space, name = home_of(names, code), (start, caret), (caret + 1, ends[i])
        slot = slot_of(names, home, code, text, space, name)
        if slot < 0:
            return i
        numbers[i] = number_in(names, slot)
        start = ends[i] + 1
    return len(numbers)

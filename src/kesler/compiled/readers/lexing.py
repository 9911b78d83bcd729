"""Lexing: what the kernels that read lines of text have in common.

They read plain lines only: ones whose meaning is beyond doubt. Any other line they refuse, and the
readers in Python, which say what a format means, read it or say what is wrong with it.

To look at a byte after the other costs a jump a byte, and one taken amiss at the end of most
tokens. What is read may reach `BEYOND` bytes past the end of a text: there must be as many.
"""
# mypy: disallow_untyped_defs=False, disallow_untyped_calls=False

from __future__ import annotations

from collections import namedtuple
from typing import Any

import numpy as np
from llvmlite import ir
from numba import config, types
from numba.extending import intrinsic

from kesler.compiled.jit.decorators import (
    DOUBLES,
    FLOATS,
    INDICES,
    INT_TABLE,
    INTS,
    always_inlined,
    inlined,
    kernel,
)

# Why a kernel stopped: there are as many rows as were asked for, the text has ended, a line is not
# plain, there is no room for more entries, or for more names.
FULL, ENDED, REFUSED, CROWDED, NAMELESS = range(5)

# Where a kernel is: in the text, in lines passed, in rows and entries read; and a clock that tells
# what was met in this row from what was met before.
POSITION, LINE, ROW, ENTRY, CLOCK = range(5)

# What labels must be.
ANYTHING, A_NUMBER, TEXT = 0, 1, 2

# Rows as they are read: where each one's entries begin, these, where each label stands in the
# text (nowhere if it begins where it ends), and the importance of each.
Draft = namedtuple("Draft", ("indptr", "indices", "values", "labels", "weights"))

BYTES = types.Array(types.uint8, 1, "C", readonly=True)
DRAFT = types.NamedTuple((INTS, INDICES, FLOATS, INT_TABLE, DOUBLES), Draft)

NEWLINE, SPACE, HASH, PLUS, MINUS, DOT = 0x0A, 0x20, 0x23, 0x2B, 0x2D, 0x2E
ZERO, NINE, COLON, SMALL_E, BAR = 0x30, 0x39, 0x3A, 0x65, 0x7C

LARGEST = 3.4e38  # a little less than float32 can hold
MOST_EXPONENT = 60
POWERS = np.array([float(f"1e{i}") for i in range(MOST_EXPONENT + 1)])
EXACT_EXPONENT, EXACT_MANTISSA = 22, 1 << 53
MOST_DIGITS = 18  # of a number that int64 holds
DOUBT = 2.0**-50  # relative, more than three roundings to float64 add up to


@always_inlined
def byte(text, i):
    """Return the byte at a position, which is not negative."""
    return np.int64(text[np.uintp(i)])


@always_inlined
def is_blank(character):
    """Whether a byte is white space but not the end of a line."""
    return character == SPACE or (0x09 <= character <= 0x0D and character != NEWLINE)


@always_inlined
def is_digit(character):
    """Whether a byte is a digit."""
    return ZERO <= character <= NINE


@always_inlined
def past_blanks(text, i):
    """Return where white space that begins at i ends."""
    while is_blank(byte(text, i)):
        i += 1
    return i


@inlined
def is_odd(text, i, is_utf8):
    """Whether a byte that is not ASCII, or a control character, may be or end more than a token.

    Text that is not UTF-8 is odd, and so is white space that only Unicode has.
    """
    first = byte(text, i)
    if first < 0x80:
        return first < SPACE
    if not is_utf8:
        return True
    if first == 0xC2:
        return byte(text, i + 1) == 0x85 or byte(text, i + 1) == 0xA0
    if first == 0xE1:
        return byte(text, i + 1) == 0x9A and byte(text, i + 2) == 0x80
    if first == 0xE2:
        second, third = byte(text, i + 1), byte(text, i + 2)
        is_space = third <= 0x8A or third == 0xA8 or third == 0xA9 or third == 0xAF
        return (second == 0x80 and is_space) or (second == 0x81 and third == 0x9F)
    return first == 0xE3 and byte(text, i + 1) == 0x80 and byte(text, i + 2) == 0x80


@inlined
def past_token(text, i, stop, is_utf8):
    """Return where the token at i ends, at white space or a byte `stop`; -1 if it is odd."""
    while True:
        character = byte(text, i)
        if character <= SPACE or character >= 0x80:
            if is_blank(character) or character == NEWLINE:
                return i
            if is_odd(text, i, is_utf8):
                return -1
        elif character == stop:
            return i
        i += 1


@inlined
def past_line(text, i):
    """Return where the next line begins."""
    while byte(text, i) != NEWLINE:
        i += 1
    return i + 1


@always_inlined
def digits_at(text, i, number, most):
    """Read digits that go on with a number, so many at most; return where they end, and it."""
    end = i + most
    while i < end and is_digit(byte(text, i)):
        number = 10 * number + byte(text, i) - ZERO
        i += 1
    return i, number


@inlined
def number_at(text, i):
    """Read the number at i; return where it ends, its value, and whether that is certain.

    It ends at -1 if it is no number in plain decimals or has too many digits. If it is not certain,
    the value is right but for a share of `DOUBT`.
    """
    is_negative = byte(text, i) == MINUS
    if is_negative or byte(text, i) == PLUS:
        i += 1
    start = i
    i, mantissa = digits_at(text, i, 0, MOST_DIGITS)
    n_digits, exponent = i - start, 0
    if byte(text, i) == DOT:
        start = i + 1
        i, mantissa = digits_at(text, start, mantissa, MOST_DIGITS - n_digits)
        exponent = start - i
        n_digits -= exponent
    if n_digits == 0 or is_digit(byte(text, i)):
        return -1, 0.0, False
    if byte(text, i) | 0x20 == SMALL_E:
        i, shift = _exponent_at(text, i + 1)
        exponent += shift
    if i < 0 or abs(exponent) > MOST_EXPONENT:
        return -1, 0.0, False
    power = POWERS[np.uintp(abs(exponent))]
    value = np.float64(mantissa) / power if exponent < 0 else np.float64(mantissa) * power
    is_certain = mantissa <= EXACT_MANTISSA and abs(exponent) <= EXACT_EXPONENT
    return i, (-value if is_negative else value), is_certain


@inlined
def _exponent_at(text, i):
    is_negative = byte(text, i) == MINUS
    if is_negative or byte(text, i) == PLUS:
        i += 1
    start = i
    i, exponent = digits_at(text, i, 0, MOST_DIGITS)
    return (-1 if i == start else i), (-exponent if is_negative else exponent)


@inlined
def is_settled(value, is_certain):
    """Whether it is beyond doubt which number of type float32 a value becomes."""
    if not abs(value) <= LARGEST:
        return False
    doubt = DOUBT * value
    return is_certain or np.float32(value - doubt) == np.float32(value + doubt)


@inlined
def is_kind(text, start, end, kind):
    """Whether the label that stands there is of a kind; False if that is in doubt."""
    if kind == ANYTHING:
        return True
    if start == end:
        return False
    if kind == A_NUMBER:
        return number_at(text, start)[0] == end
    for i in range(start, end):
        character = byte(text, i)
        is_of_number = is_digit(character) or character | 0x20 == SMALL_E
        if not (is_of_number or character == PLUS or character == MINUS or character == DOT):
            return True
    return False


WORD = 8  # bytes of a number
WINDOW = 64  # bytes of which stops are told together
BEYOND = WINDOW
_WINDOW, _BITS = ir.VectorType(ir.IntType(8), WINDOW), ir.IntType(WINDOW)


def word_from(text, i):
    """Return the eight bytes from i on as a number, the first of them the lowest."""
    return int.from_bytes(text[i : i + WORD].tobytes(), "little", signed=True)


def stops_from(text, i):
    """Return which of the bytes from i on are no plain part of a token, a bit each.

    Those are the blank and all below it, colons, bars, and what is not ASCII.
    """
    window = text[i : i + WINDOW].tolist()
    is_stop = (b <= SPACE or b in (COLON, BAR) or b >= 0x80 for b in window)
    return sum(1 << place for place, is_one in enumerate(is_stop) if is_one)


def first_stop(stops, place):
    """Return how far it is from a place to the first stop; `WINDOW` if there is none."""
    rest = int(stops) >> int(place)
    return (rest & -rest).bit_length() - 1 if rest else WINDOW


def _load(context: Any, builder: Any, signature: Any, values: Any, kind: Any) -> Any:
    data = context.make_array(signature.args[0])(context, builder, values[0]).data
    place = builder.bitcast(builder.gep(data, [values[1]]), kind.as_pointer())
    return builder.load(place, align=1)


def _word_from(_: Any, text: Any, i: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return _load(context, builder, signature, values, ir.IntType(8 * WORD))

    return types.int64(text, types.intp), generate


def _stops_from(_: Any, text: Any, i: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        window = _load(context, builder, signature, values, _WINDOW)

        def are(comparison: str, character: int) -> Any:
            line = ir.Constant(_WINDOW, [character] * WINDOW)
            return builder.icmp_signed(comparison, window, line)

        # What is not ASCII is negative as a signed byte.
        marks = builder.or_(are("==", COLON), are("==", BAR))
        return builder.bitcast(builder.or_(are("<=", SPACE), marks), _BITS)

    return types.uint64(text, types.intp), generate


def _first_stop(_: Any, stops: Any, place: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        rest = builder.lshr(values[0], values[1])
        return builder.cttz(rest, ir.Constant(ir.IntType(1), 0))

    return types.int64(types.uint64, types.int64), generate


if not config.DISABLE_JIT:
    word_from, stops_from = intrinsic(_word_from), intrinsic(_stops_from)
    first_stop = intrinsic(_first_stop)


@always_inlined
def next_stop(text, i, base, stops):
    """Return where the first stop from i on is, and the window that it is in: base and stops."""
    ahead = first_stop(stops, i - base) if i - base < WINDOW else WINDOW
    while ahead == WINDOW:
        base = i = max(i, base + WINDOW)
        stops = stops_from(text, base)
        ahead = first_stop(stops, 0)
    return i + ahead, base, stops


@always_inlined
def low_bytes(word, n):
    """Return the first bytes of a number, fewer than eight."""
    return word & ((1 << 8 * n) - 1)


@always_inlined
def is_same(text, i, other, j, n):
    """Whether so many bytes are the same in two texts."""
    while n >= WORD:
        if word_from(text, i) != word_from(other, j):
            return False
        i, j, n = i + WORD, j + WORD, n - WORD
    return low_bytes(word_from(text, i), n) == low_bytes(word_from(other, j), n)


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

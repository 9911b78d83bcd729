"""Lexing functions that are shared by the kernels that read lines of text.

The kernels read plain lines only, whose meaning is unambiguous. They reject any other line, which
the readers in Python, the reference for each format, then read or report as an error.

Scanning byte by byte costs one branch per byte, and a misprediction at the end of most tokens, so
several bytes are read at once. Reads may reach `BEYOND` bytes beyond the end of a text, which must
be padded accordingly.
"""
# mypy: disallow_untyped_defs=False, disallow_untyped_calls=False

from __future__ import annotations

from collections import namedtuple
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from kesler.compiled.jit.decorators import (
    DOUBLES,
    FLOATS,
    INDICES,
    INT_TABLE,
    INTS,
    IS_INTERPRETED,
    always_inlined,
    inlined,
    kernel,
)

# Why a kernel stopped: the requested number of rows is read, the text has ended, a line is not
# plain, or there is no space for more entries, or for more names.
FULL, ENDED, REFUSED, CROWDED, NAMELESS = range(5)

# The state of a kernel: the position in the text, the numbers of lines, rows and entries read, and
# a clock that distinguishes features of the current row from those of earlier rows.
POSITION, LINE, ROW, ENTRY, CLOCK = range(5)

# The required kind of labels.
ANYTHING, A_NUMBER, TEXT, COSTS = 0, 1, 2, 3

# Rows that are read: where the entries of each row begin, the entries, the start and end of each
# label in the text (equal if there is none), and the importance of each row.
Draft = namedtuple("Draft", ("indptr", "indices", "values", "labels", "weights"))

BYTES = types.Array(types.uint8, 1, "C", readonly=True)
DRAFT = types.NamedTuple((INTS, INDICES, FLOATS, INT_TABLE, DOUBLES), Draft)

NEWLINE, SPACE, HASH, PLUS, MINUS, DOT = 0x0A, 0x20, 0x23, 0x2B, 0x2D, 0x2E
ZERO, NINE, COLON, SMALL_E, BAR = 0x30, 0x39, 0x3A, 0x65, 0x7C

LARGEST = 3.4e38  # slightly below the maximum of float32
MOST_EXPONENT = 60
POWERS = np.array([float(f"1e{i}") for i in range(MOST_EXPONENT + 1)])
EXACT_EXPONENT, EXACT_MANTISSA = 22, 1 << 53
MOST_DIGITS = 18  # of a number that fits into int64
DOUBT = 2.0**-50  # a relative error larger than that of three roundings to float64


@always_inlined
def byte(text, i):
    """Return the byte at a nonnegative position."""
    return np.int64(text[np.uintp(i)])


@always_inlined
def is_blank(character):
    """Return whether a byte is white space other than the end of a line."""
    return character == SPACE or (0x09 <= character <= 0x0D and character != NEWLINE)


@always_inlined
def is_digit(character):
    """Return whether a byte is a digit."""
    return ZERO <= character <= NINE


@always_inlined
def past_blanks(text, i):
    """Return the end of the white space that begins at i."""
    while is_blank(byte(text, i)):
        i += 1
    return i


@inlined
def is_odd(text, i, is_utf8):
    """Return whether a control character or non-ASCII byte may be more than a part of a token.

    Text that is not UTF-8 is odd, and so is non-ASCII white space.
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
    """Return the end of the token at i, at white space or a byte `stop`; -1 if it is odd."""
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
    """Return the start of the next line."""
    while byte(text, i) != NEWLINE:
        i += 1
    return i + 1


@always_inlined
def digits_at(text, i, number, most):
    """Append up to `most` digits at i to a number; return the digits' end, and the number."""
    end = i + most
    while i < end and is_digit(byte(text, i)):
        number = 10 * number + byte(text, i) - ZERO
        i += 1
    return i, number


@inlined
def number_at(text, i):
    """Read the number at i; return its end, its value, and whether it is correctly rounded.

    The end is -1 if it is not a plain decimal number or has too many digits. If the value may not
    be correctly rounded, its relative error is at most `DOUBT`.
    """
    is_negative = byte(text, i) == MINUS
    if is_negative or byte(text, i) == PLUS:
        i += 1
    start = i
    i, mantissa = digits_at(text, i, 0, MOST_DIGITS)
    n_digits, exponent = i - start, 0
    if byte(text, i) == DOT:
        start = i = i + 1
        most = MOST_DIGITS - n_digits
        if mantissa == 0:
            # Leading zeros are no significant digits, of which doubles have up to 17.
            most = MOST_DIGITS
            while byte(text, i) == ZERO:
                i += 1
        i, mantissa = digits_at(text, i, mantissa, most)
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
    """Return whether the rounding of a value to float32 is unambiguous."""
    if not abs(value) <= LARGEST:
        return False
    doubt = DOUBT * value
    return is_certain or np.float32(value - doubt) == np.float32(value + doubt)


@inlined
def is_kind(text, start, end, kind):
    """Return whether the label in a span is of the required kind; False if that is ambiguous."""
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


WORD = 8  # bytes of a 64-bit number
WINDOW = 64  # bytes in which stops are found at once
BEYOND = WINDOW
_WINDOW, _BITS = ir.VectorType(ir.IntType(8), WINDOW), ir.IntType(WINDOW)


def word_from(text, i):
    """Return the eight bytes from i on as a little-endian number."""
    return int.from_bytes(text[i : i + WORD].tobytes(), "little", signed=True)


def stops_from(text, i):
    """Return a bit mask of the stops among the bytes from i on.

    Stops are the space and all bytes below it, colons, bars, and non-ASCII bytes.
    """
    window = text[i : i + WINDOW].tolist()
    is_stop = (b <= SPACE or b in (COLON, BAR) or b >= 0x80 for b in window)
    return sum(1 << place for place, is_one in enumerate(is_stop) if is_one)


def first_stop(stops, place):
    """Return the distance from a place to the first stop; `WINDOW` if there is none."""
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

        # Non-ASCII bytes are negative as signed bytes.
        marks = builder.or_(are("==", COLON), are("==", BAR))
        return builder.bitcast(builder.or_(are("<=", SPACE), marks), _BITS)

    return types.uint64(text, types.intp), generate


def _first_stop(_: Any, stops: Any, place: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        rest = builder.lshr(values[0], values[1])
        return builder.cttz(rest, ir.Constant(ir.IntType(1), 0))

    return types.int64(types.uint64, types.int64), generate


if not IS_INTERPRETED:
    word_from, stops_from = intrinsic(_word_from), intrinsic(_stops_from)
    first_stop = intrinsic(_first_stop)


@always_inlined
def next_stop(text, i, base, stops):
    """Return the first stop from i on, and the base and stops of its window."""
    ahead = first_stop(stops, i - base) if i - base < WINDOW else WINDOW
    while ahead == WINDOW:
        base = i = max(i, base + WINDOW)
        stops = stops_from(text, base)
        ahead = first_stop(stops, 0)
    return i + ahead, base, stops


@always_inlined
def low_bytes(word, n):
    """Return the first n bytes of a number, where n is less than eight."""
    return word & ((1 << 8 * n) - 1)


@always_inlined
def is_same(text, i, other, j, n):
    """Return whether n bytes are equal in two texts."""
    while n >= WORD:
        if word_from(text, i) != word_from(other, j):
            return False
        i, j, n = i + WORD, j + WORD, n - WORD
    return low_bytes(word_from(text, i), n) == low_bytes(word_from(other, j), n)


# slots: an open-addressing table. Each slot of `SLOT` numbers, which are contiguous since access is
# random, has the two parts of a name's code, the name's number, and the entry at which it last
# occurred. Slots are referred to by the positions of their first numbers.
# letters: the names, each ended by NEWLINE, which no name contains, followed by free space.
# ends: the end of each name. size: the numbers of names and of letters.
NameTable = namedtuple("NameTable", ("slots", "letters", "ends", "size"))

NAME_TABLE = types.NamedTuple(
    (INTS, types.Array(types.uint8, 1, "C"), INTS, INTS),
    NameTable,
)

FIRST, REST, NUMBER, ENTERED = range(4)
SLOT = 4  # numbers of a slot, half a cache line
EMPTY = 0  # the second part of the code of an empty slot
CARET = 0x5E  # separates a namespace, which contains none, from a name
PART = 7  # bytes of a part of a code
PART_MASK = (1 << 8 * PART) - 1
SHIFT = 3  # bits, so that equal letters of the parts of a code do not cancel out
LETTERS = PART_MASK >> SHIFT
LONG = 0x7F << 8 * PART
SPREADS = (0x9E3779B1, 0x27D4EB3, 0x1B873593)  # their products stay below 2^63
LOW, LOWER = (1 << 32) - 1, (1 << 28) - 1


@inlined
def prefix_code(text, start, end):
    """Return the code of a namespace and the caret after it: the bytes, or their hash."""
    n = end - start
    if n < PART:
        return low_bytes(word_from(text, start), n) | CARET << 8 * n
    return _mixed(_hashed(text, start, n, 0), CARET)


@always_inlined
def code_of(text, start, end, prefix, n_before):
    """Return both parts of the code of a name after a prefix of `n_before` bytes.

    The code of up to 14 bytes consists of these bytes and their number, so that it is unique. That
    of others is `LONG` and a hash.
    """
    n = end - start
    if n_before > PART or n_before + n > 2 * PART:
        return _hashed(text, start, n, prefix), LONG
    shift = 8 * n_before
    first = low_bytes(word_from(text, start), min(n, PART))
    rest = low_bytes(word_from(text, start + PART), max(n - PART, 0))
    first, rest = prefix | first << shift & PART_MASK, first >> 8 * PART - shift | rest << shift
    return first, rest | (n_before + n) << 8 * PART


@inlined
def _hashed(text, i, n, code):
    while n >= WORD:
        code = _mixed(code, word_from(text, i))
        i, n = i + WORD, n - WORD
    return _mixed(code, low_bytes(word_from(text, i), n)) if n > 0 else code


@always_inlined
def _mixed(code, word):
    """Return a hash below 2^56 of a code and a word."""
    low, high = (code ^ word) & LOW, (code >> 24 ^ word >> 32) & LOW
    mixed = low * SPREADS[1] + high * SPREADS[2]
    return (mixed ^ mixed >> 29) & PART_MASK


@always_inlined
def home_of(names, first, rest):
    """Return the first slot for a name with this code, the first of the two of a cache line."""
    both = first ^ (rest & LETTERS) << SHIFT
    mixed = (both & LOWER) * SPREADS[0] + (both >> 28) * SPREADS[1]
    return (mixed >> 21) & (len(names.slots) - 2 * SLOT)


@always_inlined
def slot_part(names, slot, part):
    """Return one of the numbers of a slot."""
    return names.slots[np.uintp(slot + part)]


@always_inlined
def slot_of(names, slot, first, rest, text, space, name):
    """Return the slot of a name with this code, searching from `slot`; new names are inserted.

    Namespace and name are given by their starts and ends. Returns -1 if there is no space.
    """
    last = len(names.slots) - 1
    while slot_part(names, slot, REST) != EMPTY:
        if (slot_part(names, slot, FIRST) == first and slot_part(names, slot, REST) == rest) and (
            rest != LONG or _is_name(names, slot_part(names, slot, NUMBER), text, space, name)
        ):
            return slot
        slot = (slot + SLOT) & last
    return _joined(names, slot, first, rest, text, space, name)


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
def _joined(names, slot, first, rest, text, space, name):
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
    names.slots[slot + FIRST], names.slots[slot + REST] = first, rest
    names.slots[slot + NUMBER] = number
    names.ends[number] = end
    names.size[0], names.size[1] = number + 1, end + 1
    return slot


@kernel(types.int64(BYTES, INTS, types.int64, INDICES, NAME_TABLE))
def number_names(text, ends, n_done, numbers, names):
    """Write the numbers of names from the n_done-th on; return how many names have a number.

    Each name is ended by NEWLINE and contains a caret, the first of which ends its namespace; the
    text is padded.
    """
    start = ends[n_done - 1] + 1 if n_done else 0
    for i in range(n_done, len(numbers)):
        caret = start
        while byte(text, caret) != CARET:
            caret += 1
        prefix = prefix_code(text, start, caret)
        first, rest = code_of(text, caret + 1, ends[i], prefix, caret + 1 - start)
        home, space, name = home_of(names, first, rest), (start, caret), (caret + 1, ends[i])
        slot = slot_of(names, home, first, rest, text, space, name)
        if slot < 0:
            return i
        numbers[i] = slot_part(names, slot, NUMBER)
        start = ends[i] + 1
    return len(numbers)

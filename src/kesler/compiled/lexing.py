"""Lexing: what the kernels that read lines of text have in common.

They read plain lines only: ones whose meaning is beyond doubt. Any other line they refuse, and the
readers in Python, which say what a format means, read it or say what is wrong with it.
"""
# mypy: disallow_untyped_defs=False, disallow_untyped_calls=False

from __future__ import annotations

from collections import namedtuple

import numpy as np
from numba import types

from kesler.compiled.jit import DOUBLES, FLOATS, INDICES, INT_TABLE, INTS, always_inlined, inlined

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

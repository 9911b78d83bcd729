"""Many bytes of a text at a time: eight as a number, and which of sixty-four are stops.

To look at a byte after the other costs a jump a byte, and one taken amiss at the end of most
tokens. What is read may reach `BEYOND` bytes past the end of a text: there must be as many.
"""
# mypy: disallow_untyped_defs=False, disallow_untyped_calls=False

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import config, types
from numba.extending import intrinsic

from kesler.compiled.jit import always_inlined
from kesler.compiled.lexing import BAR, COLON, SPACE

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

"""Characters of texts by kind, and where words and signs such as C++ and :-( end.

Words and signs are those of :data:`kesler.data.texts.WORD_OR_SIGN`.
"""
# mypy: disallow_untyped_defs=False, disallow_untyped_calls=False

from __future__ import annotations

from functools import cache

import numpy as np
import numpy.typing as npt

from kesler.compiled.jit.decorators import inlined
from kesler.compiled.jit.pointers import byte_at

MOST_CODES = 0x20000
"""Letters from here on, which are rare, are left to Python."""

IN_WORD, ALPHANUMERIC, MARK, EYES, NOSE, FACE, MOUTH, OTHER_SIGN = (1 << i for i in range(8))
IN_SIGNS = {
    MARK: "!?",
    EYES: ":;=",
    NOSE: "-^",
    FACE: r")([]{}|/\*@$dpox3",
    MOUTH: ")([]",
    OTHER_SIGN: "<>-^+#",
}
"""The kinds of the characters of signs."""

SPACE, APOSTROPHE, SLASH, DOT, THREE, UNDERSCORE = map(ord, " '/.3_")
PLUS, HASH, LESS, MORE, MINUS, HAT = map(ord, "+#<>-^")


@cache
def kinds_of_plain() -> npt.NDArray[np.uint8]:
    """Return the kinds of each character, by its number; asking Python takes 5 ms."""
    alphanumeric = np.fromiter(map(str.isalnum, map(chr, range(MOST_CODES))), dtype=np.bool_)
    found = alphanumeric * np.uint8(IN_WORD | ALPHANUMERIC)
    found[APOSTROPHE] = IN_WORD
    for kind, characters in IN_SIGNS.items():
        found[list(map(ord, characters))] |= np.uint8(kind)
    return found


@cache
def kinds_of_spaced() -> npt.NDArray[np.uint8]:
    """Return the kinds of characters of a line whose words have spaces between them."""
    found = np.full(MOST_CODES, IN_WORD, dtype=np.uint8)
    found[SPACE] = 0
    return found


@inlined
def width_at(letters):
    """Return the number of bytes of the character at an address."""
    first = byte_at(letters)
    return 1 if first < 0x80 else 2 if first < 0xE0 else 3 if first < 0xF0 else 4


@inlined
def code_at(letters, width):
    """Return the number of the character of this width at an address, in UTF-8."""
    if width == 1:
        return byte_at(letters)
    code = byte_at(letters) & (0x7F >> width)
    for i in range(1, width):
        code = code << 6 | byte_at(letters + i) & 0x3F
    return code


@inlined
def kind_at(kinds, place, end):
    """Return the kind of the character at an address, 0 at the end or if it is rare."""
    if place >= end:
        return np.uint8(0)
    code = code_at(place, width_at(place))
    return kinds[code] if code < MOST_CODES else np.uint8(0)


@inlined
def holds(place, end, code):
    """Return whether there is this character of ASCII at an address."""
    return place < end and byte_at(place) == code


@inlined
def end_of_run(kinds, kind, place, end):
    """Return where the characters of a kind, all of ASCII, end."""
    while kind_at(kinds, place, end) & kind:
        place += 1
    return place


@inlined
def end_of_word(kinds, place, end):
    """Return where a word ends whose letters end at an address: behind + or # if it ends so."""
    last = byte_at(place - 1)
    ends = holds(place, end, PLUS) or holds(place, end, HASH)
    if not ends or last >= 0x80 or not kinds[last] & ALPHANUMERIC:
        return place
    double = holds(place, end, PLUS) and holds(place + 1, end, PLUS)
    stop = place + 2 if double else place + 1
    if holds(stop, end, PLUS) or holds(stop, end, HASH):
        return place
    return stop if double or not kind_at(kinds, stop, end) & ALPHANUMERIC else place


@inlined
def end_of_face(kinds, place, end, after_letter):
    """Return where a face ends whose eyes are at an address; the address if there is none."""
    nose = place + 1 + holds(place + 1, end, APOSTROPHE)
    if kind_at(kinds, nose, end) & NOSE:
        stop = end_of_run(kinds, FACE, nose + 1, end)
        is_face = stop > nose + 1 and not kind_at(kinds, stop, end) & ALPHANUMERIC
        return stop if is_face else place
    if after_letter:
        return place
    stop = end_of_run(kinds, MOUTH, nose, end)
    if stop > nose:
        return stop
    stop = nose + 1
    is_face = kind_at(kinds, nose, end) & FACE and not kind_at(kinds, stop, end) & ALPHANUMERIC
    return stop if is_face and not holds(stop, end, SLASH) else place


@inlined
def end_of_sign(kinds, place, end, after_letter):
    """Return where the sign ends that begins at an address; the address if there is none."""
    kind = kind_at(kinds, place, end)
    if kind & MARK:
        stop = end_of_run(kinds, MARK, place, end)
        return stop if stop > place + 1 else place
    if kind & EYES:
        return end_of_face(kinds, place, end, after_letter)
    if holds(place, end, LESS):
        stop = place + 2
        is_heart = holds(place + 1, end, THREE) and not kind_at(kinds, stop, end) & ALPHANUMERIC
        return stop if is_heart else place
    is_eye = holds(place, end, MORE) or kind & NOSE
    is_middle = holds(place + 1, end, UNDERSCORE) or holds(place + 1, end, DOT)
    is_other = holds(place + 2, end, LESS) or kind_at(kinds, place + 2, end) & NOSE
    whole = is_eye and is_middle and is_other and not holds(place + 3, end, MINUS)
    return place + 3 if whole else place

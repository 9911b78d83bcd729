"""Many bytes at a time against one byte after the other."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import types

from kesler.compiled.jit.decorators import INT, INTS, kernel
from kesler.compiled.readers import lexing
from kesler.compiled.readers.lexing import (
    BYTES,
    first_stop,
    is_same,
    low_bytes,
    next_stop,
    stops_from,
)
from kesler.compiled.readers.lexing import word_from as word_of
from kesler.readers import lines
from kesler.readers.lines import text_of

STOPS = b" \t\r\n\x00:|\x1c\x80\xff"
plain = st.integers(0x21, 0x7F).filter(lambda character: character not in b":|")
contents = st.lists(plain | plain | plain | st.sampled_from(STOPS), max_size=200).map(bytes)


@kernel(INT(BYTES, INTS))
def all_stops(text, found):
    """Write where the stops of a text are, the last byte of which is one; return how many."""
    n, i, base, stops = 0, 0, 0, stops_from(text, 0)
    while i < len(text):
        i, base, stops = next_stop(text, i, base, stops)
        found[n] = i
        n, i = n + 1, i + 1
    return n


@kernel(INT(BYTES, INT, INT))
def word(text, i, n):
    """Return the first bytes from i on as a number."""
    return low_bytes(word_of(text, i), n)


@kernel(types.boolean(BYTES, INT, BYTES, INT, INT))
def same(text, i, other, j, n):
    """Whether so many bytes are the same."""
    return is_same(text, i, other, j, n)


@kernel(INT(BYTES, INT))
def to_first_stop(text, place):
    """Return how far it is to the first stop from a place of the first window."""
    return first_stop(stops_from(text, 0), place)


@settings(max_examples=200, deadline=None)
@given(contents)
def test_every_stop_is_found(content):
    text, found = text_of(content + b"\n"), np.empty(201, dtype=np.int64)
    n = all_stops(text, found)
    assert found[:n].tolist() == [i for i, byte in enumerate(text.tolist()) if byte in STOPS]


@settings(max_examples=100, deadline=None)
@given(contents, st.integers(0, 63))
def test_there_may_be_no_stop_in_a_window(content, place):
    window = content.ljust(64, b"a")[:64]
    far = next((i for i, byte in enumerate(window[place:]) if byte in STOPS), 64)
    assert to_first_stop(text_of(window), place) == far


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=40), st.integers(0, 40), st.integers(0, 7))
def test_bytes_are_a_number(content, start, n):
    start = min(start, len(content))
    n = min(n, len(content) - start)
    expected = int.from_bytes(content[start : start + n], "little")
    assert word(text_of(content), start, n) == expected


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=40), st.binary(max_size=3), st.integers(0, 39), st.booleans())
def test_texts_are_the_same_byte_by_byte(content, before, place, is_changed):
    other = bytearray(before + content + b"more")
    is_changed &= place < len(content)
    if is_changed:
        other[len(before) + place] ^= 4
    both = text_of(content + b"else"), text_of(bytes(other))
    assert same(both[0], 0, both[1], len(before), len(content)) is not is_changed


def test_a_text_has_room_for_a_window_beyond():
    assert lines.BEYOND >= lexing.BEYOND

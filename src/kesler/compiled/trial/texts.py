"""Texts as events: their words are read from their letters, without a Python object for each."""
# mypy: disallow_untyped_defs=False, disallow_untyped_calls=False

from __future__ import annotations

from functools import cache

import numpy as np
import numpy.typing as npt
from numba import types

from kesler.compiled.jit.decorators import BOOLS, INT, inlined, kernel
from kesler.compiled.jit.pointers import byte_at, fetch, word_at
from kesler.compiled.trial.events import (
    FIRST,
    LENGTH,
    LONGER,
    LONGEST,
    NOT_READ,
    NOT_SEEN,
    NUMBER,
    WIDTH,
    WORD,
    event_at,
    forget_failure,
    hash_of,
    is_name,
    letters_of,
    note,
    number_at,
    number_of,
    release,
    size_of,
    start_of,
    write_fields_of,
)

MOST_CODES = 0x20000
"""Letters from here on, which are rare, are left to Python."""

SPACE = ord(" ")
LENGTH_OF_RUNS = 4
"""As in :data:`kesler.data.inputs.RUN_LENGTH`."""

new_text = types.ExternalFunction("PyUnicode_FromStringAndSize", INT(INT, INT))


@cache
def word_letters() -> npt.NDArray[np.bool_]:
    """Return whether each character, by its number, belongs to a word.

    These are the characters of :data:`kesler.data.inputs.TOKEN`; asking Python takes 5 ms.
    """
    found = np.fromiter(map(str.isalnum, map(chr, range(MOST_CODES))), dtype=np.bool_)
    found[ord("'")] = True
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
def is_word(read, i, j):
    """Return whether two words of a text are the same."""
    if not is_name(read.name_fields[i], read.name_fields[j]):
        return False
    if read.name_fields[i, LENGTH] != LONGER:
        return True
    if read.objects[i] != read.objects[j]:
        return False
    one, other = read.name_fields[i, NUMBER], read.name_fields[j, NUMBER]
    for k in range(read.objects[i]):
        if byte_at(one + k) != byte_at(other + k):
            return False
    return True


@inlined
def add_word(read, n, letters, n_bytes):
    """Write the fields of the word at an address as word n, unless it is one of the n before.

    Return the number of words.
    """
    write_fields_of(letters, n_bytes, read.name_fields[n])
    read.name_fields[n, NUMBER], read.objects[n] = letters, n_bytes
    if n_bytes > LONGEST:  # names of more letters are never stored: these fields only mix them
        for i in range(WORD, n_bytes - WORD, WORD):
            read.name_fields[n, FIRST] = hash_of(read.name_fields[n]) ^ word_at(letters + i)
    last = read.met.shape[0] - 1
    place = hash_of(read.name_fields[n]) >> 20 & last
    while read.met[place] != 0:
        if is_word(read, read.met[place] - 1, n):
            return n
        place = (place + 1) & last
    read.met[place] = n + 1
    read.indices[n] = place  # until its number is found, so that the place can be emptied
    fetch(read.recent, WIDTH * start_of(read.recent, read.name_fields[n]))
    return n + 1


@inlined
def list_words(read, text, belongs):
    """List the distinct words of a text in lower case; return their number."""
    place = letters_of(text, read.cursor.ctypes.data)
    if place == 0:
        forget_failure()
        return NOT_READ
    end, n, start = place + read.cursor[0], 0, place
    while place < end:
        width = width_at(place)
        code = code_at(place, width)
        if code >= MOST_CODES:
            return NOT_READ - n
        if not belongs[code]:
            if start < place:
                n = add_word(read, n, start, place - start)
            start = place + width
        place += width
    return add_word(read, n, start, end - start) if start < end else n


@inlined
def find_words(read, n, numbers, joins):
    """Find the numbers of n words, given their fields; return whether all were found."""
    for i in range(n):
        word = read.name_fields[i]
        start = start_of(read.recent, word)
        number = number_at(read.recent, start, word)
        if number == NOT_SEEN:
            name = new_text(word[NUMBER], read.objects[i])
            if name == 0:
                forget_failure()
                return False
            number = number_of(name, numbers, joins)
            release(name)  # the dictionary has a reference of its own, if the word was added
            if number < 0:
                return False
            if number < size_of(numbers):
                note(read.recent, start, word, number)
        read.indices[i] = number
        read.values[i] = 1.0
    return True


@inlined
def list_pairs(read, n, text):
    """List the pairs of adjacent words, after n words; return the number of all."""
    place = letters_of(text, read.cursor.ctypes.data)
    end, before, start = place + read.cursor[0], place, place
    while place <= end:
        if place == end or byte_at(place) == SPACE:
            if before < start:
                n = add_word(read, n, before, place - before)
            before, start = start, place + 1
        place += 1
    return n


@inlined
def list_runs(read, n, text):
    """List the runs of `LENGTH_OF_RUNS` characters of a text, after n words and pairs."""
    first = letters_of(text, read.cursor.ctypes.data)
    if first == 0:
        forget_failure()
        return NOT_READ - n
    end, last, n_characters = first + read.cursor[0], first, 0
    while last < end:
        last += width_at(last)
        n_characters += 1
        if n_characters >= LENGTH_OF_RUNS:
            n = add_word(read, n, first, last - first)
            first += width_at(first)
    return n


@inlined
def numbered(read, n, numbers, joins):
    """Find the numbers of the n words listed; return n, NOT_READ if they cannot be found."""
    for i in range(n if n >= 0 else NOT_READ - n):
        read.met[read.indices[i]] = 0
    return n if n >= 0 and find_words(read, n, numbers, joins) else np.int64(NOT_READ)


@kernel(INT(INT, INT, BOOLS, INT, INT), nogil=False)
def read_text(event, text, belongs, numbers, joins):
    """Read the words of a text in lower case, each of value 1; return their number.

    Text and the dictionary of the numbers of words are given by their addresses; new words are
    added to it if `joins`, otherwise they get the number of the next word.
    """
    read = event_at(event)
    return numbered(read, list_words(read, text, belongs), numbers, joins)


@kernel(INT(INT, INT, INT, BOOLS, INT, INT), nogil=False)
def read_short_text(event, text, capitals, belongs, numbers, joins):
    """Read the words of a text, its pairs of words and its runs of characters; return their number.

    text : words in lower case with a space between them; capitals : the same in upper case, with a
    space around them as well; the others are as for `read_text`.
    """
    read = event_at(event)
    n = list_words(read, text, belongs)
    if n >= 0:
        n = list_runs(read, list_pairs(read, n, text), capitals)
    return numbered(read, n, numbers, joins)

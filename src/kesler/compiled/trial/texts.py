"""Texts as events: their words are read from their letters, without a Python object for each."""
# mypy: disallow_untyped_defs=False, disallow_untyped_calls=False

from __future__ import annotations

import numpy as np
from numba import types

from kesler.compiled.jit.decorators import INT, inlined, kernel
from kesler.compiled.jit.pointers import byte_at, fetch, word_at
from kesler.compiled.readers.lexing import BYTES
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
from kesler.compiled.trial.signs import (
    IN_WORD,
    MOST_CODES,
    SPACE,
    code_at,
    end_of_sign,
    end_of_word,
    width_at,
)

LENGTH_OF_RUNS = 4
"""As in :data:`kesler.data.texts.RUN_LENGTH`."""

new_text = types.ExternalFunction("PyUnicode_FromStringAndSize", INT(INT, INT))


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


BEGINS = ord("^")
"""As in :data:`kesler.data.texts.BEGINS`."""


@inlined
def add_word(read, n, letters, n_bytes):
    """Write the fields of the word at an address as word n, or count it as one of the n before.

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
            read.values[read.met[place] - 1] += 1.0
            return n
        place = (place + 1) & last
    read.met[place] = n + 1
    read.values[n] = 1.0
    read.indices[n] = place  # until its number is found, so that the place can be emptied
    fetch(read.recent, WIDTH * start_of(read.recent, read.name_fields[n]))
    return n + 1


@inlined
def add_token(read, n, letters, n_bytes, is_first):
    """Add a word as `add_word` does, with a sign before it if it is one of the beginning."""
    if is_first:
        start = read.cursor[1]
        read.letters[start] = BEGINS
        for i in range(n_bytes):
            read.letters[start + 1 + i] = byte_at(letters + i)
        n_bytes += 1
        read.cursor[1] = start + n_bytes
        letters = read.letters.ctypes.data + start
    return add_word(read, n, letters, n_bytes)


@inlined
def list_words(read, n, text, kinds, is_first):
    """List the distinct words and signs of a folded text, after n words; return their number.

    With a sign before each if `is_first`: they are those of the beginning of a text.
    """
    place = letters_of(text, read.cursor.ctypes.data)
    if place == 0:
        forget_failure()
        return NOT_READ - n
    first, end, start = place, place + read.cursor[0], place
    while place < end:
        width = width_at(place)
        code = code_at(place, width)
        if code >= MOST_CODES:
            return NOT_READ - n
        kind = kinds[code]
        if kind & IN_WORD:
            place += width
            continue
        stop = place
        if start < place:
            if kind:
                stop = end_of_word(kinds, place, end)
            n = add_token(read, n, start, stop - start, is_first)
        if kind and stop == place:
            before = byte_at(place - 1) if place > first else SPACE
            after_letter = start < place or (before < 0x80 and kinds[before] & IN_WORD)
            stop = end_of_sign(kinds, place, end, after_letter)
            if stop > place:
                n = add_token(read, n, place, stop - place, is_first)
        start = place = stop if stop > place else place + width
    return add_token(read, n, start, end - start, is_first) if start < end else n


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
def list_runs(read, n, text, length):
    """List the runs of a number of characters of a text, after n words, pairs and other runs."""
    first = letters_of(text, read.cursor.ctypes.data)
    if first == 0:
        forget_failure()
        return NOT_READ - n
    end, last, n_characters = first + read.cursor[0], first, 0
    while last < end:
        last += width_at(last)
        n_characters += 1
        if n_characters >= length:
            n = add_word(read, n, first, last - first)
            first += width_at(first)
    return n


@inlined
def numbered(read, n, numbers, joins):
    """Find the numbers of the n words listed; return n, NOT_READ if they cannot be found."""
    for i in range(n if n >= 0 else NOT_READ - n):
        read.met[read.indices[i]] = 0
    return n if n >= 0 and find_words(read, n, numbers, joins) else np.int64(NOT_READ)


@kernel(INT(INT, INT, INT, BYTES, INT, INT), nogil=False)
def read_text(event, text, beginning, kinds, numbers, joins):
    """Read the words of a folded text, with their counts; return the number of different ones.

    Those of its beginning are read once more, with a sign before them; NOT_READ if it has letters,
    but no words. Text, beginning and the dictionary of the numbers of words are given by their
    addresses; new words are added to it if `joins`, otherwise they get the number of the next word.
    """
    read = event_at(event)
    n = list_words(read, 0, text, kinds, False)
    if n > 0:
        read.cursor[1] = 0
        n_of_text = n
        n = list_words(read, n, beginning, kinds, True)
        if n == n_of_text and read.cursor[0] > 0:
            n = NOT_READ - n
    return numbered(read, n, numbers, joins)


@kernel(INT(INT, INT, INT, INT, INT, INT, BYTES, INT, INT), nogil=False)
def read_short_text(event, tokens, words, capitals, least, most, kinds, numbers, joins):
    """Read the tokens, pairs of words and runs of characters of a text; return their number.

    tokens, words, capitals : as :func:`kesler.data.texts.spaced` returns them.
    least, most : the lengths of runs; the others are as for `read_text`. Each has the value 1.
    """
    read = event_at(event)
    n = list_words(read, 0, tokens, kinds, False)
    if n >= 0:
        n = list_pairs(read, n, words)
    for length in range(least, most + 1):
        if n >= 0:
            n = list_runs(read, n, capitals, length)
    for i in range(n):
        read.values[i] = 1.0
    return numbered(read, n, numbers, joins)

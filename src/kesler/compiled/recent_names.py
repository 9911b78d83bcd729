"""Recent names: the numbers of names met of late.

Python's dictionary of all names has each in four places of memory, one known only when the one
before has been read. Here a name has one cache line, which its letters tell, so that those of all
names of a row can be asked for before the first is looked at. A line has two places: the name that
comes in takes the first, what stood there moves to the other, and what stood there makes room.
"""
# mypy: disallow_untyped_defs=False, disallow_untyped_calls=False

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import types

from kesler.compiled.borrowed import byte_at, word_at
from kesler.compiled.jit import INT, INT_TABLE, always_inlined, inlined, kernel
from kesler.room import aligned_zeros

# A name as it is noted: its first eight bytes and its last, which overlap if there are fewer than
# sixteen; one more than how many there are, LONGER if they do not fit, 0 where there is no name;
# and its number or, of a name to be looked up, its address.
FIRST, LAST, LENGTH, NUMBER = range(4)
WIDTH = 4
PLACES = 2  # of a name, side by side
MOST_PLACES = 20  # as a power of 2: 32 MB
NOT_MET = -1
LONGEST, WORD = 16, 8
LONGER = -1
SPREADS = (0x2545F4914F6CDD1D, 0x369DEA0F31A53F85)

letters_of = types.ExternalFunction("PyUnicode_AsUTF8AndSize", INT(INT, INT))


def no_names(most: int) -> npt.NDArray[np.int64]:
    """Return a table for so many names, at least as far as it may grow, none of which is met."""
    n_places = PLACES << min(MOST_PLACES - 1, most.bit_length())
    return aligned_zeros(n_places, WIDTH, dtype=np.int64)  # no memory before it is written to


@inlined
def spell(name, cursor, spelt):
    """Note a text of Python's, given by its address; return whether it has letters in UTF-8.

    `cursor` is the address of a word, for the length.
    """
    letters = letters_of(name, cursor)
    if letters == 0:
        return False
    n = word_at(cursor)
    spelt[LENGTH] = n + 1 if n <= LONGEST else LONGER
    if WORD <= n <= LONGEST:
        spelt[FIRST], spelt[LAST] = word_at(letters), word_at(letters + n - WORD)
    elif n < WORD:
        word = 0
        for i in range(n):
            word |= byte_at(letters + i) << 8 * i
        spelt[FIRST] = spelt[LAST] = word
    return True


@always_inlined
def home_of(recent, spelt):
    """Return the first place of a name, of those in a table; the other one is the next.

    Folded and multiplied once more, since a factor spreads bits upwards only, and names that begin
    alike differ in those of their last letters, which are the highest.
    """
    mixed = spelt[FIRST] * SPREADS[0] + spelt[LAST] * SPREADS[1] + spelt[LENGTH]
    mixed = (mixed ^ mixed >> 32) * SPREADS[0]
    return mixed >> 40 & (recent.shape[0] - PLACES)


@always_inlined
def number_at(recent, home, spelt):
    """Return the number of a name whose first place is given, NOT_MET if it is not there."""
    for place in range(home, home + PLACES):
        if is_name(recent[place], spelt):
            return recent[place, NUMBER]
    return NOT_MET


@always_inlined
def is_name(place, spelt):
    """Whether the name at a place is this one."""
    is_same = place[FIRST] == spelt[FIRST] and place[LAST] == spelt[LAST]
    return is_same and place[LENGTH] == spelt[LENGTH]


@always_inlined
def note(recent, home, spelt, number):
    """Put a name that is not too long in its first place; the one there moves to the other."""
    if spelt[LENGTH] != LONGER:
        for field in range(WIDTH):
            recent[home + 1, field] = recent[home, field]
        recent[home, FIRST], recent[home, LAST] = spelt[FIRST], spelt[LAST]
        recent[home, LENGTH], recent[home, NUMBER] = spelt[LENGTH], number


@kernel(types.void(INT_TABLE, INT_TABLE))
def take_over(recent, former):
    """Put the names of a table in another."""
    for spelt in former:
        if spelt[LENGTH] != 0:
            note(recent, home_of(recent, spelt), spelt, spelt[NUMBER])

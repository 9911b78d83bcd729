"""Events: one row in any of the forms in which programs hold it, read without a step of Python.

A mapping is read through Python's own functions for C, under its lock. What is not as expected (a
key that is no text, a value that is no plain number, NaN) is left to Python, whose words for it
are better.

Python's dictionary of all names has each in four places of memory, one known only when the one
before has been read. Here a name has one cache line, which its letters tell, so that those of all
names of a row can be asked for before the first is looked at. A line has two places: the name that
comes in takes the first, what stood there moves to the other, and what stood there makes room.
"""
# mypy: disallow_untyped_defs=False, disallow_untyped_calls=False

from __future__ import annotations

import sys
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import config, types

from kesler.compiled.jit.decorators import (
    DOUBLES,
    FLOATS,
    INDICES,
    INT,
    INT_TABLE,
    INTS,
    always_inlined,
    inlined,
    kernel,
)
from kesler.compiled.jit.pointers import byte_at, fetch_at, fetch_near, pointer_reader, put, word_at
from kesler.compiled.trial.tasks import task_at
from kesler.state.capacity import aligned_zeros

# A name as it is noted: its first eight bytes and its last, which overlap if there are fewer than
# sixteen; one more than how many there are, LONGER if they do not fit, 0 where there is no name;
# and its number or, of a name to be looked up, its address.
FIRST, LAST, LENGTH, NUMBER = range(4)
WIDTH = 4
PLACES = 2  # of a name, side by side
MOST_PLACES = 20  # as a power of 2: 32 MB
NOT_SEEN = -1
LONGEST, WORD = 16, 8
LONGER = -1
SPREADS = (0x2545F4914F6CDD1D, 0x369DEA0F31A53F85)

letters_of = types.ExternalFunction("PyUnicode_AsUTF8AndSize", INT(INT, INT))


def no_names(most: int) -> npt.NDArray[np.int64]:
    """Return a table for so many names, at least as far as it may grow, none of which is seen."""
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
    """Return the number of a name whose first place is given, NOT_SEEN if it is not there."""
    for place in range(home, home + PLACES):
        if is_name(recent[place], spelt):
            return recent[place, NUMBER]
    return NOT_SEEN


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


# What is returned instead of a number of entries.
NOT_READ = -1
# The first of `kinds`, types of Python by their address: of names, and of most values.
TEXT, FLOAT = range(2)
# Python keeps dictionaries by other rules where it has no lock: there it reads them itself.
READS_MAPPINGS = not config.DISABLE_JIT and getattr(sys, "_is_gil_enabled", lambda: True)()
# Every object begins with two words: how many refer to it, and its type.
TYPE = object.__basicsize__ - 8
# Up to here all whole numbers are numbers of float64, so that float32 is rounded to but once.
EXACT = 2.0**53


class Event(NamedTuple):
    """Room for the entries of one row.

    indices, values : (room,); spelt : (room, 4), names of a mapping as they are noted, each with
    its address; objects : (room,), addresses of their values; cursor : (3,), where in a mapping the
    reader is; kinds : (types,), as named above; recent : (places, 4), names seen of late.
    """

    indices: npt.NDArray[np.int32]
    values: npt.NDArray[np.float32]
    spelt: npt.NDArray[np.int64]
    objects: npt.NDArray[np.int64]
    cursor: npt.NDArray[np.int64]
    kinds: npt.NDArray[np.int64]
    recent: npt.NDArray[np.int64]


EVENT = types.NamedTuple((INDICES, FLOATS, INT_TABLE, INTS, INTS, INTS, INT_TABLE), Event)

event_at = pointer_reader(EVENT)

_VOID = types.void
size_of = types.ExternalFunction("PyDict_Size", INT(INT))
next_item = types.ExternalFunction("PyDict_Next", types.int32(INT, INT, INT, INT))
look_up = types.ExternalFunction("PyDict_GetItemWithError", INT(INT, INT))
set_default = types.ExternalFunction("PyDict_SetDefault", INT(INT, INT, INT))
new_number = types.ExternalFunction("PyLong_FromLongLong", INT(INT))
as_index = types.ExternalFunction("PyLong_AsLongLong", INT(INT))
as_double = types.ExternalFunction("PyFloat_AsDouble", types.float64(INT))
release = types.ExternalFunction("Py_DecRef", _VOID(INT))
has_failed = types.ExternalFunction("PyErr_Occurred", INT())
forget_failure = types.ExternalFunction("PyErr_Clear", _VOID())


@kernel(types.void(EVENT, INT))
def write_arguments(event, address):
    """Write an event to an address, where other kernels borrow it."""
    put(event, address)


@inlined
def list_entries(read, entry):
    """List the objects of a dictionary; return how many entries it has."""
    cursor, n = read.cursor, 0
    place = cursor.ctypes.data
    cursor[0] = 0
    while next_item(entry, place, place + 8, place + 16):
        read.spelt[n, NUMBER] = cursor[1]
        read.objects[n] = cursor[2]
        fetch_at(cursor[1])
        fetch_at(cursor[2])
        n += 1
    return n


@inlined
def type_of(something):
    """Return the address of an object's type."""
    return word_at(something + TYPE)


@inlined
def spell_names(read, n):
    """Spell n names, and ask for the places of all; return whether all are text."""
    text, cursor = read.kinds[TEXT], read.cursor.ctypes.data
    for i in range(n):
        spelt = read.spelt[i]
        if type_of(spelt[NUMBER]) != text:
            return False
        if not spell(spelt[NUMBER], cursor, spelt):
            forget_failure()
            return False
        fetch_near(read.recent, WIDTH * home_of(read.recent, spelt))
    return True


@inlined
def find_numbers(read, n, numbers, joins):
    """Find the numbers of n names that are spelt; return whether they could be."""
    for i in range(n):
        spelt = read.spelt[i]
        home = home_of(read.recent, spelt)
        number = number_at(read.recent, home, spelt)
        if number == NOT_SEEN:
            number = number_of(spelt[NUMBER], numbers, joins)
            if number < 0:
                return False
            if number < size_of(numbers):
                note(read.recent, home, spelt, number)
        read.indices[i] = number
    return True


@inlined
def number_of(name, numbers, joins):
    """Look a name up in the dictionary; return its number, negative if that failed.

    A new one joins if `joins`; else its number is the one that the next to join would have.
    """
    number = size_of(numbers)
    if not joins:
        found = look_up(numbers, name)
        return as_index(found) if found != 0 else number
    found = new_number(number)
    known = set_default(numbers, name, found)
    if known == 0:
        forget_failure()
        number = np.int64(NOT_READ)
    elif known != found:
        number = as_index(known)
    release(found)  # the dictionary holds it, unless the name was known
    return number


@inlined
def take_values(read, n):
    """Read n values; return whether all are numbers that float32 can hold."""
    for i in range(n):
        kind = type_of(read.objects[i])
        place = FLOAT
        while place < read.kinds.shape[0] and kind != read.kinds[place]:
            place += 1
        if place == read.kinds.shape[0]:
            return False
        number = as_double(read.objects[i])
        if number == -1.0 and has_failed() != 0:
            forget_failure()
            return False
        short = np.float32(number)
        if not np.isfinite(short) or (place != FLOAT and abs(number) > EXACT):
            return False
        read.values[i] = short
    return True


@kernel(INT(INT, INT, INT, INT), nogil=False)
def read_mapping(event, entry, numbers, joins):
    """Read a dictionary {name: value}, given by its address; return how many entries it has.

    Names not seen of late are looked up in the dictionary of their numbers at an address; new ones
    join it if `joins`, else they have the number that the next one would have.
    """
    read = event_at(event)
    n = list_entries(read, entry)
    # Objects lie all over memory: the shorter a loop, the more of them the processor waits for at
    # the same time. In one loop this took twice as long.
    if spell_names(read, n) and find_numbers(read, n, numbers, joins) and take_values(read, n):
        return n
    return NOT_READ


@kernel([INT(INT, DOUBLES), INT(INT, FLOATS)])
def read_array(event, x):
    """Read a row that lists every feature; return how many there are."""
    read = event_at(event)
    for i in range(x.shape[0]):
        short = np.float32(x[i])
        if not np.isfinite(short):
            return NOT_READ
        read.indices[i] = i
        read.values[i] = short
    return x.shape[0]


@kernel(INT(INT, INTS, DOUBLES, INT))
def read_pair(event, indices, values, limit):
    """Read a row of indices, which must rise below a limit, and values; return their number."""
    read, before = event_at(event), -1
    for i in range(indices.shape[0]):
        index, short = indices[i], np.float32(values[i])
        if index <= before or index >= limit or not np.isfinite(short):
            return NOT_READ
        read.indices[i] = index
        read.values[i] = short
        before = index
    return indices.shape[0]


@kernel(types.void(INT, INT, INT, types.float64, INT, INT))
def lay_out(event, task, n, constant, keeps_zeros, unseen):
    """Write the n entries of an event into the rows of a task, as trials read them.

    A constant feature, unless it is 0, comes first and moves the others up; zeros are left out
    unless they are kept; features from number `unseen` on become that one.
    """
    read, rows = event_at(event), task_at(task).rows
    n_before = 0
    if constant != 0:
        rows.indices[0] = 0
        rows.values[0] = constant
        n_before = 1
    n_written = n_before
    for i in range(n):
        if keeps_zeros or read.values[i] != 0:
            rows.indices[n_written] = min(read.indices[i] + n_before, unseen)
            rows.values[n_written] = read.values[i]
            n_written += 1
    rows.indptr[1] = n_written

"""Events: single rows in any of the supported formats, read without executing Python code.

A mapping is read through Python's C API, with the GIL held. Unexpected input (a key that is not
text, a value that is not a plain number, NaN) is left to Python code, which has better error
messages.

A look-up in Python's dictionary of all names reads four places of memory, each known only when the
previous one has been read. Here a name has one cache line, which its letters determine, so that the
lines of all names of a row can be prefetched before the first is read. A line has two places: a new
name takes the first, the name from there moves to the second, and the name from there is dropped.
"""
# mypy: disallow_untyped_defs=False, disallow_untyped_calls=False

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import types

from kesler.compiled.jit.background import is_ready
from kesler.compiled.jit.decorators import (
    DOUBLES,
    FLOATS,
    INDICES,
    INT,
    INT_TABLE,
    INTS,
    IS_INTERPRETED,
    always_inlined,
    inlined,
    kernel,
)
from kesler.compiled.jit.pointers import byte_at, fetch, fetch_at, pointer_reader, put, word_at
from kesler.compiled.trial.preprocessing import is_missing
from kesler.compiled.trial.tasks import task_at
from kesler.python_internals import TYPE, has_gil
from kesler.state.capacity import aligned_zeros

# The fields of a stored name: its first eight bytes and its last eight, which overlap if there are
# fewer than sixteen; its length plus 1, LONGER if it does not fit, 0 if there is no name; and its
# number or, for a name to be looked up, its address.
FIRST, LAST, LENGTH, NUMBER = range(4)
WIDTH = 4
PLACES = 2  # adjacent places for a name
MOST_PLACES = 20  # as a power of 2: 32 MB
NOT_SEEN = -1
LONGEST, WORD = 16, 8
LONGER = -1
SPREADS = (0x2545F4914F6CDD1D, 0x369DEA0F31A53F85)

letters_of = types.ExternalFunction("PyUnicode_AsUTF8AndSize", INT(INT, INT))


def no_names(most: int) -> npt.NDArray[np.int64]:
    """Return an empty table for at least `most` names, up to the maximum size."""
    n_places = PLACES << min(MOST_PLACES - 1, most.bit_length())
    return aligned_zeros(n_places, WIDTH, dtype=np.int64)  # uses no memory until it is written to


@inlined
def write_fields(name, cursor, name_fields):
    """Write the fields of a Python text at an address; return whether it can be encoded in UTF-8.

    `cursor` is the address of a word for the length.
    """
    letters = letters_of(name, cursor)
    if letters == 0:
        return False
    write_fields_of(letters, word_at(cursor), name_fields)
    return True


@inlined
def write_fields_of(letters, n, name_fields):
    """Write the fields of a name of n bytes at an address."""
    name_fields[LENGTH] = n + 1 if n <= LONGEST else LONGER
    if n >= WORD:
        name_fields[FIRST], name_fields[LAST] = word_at(letters), word_at(letters + n - WORD)
        return
    word = 0
    for i in range(n):
        word |= byte_at(letters + i) << 8 * i
    name_fields[FIRST] = name_fields[LAST] = word


@always_inlined
def hash_of(name_fields):
    """Return a number, determined by the fields of a name, whose bits from 16 on are well mixed.

    It is folded and multiplied again, since a factor propagates bits upwards only, and names with
    the same beginning differ in the bits of their last letters, which are the highest.
    """
    mixed = name_fields[FIRST] * SPREADS[0] + name_fields[LAST] * SPREADS[1] + name_fields[LENGTH]
    return (mixed ^ mixed >> 32) * SPREADS[0]


@always_inlined
def start_of(recent, name_fields):
    """Return the first place of a name in a table; its second place is the next one."""
    return hash_of(name_fields) >> 40 & (recent.shape[0] - PLACES)


@always_inlined
def number_at(recent, start, name_fields):
    """Return the number of a name, given its first place, NOT_SEEN if it is not stored."""
    for place in range(start, start + PLACES):
        if is_name(recent[place], name_fields):
            return recent[place, NUMBER]
    return NOT_SEEN


@always_inlined
def is_name(place, name_fields):
    """Return whether a place contains this name."""
    is_same = place[FIRST] == name_fields[FIRST] and place[LAST] == name_fields[LAST]
    return is_same and place[LENGTH] == name_fields[LENGTH]


@always_inlined
def note(recent, start, name_fields, number):
    """Store a name that is not too long in its first place; the one there moves to the second."""
    if name_fields[LENGTH] != LONGER:
        for field in range(WIDTH):
            recent[start + 1, field] = recent[start, field]
        recent[start, FIRST], recent[start, LAST] = name_fields[FIRST], name_fields[LAST]
        recent[start, LENGTH], recent[start, NUMBER] = name_fields[LENGTH], number


@kernel(types.void(INT_TABLE, INT_TABLE))
def take_over(recent, former):
    """Copy the names of a table to another table."""
    for name_fields in former:
        if name_fields[LENGTH] != 0:
            note(recent, start_of(recent, name_fields), name_fields, name_fields[NUMBER])


# Returned instead of the number of entries if a row cannot be read here.
NOT_READ = -1
# The first of `kinds`, addresses of Python types: the type of names, and that of most values.
TEXT, FLOAT = range(2)
# Without the GIL, dictionaries have other rules of access: there Python code reads them.
READS_MAPPINGS = not IS_INTERPRETED and has_gil()


def can_read(kernel: Any) -> bool:
    """Return whether a kernel that reads objects of Python can be called now."""
    return READS_MAPPINGS and is_ready(kernel)


# Up to here float64 represents all integers, so that the conversion to float32 rounds only once.
EXACT = 2.0**53


class Event(NamedTuple):
    """Buffers for the entries of one row.

    indices, values : (capacity,); name_fields : (capacity, 4), names of a mapping or words of a
    text, with their addresses; objects : (capacity,), addresses of the values, or lengths of the
    words; cursor : (3,), the position of the reader in a mapping, or of the letters of words with a
    sign before them, and how many of these are written; kinds : (types,), as named above;
    recent : (places, 4), recent names; met : (a power of 2, over twice the capacity), the words of
    a text by their letters, numbered from 1, otherwise zeros; letters : (capacity,), those of words
    with a sign before them.
    """

    indices: npt.NDArray[np.int32]
    values: npt.NDArray[np.float32]
    name_fields: npt.NDArray[np.int64]
    objects: npt.NDArray[np.int64]
    cursor: npt.NDArray[np.int64]
    kinds: npt.NDArray[np.int64]
    recent: npt.NDArray[np.int64]
    met: npt.NDArray[np.int32]
    letters: npt.NDArray[np.uint8]


EVENT = types.NamedTuple(
    (INDICES, FLOATS, INT_TABLE, *(INTS,) * 3, INT_TABLE, INDICES, types.uint8[::1]), Event
)

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
    """Write an event to an address, from which other kernels read it."""
    put(event, address)


@inlined
def list_entries(read, entry):
    """List the objects of a dictionary; return its number of entries."""
    cursor, n = read.cursor, 0
    place = cursor.ctypes.data
    cursor[0] = 0
    while next_item(entry, place, place + 8, place + 16):
        read.name_fields[n, NUMBER] = cursor[1]
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
def write_all_fields(read, n):
    """Write the fields of n names, and prefetch their places; return whether all are text."""
    text, cursor = read.kinds[TEXT], read.cursor.ctypes.data
    for i in range(n):
        name_fields = read.name_fields[i]
        if type_of(name_fields[NUMBER]) != text:
            return False
        if not write_fields(name_fields[NUMBER], cursor, name_fields):
            forget_failure()
            return False
        fetch(read.recent, WIDTH * start_of(read.recent, name_fields))
    return True


@inlined
def find_numbers(read, n, numbers, joins):
    """Find the numbers of n names, given their fields; return whether all were found."""
    for i in range(n):
        name_fields = read.name_fields[i]
        start = start_of(read.recent, name_fields)
        number = number_at(read.recent, start, name_fields)
        if number == NOT_SEEN:
            number = number_of(name_fields[NUMBER], numbers, joins)
            if number < 0:
                return False
            if number < size_of(numbers):
                note(read.recent, start, name_fields, number)
        read.indices[i] = number
    return True


@inlined
def number_of(name, numbers, joins):
    """Look up a name in the dictionary; return its number, negative on failure.

    A new name is added if `joins`; otherwise it gets the number of the next name to be added.
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
    release(found)  # the dictionary has a reference of its own, unless the name was known
    return number


@inlined
def take_values(read, n):
    """Read n values; return whether all are numbers that float32 can represent."""
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
    """Read a dictionary {name: value}, given by its address; return its number of entries.

    Names not seen recently are looked up in the dictionary of their numbers, given by its address;
    new ones are added to it if `joins`, otherwise they get the number of the next name.
    """
    read = event_at(event)
    n = list_entries(read, entry)
    # Objects are scattered over memory: the shorter a loop, the more of them the processor waits
    # for at the same time. A single loop took twice as long.
    if write_all_fields(read, n) and find_numbers(read, n, numbers, joins) and take_values(read, n):
        return n
    return NOT_READ


@kernel([INT(INT, DOUBLES, types.boolean), INT(INT, FLOATS, types.boolean)])
def read_array(event, x, takes_missing):
    """Read a row that lists every feature, missing ones if `takes_missing`; return their number."""
    read = event_at(event)
    for i in range(x.shape[0]):
        short = np.float32(x[i])
        if not (np.isfinite(short) or (takes_missing and is_missing(short))):
            return NOT_READ
        read.indices[i] = i
        read.values[i] = short
    return x.shape[0]


@kernel(INT(INT, INTS, DOUBLES, INT))
def read_pair(event, indices, values, limit):
    """Read a row of values and their indices, increasing and below a limit; return their number."""
    read, before = event_at(event), -1
    for i in range(indices.shape[0]):
        index, short = indices[i], np.float32(values[i])
        if index <= before or index >= limit or not np.isfinite(short):
            return NOT_READ
        read.indices[i] = index
        read.values[i] = short
        before = index
    return indices.shape[0]


@kernel(types.void(INT, INT, INT, types.float64, INT, INT, types.boolean))
def lay_out(event, task, n, constant, keeps_zeros, unseen, counts):
    """Write the n entries of an event to the rows of a task, as trials read them.

    A constant feature, unless it is 0, comes first, and the numbers of the others increase by one;
    zeros are omitted unless `keeps_zeros`; features from number `unseen` on get that number. Unless
    it `counts`, values are 1.
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
            rows.values[n_written] = read.values[i] if counts else np.float32(1)
            n_written += 1
    rows.indptr[1] = n_written

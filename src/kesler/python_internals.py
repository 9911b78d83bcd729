"""The internals of CPython that we use, which other implementations and later versions may change.

Other modules take them from here; tests/test_python_internals.py checks each row of `PRIVATE`.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from typing import Any

from kesler.interrupts import signals

TYPE = object.__basicsize__ - 8
"""Where the address of its type stands in an object, after its reference count."""

C_FUNCTIONS = (
    *("PyDict_Size", "PyDict_Next", "PyDict_GetItemWithError", "PyDict_SetDefault"),
    *("PyLong_FromLongLong", "PyLong_AsLongLong", "PyFloat_AsDouble"),
    *("PyUnicode_AsUTF8AndSize", "PyUnicode_FromStringAndSize"),
    *("Py_DecRef", "PyErr_Occurred", "PyErr_Clear"),
)
"""The functions of CPython's C interface that compiled code calls."""


def has_gil() -> bool:
    """Return whether one thread runs Python at a time; else dictionaries have other rules."""
    return bool(getattr(sys, "_is_gil_enabled", lambda: True)())


def type_address(thing: Any) -> int:
    """Return the address of the type of an object, as compiled code reads it."""
    return ctypes.c_int64.from_address(id(thing) + TYPE).value


def _object_at(address: int) -> Any:
    return ctypes.cast(address, ctypes.py_object).value


PRIVATE: dict[str, Callable[[], bool]] = {
    "id() is the address of an object": lambda: _object_at(id(PRIVATE)) is PRIVATE,
    "an object has the address of its type in its last word": lambda: all(
        type_address(each) == id(type(each)) for each in ("text", 1.5, 7, True, {}, object())
    ),
    "the C functions are exported": lambda: all(
        hasattr(ctypes.pythonapi, name) for name in C_FUNCTIONS
    ),
    "_signal has getsignal and signal": lambda: all(
        callable(each) for each in (signals.getsignal, signals.signal)
    ),
}
"""What must hold, in words, and a function that returns whether it does."""

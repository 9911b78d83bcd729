"""Cells of tables as plain Python values: what is missing, and what no column can hold."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from functools import lru_cache
from typing import Any
from uuid import UUID

import numpy as np

from kesler.data.labels import of_arrow
from kesler.data.schema.units import is_currency

MISSING_WORDS = frozenset(("", "NA", "NULL", "null", "N/A"))
"""Texts that stand for a missing cell, without the spaces around them."""

GAPS = frozenset(
    "? na <na> n/a #n/a #na n.a. nd n/d #n/d n.d. k.a. s.d. #nv nan -nan nat null (null) "
    "<null> [null] \\n none nil missing 1.#ind -1.#ind 1.#qnan -1.#qnan 1.#nan 0000-00-00".split()
) | {"", "not available", "n. a.", "k. a.", "keine angabe", "0000-00-00 00:00:00"}
"""What stands for a missing number or date besides, in lower case; elsewhere these are words."""

_LINE = re.compile(r"(\S*?)\s*(?:[-\u2010-\u2015\u2212_/]+|\.+|\u2026|\*+)\s*(\S*)")
"""What is written in place of an amount, whose currency may be on one side."""
_ERROR = re.compile(r"#[^\s\d]\S*[!?]")  # of a spreadsheet

Cell = None | bool | int | float | str | datetime | list[Any]
"""A plain cell; None is missing, and lists hold texts, numbers and truth values only."""


EPOCH = datetime(1970, 1, 1)
INFINITE = (math.inf, -math.inf)
LARGEST = 3.4028234663852886e38  # of float32


class UnfitError(ValueError):
    """A cell that its column cannot hold; the message says what it is."""


def plain(cell: Any) -> Cell:
    """Return a cell as a plain Python value, None if it is missing.

    Raises
    ------
    UnfitError
        If no column can hold such a cell: bytes, a mapping, a list of lists or another object.

    Examples
    --------
    >>> plain(np.float64("nan")), plain(" NULL "), plain(np.int64(3)), plain(("a", "b"))
    (None, None, 3, ['a', 'b'])
    """
    kind = type(cell)
    if kind is str:
        text: str = cell
        return None if text.strip() in MISSING_WORDS else text
    if kind is bool or cell is None:
        return bool(cell) if kind is bool else None
    if kind is int or kind is float:
        return None if cell != cell else cell
    return _converted(cell)


def is_gap(cell: Cell) -> bool:
    """Return whether a text stands for a missing cell where numbers or dates are expected.

    Examples
    --------
    >>> [is_gap(cell) for cell in (" n/a", "?", "#REF!", "- €", "$ --", "..")]
    [True, True, True, True, True, True]
    >>> [is_gap(cell) for cell in ("no", 0, "-5", "5 €", "#1")]
    [False, False, False, False, False]
    """
    if not isinstance(cell, str):
        return False
    text = cell.strip()
    return text.lower() in GAPS or (not text[-1].isdigit() and _is_sign(text))


def is_infinite(cell: Cell) -> bool:
    """Return whether a cell is infinite, a number or a word: no number, but not of another kind.

    Examples
    --------
    >>> is_infinite(math.inf), is_infinite(" -Infinity"), is_infinite("information")
    (True, True, False)
    """
    if isinstance(cell, str):
        return cell.strip().lower().lstrip("+-") in ("inf", "infinity", "\u221e")
    return cell in INFINITE


@lru_cache(maxsize=1024)
def _is_sign(text: str) -> bool:
    """Return whether a text is an error of a spreadsheet, or a line in place of an amount."""
    if _ERROR.fullmatch(text):
        return True
    line = _LINE.fullmatch(text)
    beside = line.groups() if line else ("no", "line")
    return "" in beside and all(not each or is_currency(each) for each in beside)


def plain_column(cells: list[Any]) -> list[Any] | None:
    """Return the plain cells of a column whose cells are texts and numbers alone, else None.

    They are those of :func:`plain`, which takes a call for each of the cells.

    Examples
    --------
    >>> plain_column([1.5, float("nan")]), plain_column(["a", " NA ", 1]), plain_column([b"a"])
    ([1.5, None], ['a', None, 1], None)
    """
    kinds = {*map(type, cells)} - {type(None)}
    if kinds <= {bool}:
        return cells
    if not kinds <= {str, int, float}:
        return None
    found = [None if c != c else c for c in cells] if float in kinds else cells
    texts = {c for c in {*found} if type(c) is str} if str in kinds else set()
    missing = {text for text in texts if text.strip() in MISSING_WORDS}
    return [None if c in missing else c for c in found] if missing else found


def _converted(cell: Any) -> Cell:
    """Return a cell that is not of one of Python's usual types."""
    of_pandas = OF_PANDAS.get(type(cell).__name__)
    if of_pandas is not None:
        return of_pandas(cell)
    for kind, convert in CONVERSIONS:
        if isinstance(cell, kind):
            return convert(cell)
    value = of_arrow(cell)
    if value is not cell:
        return plain(value)
    raise UnfitError(f"{short(cell)} ({type(cell).__name__})")


def _member(cell: Enum) -> Cell:
    """Return the category that a member of an enumeration stands for: its text, or its name."""
    return plain(cell.value if isinstance(cell.value, str) else cell.name)


def _decimal(cell: Decimal) -> Cell:
    return None if cell.is_nan() else float(cell)


def _duration(cell: Any) -> Cell:
    """Return the seconds of a duration."""
    if isinstance(cell, np.timedelta64):
        cell = cell.astype("timedelta64[us]").item() if cell == cell else None
    if cell is None:
        return None
    if isinstance(cell, timedelta):
        return cell.total_seconds()
    raise UnfitError(f"{short(cell)} microseconds")


def _time(cell: time) -> Cell:
    """Return the seconds since midnight."""
    return (datetime.combine(EPOCH, cell.replace(tzinfo=None)) - EPOCH).total_seconds()


def _moment(cell: Any) -> Cell:
    """Return a date as a datetime without time zone, in its own local time."""
    if cell != cell:  # NaT
        return None
    if isinstance(cell, np.datetime64):
        cell = cell.astype("datetime64[us]").item()
    if isinstance(cell, datetime):
        return datetime(*cell.timetuple()[:6], cell.microsecond)
    if isinstance(cell, date):
        return datetime(cell.year, cell.month, cell.day)
    raise UnfitError(f"{short(cell)} ({type(cell).__name__})")


def _items(cells: Sequence[Any] | Any) -> Cell:
    """Return a list whose items are plain; items that are missing are omitted."""
    if isinstance(cells, np.ndarray) and cells.ndim != 1:
        raise UnfitError(f"an array of shape {cells.shape}")
    items = cells.tolist() if isinstance(cells, np.ndarray) else [*cells]
    if {*map(type, items)} <= {int, float}:
        return [item for item in items if item == item] or None
    items = [plain(item) for item in items]
    odd = next((item for item in items if isinstance(item, (list, datetime))), None)
    if odd is not None:
        raise UnfitError(f"{short(cells)} (a list with a {type(odd).__name__} in it)")
    return [item for item in items if item is not None] or None


CONVERSIONS: tuple[tuple[Any, Callable[[Any], Cell]], ...] = (
    ((np.datetime64, date), _moment),
    ((timedelta, np.timedelta64), _duration),
    (time, _time),
    (Decimal, _decimal),
    (UUID, str),
    (Enum, _member),
    (np.floating, lambda cell: plain(float(cell))),
    (np.generic, lambda cell: plain(cell.item())),
    ((set, frozenset), lambda cell: _items(sorted(cell, key=short))),
    ((list, tuple, np.ndarray), _items),
    # Of subclasses, of which bool is one of int's.
    *((kind, lambda cell, kind=kind: plain(kind(cell))) for kind in (str, bool, int, float)),
)
"""What a cell of other types is read as; the first type that it is an instance of determines it."""

OF_PANDAS: dict[str, Callable[[Any], Cell]] = {
    "NAType": lambda cell: None,
    "NaTType": lambda cell: None,
    "Interval": str,
    "Period": lambda cell: _moment(cell.start_time),
}
"""The same of types of pandas, which need not be installed, by their names."""


def short(value: Any) -> str:
    """Return the beginning of what a value is written as."""
    try:
        text = repr(value)
    except Exception:  # of integers of thousands of digits, and of objects of users
        text = f"a value of the type {type(value).__name__}"
    return text if len(text) <= 60 else text[:57] + "..."

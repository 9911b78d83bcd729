"""Rows, answers and names as text in a database, and back, without loss."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from datetime import date, datetime
from typing import Any, cast

import numpy as np

from kesler.data.labels import is_missing, plain
from kesler.data.matrices import unmasked
from kesler.data.sparse_rows import is_sparse
from kesler.errors import KeslerError

# How a row is written. A mapping to numbers is its names, and its values or the only one: names in
# lists are read in half the time. Cells are those of tables, some of which JSON has no form for.
TEXT, MAPPING, ARRAY, PAIR, CELLS = "text", "mapping", "array", "pair", "cells"
SPARSE = "sparse"  # a pair with the number of features

LONGEST_NAME = 500
"""The maximum number of characters of ids, subjects and names of models."""

_to_json = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode


def row_to_text(x: Any) -> tuple[str, str]:
    """Return the form of a row, and its text.

    Raises
    ------
    KeslerError
        If the row is not of a form that `learn_one` accepts, or is one of ratings.

    Examples
    --------
    >>> row_to_text({"cash": 1}), row_to_text("win cash"), row_to_text([1, 2.5])
    (('mapping', '[["cash"],1]'), ('text', '"win cash"'), ('array', '[1.0,2.5]'))
    >>> row_to_text([1, float("nan")])  # a value is missing
    ('array', '[1.0,null]')
    """
    try:
        return _row_to_text(x)
    except (TypeError, ValueError, RecursionError, UnicodeError) as error:
        if isinstance(error, KeslerError):
            raise
        shown = " ".join(repr(x).split())  # in one line
        raise KeslerError(
            f"the row {shown:.60} cannot be kept in a journal ({error}): give a text, a mapping "
            "from names to cells, an array of numbers, NaN where one is missing, or a pair of "
            "arrays (indices, values)"
        ) from None


def _row_to_text(x: Any) -> tuple[str, str]:
    if isinstance(x, str):
        return TEXT, _valid(_to_json(str(x)))
    if isinstance(x, Mapping):
        return _mapping_to_text(x)
    if is_sparse(x):
        from kesler.data.inputs import listed_features

        indices, values = cast(Any, listed_features(x))
        return SPARSE, _to_json([_numbers(indices), _numbers(values), x.shape[-1]])
    if isinstance(x, tuple) and len(x) == 2 and all(isinstance(part, np.ndarray) for part in x):
        return PAIR, _to_json([_numbers(part) for part in x])
    if isinstance(x, (np.ndarray, list, tuple)):
        return _sequence_to_text(x)
    raise TypeError(f"a {type(x).__name__} is no row")


def _mapping_to_text(x: Mapping[Any, Any]) -> tuple[str, str]:
    cells = {_name(name): plain(value) for name, value in x.items()}
    if all(map(_is_plain, cells.values())):
        values = [*cells.values()]
        is_one = len({(type(value), value) for value in values}) == 1
        return MAPPING, _valid(_to_json([[*cells], values[0] if is_one else values]))
    return CELLS, _valid(_to_json({name: _cell(value) for name, value in cells.items()}))


def _is_plain(value: Any) -> bool:
    """Return whether JSON has a number for a value."""
    return type(value) in (int, bool) or (type(value) is float and math.isfinite(value))


def _sequence_to_text(x: Any) -> tuple[str, str]:
    array = np.asarray(unmasked(x))
    if array.ndim == 1 and array.dtype.kind in "biuf":
        return ARRAY, _to_json(_numbers(array, takes_missing=True))
    raise TypeError(f"its values are not numbers, but {array.dtype} of shape {array.shape}")


def _numbers(array: Any, *, takes_missing: bool = False) -> list[Any]:
    """Return the numbers of an array, None for those that are missing."""
    if array.ndim != 1 or array.dtype.kind not in "biuf":
        raise TypeError(f"its values are {array.dtype} of shape {array.shape}")
    found: list[Any] = array.tolist()
    if np.isfinite(array).all():
        return found
    if np.isinf(array).any() or not takes_missing:
        raise ValueError("a value is infinite, or NaN where each value listed is a number")
    return [None if math.isnan(value) else value for value in found]


def _array(values: list[Any]) -> Any:
    return np.array(values, dtype=float if None in values else None)


def _name(name: Any) -> str:
    if not isinstance(name, str):
        raise TypeError(f"the name {name!r} is not text")
    return str(name)


def _cell(value: Any) -> Any:
    """Return a cell of a table: what JSON has no form for is a mapping of one entry.

    What neither has a form for is written as the cell that a table reads.
    """
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"number": repr(value)}
    if is_missing(value):  # the NaT of pandas is a datetime
        return None
    if isinstance(value, datetime):
        return {"time": value.isoformat()}
    if isinstance(value, date):
        return {"date": value.isoformat()}
    if isinstance(value, np.datetime64):
        return {"datetime64": str(value)}
    if isinstance(value, (list, tuple, set, frozenset)):
        entries = sorted(value) if isinstance(value, (set, frozenset)) else value
        return {"list": [_cell(plain(each)) for each in entries]}
    from kesler.data.schema.cells import plain as plain_cell

    return _cell(plain_cell(value))


_CELLS: dict[str, Callable[[Any], Any]] = {
    "number": float,
    "time": datetime.fromisoformat,
    "date": date.fromisoformat,
    "datetime64": np.datetime64,
    "list": lambda entries: [_restored_cell(each) for each in entries],
}


def _restored_cell(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    ((kind, written),) = value.items()
    return _CELLS[kind](written)


def row_from_text(form: str, text: str) -> Any:
    """Return the row that `row_to_text` wrote, as `learn_one` accepts it.

    Examples
    --------
    >>> row_from_text("mapping", '[["cash"],1]'), row_from_text("array", "[1,2.5]")
    ({'cash': 1}, array([1. , 2.5]))
    """
    x = from_json(text)
    try:
        return _ROWS[form](x) if form in _ROWS else x
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        raise damaged(error) from error


def _mapping(x: Any) -> dict[str, Any]:
    names, values = x
    several = type(values) is list
    return dict(zip(names, values, strict=True)) if several else dict.fromkeys(names, values)


def _sparse_row(x: Any) -> Any:
    from scipy import sparse

    indices, values, width = x
    return sparse.csr_array((values, indices, [0, len(indices)]), shape=(1, width))


_ROWS: dict[str, Callable[[Any], Any]] = {
    MAPPING: _mapping,
    ARRAY: _array,
    PAIR: lambda x: (np.array(x[0], dtype=np.int64), np.array(x[1])),
    SPARSE: _sparse_row,
    CELLS: lambda x: {name: _restored_cell(value) for name, value in x.items()},
}


def names_and_value(text: str) -> tuple[list[str], str]:
    """Return the names of a row that is a mapping, and its values or the only one, still as JSON.

    Rows as `row_to_text` writes nearly all are read without a parser; others are left to it.

    Raises
    ------
    KeslerError
        If the row is not one of names and values.

    Examples
    --------
    >>> names_and_value('[["cash","win"],1]'), names_and_value('[[],[]]')
    ((['cash', 'win'], '1'), ([], '[]'))
    """
    if text.isprintable() and "\\" not in text and text.startswith('[["'):
        inner, _, value = text[3:-1].rpartition('"],')
        names = inner.split('","')
        if inner.count('"') == 2 * (len(names) - 1) and text.endswith("]"):
            return names, value
    x = from_json(text)
    try:
        read, values = x
        if not all(type(name) is str for name in read):
            raise TypeError("a name is not text")
        return read, _to_json(values)
    except (TypeError, ValueError) as error:
        raise damaged(error) from error


def from_json(text: str) -> Any:
    """Return what a text in the database holds; raise if it is not JSON."""
    try:
        return json.loads(text)
    except (TypeError, ValueError, RecursionError) as error:
        raise damaged(error) from error


def damaged(error: Exception) -> KeslerError:
    """Return the error for contents of the database that no journal has written."""
    return KeslerError(
        f"the journal holds what Kesler has not written ({error}): restore it from a backup"
    )


def value_to_text(value: Any) -> str:
    """Return a value that is kept beside a history as text.

    Raises
    ------
    KeslerError
        If JSON cannot hold it.
    """
    try:
        text = _to_json(value)
    except (TypeError, ValueError, RecursionError) as error:
        raise KeslerError(
            f"the value {value!r:.60} cannot be kept in a journal ({error}): give what JSON holds"
        ) from None
    return _valid(text)


def answer_to_text(y: Any) -> str:
    """Return an answer as text: a label, or a list of labels for a set or a ranking.

    Raises
    ------
    KeslerError
        If a label is neither a number nor text.

    Examples
    --------
    >>> answer_to_text("bills"), answer_to_text({"b", "a"})
    ('"bills"', '["a","b"]')
    """
    if isinstance(y, (set, frozenset)):
        try:
            y = sorted(y)
        except TypeError:
            raise KeslerError(f"the labels {y!r:.60} cannot be ordered: use one type") from None
    if isinstance(y, (list, tuple)):
        return _valid(_to_json([_label(each) for each in y]))
    return label_to_text(y)


def label_to_text(label: Any) -> str:
    """Return a label as text; raise if it is neither a number nor text."""
    return _valid(_to_json(_label(label)))


def _label(label: Any) -> Any:
    label = plain(label)
    if isinstance(label, bool) or type(label) in (int, str):
        return label
    if isinstance(label, (int, str)):  # derived types, such as those of enumerations
        return int(label) if isinstance(label, int) else str(label)
    if isinstance(label, float) and math.isfinite(label):
        return float(label)
    raise KeslerError(
        f"the label {label!r:.60} ({type(label).__name__}) cannot be kept in a journal: map labels "
        "to text or whole numbers"
    )


def answer_from_text(text: str) -> Any:
    """Return the answer that `answer_to_text` wrote."""
    return from_json(text)


def require_name(name: Any, what: str) -> str:
    """Return a name given by a user; raise unless it is text of a usable length.

    Parameters
    ----------
    name : the name.
    what : what it names, in messages.

    Raises
    ------
    KeslerError
        If it is not text, is empty, or is longer than `LONGEST_NAME`.
    """
    if not isinstance(name, str) or not 0 < len(name) <= LONGEST_NAME or "\0" in name:
        raise KeslerError(f"{what}={name!r:.60}: give a text of 1 to {LONGEST_NAME} characters")
    return _valid(str(name))


def _valid(text: str) -> str:
    """Return a text; raise if it cannot be written, such as half a pair of surrogates."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise KeslerError(
            f"the text {text!r:.60} holds half a surrogate pair, which no file can: decode it with "
            'errors="replace"'
        ) from None
    return text

"""Measurements: rows of the same few numbers, unlike counts of words, and tables as such rows."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from kesler.data.schema.cells import Cell, UnfitError
from kesler.data.schema.kinds import category_of
from kesler.data.schema.schema import Column, Schema
from kesler.data.sparse_rows import as_float32

LISTED = 0.75
"""The least share of all names that rows of measurements list, on average."""

MOST_CATEGORIES = 512
"""The most inputs of categories of a table; the cost of a row grows with their number."""

MOST_OF_COLUMN = 25
"""The most categories of a column in the first 50 rows where rows have no features beside inputs:
columns of more have many that come later, of which inputs say nothing."""

OF_COLUMN = {"number": 1.0, "date": 1.0, "category": 0.5}
"""The weight of a column of each kind in distances between rows, as the root of its part. That of
categories was chosen on tables of which half have few that matter."""

N_OF_DATE, MICROSECONDS_OF_DAY = 7, 86_400e6

MOST_NAMES = 1024
"""The most names of measurements; the first rows of more names are not kept."""


class Forms(NamedTuple):
    """The forms of rows that a learner reads.

    Parameters
    ----------
    features : whether rows that list only non-zeros, such as the features of a table.
    gaps : whether arrays in which values are missing.
    both : whether some of its members read features, and others arrays.
    """

    features: bool
    gaps: bool
    both: bool


def are_measurements(columns: Mapping[str, Sequence[Cell]]) -> bool:
    """Return whether rows hold the same numbers each: rows of an array, and no counts of words.

    They do if they list at least `LISTED` of all names, and no name has the value 1 where it is
    listed and is missing elsewhere, as indicators are. The values must not all be 1, and those of
    a single row not be those of counts, which are never missing.

    Parameters
    ----------
    columns : the cells of each name; None where a row does not list it.

    Examples
    --------
    >>> are_measurements({"length": [5.1, 4.9], "width": [3.5, None]})
    True
    >>> are_measurements({"cash": [1, None], "win": [None, 1]})
    False
    >>> are_measurements({"cash": [2]}), are_measurements({"cash": [2], "win": [None]})
    (False, True)
    """
    known = [cell for cells in columns.values() for cell in cells if cell is not None]
    values = [float(cell) for cell in known if isinstance(cell, (int, float))]
    if len(values) < len(known):
        return False
    n_rows = max(map(len, columns.values()), default=0)
    if n_rows == 1:
        return len(values) < len(columns) or not all(
            value > 0 and value.is_integer() for value in values
        )
    if len(values) < LISTED * len(columns) * n_rows or all(value == 1 for value in values):
        return False
    return not any(map(_indicates, columns.values()))


def _indicates(cells: Sequence[Cell]) -> bool:
    """Return whether a name is 1 where it is listed, and missing elsewhere."""
    return all(cell is None or cell == 1 for cell in cells) and None in cells


def schema_of_numbers(columns: Mapping[str, Sequence[Cell]], *, dense_only: bool) -> Schema:
    """Return the schema of rows of numbers by name: no column if they are counts of words.

    Parameters
    ----------
    columns : the cells of each name; None where a row does not list it.
    dense_only : whether the learner takes only rows that list every feature. Rows that all list
        the same names are such, whatever their numbers.
    """
    lists_all = dense_only and not any(None in cells for cells in columns.values())
    if len(columns) > MOST_NAMES or not (lists_all or are_measurements(columns)):
        return Schema()
    return Schema(
        tuple(Column(name, "number", {}, "the same numbers in most rows") for name in columns)
    )


@dataclass(frozen=True, slots=True)
class Inputs:
    """The columns of numbers, dates and categories of a table as the inputs of an array.

    A number is an input; a date is its day and its places in the day, the week and the year; a
    category is an input for each of those of the first rows, 1 for the one of the row. Inputs of a
    missing cell are NaN.

    Parameters
    ----------
    columns : tuple of (name, kind, categories)
        The columns, with the categories of the first rows; () of other kinds.
    beside : bool, default False
        Whether they are read by some members of an ensemble, beside the features that others read;
        False if they are all that is read of a row.

    Examples
    --------
    >>> inputs = Inputs((("size", "number", ()), ("colour", "category", ("red", "blue"))))
    >>> inputs.array({"size": [2.5, None], "colour": ["blue", "green"]}, 2)
    array([[2.5, 0. , 1. ],
           [nan, 0. , 0. ]], dtype=float32)
    >>> [round(weight, 2) for weight in inputs.weights]
    [1.0, 0.35, 0.35]
    """

    columns: tuple[tuple[str, str, tuple[str, ...]], ...]
    beside: bool = False

    @staticmethod
    def of_numbers(names: Iterable[str]) -> Inputs:
        """Return the inputs of columns of numbers."""
        return Inputs(tuple((name, "number", ()) for name in names))

    def __len__(self) -> int:
        return sum(width_of(kind, categories) for _, kind, categories in self.columns)

    @property
    def are_numbers(self) -> bool:
        """Whether each column is an input."""
        return all(kind == "number" for _, kind, _ in self.columns)

    @property
    def names(self) -> list[str]:
        """The names of the inputs: those of columns of numbers, if there are no others.

        Examples
        --------
        >>> Inputs((("size", "number", ()), ("colour", "category", ("red", "blue")))).names
        ['size', 'colour=red', 'colour=blue']
        """
        if self.are_numbers:
            return [name for name, *_ in self.columns]
        return [each for column in self.columns for each in _names_of(*column)]

    @property
    def weights(self) -> tuple[float, ...]:
        """The weight of each input in distances between rows, by which columns have equal parts."""
        found = list[float]()
        for _, kind, categories in self.columns:
            n = width_of(kind, categories)
            found += [OF_COLUMN[kind] / math.sqrt(max(1, n))] * n
        return tuple(found)

    def array(self, cells: Mapping[str, Sequence[Any]], n_rows: int) -> npt.NDArray[np.float32]:
        """Return parsed cells as rows; columns that are absent are missing."""
        missing = [None] * n_rows
        return np.concatenate(
            [_inputs_of(cells.get(name, missing), kind, each) for name, kind, each in self.columns],
            axis=1,
        )

    def to_json(self) -> list[Any]:
        """Return the columns as JSON can hold them."""
        return [[name, kind, list(categories)] for name, kind, categories in self.columns]

    @staticmethod
    def from_json(stored: Any, *, beside: bool) -> Inputs:
        """Return the inputs that `to_json` described; raise ValueError if they are none."""
        columns = tuple((name, kind, tuple(each)) for name, kind, each in stored)
        texts = [text for name, kind, each in columns for text in (name, kind, *each)]
        found = Inputs(columns, beside)
        if not (
            {*map(type, texts)} == {str}
            and all(kind in OF_COLUMN for _, kind, _ in columns)
            and len({name for name, *_ in columns}) == len(columns)
            and len(found) > 0
            and sum(len(each) for *_, each in columns) <= MOST_CATEGORIES
        ):
            raise ValueError(f"inputs {stored}")
        return found


def width_of(kind: str, categories: Sequence[str]) -> int:
    """Return the number of inputs of a column."""
    return {"number": 1, "date": N_OF_DATE}.get(kind, len(categories))


def inputs_of(schema: Schema, first: Mapping[str, Sequence[Cell]], reads: Forms) -> Inputs | None:
    """Return the inputs of a table, from its first rows; None if only its features are learnt.

    Columns of texts, lists or sequences say more than all inputs, and a table with one has none.

    Parameters
    ----------
    schema, first : the columns, and their cells in the first rows.
    reads : the forms of rows that the learner reads. If some members read features and others
        arrays, inputs are beside features, unless all columns are numbers; columns of categories
        beyond `MOST_CATEGORIES` have none. Inputs are in place of features if it reads arrays with
        missing values and they hold all that is known of the columns.
    """
    if schema.measurements:
        return Inputs.of_numbers(schema.measurements) if reads.gaps else None
    if schema.has_texts or not (reads.gaps or reads.both):
        return None
    inputs = Inputs(_columns_of(schema, first), reads.both)
    return inputs if len(inputs) and (reads.both or _hold_all(inputs, schema)) else None


def _hold_all(inputs: Inputs, schema: Schema) -> bool:
    """Return whether inputs are of all columns, of which at most half have a few categories.

    Of more, pairs of categories say more than numbers, and only features have these.
    """
    categories = [each for _, kind, each in inputs.columns if kind == "category"]
    are_few = all(len(each) <= MOST_OF_COLUMN for each in categories)
    n_columns = len(inputs.columns)
    return n_columns == len(schema.learnt) and are_few and 2 * len(categories) <= n_columns


def _columns_of(
    schema: Schema, first: Mapping[str, Sequence[Cell]]
) -> tuple[tuple[str, str, tuple[str, ...]], ...]:
    """Return the columns that have inputs, with their categories."""
    columns, n_categories = [], 0
    for column in (each for each in schema.learnt if each.kind in OF_COLUMN):
        is_category = column.kind == "category"
        categories = _categories(first.get(column.name, ())) if is_category else ()
        if n_categories + len(categories) <= MOST_CATEGORIES:
            n_categories += len(categories)
            columns.append((column.name, column.kind, categories))
    return tuple(columns)


def _names_of(name: str, kind: str, categories: Sequence[str]) -> list[str]:
    """Return the names of the inputs of a column."""
    from kesler.data.schema.features import CYCLES, escaped

    name = escaped(name)
    if kind == "number":
        return [name]
    if kind == "category":
        return [f"{name}={category}" for category in categories]
    return [name, *(f"{name}.{cycle}" for cycle in CYCLES)]


def _categories(cells: Sequence[Cell]) -> tuple[str, ...]:
    """Return the categories in cells, in the order of their first occurrence."""
    found = dict[str, None]()
    for cell in cells:
        with suppress(UnfitError):
            found |= {} if cell is None else {category_of(cell, {}): None}
    return tuple(found)


def _inputs_of(
    cells: Sequence[Any], kind: str, categories: Sequence[str]
) -> npt.NDArray[np.float32]:
    """Return the inputs of a column, of shape (n_rows, n_inputs)."""
    if kind == "category":
        return _of_categories(cells, categories)
    if kind == "number":
        return as_float32(np.array(cells, dtype=float))[:, None]
    from kesler.data.schema.features import cycles_of

    moments = np.array(cells, dtype="datetime64[us]")
    days = moments.astype(np.int64) / MICROSECONDS_OF_DAY  # float32 holds these to some minutes
    dates = np.concatenate([days[:, None], cycles_of(moments)], axis=1)
    dates[np.isnat(moments)] = np.nan
    return as_float32(dates)


def _of_categories(cells: Sequence[Any], categories: Sequence[str]) -> npt.NDArray[np.float32]:
    """Return an input for each category, 1 for that of a row."""
    numbers = {category: i for i, category in enumerate(categories)}
    codes = np.array([numbers.get(cell, -1) for cell in cells], dtype=np.int64)
    found = (codes[:, None] == np.arange(len(categories))).astype(np.float32)
    found[[cell is None for cell in cells]] = np.nan
    array: npt.NDArray[np.float32] = found
    return array

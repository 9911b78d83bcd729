"""Measurements: rows of the same few numbers, unlike counts of words, and tables as such rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from kesler.data.schema.cells import Cell, UnfitError
from kesler.data.schema.kinds import KINDS, category_of
from kesler.data.schema.schema import Column, Schema
from kesler.data.sparse_rows import as_float32
from kesler.errors import KeslerError

LISTED = 0.75
"""The least share of all names that rows of measurements list, on average."""

MOST_CATEGORIES = 512
"""The most inputs of categories of a table; the cost of a row grows with their number."""

MOST_OF_COLUMN = 25
"""The most categories of a column in the first 50 rows where rows have no features beside inputs:
columns of more have many that come later, of which inputs say nothing."""

INPUTS = {name: kind.weight for name, kind in KINDS.items() if kind.weight}
"""The kinds of columns that are inputs of arrays, and their weights in distances between rows."""

WITH_LENGTH = ("vector", "text")
"""The kinds of columns whose inputs are the numbers of vectors."""

N_OF_DATE, MICROSECONDS_OF_DAY = 7, 86_400e6

Vectors = Callable[[list[str]], Any]
"""A function from texts to their vectors, an array of shape (n_texts, length)."""

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
class InputColumn:
    """A column of a table as inputs of an array.

    Parameters
    ----------
    name, kind : those of the column.
    categories : the categories of the first rows, of a column of categories.
    length : the length of a vector, or of the vector of a text.
    """

    name: str
    kind: str
    categories: tuple[str, ...] = ()
    length: int = 0

    def __len__(self) -> int:
        return {"number": 1, "date": N_OF_DATE}.get(self.kind, len(self.categories) + self.length)

    @property
    def names(self) -> list[str]:
        """The names of the inputs, as those of features."""
        from kesler.data.schema.features import CYCLES, escaped

        name = escaped(self.name)
        if self.kind == "number":
            return [name]
        if self.kind == "category":
            return [f"{name}={category}" for category in self.categories]
        if self.length:
            return [f"{name}[{i}]" for i in range(self.length)]
        return [name, *(f"{name}.{cycle}" for cycle in CYCLES)]

    def array(self, cells: Sequence[Any], vectors: Vectors | None) -> npt.NDArray[np.float32]:
        """Return the inputs of parsed cells, of shape (n_rows, n_inputs)."""
        if self.kind == "number":
            return as_float32(np.array(cells, dtype=float))[:, None]
        if self.kind == "date":
            return _of_dates(cells)
        if self.kind == "category":
            return _of_categories(cells, self.categories)
        if self.kind == "text":
            return vectors_of_texts(vectors, cells, self.length)
        missing = [math.nan] * self.length
        return as_float32(np.array([missing if cell is None else cell for cell in cells]))


@dataclass(frozen=True, slots=True)
class Inputs:
    """Columns of a table as the inputs of an array.

    A number is an input; a date is its day and its places in the day, the week and the year; a
    category is an input for each of those of the first rows, 1 for the one of the row; a vector is
    its numbers, and so is that of a text. Inputs of a missing cell are NaN.

    Parameters
    ----------
    columns : tuple of InputColumn
        The columns.
    beside : bool, default False
        Whether they are read by some members of an ensemble, beside the features that others read;
        False if they are all that is read of a row.

    Examples
    --------
    >>> columns = InputColumn("size", "number"), InputColumn("colour", "category", ("red", "blue"))
    >>> inputs = Inputs(columns)
    >>> inputs.array({"size": [2.5, None], "colour": ["blue", "green"]}, 2)
    array([[2.5, 0. , 1. ],
           [nan, 0. , 0. ]], dtype=float32)
    >>> [round(weight, 2) for weight in inputs.weights]
    [1.0, 0.35, 0.35]
    """

    columns: tuple[InputColumn, ...]
    beside: bool = False

    @staticmethod
    def of_numbers(names: Iterable[str]) -> Inputs:
        """Return the inputs of columns of numbers."""
        return Inputs(tuple(InputColumn(name, "number") for name in names))

    def __len__(self) -> int:
        return sum(map(len, self.columns))

    @property
    def vectors(self) -> list[str]:
        """The names of the columns of vectors."""
        return [column.name for column in self.columns if column.kind == "vector"]

    @property
    def n_columns(self) -> int:
        """The number of inputs that are not those of vectors, which come last; all if none is."""
        return sum(len(each) for each in self.columns if not each.length) or len(self)

    @property
    def has_vectors(self) -> bool:
        """Whether some inputs are those of vectors, of columns or of texts."""
        return any(column.length for column in self.columns)

    @property
    def are_numbers(self) -> bool:
        """Whether each column is an input."""
        return all(column.kind == "number" for column in self.columns)

    @property
    def names(self) -> list[str]:
        """The names of the inputs: those of columns of numbers, if there are no others.

        Examples
        --------
        >>> columns = InputColumn("size", "number"), InputColumn("colour", "category", ("red",))
        >>> Inputs(columns).names
        ['size', 'colour=red']
        """
        if self.are_numbers:
            return [column.name for column in self.columns]
        return [name for column in self.columns for name in column.names]

    @property
    def weights(self) -> tuple[float, ...]:
        """The weight of each input in distances between rows, by which columns have equal parts."""
        found = list[float]()
        for column in self.columns:
            found += [INPUTS[column.kind] / math.sqrt(max(1, len(column)))] * len(column)
        return tuple(found)

    @property
    def weights_in_ranges(self) -> tuple[float, ...]:
        """The same weights where inputs are in units of their range."""
        kinds = [column.kind for column in self.columns for _ in range(len(column))]
        pairs = zip(self.weights, kinds, strict=True)
        return tuple(weight * KINDS[kind].of_range for weight, kind in pairs)

    def array(
        self, cells: Mapping[str, Sequence[Any]], n_rows: int, vectors: Vectors | None = None
    ) -> npt.NDArray[np.float32]:
        """Return parsed cells as rows; columns that are absent are missing.

        vectors : the function that returns those of texts, if some columns are texts.
        """
        missing = [None] * n_rows
        found = [each.array(cells.get(each.name, missing), vectors) for each in self.columns]
        return np.concatenate(found, axis=1)

    def merged(self, cells: Mapping[str, Sequence[Any]]) -> list[str]:
        """Return the columns of parsed numbers of which different ones are equal as float32."""
        from kesler.data.inputs import are_merged

        numbers = [c.name for c in self.columns if c.kind == "number" and c.name in cells]
        return [name for name in numbers if are_merged(np.array(cells[name], dtype=float))]

    def to_json(self) -> list[Any]:
        """Return the columns as JSON can hold them."""
        return [[c.name, c.kind, list(c.categories), c.length] for c in self.columns]

    @staticmethod
    def from_json(stored: Any, *, beside: bool) -> Inputs:
        """Return the inputs that `to_json` described; raise ValueError if they are none."""
        columns = tuple(
            InputColumn(name, kind, tuple(each), *length) for name, kind, each, *length in stored
        )
        texts = [text for c in columns for text in (c.name, c.kind, *c.categories)]
        found = Inputs(columns, beside)
        if not (
            {*map(type, texts)} == {str}
            and all(c.kind in INPUTS and type(c.length) is int for c in columns)
            and all(c.length > 0 if c.kind in WITH_LENGTH else c.length == 0 for c in columns)
            and len({c.name for c in columns}) == len(columns)
            and len(found) > 0
            and sum(len(c.categories) for c in columns) <= MOST_CATEGORIES
        ):
            raise ValueError(f"inputs {stored}")
        return found


def inputs_of(
    schema: Schema,
    first: Mapping[str, Sequence[Cell]],
    reads: Forms,
    vectors: Vectors | None = None,
) -> Inputs | None:
    """Return the inputs of a table, from its first rows; None if only its features are learnt.

    Texts, tags and sequences say more than numbers and categories: beside them, only vectors are
    inputs.

    Parameters
    ----------
    schema, first : the columns, and their cells in the first rows.
    reads : the forms of rows that the learner reads. If some members read features and others
        arrays, inputs are beside features, unless all columns are numbers; columns of categories
        beyond `MOST_CATEGORIES` have none. Inputs are in place of features if it reads arrays with
        missing values and they hold all that is known of the columns.
    vectors : the function that returns those of texts, which are inputs then.
    """
    if schema.measurements:
        return Inputs.of_numbers(schema.measurements) if reads.gaps else None
    if not (reads.both or (reads.gaps and not schema.has_texts)):
        return None
    inputs = Inputs(_columns_of(schema, first, vectors), reads.both)
    return inputs if len(inputs) and (reads.both or _hold_all(inputs, schema)) else None


def _hold_all(inputs: Inputs, schema: Schema) -> bool:
    """Return whether inputs are of all columns, of which at most half have a few categories.

    Of more, pairs of categories say more than numbers, and only features have these.
    """
    categories = [each.categories for each in inputs.columns if each.kind == "category"]
    are_few = all(len(each) <= MOST_OF_COLUMN for each in categories)
    n_columns = len(inputs.columns)
    return n_columns == len(schema.learnt) and are_few and 2 * len(categories) <= n_columns


def _columns_of(
    schema: Schema, first: Mapping[str, Sequence[Cell]], vectors: Vectors | None
) -> tuple[InputColumn, ...]:
    """Return the columns that have inputs, those of vectors last.

    A column in which no vector has been seen yet has none.
    """
    kinds, columns, n_categories = _kinds_of_inputs(schema, vectors), list[InputColumn](), 0
    for column in (each for each in schema.learnt if each.kind in kinds):
        cells = first.get(column.name, ())
        categories = _categories(cells) if column.kind == "category" else ()
        length = length_of_vectors(vectors) if vectors and column.kind == "text" else 0
        length = column.options.get("length", length)
        is_known = length > 0 or column.kind not in WITH_LENGTH
        if is_known and n_categories + len(categories) <= MOST_CATEGORIES:
            n_categories += len(categories)
            columns.append(InputColumn(column.name, column.kind, categories, length))
    return tuple(sorted(columns, key=lambda column: column.length > 0))


def _kinds_of_inputs(schema: Schema, vectors: Vectors | None) -> Collection[str]:
    """Return the kinds of the columns that are inputs."""
    if schema.has_texts:
        return WITH_LENGTH if vectors else ("vector",)
    return INPUTS.keys() - {"text"}


def _categories(cells: Sequence[Cell]) -> tuple[str, ...]:
    """Return the categories in cells, in the order of their first occurrence."""
    found = dict[str, None]()
    for cell in cells:
        with suppress(UnfitError):
            found |= {} if cell is None else {category_of(cell, {}): None}
    return tuple(found)


def _of_dates(cells: Sequence[Any]) -> npt.NDArray[np.float32]:
    """Return the day of each date, and its places in the day, the week and the year."""
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


def length_of_vectors(vectors: Vectors) -> int:
    """Return the length of the vectors that a function returns for texts."""
    return int(vectors_of_texts(vectors, ["text"]).shape[1])


def vectors_of_texts(
    vectors: Vectors | None, texts: Sequence[str | None], length: int | None = None
) -> npt.NDArray[np.float32]:
    """Return the vectors of texts, NaN where a text is missing.

    Raises
    ------
    KeslerError
        If the function does not return an array of one row for each text, of this length, without
        infinite numbers.
    """
    known = [text for text in texts if text is not None]
    found = as_float32(vectors(known)) if vectors and known else np.empty((0, length or 0))
    is_table = found.ndim == 2 and len(found) == len(known) and found.shape[1] > 0
    if known and not (is_table and found.shape[1] == (length or found.shape[1])):
        raise KeslerError(
            f"vectors= gave an array of shape {found.shape} for {len(known)} texts: it must have "
            f"a row for each, of {length or 'the same number of'} numbers"
        )
    if np.isinf(found).any():
        raise KeslerError("vectors= gave numbers that are infinite, or too large for float32")
    array = np.full((len(texts), found.shape[1]), np.nan, dtype=np.float32)
    array[[text is not None for text in texts]] = found
    return array

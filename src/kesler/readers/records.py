"""Records: conversion of the named fields of tables and JSON to features."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from math import nan
from typing import Any

import numpy as np

from kesler.data.rows import Rows
from kesler.data.schema.cells import is_gap, plain_column, short
from kesler.data.schema.numerals import amount
from kesler.data.sparse_rows import SparseRows
from kesler.data.texts import counted
from kesler.errors import KeslerError
from kesler.readers.features import MOST_UNKNOWN, Names, Renumbering, finite
from kesler.readers.lines import require_text
from kesler.readers.reader import BadRow, Example, Reader

DENSE = "the first record, of numbers only, makes the table dense"


Words = Callable[[Sequence[str]], dict[str, float]]


@dataclass(frozen=True, slots=True)
class Fields:
    """The roles of the fields of a record.

    Parameters
    ----------
    source : str
        The name of the source in messages.
    label : str or None
        The field of the label.
    text : sequence of str
        The text fields; if there are any, all other fields are ignored.
    require_labels : bool
        If True, a table must have a column of labels.
    as_table : bool
        If True, rows are those of a :class:`~kesler.data.schema.records.Table`, whose columns are
        given their kinds by the learner.
    words : function
        The features of the texts of a row.
    id : str or None
        The field that identifies a row.
    missing : bool
        Whether numbers of a dense table may be missing.
    label_sets : bool
        Whether a row has a list of labels.
    on_mismatch : "missing" or "raise"
        Whether cells that are no numbers count as missing in a dense table, or make a row bad.
    decimals : mapping of str to str
        The decimal signs of the columns of a dense table whose sign is not a point.
    """

    source: str
    label: str | None
    text: Sequence[str]
    require_labels: bool
    as_table: bool = False
    words: Words = counted
    id: str | None = None
    missing: bool = True
    label_sets: bool = False
    on_mismatch: str = "missing"
    decimals: Mapping[str, str] = field(default_factory=dict)

    @property
    def required(self) -> list[str]:
        """The columns that a table must have."""
        named = [self.label if self.require_labels else None, self.id, *self.text]
        return [name for name in named if name is not None]

    def require_columns(
        self, columns: Sequence[str], *, if_twice: str = "", if_missing: str = ""
    ) -> None:
        """Raise KeslerError if columns are not distinct, or a required one is missing.

        The strings say what can be done besides naming each, and naming another.
        """
        twice = next((name for name, n in Counter(columns).items() if n > 1), None)
        if twice is not None:
            raise KeslerError(
                f"{self.source} has more than one column {twice!r}: give each its own name"
                f"{if_twice}"
            )
        if self.label is None and self.require_labels:
            raise KeslerError(
                f"say which column of {self.source} holds the labels with label=...: "
                f"it has {listed(columns)}"
            )
        missing = [name for name in self.required if name not in columns]
        if missing:
            hint = "; name the column of the texts (text=...)" * (missing[0] in self.text)
            raise KeslerError(
                f"{self.source} has no column {missing[0]!r}: it has {listed(columns)}{hint}"
                f"{if_missing}"
            )


class Records:
    """Conversion of records {field: value} to examples.

    With text fields, the features of a record are the tokens of these fields only. Without text
    fields, it is a row of a table: a number is the feature ``field``, a string is the feature
    ``field=value``, a boolean is 0 or 1, and an empty field or None is missing. If all records have
    the same fields and the first holds only numbers, the table is dense: every record must hold a
    number in each field.

    Parameters
    ----------
    fields : Fields
        The roles of the fields.
    names : Names
        Numbers the features.
    default_text : str or None
        The text field, if none is given and the first record has this field.
    same_fields : bool
        If True, all records have the fields of the first, as in a table with a header; if False,
        each record has its own fields, and missing ones are zero.

    Attributes
    ----------
    columns : dict of str to None, or None
        The columns of a dense table in the order of their numbers; None if the table is not dense
        or no record has been read yet.

    Examples
    --------
    >>> from kesler.data.rows import Vocabulary
    >>> table = Fields("a table", label="kind", text=(), require_labels=True)
    >>> Records(table, Names(Vocabulary(), grow=True)).example(
    ...     {"kind": "A", "size": 2, "colour": "red"}
    ... )
    Example(label='A', entry={'size': 2.0, 'colour=red': 1.0}, weight=1.0, \
id=None, misfits=None)
    """

    def __init__(
        self,
        fields: Fields,
        names: Names,
        default_text: str | None = None,
        same_fields: bool = True,
    ) -> None:
        self._fields = fields
        self._names = names
        self._default_text = default_text
        self._same_fields = same_fields
        self._entry: Callable[[Mapping[str, Any]], dict[str, float]] | None = None
        self._misfits = dict[str, str]()
        self.columns: dict[str, None] | None = None
        self._n_gathered = 0
        self._is_of_counts = False

    @property
    def takes_missing(self) -> bool:
        """Whether numbers may be missing."""
        return self.columns is not None and self._fields.missing

    def example(self, record: dict[str, Any]) -> Example:
        """Remove the label from a record and convert the rest; the first record determines how."""
        label = record.pop(self._fields.label, None) if self._fields.label is not None else None
        id = None if self._fields.id is None else record.get(self._fields.id)
        if self._fields.as_table:
            return Example(label, record, id=id)
        if self._entry is None:
            self._entry = self._settled(record)
        try:
            entry = finite(self._entry(record), or_missing=self.takes_missing)
        except BadRow as fault:
            fault.label = label
            raise
        misfits, self._misfits = self._misfits, {}
        return Example(label, entry, id=id, misfits=misfits or None)

    def gather(self, entries: Sequence[Mapping[str, Any]]) -> Any:
        """Return the rows of consecutive entries, or the table of consecutive records."""
        if self._is_of_counts:
            return self._names.gather_words(entries)
        if not self._fields.as_table:
            return self._names.gather(entries, dense=self.columns is not None)
        from kesler.data.schema.records import table_of

        first_row, self._n_gathered = self._n_gathered, self._n_gathered + len(entries)
        return replace(table_of(entries), first_row=first_row)

    def gather_columns(self, columns: Mapping[str, list[str]], places: list[int | str]) -> Any:
        """Return the table of the cells of consecutive records, each of which has all columns."""
        from kesler.data.schema.records import Places, Table

        first_row, self._n_gathered = self._n_gathered, self._n_gathered + len(places)
        cells = {name: plain_column(column) or [] for name, column in columns.items()}
        of_file = Places(self._fields.source, "line", places)
        return Table(len(places), cells, first_row=first_row, places=of_file)

    def _settled(self, first: Mapping[str, Any]) -> Callable[[Mapping[str, Any]], dict[str, float]]:
        text = self._fields.text or [name for name in first if name == self._default_text]
        if text:
            self._is_of_counts = self._fields.words is counted
            return partial(_text_entry, fields=text, words=self._fields.words)
        if not self._is_dense(first):
            return _sparse_entry
        self.columns = self._in_order(first)
        return self._dense_entry

    def _is_dense(self, first: Mapping[str, Any]) -> bool:
        # A vocabulary with indicators comes from a sparse table, which this one continues.
        known = self._names.vocabulary.indices
        if known and self._names.width:
            return True  # as the rows that a model has learnt
        if not self._same_fields:
            return False
        goes_on_sparse = any("=" in name and name not in first for name in known)
        signs = self._fields.decimals
        numbers = [_number_or_gap(value, signs.get(name)) for name, value in first.items()]
        # A gap in the first record may be one of texts, unless a model has learnt numbers.
        has_gap = any(number != number for number in numbers)
        is_numeric = None not in numbers and (bool(self._names.width) or not has_gap)
        return bool(first) and is_numeric and not goes_on_sparse

    def _dense_entry(self, record: Mapping[str, Any]) -> dict[str, float]:
        columns = self.columns or {}
        if not self._same_fields:
            return {column: self._number(column, record.get(column)) for column in columns}
        odd = sorted(record.keys() ^ columns.keys())
        if odd:
            raise BadRow(f"{odd[0]!r} is not in both this record and the first one: {DENSE}")
        return {column: self._number(column, record[column]) for column in columns}

    def _number(self, column: str, value: Any) -> float:
        """Return the number in a cell of a dense table, NaN if it is missing or is no number."""
        number = _number_or_gap(value, self._fields.decimals.get(column, "."))
        if number is None:
            said = f"{column!r} holds {value!r}, which is no number"
            if not self.takes_missing or self._fields.on_mismatch == "raise":
                raise BadRow(f"{said}: {DENSE}")
            if self._names.grow or column in self._names.vocabulary.indices:
                self._misfits[column] = short(value)
            number = nan
        if number != number and not self.takes_missing:
            raise BadRow(
                f"{column!r} is missing, and this learner takes no missing values: choose "
                'preprocessing="z-scores" or the default learner'
            )
        return _as_float(column, number)

    def _in_order(self, first: Mapping[str, Any]) -> dict[str, None]:
        """Return the columns of a dense table in the order of their numbers."""
        known = self._names.vocabulary.indices
        if not self._same_fields:
            return dict.fromkeys(known)
        missing = [name for name in known if name not in first]
        if missing:
            raise KeslerError(
                f"{self._fields.source} lacks {listed(missing)}, which the vocabulary holds: "
                f"give it the columns of the training data (it has {listed(first)})"
            )
        return dict.fromkeys(sorted(first, key=lambda name: known.get(name, len(known))))


def table_reader(
    unit: str,
    header: Sequence[str],
    rows: Iterator[tuple[int, Sequence[Any]]],
    fields: Fields,
    names: Names,
) -> Reader:
    """Return the reader of a table of cells that have types.

    Parameters
    ----------
    unit : str
        The unit in which rows are counted.
    header : sequence of str
        The columns.
    rows : iterator of (number, cells)
        The rows.
    fields : Fields
        The roles of the columns. Numbers and dates in text fields are texts.
    names : Names
        Numbers the features.
    """
    fields.require_columns(header)
    records, texts = Records(fields, names), [header.index(name) for name in fields.text]

    def parse(row: Sequence[Any]) -> Example:
        cells = list(row)
        for i in texts:
            cells[i] = cells[i] if cells[i] is None else str(cells[i])
        require_text("".join(cell for cell in cells if isinstance(cell, str)))
        return records.example(dict(zip(header, cells, strict=True)))

    return Reader(unit, rows, parse, records.gather, names.vocabulary)


def listed(names: Iterable[str]) -> str:
    """Return the first twenty names as a list for a message.

    Examples
    --------
    >>> listed(["price", "size"])
    "'price', 'size'"
    """
    quoted = [repr(name) for name in names]
    more = [f"{len(quoted) - 20} more"] if len(quoted) > 20 else []
    return ", ".join(quoted[:20] + more) or "none"


def _text_entry(record: Mapping[str, Any], fields: Sequence[str], words: Words) -> dict[str, float]:
    if not any(field in record for field in fields):
        raise BadRow(f"there is no text field {listed(fields)}, only {listed(record)}")
    strings = list[str]()
    for name in fields:
        value = record.get(name)
        texts = value if isinstance(value, list) else [] if value is None else [value]
        if not all(isinstance(text, str) for text in texts):
            raise BadRow(f"the text field {name!r} holds neither a string nor a list of strings")
        strings.extend(texts)
    return words(strings)


def _number_or_gap(value: Any, decimal: str | None) -> float | None:
    """Return a number, NaN for a missing cell; None if it is neither.

    A text is a number if it is one with this decimal sign.
    """
    plain = _plain(value)
    if isinstance(plain, int | float):
        return plain
    if plain is None or is_gap(plain):
        return nan
    return amount(plain, decimal) if decimal and isinstance(plain, str) else None


def _sparse_entry(record: Mapping[str, Any]) -> dict[str, float]:
    entry = dict[str, float]()
    for name, value in record.items():
        if isinstance(value, int | float):
            entry[name] = _as_float(name, value)
        elif isinstance(value, str):
            entry.update({f"{name}={value}": 1.0} if value else {})
        elif value is not None:
            entry.update(_of_other_type(name, value))
    return entry


def _of_other_type(field: str, value: Any) -> dict[str, float]:
    """Return the entry of the fields of a mapping, or of a number of another type."""
    from kesler.data.schema.records import DEEPEST, nested

    fields = nested(value) if field.count(".") < DEEPEST else None
    if fields is not None:
        return _sparse_entry({f"{field}.{name}": each for name, each in fields.items()})
    plain = _plain(value)
    if isinstance(plain, int | float | str | None):
        return _sparse_entry({field: plain})
    raise BadRow(f"{field!r} holds a {type(value).__name__}, not a number or a string")


def _plain(value: Any) -> Any:
    """Return a value of another type as a number or a text if it is one; else as it is."""
    if isinstance(value, int | float | str | None):
        return value
    from kesler.data.schema.cells import UnfitError, plain

    try:
        return plain(value)
    except UnfitError:
        return value


def _as_float(field: str, value: float) -> float:
    try:
        return float(value)
    except OverflowError:
        raise BadRow(f"{field!r} holds an integer too large for a number") from None


class Columns:
    """The features of a table by number: first its columns, then others as they occur.

    Parameters
    ----------
    names : Names
        The vocabulary, and whether it grows.
    records : Records
        The conversion of single records; at least one has been read.
    header : sequence of str
        The columns.
    label : str or None
        The column of the labels.

    Attributes
    ----------
    is_dense : bool
        Whether each row holds a number in each column, in the order of their numbers.
    takes_text : bool
        Whether a text in a column is a feature that no other column can have.
    of_header : int64 array
        The number of each column, -1 for the column of the labels.
    """

    def __init__(
        self, names: Names, records: Records, header: Sequence[str], label: str | None
    ) -> None:
        features = [column for column in header if column != label]
        self.is_dense, self.takes_missing = records.columns is not None, records.takes_missing
        self._columns = list(features if records.columns is None else records.columns)
        self._names = names
        self._renumbering = Renumbering(names)
        # A column whose name contains "=" may have the name of a text feature of another column.
        self.takes_text = not self.is_dense and not any("=" in name for name in features)
        self._begin()
        self.of_header = np.array([self._numbers.get(column, -1) for column in header])

    @property
    def n_columns(self) -> int:
        """Number of columns that hold features."""
        return len(self._columns)

    def numbers(self, features: Iterable[str]) -> list[int]:
        """Return the numbers of features."""
        return [self._number(feature) for feature in features]

    def name(self, number: int) -> str:
        """Return the name of a feature, given its number."""
        return self._numbered[number]

    def gathering(self, entries: SparseRows) -> Callable[[], Rows]:
        """Return a function that converts entries with these numbers to rows."""
        if self.is_dense:
            values = entries.values.reshape(len(entries), len(self._columns))
            return partial(self._names.gather_table, self._columns, values)
        return partial(self._renumbering.rows, entries, self._numbered)

    def forgets(self) -> bool:
        """Discard all but the columns if too many unknown names are stored; return whether."""
        is_much = len(self._numbered) > MOST_UNKNOWN and not self._names.grow
        if is_much:
            self._begin()
        return is_much

    def _number(self, feature: str) -> int:
        number = self._numbers.setdefault(feature, len(self._numbered))
        if number == len(self._numbered):
            self._numbered.append(feature)
        return number

    def _begin(self) -> None:
        self._numbered = list(self._columns)
        self._numbers = {name: number for number, name in enumerate(self._numbered)}

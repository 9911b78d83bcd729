"""Parquet tables: one record per row; the file defines names and types of the columns."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from kesler.data.labels import classes_of
from kesler.data.rows import Rows
from kesler.data.schema.arrow import arrow_columns, can_hold, with_decimals
from kesler.data.sparse_rows import SparseRows, as_float32, joined
from kesler.errors import ReadingWarning, warn
from kesler.readers.features import LARGEST, Names
from kesler.readers.parquet_files import DAMAGE, Part, parquet_parts
from kesler.readers.reader import Example, Reader, Refused, Scanning, readable
from kesler.readers.records import Columns, Fields, Records
from kesler.readers.stream import NUMBER, TEXT


@dataclass(frozen=True, slots=True)
class Batch:
    """Rows of a table, stored by column.

    Parameters
    ----------
    labels : list
        The label of each row.
    indices, values : int32 and float64 arrays of shape (n_rows, n_columns)
        The content of each cell: the number of a feature, and its value.
    is_there : bool array of shape (n_rows, n_columns)
        Whether the cell is not empty.
    is_plain : bool array of shape (n_rows,)
        Whether the row needs no check by the Python parser; the other arrays are undefined for
        rows that need one.
    """

    labels: list[Any]
    indices: npt.NDArray[np.int32]
    values: npt.NDArray[np.float64]
    is_there: npt.NDArray[np.bool_]
    is_plain: npt.NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.labels)

    @classmethod
    def empty(cls, n_rows: int, n_columns: int) -> Batch:
        """Return rows whose cells are empty."""
        shape = n_rows, n_columns
        indices = np.tile(np.arange(n_columns, dtype=np.int32), (n_rows, 1))
        absent, plain = np.zeros(shape, dtype=bool), np.ones(n_rows, dtype=bool)
        return cls([None] * n_rows, indices, np.zeros(shape), absent, plain)

    def entries(self, rows: slice) -> SparseRows:
        """Return the entries of a slice of the rows, all plain."""
        there = self.is_there[rows]
        indptr = np.concatenate([[0], np.cumsum(there.sum(axis=1))]).astype(np.int64)
        return SparseRows(indptr, self.indices[rows][there], as_float32(self.values[rows][there]))

    def take_labels(self, array: Any, kind: str) -> None:
        """Set the labels to a column; a row whose label is not of `kind`, if any, is not plain."""
        if not (_is_numeric(array) or _is_text(array)):
            self.is_plain[:] = False
            return
        self.labels[:] = classes_of(array.to_pylist())
        if "" in self.labels:
            self.is_plain[:] &= [label != "" for label in self.labels]
        valid = _valid(array)
        if kind and kind != (TEXT if _is_text(array) else NUMBER):
            self.is_plain[:] = False
        elif kind:
            self.is_plain[:] &= valid
        if _is_numeric(array):
            self.is_plain[:] &= np.isfinite(_numbers(array)) | ~valid

    def take(self, column: int, array: Any, name: str, columns: Columns) -> None:
        """Set the column of the given number to an array of the table."""
        valid = _valid(array)
        if _is_numeric(array):
            numbers = np.where(valid, _numbers(array), np.nan)
            self.values[:, column] = numbers
            self.is_there[:, column] = valid | columns.is_dense
            missing = np.isnan(numbers) & columns.takes_missing if columns.is_dense else ~valid
            self.is_plain[:] &= (np.abs(numbers) <= LARGEST) | missing
        elif _is_text(array) and columns.takes_text:
            encoded = array.dictionary_encode()
            words = encoded.dictionary.to_pylist()
            numbers = np.array([*columns.numbers(f"{name}={word}" for word in words), column])
            word_of = np.asarray(encoded.indices.fill_null(len(words)))
            self.indices[:, column] = numbers[word_of]
            self.values[:, column] = 1
            self.is_there[:, column] = valid & np.array([*map(bool, words), False])[word_of]
        else:
            self.is_plain[:] &= ~valid
            if columns.is_dense:
                self.is_plain[:] &= valid


def batch_of(table: Any, columns: Columns, kind: str) -> Batch:
    """Return the rows of a pyarrow.RecordBatch, whose labels should be of `kind`, if any."""
    batch = Batch.empty(len(table), columns.n_columns)
    numbers = columns.of_header.tolist()
    for number, name, array in zip(numbers, table.schema.names, table.columns, strict=True):
        plain = _decoded(array)
        try:
            if number < 0:
                batch.take_labels(plain, kind)
            else:
                batch.take(number, plain, name, columns)
        except UnicodeDecodeError:  # the parser in Python reports the error
            batch.is_plain[:] = False
    return batch


def _decoded(array: Any) -> Any:
    """Return an array of categories as texts and of decimals as numbers; others as they are."""
    from pyarrow import types

    if types.is_decimal(array.type):
        return array.cast("float64")
    return array.dictionary_decode() if types.is_dictionary(array.type) else array


def _is_numeric(array: Any) -> bool:
    from pyarrow import types

    kind = array.type
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind))


def _is_text(array: Any) -> bool:
    from pyarrow import types

    return bool(types.is_string(array.type) or types.is_large_string(array.type))


def _valid(array: Any) -> npt.NDArray[np.bool_]:
    valid: npt.NDArray[np.bool_] = array.is_valid().to_numpy(zero_copy_only=False)
    return valid


def _numbers(array: Any) -> npt.NDArray[np.float64]:
    """Return numbers as float64; missing ones are undefined."""
    from pyarrow import types

    plain = array.cast("uint8") if types.is_boolean(array.type) else array
    numbers: npt.NDArray[np.float64] = plain.to_numpy(zero_copy_only=False).astype(np.float64)
    return numbers


class BatchScanner:
    """A `Scanner` of record batches; plain rows contain only numbers, text and empty cells.

    Parameters
    ----------
    columns : Columns
        Numbers the features.
    records : callable (pyarrow.RecordBatch) -> list of dict
        Returns the rows of a batch in the form that the parser in Python takes.
    place : callable (int) -> int or str
        Returns what messages call the row of this number.

    Attributes
    ----------
    has_ended : bool
        Whether all batches have been read.
    """

    def __init__(
        self,
        columns: Columns,
        records: Callable[[Any], list[dict[str, Any]]],
        place: Callable[[int], int | str],
    ) -> None:
        self._columns = columns
        self._records_of = records
        self._place = place
        self._kind = ""
        self._tables = iter(list[tuple[int, Any]]())
        self._first_row, self._table = 1, None
        self._batch = Batch.empty(0, 0)
        self._records = list[dict[str, Any]]()
        self._at = 0
        self._labels = list[Any]()
        self._entries = list[SparseRows]()
        self.has_ended = False

    def expect(self, kind: str) -> None:
        """Set the kind of labels, as in `Admission`; rows with another kind are refused."""
        self._kind = kind

    @property
    def n_rows(self) -> int:
        """Number of rows in the run so far."""
        return len(self._labels)

    def open(self, pieces: Iterator[tuple[int, Any]]) -> None:
        """Read these batches, each with the number of its first row."""
        self._tables = pieces

    def scan(self, n_rows: int) -> Refused | None:
        """Read until the run has `n_rows` rows or the batches end; stop at a refused row."""
        while self.n_rows < n_rows and self._has_rows():
            end = min(len(self._batch), self._at + n_rows - self.n_rows)
            plain = self._batch.is_plain[self._at : end]
            n_plain = len(plain) if plain.all() else int(np.argmin(plain))
            self._take(n_plain)
            if n_plain < len(plain):
                return self._refused()
        return None

    def extend(self, examples: Sequence[Example], places: Sequence[int | str]) -> None:
        """Append rows that were read in Python; where they are is not kept."""
        for label, entry, *_ in examples:
            numbers = np.array(self._columns.numbers(entry), dtype=np.int32)
            values = as_float32(np.array(list(entry.values()), dtype=np.float64))
            self._entries.append(SparseRows(np.array([0, len(entry)]), numbers, values))
            self._labels.append(label)

    def taken(self) -> tuple[list[Any], None, Callable[[], Rows]]:
        """Return the labels, the weights and a function for the rows of the run; begin another."""
        labels, self._labels = self._labels, []
        pieces, self._entries = [Batch.empty(0, 0).entries(slice(0)), *self._entries], []
        entries = SparseRows(
            joined([piece.indptr for piece in pieces]),
            np.concatenate([piece.indices for piece in pieces]),
            np.concatenate([piece.values for piece in pieces]),
        )
        gather = self._columns.gathering(entries)
        if self._columns.forgets() and self._table is not None:
            self._batch = batch_of(self._table, self._columns, self._kind)
        return labels, None, gather

    def _has_rows(self) -> bool:
        """Return whether there is a row to read in this batch or a later one."""
        while self._at == len(self._batch):
            following = next(self._tables, None)
            if following is None:
                self.has_ended = True
                return False
            self._first_row, self._table = following
            self._batch = batch_of(self._table, self._columns, self._kind)
            self._at, self._records = 0, []
        return True

    def _take(self, n_rows: int) -> None:
        """Append the next rows, which must be plain."""
        rows = slice(self._at, self._at + n_rows)
        self._labels.extend(self._batch.labels[rows])
        self._entries.append(self._batch.entries(rows))
        self._at += n_rows

    def _refused(self) -> Refused:
        """Return the next row and advance."""
        self._records = self._records or self._records_of(self._table)
        self._at += 1
        return Refused(self._place(self._first_row + self._at - 1), self._records[self._at - 1])


def parquet_reader(path: str, fields: Fields, names: Names) -> Reader:
    """Read Parquet, a file or a folder of files, columns named and typed by them.

    One batch is read at a time; values and labels keep the types of their columns. The files of a
    folder are read in the order of their paths. A directory ``team=cards`` in it is a column
    ``team`` that holds ``cards`` in all files below.
    """
    with readable(path, "Parquet", *DAMAGE):
        schema, parts = parquet_parts(path)
        header = _readable(path, arrow_columns(schema.empty_table()), fields)
    fields.require_columns(header)
    records = Records(fields, names)
    batches = Batches(path, parts, header, fields.label)

    def scanner() -> BatchScanner:
        columns = Columns(names, records, header, fields.label)
        return BatchScanner(columns, batches.records, batches.place)

    # With text fields, most of the time is spent on tokens.
    scanning = None if fields.text or fields.as_table else Scanning(batches, scanner)
    return Reader("row", batches, records.example, records.gather, names.vocabulary, scanning)


def _readable(path: str, columns: dict[str, Any], fields: Fields) -> list[str]:
    """Return the columns that are read, and warn of those whose cells no column can hold."""
    named = {fields.label, fields.id, *fields.text}
    kinds = {name: array.type for name, array in columns.items() if name not in named}
    odd = {name: kind for name, kind in kinds.items() if not can_hold(kind)}
    if odd:
        listed = ", ".join(f"{name!r} ({kind})" for name, kind in odd.items())
        warn(
            f"{path}: columns whose cells are neither texts, numbers, dates nor lists are not "
            f"read: {listed}",
            ReadingWarning,
        )
    return [name for name in columns if name not in odd]


class Batches:
    """The rows of Parquet files, numbered from 1 over all of them, read once.

    Parameters
    ----------
    path : str
        The name of the source in messages.
    parts : sequence of Part
        The files.
    header : list of str
        The columns that are read, as `arrow_columns` names them.
    label : str or None
        The column of the labels.

    Attributes
    ----------
    is_piped, is_long, n_bytes : bool, bool, int
        As in `Pieces`: no file is a pipe, nothing must be loaded before batches are read, and there
        are no lines.
    """

    is_piped = False
    is_long = True
    n_bytes = 0

    def __init__(
        self, path: str, parts: Sequence[Part], header: list[str], label: str | None
    ) -> None:
        self._path = path
        self._header = header
        self._label = label
        self._parts = parts
        self._begun = list[int]()
        self._batches = self._read()
        self._left: tuple[int, Any] | None = None

    def __iter__(self) -> Iterator[tuple[int | str, dict[str, Any]]]:
        """Yield all rows as records."""
        for first_row, batch in self._batches:
            for i, record in enumerate(self.records(batch)):
                self._left = first_row + i + 1, batch.slice(i + 1)
                yield self.place(first_row + i), record

    def chunks(self) -> Generator[tuple[int, Any], None, None]:
        """Yield the batches of all unread rows, each with the number of its first row."""
        if self._left is not None:
            yield self._left
        yield from self._batches

    def records(self, batch: Any) -> list[dict[str, Any]]:
        """Return the rows of a batch as records."""
        with readable(self._path, "Parquet", *DAMAGE):
            found: list[dict[str, Any]] = batch.to_pylist()
            return found

    def place(self, row: int) -> int | str:
        """Return the number of a row, or its number in its file and the name of this file."""
        if len(self._parts) == 1:
            return row
        number = bisect_right(self._begun, row) - 1
        return f"{row - self._begun[number] + 1} of {self._parts[number].name}"

    def _read(self) -> Iterator[tuple[int, Any]]:
        first_row = 1
        for part in self._parts:
            self._begun.append(first_row)
            with readable(part.path, "Parquet", *DAMAGE):
                for batch in part.batches():
                    yield first_row, self._simple(batch)
                    first_row += len(batch)

    def _simple(self, batch: Any) -> Any:
        """Return a pyarrow.RecordBatch with the columns that are read."""
        from pyarrow import RecordBatch

        columns = arrow_columns(batch)
        if self._label in columns:
            columns[self._label] = with_decimals(columns[self._label])
        return RecordBatch.from_arrays([columns[name] for name in self._header], self._header)

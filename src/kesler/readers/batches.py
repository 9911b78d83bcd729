"""Batches of rows as columns, as Parquet has them: which rows are plain, and their entries."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from kesler.entries import Entries, as_float32
from kesler.readers.admission import NUMBER, TEXT
from kesler.readers.columns import Columns
from kesler.readers.features import LARGEST


@dataclass(frozen=True, slots=True)
class Batch:
    """Rows by column.

    Parameters
    ----------
    labels : list
        The label of each row.
    indices, values : int32 and float64 arrays of shape (n_rows, n_columns)
        What is in each cell: the number of a feature, and its value.
    is_there : bool array of shape (n_rows, n_columns)
        Whether there is something in the cell.
    is_plain : bool array of shape (n_rows,)
        Whether the row is beyond doubt; what the arrays say of others means nothing.
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
        """Return rows of which nothing is known yet."""
        shape = n_rows, n_columns
        indices = np.tile(np.arange(n_columns, dtype=np.int32), (n_rows, 1))
        nowhere, plain = np.zeros(shape, dtype=bool), np.ones(n_rows, dtype=bool)
        return cls([None] * n_rows, indices, np.zeros(shape), nowhere, plain)

    def entries(self, rows: slice) -> Entries:
        """Return the entries of a run of consecutive rows, all plain."""
        there = self.is_there[rows]
        indptr = np.concatenate([[0], np.cumsum(there.sum(axis=1))]).astype(np.int64)
        return Entries(indptr, self.indices[rows][there], as_float32(self.values[rows][there]))

    def take_labels(self, array: Any, kind: str) -> None:
        """Take labels from a column; one that is not of that kind, if any, makes its row odd."""
        if not (_is_numeric(array) or _is_text(array)):
            self.is_plain[:] = False
            return
        self.labels[:] = array.to_pylist()
        valid = _valid(array)
        if kind and kind != (TEXT if _is_text(array) else NUMBER):
            self.is_plain[:] = False
        elif kind:
            self.is_plain[:] &= valid
        if _is_numeric(array):
            self.is_plain[:] &= np.isfinite(_numbers(array)) | ~valid

    def take(self, column: int, array: Any, name: str, columns: Columns) -> None:
        """Take the column of that number from an array of the table."""
        valid = _valid(array)
        if _is_numeric(array):
            self.values[:, column] = _numbers(array)
            self.is_there[:, column] = valid
            self.is_plain[:] &= (np.abs(self.values[:, column]) <= LARGEST) | ~valid
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
    """Return the rows of a pyarrow.RecordBatch, whose labels should be of that kind, if any."""
    batch = Batch.empty(len(table), columns.n_columns)
    numbers = columns.of_header.tolist()
    for number, name, array in zip(numbers, table.schema.names, table.columns, strict=True):
        plain = _decoded(array)
        try:
            if number < 0:
                batch.take_labels(plain, kind)
            else:
                batch.take(number, plain, name, columns)
        except UnicodeDecodeError:  # the parser in Python says what is wrong
            batch.is_plain[:] = False
    return batch


def _decoded(array: Any) -> Any:
    from pyarrow import types

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
    """Return numbers as float64; what is not there may be anything."""
    from pyarrow import types

    plain = array.cast("uint8") if types.is_boolean(array.type) else array
    numbers: npt.NDArray[np.float64] = plain.to_numpy(zero_copy_only=False).astype(np.float64)
    return numbers

"""The scanner of batches of columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from kesler.entries import Entries, as_float32, joined
from kesler.readers.batches import Batch, batch_of
from kesler.readers.columns import Columns
from kesler.readers.reader import Example, Refused
from kesler.rows import Rows


class BatchScanner:
    """A `Scanner` of record batches: a row is plain if it holds numbers, text or nothing.

    Parameters
    ----------
    columns : Columns
        Numbers the features.
    records : callable (pyarrow.RecordBatch) -> list of dict
        The rows of a batch as the parser in Python takes them.

    Attributes
    ----------
    has_ended : bool
        Whether all batches have been read.
    """

    def __init__(self, columns: Columns, records: Callable[[Any], list[dict[str, Any]]]) -> None:
        self._columns = columns
        self._records_of = records
        self._kind = ""
        self._tables = iter(list[tuple[int, Any]]())
        self._first_row, self._table = 1, None
        self._batch = Batch.empty(0, 0)
        self._records = list[dict[str, Any]]()
        self._at = 0
        self._labels = list[Any]()
        self._entries = list[Entries]()
        self.has_ended = False

    def expect(self, kind: str) -> None:
        """Say what labels are, as `Admission` has it; rows whose label is not are refused."""
        self._kind = kind

    @property
    def n_rows(self) -> int:
        """How many rows there are in the run so far."""
        return len(self._labels)

    def open(self, pieces: Iterator[tuple[int, Any]]) -> None:
        """Read these batches, each with the number of its first row."""
        self._tables = pieces

    def scan(self, n_rows: int) -> Refused | None:
        """Read until the run has so many rows or the batches end; stop at a row that is refused."""
        while self.n_rows < n_rows and self._has_rows():
            end = min(len(self._batch), self._at + n_rows - self.n_rows)
            plain = self._batch.is_plain[self._at : end]
            n_plain = len(plain) if plain.all() else int(np.argmin(plain))
            self._take(n_plain)
            if n_plain < len(plain):
                return self._refused()
        return None

    def extend(self, examples: Sequence[Example]) -> None:
        """Append rows that were read in Python."""
        for label, entry, _ in examples:
            numbers = np.array(self._columns.numbers(entry), dtype=np.int32)
            values = as_float32(np.array(list(entry.values()), dtype=np.float64))
            self._entries.append(Entries(np.array([0, len(entry)]), numbers, values))
            self._labels.append(label)

    def taken(self) -> tuple[list[Any], None, Callable[[], Rows]]:
        """Return the run, its labels, weights and what makes rows of it, and begin another."""
        labels, self._labels = self._labels, []
        pieces, self._entries = [Batch.empty(0, 0).entries(slice(0)), *self._entries], []
        entries = Entries(
            joined([piece.indptr for piece in pieces]),
            np.concatenate([piece.indices for piece in pieces]),
            np.concatenate([piece.values for piece in pieces]),
        )
        gather = self._columns.gathering(entries)
        if self._columns.forgets() and self._table is not None:
            self._batch = batch_of(self._table, self._columns, self._kind)
        return labels, None, gather

    def _has_rows(self) -> bool:
        """Whether there is a row to read, in the next batch if not in this."""
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
        """Append the next rows, all plain."""
        rows = slice(self._at, self._at + n_rows)
        self._labels.extend(self._batch.labels[rows])
        self._entries.append(self._batch.entries(rows))
        self._at += n_rows

    def _refused(self) -> Refused:
        """Pass over the next row and return it."""
        self._records = self._records or self._records_of(self._table)
        self._at += 1
        return Refused(self._first_row + self._at - 1, self._records[self._at - 1])

"""A scanner of CSV tables whose cells stay texts: whole columns of many plain rows at once."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from kesler.data.labels import class_of
from kesler.readers.csv_rows import Line
from kesler.readers.lines import Text, is_utf8
from kesler.readers.reader import Example, Refused
from kesler.readers.records import Fields, Records
from kesler.readers.scanner import MOST_LABELS

if TYPE_CHECKING:
    from kesler.readers.csv_table import Table

MOST_LINES = 256  # that are read together, or one by one if one of them is no plain row


class CellScanner:
    """A `Scanner` of rows of one line each, with a cell for each column.

    It refuses the rows of lines among which one is malformed, goes on in the next line, has other
    cells than the header or no label where it needs one.

    Parameters
    ----------
    table : Table
        The table, which parses the rows that are refused.
    records : Records
        Gathers rows as tables.
    fields : Fields
        The roles of the columns.
    """

    def __init__(self, table: Table, records: Records, fields: Fields) -> None:
        self.has_ended = False
        self._table, self._records, self._fields = table, records, fields
        self._label_at = table.label_at
        self._classes = dict[str, Any]()
        self._pieces: Iterator[tuple[int, Text]] = iter(())
        self._lines = list[str]()
        self._first_line = self._next = self._n_refused = 0
        self._rows = table.rows_of(self._one_by_one())
        self._begin()

    def _begin(self) -> None:
        self._cells, self._labels = list[list[str]](), list[Any]()
        self._places = list[int | str]()

    def expect(self, kind: str) -> None:
        """Do nothing: labels in CSV are texts."""

    @property
    def n_rows(self) -> int:
        """Number of rows in the run so far."""
        return len(self._cells)

    def open(self, pieces: Iterator[tuple[int, Text]]) -> None:
        """Set the texts to read: whole lines, with the number of the first line of each text."""
        self._pieces = pieces

    def scan(self, n_rows: int) -> Refused | None:
        """Read until the run has `n_rows` rows or the texts end; stop at a refused row."""
        while self.n_rows < n_rows and (self._rows.has_read_ahead or self._has_lines()):
            stop = min(self._next + n_rows - self.n_rows, self._next + MOST_LINES)
            lines = self._lines[self._next : stop]
            if self._rows.has_read_ahead or self._next < self._n_refused or not self._read(lines):
                self._n_refused = max(self._n_refused, self._next + len(lines))
                return self._refused()
        return None

    def extend(self, examples: Sequence[Example], places: Sequence[int | str]) -> None:
        """Append rows that were parsed one by one, and where they are."""
        for example in examples:
            cells = [*example.entry.values()]
            if self._label_at is not None:
                cells.insert(self._label_at, "")
            self._cells.append(cells)
            self._labels.append(example.label)
        self._places += places

    def taken(self) -> tuple[list[Any], None, Callable[[], Any]]:
        """Return the labels, the weights and a function for the rows of the run; begin another."""
        labels, cells, places = self._labels, self._cells, self._places
        self._begin()
        return labels, None, partial(self._gathered, cells, places)

    def _gathered(self, rows: list[list[str]], places: list[int | str]) -> Any:
        columns = dict(zip(self._table.header, map(list, zip(*rows, strict=True)), strict=False))
        if self._label_at is not None:
            columns.pop(self._table.header[self._label_at], None)
        return self._records.gather_columns(columns, places)

    # ---- lines ------------------------------------------------------------------------------

    def _has_lines(self) -> bool:
        """Return whether there is a line to read in this text or a later one."""
        while self._next == len(self._lines):
            following = next(self._pieces, None)
            if following is None:
                self.has_ended = True
                return False
            self._first_line, text = following
            self._lines = text.tobytes().decode(errors="surrogateescape").split("\n")[:-1]
            self._next = 0
            self._n_refused = 0 if is_utf8(text) else len(self._lines)
        return True

    def _one_by_one(self) -> Iterator[Line]:
        while self._has_lines():
            number, line = self._first_line + self._next, self._lines[self._next]
            self._next += 1
            yield number, f"{line}\n".encode(errors="surrogateescape")

    def _refused(self) -> Refused | None:
        """Return the next row, which is parsed alone; None if only empty lines are left."""
        refused = next(self._rows, None)
        self.has_ended = self.has_ended and not self._rows.has_read_ahead
        return Refused(*refused) if refused else None

    def _read(self, lines: list[str]) -> bool:
        """Append the rows of lines; return whether all are plain rows with labels."""
        width, at = len(self._table.header), self._label_at
        try:
            rows = [*self._table.dialect.reader(lines)]
        except csv.Error:
            return False
        if len(rows) != len(lines) or {*map(len, rows)} != {width}:
            return False
        if width == 1 and any(row[0].isspace() for row in rows):  # an empty line
            return False
        labels = [None] * len(rows) if at is None else [self._class(row[at]) for row in rows]
        if self._fields.require_labels and None in labels:
            return False
        start, self._next = self._first_line + self._next, self._next + len(lines)
        self._cells += rows
        self._labels += labels
        self._places += range(start, start + len(lines))
        return True

    def _class(self, cell: str) -> Any:
        """Return the class that a cell names, None if it is empty."""
        if cell not in self._classes:
            if len(self._classes) == MOST_LABELS:
                self._classes.clear()
            label = self._table.label(cell)
            self._classes[cell] = None if label is None else class_of(label)
        return self._classes[cell]

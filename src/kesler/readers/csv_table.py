"""CSV tables: one record per row; the first line names the columns."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from kesler.data.rows import Rows
from kesler.data.sparse_rows import SparseRows
from kesler.errors import KeslerError, ReadingWarning, warn
from kesler.readers.csv_rows import CsvRows, Row
from kesler.readers.dialects import (
    N_LINES,
    Dialect,
    found_in,
    is_before_table,
    is_separator_line,
    n_filled,
    without_sign,
)
from kesler.readers.features import Names
from kesler.readers.lines import Lines, Text, require_text
from kesler.readers.reader import (
    BadRow,
    Example,
    Reader,
    Refused,
    Scanner,
    Scanning,
    parse_number,
)
from kesler.readers.records import Columns, Fields, Records
from kesler.readers.scanner import MOST_LABELS, LineScanner

BEGINS = re.compile(r"[,;\t]|\S\|\S")
MOST_COLUMNS = 1 << 18  # whose kinds are inferred in some ten seconds
MOST_SHOWN = 60  # characters of a line
INSIDE, INSIDE_UNLABELLED = 2, 10
"""Lines within a quoted cell that are rows of the table if all of them look so, by their labels or
by their numbers of cells alone."""


class CsvScanner(LineScanner):
    """A scanner of CSV rows, which refuses rows of several lines or with unusual cells.

    Parameters
    ----------
    columns : Columns
        Numbers the features.
    table : Table
        The table, whose rows of the usual form are scanned.
    """

    def __init__(self, columns: Columns, table: Table) -> None:
        super().__init__(table.label)
        from kesler.compiled.readers.csv_rows import scan_csv

        self._scan = scan_csv
        self._columns = columns
        self._delimiter = table.dialect.delimiter or ","
        self._rows = table.rows_of(self._lines())
        self._words = np.empty((0, 4), dtype=np.int64)
        self._number_of = dict[tuple[int, bytes], int]()

    def scan(self, n_rows: int) -> Refused | None:
        """Read until the run has `n_rows` rows or the texts end; stop at a refused row."""
        return self._refused() if self._rows.has_read_ahead else super().scan(n_rows)

    def _scanned(self, text: npt.NDArray[np.uint8], n_rows: int) -> int:
        if len(self._words) < len(self._indices):
            self._words = np.empty((len(self._indices), 4), dtype=np.int64)
        self._at[self._lexing.CLOCK] = 0
        stop: int = self._scan(
            text,
            self._is_utf8,
            n_rows,
            ord(self._delimiter),
            self._kind != self._lexing.ANYTHING,
            self._columns.is_dense,
            self._columns.takes_text,
            self._columns.of_header,
            self._at,
            self._draft,
            self._words,
        )
        self._number_words()
        return stop

    def _refused(self) -> Refused | None:
        refused = next(self._rows, None)
        self.has_ended = self.has_ended and not self._rows.has_read_ahead
        return Refused(*refused) if refused else None

    def _lines(self) -> Iterator[tuple[int, bytes]]:
        while self._has_text():
            number = self._line_number()
            yield number, self._line()

    def _numbers(self, features: list[Any]) -> list[int]:
        return self._columns.numbers(features)

    def _gathering(self, entries: SparseRows) -> Callable[[], Rows]:
        gather = self._columns.gathering(entries)
        if self._columns.forgets():
            self._number_of.clear()
        return gather

    def _number_words(self) -> None:
        """Assign feature numbers to the texts in the cells that were just scanned."""
        text, number_of = self._text, self._number_of
        for entry, column, start, end in self._words[: self._at[self._lexing.CLOCK]].tolist():
            word = column, text[start:end].tobytes()
            if word not in number_of:
                feature = f"{self._columns.name(column)}={word[1].decode()}"
                (number_of[word],) = self._columns.numbers([feature])
            self._indices[entry] = number_of[word]


class Table:
    """A table in CSV: its dialect, its columns, its rows.

    Parameters
    ----------
    lines : Lines
        The lines, which are read up to the header.
    fields : Fields
        The roles of the columns.
    given : Dialect
        What is known of the dialect; the rest is found in the first lines.

    Attributes
    ----------
    dialect : Dialect
        The dialect.
    header : list of str
        The names of the columns; their numbers from 1 if the table has no header.
    rows : CsvRows
        The rows.
    label_at : int or None
        The number of the column of labels.
    """

    def __init__(self, lines: Lines, fields: Fields, given: Dialect) -> None:
        self._lines = lines
        self._source, self._label = fields.source, fields.label
        self._known_labels = set[str]()
        ahead = _ahead(lines, fields)
        self.dialect = found_in(given, ahead, fields.required)
        n_skipped = self.dialect.skip_lines or 0
        if given.skip_lines is None:
            _tell_skipped(fields.source, ahead[:n_skipped])
        numbered = iter(lines)
        for _ in range(n_skipped):
            next(numbered, None)
        sample = CsvRows(iter(enumerate(ahead[n_skipped:])), self.dialect.reader)
        self.header = list[str]()
        self.label_at: int | None = None
        self.rows = self.rows_of(numbered)
        self.header = self._columns([row for _, row in sample if isinstance(row, list)])
        if len(self.header) > MOST_COLUMNS:
            raise KeslerError(
                f"{self._source} has {len(self.header):,} columns, more than the {MOST_COLUMNS:,} "
                "that are read from CSV: transpose it if its columns are rows; otherwise give "
                "arrays (.npz), or svmlight, in which zeros take no space"
            )
        by_number = ", or name columns by their numbers with header=False"
        fields.require_columns(
            self.header,
            if_twice=f"{by_number}, skip_lines={n_skipped + 1}",
            if_missing=self._if_missing(by_number),
        )
        has_label = fields.label is not None and fields.label in self.header
        self.label_at = self.header.index(fields.label or "") if has_label else None
        self.rows.n_rows_inside = INSIDE if has_label else INSIDE_UNLABELLED

    def rows_of(self, lines: Iterator[tuple[int, bytes]]) -> CsvRows:
        """Return the rows of some lines below the header."""
        rows = CsvRows(lines, self.dialect.reader)
        rows.is_row = self._is_row
        rows.n_rows_inside = INSIDE_UNLABELLED if self.label_at is None else INSIDE
        rows.width = len(self.header)
        return rows

    def label(self, cell: str) -> str | None:
        """Return the label in a cell as text; None if it is empty."""
        label = cell.strip()
        if label not in self._known_labels and len(self._known_labels) < MOST_LABELS:
            self._known_labels.add(label)
        return label or None

    def cells(self, row: Row) -> list[str]:
        """Return the cells of a row, one for each column; raise BadRow if it has others."""
        n_columns = len(self.header)
        try:
            cells = _cells(row)
            if len(cells) < n_columns or n_filled(cells[n_columns:]):
                raise BadRow(f"it has {len(cells)} fields and the header {n_columns}")
        except BadRow as fault:
            fault.label = self._label_in(row)
            raise
        return cells[:n_columns]

    def _label_in(self, row: Row) -> str | None:
        """Return the label of a bad row; None if it is not certain."""
        at, n_columns = self.label_at, len(self.header)
        if at is None or isinstance(row, csv.Error):
            return None
        if len(row) == n_columns:
            return row[at].strip().encode(errors="surrogateescape").decode(errors="replace")
        # Other cells may be lacking or too many after it, or before it.
        found = [row[i].strip() for i in (at, at - n_columns) if -len(row) <= i < len(row)]
        return next((label for label in found if label in self._known_labels), None)

    def _is_row(self, cells: list[str]) -> bool:
        if not 1 < len(self.header) == len(cells):
            return False
        return self.label_at is None or cells[self.label_at].strip() in self._known_labels

    def _if_missing(self, by_number: str) -> str:
        """Return what can be done if the header does not name a column."""
        if len(self.header) == 1:
            return "; if these are several cells, say what is between them with delimiter=..."
        is_number = self._label is not None and self._label.isdecimal()
        is_header = all(parse_number(name) is None for name in self.header) and not (
            is_number and int(self._label or "0") <= len(self.header)
        )
        return "" if is_header or self.dialect.header is False else by_number

    def _columns(self, sample: list[list[str]]) -> list[str]:
        """Return the names of the columns, read if there is a header."""
        if sample and (self.dialect.header is False or self._begins_with_data(sample)):
            return [str(number) for number in range(1, max(map(n_filled, sample)) + 1)]
        for line, row in self.rows:
            try:
                header = without_sign(_cells(row))
            except BadRow as fault:
                raise KeslerError(
                    f"{self._source}, line {line}: {fault}; mend it, for it names the columns"
                ) from None
            if len(header) > 2 and not any(header[1::2]) and all(header[::2]):
                two = 2 * (self.dialect.delimiter or "")
                raise KeslerError(
                    f"{self._source} has {two!r} between its cells, where CSV has one character: "
                    f"replace it, for instance with sed 's/{two}/{two[:1]}/g'"
                )
            return header[: max(n_filled(each[: len(header)]) for each in [header, *sample])]
        raise KeslerError(f"{self._source} is empty: its first line should name the columns")

    def _begins_with_data(self, sample: Sequence[Sequence[str]]) -> bool:
        """Return whether the label is named by a number, and the first row is one of numbers."""
        label, first = self._label, sample[0]
        if self.dialect.header or label is None or not label.isdecimal():
            return False
        if label in first and _names_columns(first, sample[1:]):
            return False
        has_numbers = any(parse_number(cell) is not None for cell in first)
        if has_numbers:
            _warn(
                f"{self._source} is read as a table without a header, whose columns have the names "
                f"1 to {len(first)}: if its first row names the columns, name one with label=..."
            )
        return has_numbers

    @property
    def is_piped(self) -> bool:
        """Whether more data may arrive at any time."""
        return self._lines.is_piped

    @property
    def is_long(self) -> bool:
        """Whether the rest can be scanned, and is long enough."""
        return self._lines.is_long and not self.rows.has_read_ahead

    @property
    def n_bytes(self) -> int:
        """Number of bytes that have been read."""
        return self._lines.n_bytes

    def chunks(self) -> Generator[tuple[int, Text], None, None]:
        """Yield the rest of the lines as texts."""
        return self._lines.chunks()


def csv_reader(lines: Lines, fields: Fields, names: Names, dialect: Dialect) -> Reader:
    """Read CSV, columns named in the first line.

    The first line names the columns, unless ``header=False``; comments and titles before it are
    left out. The delimiter is the one of comma, semicolon, tab and ``|`` by which the first rows
    have the same number of cells. Empty cells at the ends of rows are no cells. A cell is a number
    if it can be parsed as one, missing if it is empty, else a string. Labels remain text, so that
    007 and 7 are two classes.
    """
    table = Table(lines, fields, dialect)
    header, records = table.header, Records(fields, names)

    def parse(row: Row) -> Example:
        cells: list[Any] = table.cells(row)
        record = dict(zip(header, cells, strict=True))
        if not (fields.text or fields.as_table):
            record = {
                name: cell if name in fields.decimals else _value(cell)
                for name, cell in record.items()
            }
        if fields.label in record:
            record[fields.label] = table.label(cells[header.index(fields.label)])
        return records.example(record)

    def scanner() -> CsvScanner:
        return CsvScanner(Columns(names, records, header, fields.label), table)

    def cell_scanner() -> Scanner:
        from kesler.readers.csv_cells import CellScanner

        return CellScanner(table, records, fields)

    # With text fields, most of the time is spent on tokens.
    is_parsed = bool(fields.text or fields.decimals)
    is_scanned = fields.as_table or (table.dialect.is_plain and not is_parsed)
    scanners: Callable[[], Scanner] = cell_scanner if fields.as_table else scanner
    scanning = Scanning(table, scanners) if is_scanned else None
    return Reader("line", table.rows, parse, records.gather, names.vocabulary, scanning)


def begins_csv(line: str) -> bool:
    """Return whether a first line is CSV: it contains a delimiter, ``|`` between two letters."""
    return BEGINS.search(line) is not None


def _ahead(lines: Lines, fields: Fields) -> list[bytes]:
    """Return the lines by which the dialect is found.

    Rows of a pipe without labels are answered one by one, so that no line after the header is
    awaited.
    """
    if not lines.is_piped or fields.require_labels:
        return lines.ahead(N_LINES)
    n_lines = 1
    while len(held := lines.ahead(n_lines)) == n_lines and is_before_table(held[-1]):
        n_lines += 1
    return held


def _names_columns(first: Sequence[str], rest: Sequence[Sequence[str]]) -> bool:
    """Return whether a row with numbers is a header: it counts columns, or is above numbers."""
    if not rest:
        return True
    numbers = [cell.strip() for cell in first if parse_number(cell) is not None]
    if numbers in [[str(i + start) for i in range(len(numbers))] for start in (0, 1)]:
        return True
    return any(
        parse_number(cell) is None and all(parse_number(each) is not None for each in column)
        for cell, *column in zip(first, *rest, strict=False)
    )


def _tell_skipped(source: str, lines: list[bytes]) -> None:
    """Warn of lines that are left out before the header."""
    told = [line for line in lines if line.strip() and not is_separator_line(line)]
    if told:
        what = "1 line" if len(told) == 1 else f"{len(told)} lines"
        shown = told[0].decode(errors="replace").strip()[:MOST_SHOWN]
        _warn(
            f"{source} has {what} before its table, left out, the first {shown!r}: if the table "
            "begins elsewhere, say where with skip_lines=..."
        )


def _warn(said: str) -> None:
    warn(said, ReadingWarning)


def _cells(row: Row) -> list[str]:
    if isinstance(row, csv.Error):
        raise BadRow(f"it is not CSV ({row})")
    require_text("".join(row))
    return row


def _value(cell: str) -> str | float | None:
    number = parse_number(cell)
    return (cell.strip() or None) if number is None else number

"""CSV tables: one record per row; the first line names the columns."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from kesler.data.rows import Rows
from kesler.data.sparse_rows import SparseRows
from kesler.errors import KeslerError
from kesler.readers.features import Names
from kesler.readers.lines import Lines, require_text
from kesler.readers.reader import BadRow, Example, Reader, Refused, Scanning, parse_number
from kesler.readers.records import Columns, Fields, Records
from kesler.readers.scanner import LineScanner

if TYPE_CHECKING:
    from _csv import Reader as CsvReader

Row = list[str] | csv.Error


def csv_rows(lines: Iterable[str], delimiter: str) -> CsvReader:
    """Return a reader of rows, each of one or more lines, for `next_row`."""
    return csv.reader(lines, delimiter=delimiter, strict=True)


def next_row(reader: CsvReader) -> Row | None:
    """Return the next row, or the error that the csv module raises for it; None at the end."""
    try:
        return next(reader, None)
    except csv.Error as error:
        return error


def csv_label(cell: str) -> str | None:
    """Return the label in a cell as text; None if it is empty."""
    return cell.strip() or None


class CsvScanner(LineScanner):
    """A scanner of CSV rows, which refuses rows of several lines or with unusual cells.

    Parameters
    ----------
    columns : Columns
        Numbers the features.
    delimiter : str
        The character between cells.
    """

    def __init__(self, columns: Columns, delimiter: str) -> None:
        super().__init__(csv_label)
        from kesler.compiled.readers.csv_rows import scan_csv

        self._scan = scan_csv
        self._columns = columns
        self._delimiter = delimiter
        self._words = np.empty((0, 4), dtype=np.int64)
        self._number_of = dict[tuple[int, bytes], int]()

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
        place = self._line_number()
        row = next_row(csv_rows(self._lines(), self._delimiter))
        return Refused(place, row) if row else None

    def _lines(self) -> Iterator[str]:
        while self._has_text():
            yield self._line().decode(errors="surrogateescape")

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


DELIMITERS = ",;\t"
QUOTED = re.compile(r'"[^"]*"')


def csv_reader(lines: Lines, fields: Fields, names: Names) -> Reader:
    """Read CSV, columns named in the first line.

    The first line names the columns; the delimiter is the one of comma, semicolon and tab that
    occurs most often in it. A cell is a number if it can be parsed as one, missing if it is empty,
    else a string. Labels remain text, so that 007 and 7 are two classes.
    """
    delimiter = _delimiter(_first(lines))
    rows = _numbered_rows(lines, delimiter)
    header = _header(rows, fields)
    records = Records(fields, names)

    def value(column: str, cell: str) -> Any:
        if column == fields.label:
            return csv_label(cell)
        return cell if fields.text or fields.as_table else _value(cell)

    def parse(row: Row) -> Example:
        cells = _cells(row)
        if len(cells) != len(header):
            raise BadRow(f"it has {len(cells)} fields and the header {len(header)}")
        return records.example(dict(zip(header, map(value, header, cells), strict=True)))

    def scanner() -> CsvScanner:
        return CsvScanner(Columns(names, records, header, fields.label), delimiter)

    # With text fields, most of the time is spent on tokens.
    scanning = None if fields.text or fields.as_table else Scanning(lines, scanner)
    return Reader("line", rows, parse, records.gather, names.vocabulary, scanning)


def begins_csv(line: str) -> bool:
    """Return whether a first line is CSV: it contains a comma, a semicolon or a tab."""
    return bool(set(line) & set(DELIMITERS))


def _first(lines: Lines) -> bytes:
    n_lines = 1
    while len(held := lines.ahead(n_lines)) == n_lines:
        if held[-1].strip():
            return held[-1]
        n_lines += 1
    return b""


def _delimiter(header: bytes) -> str:
    return max(DELIMITERS, key=QUOTED.sub("", header.decode(errors="replace")).count)


def _numbered_rows(lines: Lines, delimiter: str) -> Iterator[tuple[int, Row]]:
    """Yield each row that is not empty, with the number of its first line."""
    # Bytes that are not UTF-8 are decoded to surrogates, so that only their row is bad.
    reader = csv_rows((line.decode(errors="surrogateescape") for _, line in lines), delimiter)
    first_line = 1
    while (row := next_row(reader)) is not None:
        if row:
            yield first_line, row
        first_line = reader.line_num + 1


def _cells(row: Row) -> list[str]:
    if isinstance(row, csv.Error):
        raise BadRow(f"it is not CSV ({row})")
    require_text("".join(row))
    return row


def _header(rows: Iterator[tuple[int, Row]], fields: Fields) -> list[str]:
    for line, row in rows:
        try:
            header = [cell.strip() for cell in _cells(row)]
        except BadRow as fault:
            raise KeslerError(
                f"{fields.source}, line {line}: {fault}; mend it, for it names the columns"
            ) from None
        fields.require_columns(header)
        return header
    raise KeslerError(f"{fields.source} is empty: its first line should name the columns")


def _value(cell: str) -> str | float | None:
    number = parse_number(cell)
    return (cell.strip() or None) if number is None else number

"""CSV tables: one record a row, the columns named in the first line."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from typing import Any

from kesler.errors import KeslerError
from kesler.readers.cells import Row, csv_label, csv_rows, next_row
from kesler.readers.columns import Columns
from kesler.readers.csv_scanner import CsvScanner
from kesler.readers.faults import BadRow
from kesler.readers.features import Names
from kesler.readers.labels import parse_number
from kesler.readers.lines import Lines, require_text
from kesler.readers.reader import Example, Reader, Scanning
from kesler.readers.records import Fields, Records

DELIMITERS = ",;\t"
QUOTED = re.compile(r'"[^"]*"')


def csv_reader(lines: Lines, fields: Fields, names: Names) -> Reader:
    """Read CSV rows.

    The first line names the columns; whichever of comma, semicolon and tab splits it most is the
    delimiter. A cell is a number if it reads as one, absent if it is empty, else a string; a label
    stays the text that it is, so that 007 and 7 are two classes.
    """
    delimiter = _delimiter(lines.first())
    rows = _numbered_rows(lines, delimiter)
    header = _header(rows, fields)
    records = Records(fields, names)

    def value(column: str, cell: str) -> Any:
        if column == fields.label:
            return csv_label(cell)
        return cell if fields.text else _value(cell)

    def parse(row: Row) -> Example:
        cells = _cells(row)
        if len(cells) != len(header):
            raise BadRow(f"it has {len(cells)} fields and the header {len(header)}")
        return records.example(dict(zip(header, map(value, header, cells), strict=True)))

    def scanner() -> CsvScanner:
        return CsvScanner(Columns(names, records, header, fields.label), delimiter)

    # Where text is read, most of the time goes into its tokens.
    scanning = None if fields.text else Scanning(lines, scanner)
    return Reader("line", rows, parse, records.gather, names.vocabulary, scanning)


def _delimiter(header: bytes) -> str:
    return max(DELIMITERS, key=QUOTED.sub("", header.decode(errors="replace")).count)


def _numbered_rows(lines: Lines, delimiter: str) -> Iterator[tuple[int, Row]]:
    """Each row that is not empty, with the number of its first line."""
    # Bytes that are not UTF-8 pass as surrogates, so that only the row they stand in is bad.
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

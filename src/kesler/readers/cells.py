"""Cells: what the csv module says the rows of a table are."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from _csv import Reader as CsvReader

Row = list[str] | csv.Error


def csv_rows(lines: Iterable[str], delimiter: str) -> CsvReader:
    """Return what reads rows, each of one line or more, for `next_row`."""
    return csv.reader(lines, delimiter=delimiter, strict=True)


def next_row(reader: CsvReader) -> Row | None:
    """Return the next row, or what the csv module says is wrong with it; None at the end."""
    try:
        return next(reader, None)
    except csv.Error as error:
        return error


def csv_label(cell: str) -> str | None:
    """Return the label in a cell, which stays the text that it is; None if it is empty."""
    return cell.strip() or None

"""The scanner of CSV rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from kesler.entries import Entries
from kesler.readers.cells import csv_label, csv_rows, next_row
from kesler.readers.columns import Columns
from kesler.readers.reader import Refused
from kesler.readers.scanner import LineScanner
from kesler.rows import Rows


class CsvScanner(LineScanner):
    """A scanner of CSV rows: a row is plain if no cell needs care, all on one line.

    Parameters
    ----------
    columns : Columns
        Numbers the features.
    delimiter : str
        What stands between cells.
    """

    def __init__(self, columns: Columns, delimiter: str) -> None:
        super().__init__(csv_label)
        from kesler.compiled.csv_rows import scan_csv

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

    def _gathering(self, entries: Entries) -> Callable[[], Rows]:
        gather = self._columns.gathering(entries)
        if self._columns.forgets():
            self._number_of.clear()
        return gather

    def _number_words(self) -> None:
        """Give the texts in cells just scanned their numbers as features."""
        text, number_of = self._text, self._number_of
        for entry, column, start, end in self._words[: self._at[self._lexing.CLOCK]].tolist():
            word = column, text[start:end].tobytes()
            if word not in number_of:
                feature = f"{self._columns.name(column)}={word[1].decode()}"
                (number_of[word],) = self._columns.numbers([feature])
            self._indices[entry] = number_of[word]

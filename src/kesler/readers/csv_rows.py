"""Rows of CSV, each of one or more lines; a quote that is not closed costs its own row alone."""

from __future__ import annotations

import csv
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from _csv import Reader as CsvReader

Row = list[str] | csv.Error
Line = tuple[int, bytes]

LONGEST_ROW = 1 << 20  # bytes of the lines of a row, unless it is one line
# What is read again after a quote that is not closed is at most this and so many times all that was
# read, so that no file takes more than linear time. Beyond it, each line is a row.
MOST_AGAIN = 1 << 22
TIMES_AGAIN = 4
# The csv module refuses longer cells, by default those of more than 131,072 characters.
csv.field_size_limit(max(csv.field_size_limit(), 1 << 26))
LONE_RETURN = re.compile(rb"\r(?=[^\r\n])")
NOT_CLOSED = "a quote is opened in it and not closed"


class CsvRows(Iterator[tuple[int, Row]]):
    """Rows with the numbers of their first lines; what is no row is the error of the csv module.

    If a quote is not closed, or closed within a cell of a later line, the lines below that in which
    its row began are read again. So are those of a row whose inner lines are rows of the table by
    themselves: there, two rows lack a quote. A return outside of quotes ends a row where the cells
    before it are as many as in the first row, and else is a space. Bytes that are not UTF-8 are
    decoded to surrogates, so that only their row is bad.

    Parameters
    ----------
    lines : iterator of (int, bytes)
        The lines with their numbers.
    reader : callable (lines) -> reader of the csv module
        Reads lines in the dialect of the table.

    Attributes
    ----------
    is_row : callable (cells) -> bool
        Whether cells of a line look like a row of the table.
    width : int
        Number of cells of the first row; 0 before it.
    n_rows_inside : int
        Number of inner lines that are not rows by accident, if all of them look like rows.

    Examples
    --------
    >>> lines = enumerate([b"a,b", b'"c,d', b"e,f", b'g,"h', b'i"'], start=1)
    >>> for number, row in CsvRows(lines, lambda each: csv.reader(each, strict=True)):
    ...     print(number, row)
    1 ['a', 'b']
    2 a quote is opened in it and not closed
    3 ['e', 'f']
    4 ['g', 'hi']
    """

    def __init__(self, lines: Iterator[Line], reader: Callable[[Iterable[str]], CsvReader]) -> None:
        self.is_row: Callable[[list[str]], bool] = lambda cells: False
        self.n_rows_inside = 1
        self.width = 0
        self._lines = lines
        self._again = deque[Line]()
        self._taken = list[Line]()
        self._n_taken = self._n_read = self._n_again = 0
        self._new_reader = reader
        self._reader = reader(self._texts())

    @property
    def has_read_ahead(self) -> bool:
        """Whether lines wait to be read again."""
        return bool(self._again)

    def __next__(self) -> tuple[int, Row]:
        """Return the next row that is not empty, nor one cell of white space without quotes."""
        row: Row = []
        while not isinstance(row, csv.Error) and (not row or (len(row) == 1 and row[0].isspace())):
            self._taken.clear()
            self._n_taken = 0
            row = self._row()
        self.width = self.width or len(row if isinstance(row, list) else ())
        return self._taken[0][0], row

    def _row(self) -> Row:
        try:
            row = next(self._reader)
        except csv.Error as error:
            self._reader = self._new_reader(self._texts())
            if "new-line character" in str(error) and LONE_RETURN.search(self._taken[-1][1]):
                self._split_at_returns()
                return []
            is_closed = len(self._taken) == 1 and "unexpected end" not in str(error)
            return error if is_closed else self._not_closed()
        is_one = len(self._taken) < self.n_rows_inside + 2 or not self._has_rows_inside()
        return row if is_one else self._not_closed()

    def _split_at_returns(self) -> None:
        """Read the lines of this row again, the last of them in pieces that end at its returns."""
        *lines, (number, last) = self._taken
        rows = list[bytes]()
        pieces = LONE_RETURN.split(last)
        counts = [self._n_cells([*(line for _, line in lines), pieces[0]])]
        counts += [self._n_cells([piece]) for piece in pieces[1:]]
        width = self.width or next((n for n in counts if n > 1), 1)
        n_found = width
        for i, (piece, n) in enumerate(zip(pieces, counts, strict=True), 1):
            # One cell alone ends the row before it, but not the header if a row may follow.
            is_end = n == 1 < width and rows and (self.width or i == len(pieces))
            if n_found < width or is_end:
                rows[-1] = b"%b %b" % (rows[-1], piece)
                n_found += n - 1
            else:
                rows.append(piece)
                n_found = n
        self._again.extendleft((number, row.rstrip(b"\r\n") + b"\n") for row in reversed(rows))
        self._again.extendleft(reversed(lines))
        self._n_again += len(last) + sum(len(line) for _, line in lines)

    def _n_cells(self, lines: list[bytes]) -> int:
        """Return the number of cells of a row; very many if it goes on in another line."""
        try:
            return len(next(self._new_reader(map(_text, lines)), []))
        except csv.Error:
            return len(b"".join(lines)) + 1

    def _not_closed(self) -> csv.Error:
        """Read all lines of this row again except the first."""
        self._again.extendleft(reversed(self._taken[1:]))
        self._n_again += sum(len(line) for _, line in self._taken[1:])
        return csv.Error(NOT_CLOSED)

    def _has_rows_inside(self) -> bool:
        """Return whether all lines of this row but the first and the last look like rows."""
        try:
            rows = [next(self._new_reader([_text(line)])) for _, line in self._taken[1:-1]]
        except csv.Error:
            return False
        return all(map(self.is_row, rows))

    def _texts(self) -> Iterator[str]:
        while not self._taken or self._may_go_on():
            numbered = self._again.popleft() if self._again else self._next_line()
            if numbered is None:
                return
            self._taken.append(numbered)
            yield _text(numbered[1])

    def _next_line(self) -> Line | None:
        numbered = next(self._lines, None)
        self._n_read += len(numbered[1]) if numbered else 0
        return numbered

    def _may_go_on(self) -> bool:
        """Return whether the row may have one more line."""
        self._n_taken += len(self._taken[-1][1])
        is_short = self._n_taken <= LONGEST_ROW
        return is_short and self._n_again <= MOST_AGAIN + TIMES_AGAIN * self._n_read


def _text(line: bytes) -> str:
    return line.decode(errors="surrogateescape")

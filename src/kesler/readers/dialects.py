"""Dialects of CSV: how cells are separated and quoted, and where the table begins."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, NamedTuple

from kesler.errors import KeslerError
from kesler.readers.csv_rows import CsvRows, Row
from kesler.readers.reader import parse_number

if TYPE_CHECKING:
    from _csv import Reader as CsvReader

DELIMITERS = "\t|;,"
"""The delimiters that are found, first the one that cells hold most seldom."""
NAMED = {"tab": "\t", "\\t": "\t", "none": "", "space": " "}
"""Characters that are written as words, in lower case."""
N_LINES = 100
"""Lines by which a dialect is found."""
SEPARATOR_LINE = re.compile(r'"?sep=(.)"?[\s,;|]*', re.IGNORECASE)
"""The line before a table that tells Excel its delimiter."""
APOSTROPHES = re.compile(r"(?:^|[\t|;,] ?)'[^'\n]*'(?=[\t|;,\r\n]|$)", re.MULTILINE)
QUOTATION_MARKS = re.compile(r'(?:^|[\t|;,] ?)"', re.MULTILINE)
ESCAPED = re.compile(r"\\[\"'\t|;,]")
SPACED = re.compile(r'[\t|;,] +"')


@dataclass(frozen=True)
class Dialect:
    r"""How a table is written as text; what is None is to be found in its first lines.

    Parameters
    ----------
    delimiter : str or None
        The character between cells.
    quote : str or None
        The character around cells that hold delimiters; empty if there is none.
    escape : str or None
        The character before characters that have no special meaning.
    skip_lines : int or None
        The number of lines before the header.
    header : bool or None
        Whether the first row of the table names the columns.
    spaced : bool
        Whether spaces may stand between a delimiter and a quoted cell.

    Examples
    --------
    >>> lines = [b"Report of May\n", b"town;kind\n", b"Bonn;1,5\n", b"Rome;2,5\n"]
    >>> found = found_in(Dialect(), lines, [])
    >>> found.delimiter, found.skip_lines, [*found.reader(["a;'b'"])]
    (';', 1, [['a', "'b'"]])
    """

    delimiter: str | None = None
    quote: str | None = None
    escape: str | None = None
    skip_lines: int | None = None
    header: bool | None = None
    spaced: bool = False

    def __post_init__(self) -> None:
        for name, least in (("delimiter", 1), ("quote", 0), ("escape", 1)):
            value = getattr(self, name)
            if value is not None and (not least <= len(value) <= 1 or value in ("\r", "\n", "\0")):
                raise KeslerError(f"{name}={value!r}: give one character")
        if self.skip_lines is not None and self.skip_lines < 0:
            raise KeslerError(f"skip_lines={self.skip_lines}: give a number of lines from 0 on")

    @property
    def is_plain(self) -> bool:
        """Whether cells are quoted in the usual way, which the compiled scanner reads."""
        is_ascii = self.delimiter is not None and self.delimiter.isascii()
        return is_ascii and self.quote in (None, '"') and self.escape is None

    def reader(self, lines: Iterable[str]) -> CsvReader:
        """Return a reader of rows, which raises the errors of the csv module."""
        return csv.reader(
            lines,
            delimiter=self.delimiter or ",",
            quotechar=self.quote or '"',
            quoting=csv.QUOTE_NONE if self.quote == "" else csv.QUOTE_MINIMAL,
            escapechar=self.escape,
            skipinitialspace=self.spaced,
            strict=True,
        )


def found_in(given: Dialect, lines: Sequence[bytes], columns: Collection[str]) -> Dialect:
    """Complete a dialect by the first lines of a table.

    Of the delimiters, that one is found by which most rows have as many cells as the header. The
    header is the first row that names the columns that are asked for, or else the first that is
    neither a comment nor a title, which fills one cell.

    Parameters
    ----------
    given : Dialect
        What is known.
    lines : sequence of bytes
        The first lines.
    columns : collection of str
        The columns that the header names, as far as they are known. Numbers do not count, as cells
        of rows may hold them, and columns without a header are named so.
    """
    columns = [name for name in columns if not name.isdecimal()]
    at = next((i for i, line in enumerate(lines) if line.strip()), 0)
    begin = given.skip_lines or 0
    if lines and given.skip_lines is None and (named := _separator(lines[at])):
        given, begin = replace(given, delimiter=given.delimiter or named), at + 1
    numbered = [*enumerate(lines)][begin:]
    text = b"".join(line for _, line in numbered).decode(errors="replace")
    trials = [_tried(each, numbered, columns) for each in _candidates(given, text)]
    return max(trials, key=lambda trial: trial.score).dialect


def without_sign(header: Sequence[str]) -> list[str]:
    """Return the names of a header, of which the first may stand behind the sign of a comment.

    Examples
    --------
    >>> without_sign(["# size", "kind"]), without_sign(["#", "kind"])
    (['size', 'kind'], ['#', 'kind'])
    """
    names = [cell.strip() for cell in header]
    return [names[0].lstrip("#").strip() or names[0], *names[1:]]


def _candidates(given: Dialect, text: str) -> Iterator[Dialect]:
    """Yield dialects that could be that of a text; the first is chosen if others are not better."""
    quotes, escapes, spaced = [given.quote], [given.escape], [False]
    if given.quote is None and _has_apostrophes(text):
        quotes = ["'", None]
    if given.escape is None and ESCAPED.search(text):
        escapes = [None, "\\"]
    if SPACED.search(text):
        spaced = [False, True]
    delimiters = DELIMITERS if given.delimiter is None else given.delimiter
    for spaces, quote, escape, delimiter in product(spaced, quotes, escapes, delimiters):
        yield replace(given, delimiter=delimiter, quote=quote, escape=escape, spaced=spaces)


def _has_apostrophes(text: str) -> bool:
    """Return whether cells of many lines are in apostrophes, and none in quotation marks."""
    n_lines = text.count("\n") + 1
    return 2 * len(APOSTROPHES.findall(text)) >= n_lines and not QUOTATION_MARKS.search(text)


class _Trial(NamedTuple):
    """A complete dialect, and how well it explains the first lines; larger tuples are better."""

    score: tuple[float, ...]
    dialect: Dialect


def _tried(
    dialect: Dialect, lines: Sequence[tuple[int, bytes]], columns: Collection[str]
) -> _Trial:
    rows = list(CsvRows(iter(lines), dialect.reader))
    may_begin_later = dialect.skip_lines is None and dialect.header is not False
    at = _header(rows, columns) if may_begin_later else 0
    if at >= len(rows):
        return _Trial((0.0,), replace(dialect, skip_lines=dialect.skip_lines or 0))
    n_skipped, header = rows[at]
    width = 0 if isinstance(header, csv.Error) else len(header)
    like_header = [_fits(row, header) for _, row in rows[at + 1 :]]
    share = sum(like_header) / (len(like_header) or 1)
    named = _names(header, columns)
    score = (named, width > 1, round(share, 1), -at, share, width)
    return _Trial(score, replace(dialect, skip_lines=n_skipped))


def _header(rows: Sequence[tuple[int, Row]], columns: Collection[str]) -> int:
    """Return which row is the header: the first that is no comment and no title."""
    named = next((i for i, (_, row) in enumerate(rows) if _names(row, columns)), None)
    if named is not None:
        return named
    cells = [(number, row) for number, row in rows if isinstance(row, list)]
    usual = _most_common(len(row) for _, row in cells)
    usually_filled = _most_common(n_filled(row) for _, row in cells)
    n_before = 0
    while n_before < len(rows) and _is_before(rows, n_before, usual, usually_filled):
        n_before += 1
    return n_before if n_before < len(rows) else 0


def _most_common(numbers: Iterable[int]) -> int:
    """Return the most common number, the largest if there are several."""
    counted = Counter(numbers)
    return max(counted, key=lambda number: (counted[number], number), default=1)


def _is_before(rows: Sequence[tuple[int, Row]], at: int, usual: int, usually_filled: int) -> bool:
    """Return whether a row can't be the header of a table with the usual number of cells."""
    number, row = rows[at]
    if isinstance(row, csv.Error):
        return False
    after, following = rows[at + 1] if at + 1 < len(rows) else (number + 1, row)
    if row[0].startswith("#") and (row[0][1:2].isspace() or len(row) != usual):
        return len(row) != usual or not _is_header_of(row, following)
    if usual > 1 and sum(map(bool, row)) < 2:
        return True
    # Beside an empty line or another short row, a short row is no header that lacks a name.
    neighbours = [each for _, each in (*rows[max(at - 1, 0) : at], *rows[at + 1 : at + 2])]
    is_apart = after > number + 1 or any(_is_short(each, usually_filled) for each in neighbours)
    return _is_short(row, usually_filled) and is_apart


def _is_short(row: Row, usually_filled: int) -> bool:
    """Return whether a row has several cells, but fewer than is usual."""
    return isinstance(row, list) and 1 < n_filled(row) < usually_filled


def _is_header_of(row: Sequence[str], following: Row) -> bool:
    """Return whether a comment names the columns of numbers below it."""
    if isinstance(following, csv.Error) or len(row) == 1:
        return False
    n_numbers = [sum(parse_number(cell) is not None for cell in each) for each in (row, following)]
    return n_numbers[0] == 0 < n_numbers[1] and len({*row}) == len(row) and all(row)


def is_separator_line(line: bytes) -> bool:
    r"""Return whether a line tells Excel the delimiter.

    Examples
    --------
    >>> is_separator_line(b"sep=;\r\n"), is_separator_line(b"sep=a,b")
    (True, False)
    """
    return _separator(line) is not None


def is_before_table(line: bytes) -> bool:
    """Return whether a line alone shows that it is before the header."""
    return not line.strip() or line.startswith(b"#") or is_separator_line(line)


def _separator(line: bytes) -> str | None:
    found = SEPARATOR_LINE.fullmatch(line.decode(errors="replace"))
    return found[1] if found else None


def _names(row: Row, columns: Collection[str]) -> bool:
    cells = {*without_sign(row)} if isinstance(row, list) else set()
    return bool(columns) and cells.issuperset(columns)


def _fits(row: Row, header: Row) -> bool:
    """Return whether a row has as many cells as the header, not counting empty ones at the end."""
    if isinstance(row, csv.Error) or isinstance(header, csv.Error):
        return False
    return len(row) == len(header) or n_filled(row) <= n_filled(header) <= len(row)


def n_filled(row: Sequence[str]) -> int:
    """Return the number of cells up to the last that is not empty.

    Examples
    --------
    >>> n_filled(["a", "", "b", "", " "])
    3
    """
    return max((i for i, cell in enumerate(row, 1) if cell.strip()), default=0)

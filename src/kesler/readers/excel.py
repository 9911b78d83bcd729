"""Workbooks of Excel and LibreOffice: the rows of a sheet, columns named in its first row."""

from __future__ import annotations

import os
import pickle
import re
import subprocess
import sys
import zipfile
import zlib
from collections.abc import Collection, Iterator, Sequence
from importlib.util import find_spec
from itertools import chain, islice
from typing import Any

from kesler.errors import KeslerError, ReadingWarning, warn
from kesler.readers import workbook
from kesler.readers.compression import WORKBOOKS, start_of
from kesler.readers.features import Names
from kesler.readers.reader import Reader
from kesler.readers.records import Fields, listed, table_reader

OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
ZIP = b"PK\x03\x04"
FORMULA_ALONE = re.compile(rb"(?:</f>|<f\b[^>]*/>)\s*(?:<v\s*/>|<v>\s*</v>|</c>)")
N_ROWS = 100
"""Rows among which the one that names the columns is found."""


def excel_reader(path: str, fields: Fields, names: Names, sheet: str | None) -> Reader:
    """Read a sheet of Excel or LibreOffice, columns named in its first row.

    Without ``sheet=`` it is the first sheet that is not hidden. Titles above the names of columns
    are left out. Numbers, dates, times and truth values have their types, texts such as 007 are
    texts, and empty cells are missing. A column without a name has its letter. All rows of the
    sheet are in memory at once.
    """
    if find_spec("python_calamine") is None:
        raise KeslerError(
            f"reading {path} needs python-calamine: install it with pip install 'kesler[excel]'"
        )
    parts = _parts(path, sheet)
    name = _name(path, next(parts), sheet)
    _, start = next(parts)
    rows = _filled(parts)
    first = [*islice(rows, N_ROWS)]
    if not first:
        raise KeslerError(f"the sheet {name!r} of {path} is empty: its first row names the columns")
    at = _header([row for _, row in first], [fields.label or "", *fields.text])
    if at:
        _tell_skipped(f"the sheet {name!r} of {path}", first[at][0])
    header = [_text(cell) or letters(start + i) for i, cell in enumerate(first[at][1])]
    _tell_uncalculated(path, first[at:])
    rest = chain(first[at + 1 :], rows)
    return table_reader(f"sheet {name!r}, row", header, rest, fields, names)


def holds_workbook(path: str) -> bool:
    """Return whether a file is a workbook, and no other archive or mail of Outlook."""
    start = start_of(path, len(OLE))
    if start == OLE:
        return not path.lower().endswith(".msg")
    return start.startswith(ZIP) and _holds_members(path)


def _holds_members(path: str) -> bool:
    try:
        with zipfile.ZipFile(path) as archive:
            return not WORKBOOKS.isdisjoint(archive.namelist())
    except (OSError, zipfile.BadZipFile, ValueError, NotImplementedError):
        return False


def _name(path: str, part: tuple[Any, ...], wanted: str | None) -> str:
    """Return the name of the sheet that is read, and warn if others could be meant."""
    _, names, name = part
    if name not in names:
        which = f" {wanted!r}" if wanted else ""
        raise KeslerError(f"{path} has no sheet{which}: it has {listed(names)}")
    if wanted is None and len(names) > 1:
        warn(
            f"{path} has the sheets {listed(names)}, of which {name!r} is read: name another with "
            "sheet=...",
            ReadingWarning,
        )
    return str(name)


def _filled(parts: Iterator[tuple[Any, ...]]) -> Iterator[tuple[int, list[Any]]]:
    """Yield the rows that are not empty, with their numbers."""
    for _, first_row, block in parts:
        for number, row in enumerate(block, first_row):
            if any(cell is not None for cell in row):
                yield number, row


def _header(rows: Sequence[Sequence[Any]], wanted: Collection[str]) -> int:
    """Return which row names the columns: the first with the wanted names, or with two cells."""
    for i, row in enumerate(rows):
        if set(filter(None, wanted)) <= set(map(_text, row)) and any(wanted):
            return i
    n_filled = [sum(cell is not None for cell in row) for row in rows]
    return next((i for i, n in enumerate(n_filled) if n > 1), 0)


def _tell_uncalculated(path: str, rows: Sequence[tuple[int, Sequence[Any]]]) -> None:
    """Warn of formulas without results, if a column with a name is empty."""
    header, *below = [row for _, row in rows]
    empty = [
        name
        for name, *cells in zip(header, *below, strict=False)
        if name is not None and not any(cell is not None for cell in cells)
    ]
    if empty and below and _has_formulas_alone(path):
        warn(
            f"{path} has formulas that were never calculated, whose cells count as empty (the "
            f"columns {listed(empty)} have no others): open it in Excel or LibreOffice and save it",
            ReadingWarning,
        )


def _has_formulas_alone(path: str) -> bool:
    """Return whether the first cells of a sheet of a .xlsx file are formulas without results."""
    try:
        with zipfile.ZipFile(path) as archive:
            for name in archive.namelist():
                if name.startswith("xl/worksheets/"):
                    with archive.open(name) as sheet:
                        if FORMULA_ALONE.search(sheet.read(1 << 20)):
                            return True
    except (OSError, zipfile.BadZipFile, zlib.error, ValueError, NotImplementedError):
        pass  # it is in another format
    return False


def _tell_skipped(sheet: str, row: int) -> None:
    warn(
        f"{sheet}: row {row} names the columns, and the rows above are not read",
        ReadingWarning,
    )


def _text(cell: Any) -> str:
    return "" if cell is None else str(cell).strip()


def letters(column: int) -> str:
    """Return what a spreadsheet calls a column, counted from 0.

    Examples
    --------
    >>> [letters(column) for column in (0, 25, 26, 701, 702)]
    ['A', 'Z', 'AA', 'ZZ', 'AAA']
    """
    rest, letter = divmod(column, 26)
    return (letters(rest - 1) if rest else "") + chr(ord("A") + letter)


def _parts(path: str, sheet: str | None) -> Iterator[tuple[Any, ...]]:
    """Yield what `workbook.main` writes in its process, which ends with the iterator."""
    given = [path] if sheet is None else [path, sheet]
    command = [sys.executable, "-P", workbook.__file__, *given]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    nothing = subprocess.DEVNULL
    with subprocess.Popen(
        command, env=environment, stdin=nothing, stdout=subprocess.PIPE, stderr=nothing
    ) as process:
        try:
            yield from _received(path, process)
        finally:
            process.kill()


def _received(path: str, process: subprocess.Popen[bytes]) -> Iterator[tuple[Any, ...]]:
    assert process.stdout is not None
    while True:
        try:
            part = pickle.load(process.stdout)
        except (EOFError, pickle.UnpicklingError):
            part = "error", f"its reader stopped with the code {process.wait()}"
        if part[0] == "end":
            return
        if part[0] == "error":
            raise KeslerError(
                f"{path} can't be read as a workbook ({part[1]}): if it is damaged or has a "
                "password, save it again, or save the sheet as CSV"
            )
        yield part

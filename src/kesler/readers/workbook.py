"""A program that writes the rows of a sheet of a workbook to standard output.

`excel.py` runs it in a process of its own, whose memory is limited, because a damaged or hostile
workbook can stop the process that reads it. It imports nothing of Kesler, so that it starts soon.
"""

from __future__ import annotations

import pickle
import re
import sys
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

MOST_MEMORY = 1 << 33  # bytes
BLOCK_ROWS = 1024
DURATION = re.compile(r"PT(\d{1,9})H(\d{1,2})M(\d{1,2}(?:\.\d+)?)S")
"""A duration of more than a day, as .ods holds it."""
EXACT = 1 << 53


def parts(path: str, wanted: str | None) -> Iterator[tuple[Any, ...]]:
    """Yield the names of the sheets and that of the one that is read, then blocks of its rows."""
    from python_calamine import SheetTypeEnum, SheetVisibleEnum, load_workbook

    workbook = load_workbook(path)
    sheets = [each for each in workbook.sheets_metadata if each.typ == SheetTypeEnum.WorkSheet]
    names = [each.name for each in sheets]
    shown = [each.name for each in sheets if each.visible == SheetVisibleEnum.Visible]
    name = wanted or next(iter(shown or names), None)
    yield "sheets", names, name
    if name not in names:
        return
    sheet = workbook.get_sheet_by_name(name)
    yield "start", 0 if sheet.start is None else sheet.start[1]
    block: list[list[Any]] = []
    first_row = 1
    for row in sheet.iter_rows():
        block.append([plain(cell) for cell in row])
        if len(block) == BLOCK_ROWS:
            yield "rows", first_row, block
            first_row, block = first_row + len(block), []
    yield "rows", first_row, block


def plain(cell: Any) -> Any:
    """Return a cell, None if it is empty; a whole number as an integer.

    Examples
    --------
    >>> plain("007"), plain(""), plain(3.0), plain("PT30H00M00S")
    ('007', None, 3, datetime.timedelta(days=1, seconds=21600))
    """
    if isinstance(cell, float):
        return int(cell) if cell.is_integer() and abs(cell) < EXACT else cell
    if isinstance(cell, str):
        found = DURATION.fullmatch(cell) if cell.startswith("PT") else None
        return _duration(found) if found else cell or None
    return cell


def _duration(found: re.Match[str]) -> timedelta:
    hours, minutes, seconds = found.groups()
    return timedelta(hours=int(hours), minutes=int(minutes), seconds=float(seconds))


def _limit_memory() -> None:
    try:
        import resource

        _, most = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, most))
    except (ImportError, OSError, ValueError):
        pass  # this system has no such limit, or a lower one


def main(path: str, *wanted: str) -> None:
    """Write the parts of a workbook, then "end", or what is wrong."""
    _limit_memory()
    try:
        for part in parts(path, *(wanted or (None,))):
            pickle.dump(part, sys.stdout.buffer)
        last: tuple[str, ...] = ("end",)
    except BaseException as error:  # also what a panic in Rust raises
        last = "error", f"{type(error).__name__}: {error}"
    pickle.dump(last, sys.stdout.buffer)


if __name__ == "__main__":
    main(*sys.argv[1:])

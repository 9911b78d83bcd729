"""Files that say what classes have to do with each other: costs of confusions, and trees."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any

from kesler.errors import KeslerError


def costs(path: str) -> dict[tuple[str, str], float]:
    """Return the costs in a file of lines RIGHT,WRONG,COST.

    Raises
    ------
    KeslerError
        If the file cannot be read, or a line is not of this form.
    """
    found = {}
    for number, (right, wrong, cost) in _lines(path, "RIGHT,WRONG,COST"):
        try:
            found[right, wrong] = float(cost)
        except ValueError:
            raise KeslerError(
                f"{path}, line {number}: {cost!r} is no number: write RIGHT,WRONG,COST"
            ) from None
    return found


def tree(text: str) -> str | dict[str, str]:
    """Return the tree in a file of lines CHILD,PARENT; a text that is no file is a separator.

    Raises
    ------
    KeslerError
        If a line is not of this form, or a class has two parents.
    """
    if not Path(text).is_file():
        return text
    found: dict[str, str] = {}
    for number, (child, parent) in _lines(text, "CHILD,PARENT"):
        if found.setdefault(child, parent) != parent:
            raise KeslerError(
                f"{text}, line {number}: {child!r} has the parent {found[child]!r} already: a "
                "class has one"
            )
    return found


def _lines(path: str, form: str) -> list[tuple[int, list[str]]]:
    """Return the fields of each line that is not empty, and its number."""
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            rows = csv.reader(file)
            lines = [(rows.line_num, [cell.strip() for cell in row]) for row in rows if row]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise KeslerError(f"{path}: cannot be read as lines {form} ({error})") from error
    for number, cells in lines:
        if len(cells) != form.count(",") + 1:
            raise KeslerError(
                f"{path}, line {number}: {len(cells)} fields in place of {form}: correct the line"
            )
    return lines


OF_FILES: dict[str, Callable[[str], Any]] = {"costs": costs, "tree": tree}
"""The settings that the command line reads from files."""

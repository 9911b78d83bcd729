"""Readers of the folder "fresh" of KESLER_DATA: tables with categories, measurements and texts.

Rows are returned as a user has them: cells of tables as strings and numbers, with None where one is
missing, and texts as strings. `one_hot` makes the columns that a peer is given in their place.
"""

from __future__ import annotations

import csv
import gzip
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from kesler import KeslerError

Cell = str | float | None
Record = Mapping[str, Cell]
"""The cells of a row by the name of their column; None where one is missing."""


def path_of(file: str) -> Path:
    """Return where a file is; raise `KeslerError` if it is not there."""
    path = Path(os.environ.get("KESLER_DATA", "")) / "fresh" / file
    if not path.exists():
        raise KeslerError(f"{path} does not exist: set KESLER_DATA to the folder that holds it")
    return path


def fresh_measurements(name: str) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.str_]]:
    """Read measurements and their labels."""
    with np.load(path_of(f"{name}.npz")) as file:
        return np.asarray(file["X"], dtype=np.float32), file["y"]


def fresh_texts(name: str) -> tuple[list[str], list[str]]:
    """Read texts and their labels."""
    with gzip.open(path_of(f"{name}.jsonl.gz"), "rt", encoding="utf-8") as lines:
        records = [json.loads(line) for line in lines]
    return [each["text"] for each in records], [each["label"] for each in records]


def fresh_table(name: str) -> tuple[list[Record], list[str]]:
    """Read the rows of a table and their labels, which are its last column."""
    with gzip.open(path_of(f"{name}.csv.gz"), "rt", encoding="utf-8", newline="") as lines:
        header, *rows = csv.reader(lines)
    *columns, labels = zip(*rows, strict=True)
    cells = zip(*map(parsed, columns), strict=True)
    return [dict(zip(header, row, strict=False)) for row in cells], list(labels)


def parsed(column: Sequence[str]) -> list[Cell]:
    """Return a column as numbers if all its cells are numbers or missing, else as it is.

    Examples
    --------
    >>> parsed(["1", "", "2.5"]), parsed(["1", "", "5more"])
    ([1.0, None, 2.5], ['1', None, '5more'])
    """
    try:
        return [float(cell) if cell else None for cell in column]
    except ValueError:
        return [cell or None for cell in column]


def one_hot(rows: Sequence[Record]) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.bool_]]:
    """Return a column for each number and for each value of a category, and which are numbers.

    Missing numbers are NaN; a missing category is 0 in each of its columns. Columns without a cell
    are left out.

    Examples
    --------
    >>> X, is_number = one_hot([{"a": 1.5, "b": "x"}, {"a": None, "b": "y"}])
    >>> X.tolist(), is_number.tolist()
    ([[1.5, 1.0, 0.0], [nan, 0.0, 1.0]], [True, False, False])
    """
    columns, is_number = list[npt.NDArray[np.float32]](), list[bool]()
    for name in rows[0]:
        cells = [row[name] for row in rows]
        values = dict.fromkeys(cell for cell in cells if isinstance(cell, str))
        if values:
            columns += [np.array([cell == value for cell in cells]) for value in values]
            is_number += [False] * len(values)
        elif any(cell is not None for cell in cells):
            columns.append(np.array(cells, dtype=np.float32))
            is_number.append(True)
    return np.stack(columns, axis=1).astype(np.float32), np.array(is_number)

"""Measurements: rows of the same few names with real values, unlike counts of words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from kesler.data.schema.cells import Cell
from kesler.data.sparse_rows import as_float32

LISTED = 0.75
"""The least share of all names that rows of measurements list, on average."""


def are_measurements(columns: Mapping[str, Sequence[Cell]]) -> bool:
    """Return whether rows hold the same numbers each: rows of an array, and no counts of words.

    They do if they list at least `LISTED` of all names and their values are not all 1; a single row
    if its values are not those of counts.

    Parameters
    ----------
    columns : the cells of each name; None where a row does not list it.

    Examples
    --------
    >>> are_measurements({"length": [5.1, 4.9], "width": [3.5, None]})
    True
    >>> are_measurements({"cash": [1, None], "win": [None, 1]})
    False
    """
    known = [cell for cells in columns.values() for cell in cells if cell is not None]
    values = [float(cell) for cell in known if isinstance(cell, (int, float))]
    if len(values) < len(known):
        return False
    n_rows = max(map(len, columns.values()), default=0)
    if n_rows == 1:
        return not all(value > 0 and value.is_integer() for value in values)
    return len(values) >= LISTED * len(columns) * n_rows and any(value != 1 for value in values)


def array_of_cells(
    cells: Mapping[str, Sequence[Any]], names: Iterable[str], n_rows: int
) -> npt.NDArray[np.float32]:
    """Return parsed cells of columns of numbers as rows, NaN where one is missing."""
    missing = [None] * n_rows
    columns = [as_float32(np.array(cells.get(name, missing), dtype=float)) for name in names]
    return np.stack(columns, axis=1)

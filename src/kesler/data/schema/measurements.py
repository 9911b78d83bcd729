"""Measurements: rows of the same few names with real values, unlike counts of words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from kesler.data.schema.cells import Cell
from kesler.data.schema.schema import Column, Schema
from kesler.data.sparse_rows import as_float32

LISTED = 0.75
"""The least share of all names that rows of measurements list, on average."""

MOST_NAMES = 1024
"""The most names of measurements; the first rows of more names are not kept."""


def are_measurements(columns: Mapping[str, Sequence[Cell]]) -> bool:
    """Return whether rows hold the same numbers each: rows of an array, and no counts of words.

    They do if they list at least `LISTED` of all names, and no name has the value 1 where it is
    listed and is missing elsewhere, as indicators are. The values must not all be 1, and those of
    a single row not be those of counts, which are never missing.

    Parameters
    ----------
    columns : the cells of each name; None where a row does not list it.

    Examples
    --------
    >>> are_measurements({"length": [5.1, 4.9], "width": [3.5, None]})
    True
    >>> are_measurements({"cash": [1, None], "win": [None, 1]})
    False
    >>> are_measurements({"cash": [2]}), are_measurements({"cash": [2], "win": [None]})
    (False, True)
    """
    known = [cell for cells in columns.values() for cell in cells if cell is not None]
    values = [float(cell) for cell in known if isinstance(cell, (int, float))]
    if len(values) < len(known):
        return False
    n_rows = max(map(len, columns.values()), default=0)
    if n_rows == 1:
        return len(values) < len(columns) or not all(
            value > 0 and value.is_integer() for value in values
        )
    if len(values) < LISTED * len(columns) * n_rows or all(value == 1 for value in values):
        return False
    return not any(map(_indicates, columns.values()))


def _indicates(cells: Sequence[Cell]) -> bool:
    """Return whether a name is 1 where it is listed, and missing elsewhere."""
    return all(cell is None or cell == 1 for cell in cells) and None in cells


def schema_of_numbers(columns: Mapping[str, Sequence[Cell]], *, dense_only: bool) -> Schema:
    """Return the schema of rows of numbers by name: no column if they are counts of words.

    Parameters
    ----------
    columns : the cells of each name; None where a row does not list it.
    dense_only : whether the learner takes only rows that list every feature; a single row is one.
    """
    n_rows = max(map(len, columns.values()), default=0)
    if len(columns) > MOST_NAMES or not ((dense_only and n_rows == 1) or are_measurements(columns)):
        return Schema()
    return Schema(
        tuple(Column(name, "number", {}, "the same numbers in most rows") for name in columns)
    )


def array_of_cells(
    cells: Mapping[str, Sequence[Any]], names: Iterable[str], n_rows: int
) -> npt.NDArray[np.float32]:
    """Return parsed cells of columns of numbers as rows, NaN where one is missing."""
    missing = [None] * n_rows
    columns = [as_float32(np.array(cells.get(name, missing), dtype=float)) for name in names]
    return np.stack(columns, axis=1)

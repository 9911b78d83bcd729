"""The values of the cells of a table: each column parsed, and new columns added."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from kesler.data.schema.inference import column_of
from kesler.data.schema.kinds import NOT_LEARNT
from kesler.data.schema.reading import ColumnReader, mismatch, warn_of, warn_of_later
from kesler.data.schema.records import Table, Unfit
from kesler.data.schema.schema import Column, Schema, named_column

Values = dict[str, list[Any]]


def parse(
    table: Table,
    schema: Schema,
    given: Mapping[str, Column],
    on_mismatch: str,
    *,
    learn: bool,
    count: bool = True,
) -> tuple[Values, Schema]:
    """Return the parsed cells of each column of the schema, and the schema after them.

    Parameters
    ----------
    table : the rows.
    schema : the columns known so far.
    given : the columns that the user named.
    on_mismatch : "raise", or "missing": a cell that its column cannot hold is then missing.
    learn : whether new columns are added, each inferred from its first cell.
    count : whether the columns count their cells.

    Raises
    ------
    KeslerError
        If a cell does not fit its column, unless such cells count as missing.
    """
    if learn:
        schema = with_new_columns(table, schema, given)
    values, columns = Values(), list(schema.columns)
    reader = ColumnReader(table.place, on_mismatch, learn, count)
    for i, column in enumerate(columns):
        if column.name in table.columns:
            cells = table.columns[column.name]
            values[column.name], columns[i] = reader.read(column, cells)
    return values, Schema(tuple(columns)) if count else schema


def with_new_columns(table: Table, schema: Schema, given: Mapping[str, Column]) -> Schema:
    """Return the schema with the new columns of a table, in the order of their first cells.

    Columns of numbers that had no cells before have the notation of their first one.
    """
    known = {column.name: column for column in schema.columns}
    found = []
    for place, (name, cells) in enumerate(table.columns.items()):
        if name in known and not known[name].is_awaited:
            continue
        row = next((row for row, cell in enumerate(cells) if cell is not None), None)
        if row is not None:
            found.append((row, place, column_of(name, [cells[row]], given)))
    new = {column.name: column for _, _, column in sorted(found, key=lambda e: e[:2]) if column}
    read = [new[c.name] if _is_awaited_number(c, new) else c for c in schema.columns]
    more = [column for name, column in new.items() if name not in known]
    return Schema((*read, *more)) if new else schema


def _is_awaited_number(column: Column, new: Mapping[str, Column]) -> bool:
    """Return whether the first cell of a column of numbers has been found, and is a number."""
    return column.is_awaited and column.name in new and new[column.name].kind == "number"


def usable(table: Table, given: Mapping[str, Column], on_mismatch: str) -> Table:
    """Return the table without cells that no column can hold, which are missing.

    Raises
    ------
    KeslerError
        If there is such a cell in a column that is not ignored, and `on_mismatch` is "raise".
    """
    columns = {}
    for name, cells in table.columns.items():
        if Unfit not in map(type, cells):
            columns[name] = cells
            continue
        row = next(row for row, cell in enumerate(cells) if isinstance(cell, Unfit))
        named = named_column(given, name)
        ignored = named is not None and named.kind in NOT_LEARNT
        what = "a text, a number, a date or a list of texts or numbers"
        if on_mismatch == "raise" and not ignored:
            raise mismatch(table.place(row), name, what, cells[row].what, row)
        if not ignored and not table.first_row:
            warn_of(table.place(row), name, what, cells[row].what)
        elif not ignored:
            warn_of_later(name, what)
        columns[name] = [None if isinstance(c, Unfit) else c for c in cells]
    return replace(table, columns=columns)

"""Columns of a model as another file writes them: its numbers and dates in its own notation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from kesler.data.schema.inference import column_of
from kesler.data.schema.kinds import KINDS, Options
from kesler.data.schema.reading import parsed
from kesler.data.schema.schema import OTHERS, Column, Schema
from kesler.errors import KeslerError


def as_written(
    schema: Schema, table: Mapping[str, Sequence[Any]], given: Mapping[str, Column]
) -> Schema:
    """Return the schema of a model whose columns are written as in the first rows of a file.

    A column is read as its cells show if these fit better so than as the model learnt them.

    Parameters
    ----------
    schema : the columns of the model.
    table : the cells of each column of the first rows.
    given : columns whose notation the user named.

    Raises
    ------
    KeslerError
        If a column is named as of another kind than it was learnt as.

    Examples
    --------
    >>> learnt = Schema((Column("size", "number"),))
    >>> as_written(learnt, {"size": ["800,5", "1.200,25"]}, {})["size"].options["decimal"]
    ','
    """
    for name, column in given.items():
        if name in schema and column.kind not in ("any", schema[name].kind):
            raise KeslerError(
                f"column {name!r} is given as a {column.kind}, but the model learnt it as a "
                f"{schema[name].kind}: leave that out"
            )
    return Schema(
        tuple(
            _as_written(column, table[column.name], given)
            if KINDS[column.kind].written and column.name in table
            else column
            for column in schema
        )
    )


def _as_written(column: Column, cells: Sequence[Any], given: Mapping[str, Column]) -> Column:
    hints = {**_options(given.get(OTHERS)), **_options(given.get(column.name))}
    named = {option: hints[option] for option in KINDS[column.kind].written if option in hints}
    if named:
        return _with(column, named)
    found = column_of(column.name, cells, {column.name: Column(column.name, column.kind)})
    if found is None:
        return column
    own = _with(column, found.options)
    return own if _n_odd(own, cells) < _n_odd(column, cells) else column


def _options(column: Column | None) -> Options:
    return {} if column is None else column.options


def _with(column: Column, options: Options) -> Column:
    """Return a column that is written in another way."""
    ways = KINDS[column.kind].written
    kept = {option: value for option, value in column.options.items() if option not in ways}
    changed = {option: options[option] for option in ways if option in options}
    return replace(column, options={**kept, **changed}, others=(), example="")


def _n_odd(column: Column, cells: Sequence[Any]) -> int:
    return len(parsed(column, cells)[1])

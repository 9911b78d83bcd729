"""Partitions of tables: the kinds of the columns, inferred once for all of them, and features.

A learner on one machine infers the kinds from its first rows and scales numbers by those so far.
Shards are learnt apart, so both are settled before the first row is learnt: the kinds by the first
rows of the first partitions, the mean and the deviation of numbers by all rows.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

from kesler.data.rows import Vocabulary
from kesler.data.schema import features, values
from kesler.data.schema.features import Moments
from kesler.data.schema.inference import N_ROWS, infer
from kesler.data.schema.measurements import Inputs
from kesler.data.schema.records import Table
from kesler.data.schema.schema import Column, Schema
from kesler.distributed.scattered import Scattered
from kesler.distributed.shards import Description, Shard
from kesler.errors import KeslerError, MismatchWarning, warn
from kesler.online.columns import given_columns, on_mismatch
from kesler.online.table_state import TableState


@dataclass(frozen=True, eq=False)
class Cells:
    """The parsed cells of a partition, and the columns that have counted them."""

    values: values.Values
    schema: Schema
    shard: Shard

    def counts(self) -> tuple[Schema, Moments]:
        """Return the columns with their counts of cells, and the moments of numbers."""
        return self.schema, features.moments_of(self.values, self.schema)

    def features(self, schema: Schema, moments: Moments, inputs: Inputs | None) -> Shard:
        """Return the rows by their features; as an array if they have inputs."""
        n_rows = len(self.shard)
        if inputs is not None:
            array = inputs.array(self.values, n_rows)
            return replace(self.shard, X=array, names=inputs.names)
        vocabulary = Vocabulary()
        entries, _ = features.entries_of(self.values, n_rows, schema, moments, None, learn=False)
        rows = entries.rows(vocabulary, learn=True)
        rows.require_finite()
        return replace(self.shard, X=rows, names=vocabulary.names)


def are_tables(descriptions: Sequence[Description]) -> bool:
    """Return whether partitions are tables, or arrays with names of columns beside tables."""
    kinds = {"dense" if each.columns else each.kind for each in descriptions if each.n_rows}
    tables = {each.kind for each in descriptions if each.n_rows and each.kind == "table"}
    return bool(tables) and kinds <= {"table", "dense"}


def with_features(
    shards: Scattered, learner: Any, *, takes_missing: bool
) -> tuple[Scattered, TableState]:
    """Return shards of tables as rows of features, and what the learner knows of the columns.

    Parameters
    ----------
    shards : the partitions.
    learner : the online learner, whose settings name the kinds of columns.
    takes_missing : whether it takes missing values, so that columns of numbers are an array.

    Raises
    ------
    KeslerError
        If the learner does not learn from tables, a cell does not fit its column and
        `on_mismatch` is "raise", or all columns are ignored.
    """
    if learner.columns is None:
        raise KeslerError(
            "columns=None learns numbers by their names, but partitions have columns of text, or "
            "cells that are missing: leave columns out, or give the kinds of columns"
        )
    given, choice = given_columns(learner), on_mismatch(learner)
    tables = shards.each(_usable, given, choice)
    first = Table.concatenate(tables.collect(_first_rows))[:N_ROWS]
    schema = _inferred(first, tables, given)
    schema.require_learnt()
    parsed = tables.each(_parsed, schema, given, choice)
    counts = parsed.collect(Cells.counts)
    schema = reduce(lambda so_far, more: so_far.counted_as(more), [each for each, _ in counts])
    for sentence in schema.misfits:
        warn(sentence, MismatchWarning)
    numbers = schema.measurements if takes_missing else []
    inputs = Inputs.of_numbers(numbers) if numbers else None
    moments = {} if numbers else reduce(features.joined_moments, [each for _, each in counts])
    state = TableState(schema, moments, kept=None, named=first.named, inputs=inputs)
    return parsed.each(Cells.features, schema.uncounted(), moments, inputs), state


def _usable(shard: Shard, given: Mapping[str, Column], choice: str) -> Shard:
    """Return the shard of a table; arrays are tables of numbers."""
    table = shard.X
    if not isinstance(table, Table):
        columns = dict(zip(shard.names or [], table.T.tolist(), strict=True))
        table = Table(len(shard), {name: list(cells) for name, cells in columns.items()})
    with _without_warnings():
        return replace(shard, X=values.usable(table, given, choice))


def _inferred(first: Table, tables: Scattered, given: Mapping[str, Column]) -> Schema:
    """Return the columns of all partitions, by the first rows and the first cells of later ones."""
    schema = infer(first.columns, given)
    for cells in tables.collect(_first_cells, schema):
        schema = values.with_new_columns(Table(1, cells), schema, given)
    return schema


def _first_rows(shard: Shard) -> Table:
    rows: Table = shard.X[:N_ROWS]
    return rows


def _first_cells(shard: Shard, schema: Schema) -> dict[str, list[Any]]:
    """Return the first cell of each column that is new, or of which no cell is known."""
    known = {column.name for column in schema if not column.is_awaited}
    return {
        name: [cell]
        for name, cells in shard.X.columns.items()
        if name not in known
        and (cell := next((each for each in cells if each is not None), None)) is not None
    }


def _parsed(shard: Shard, schema: Schema, given: Mapping[str, Column], choice: str) -> Cells:
    with _without_warnings():
        found, counted = values.parse(shard.X, schema.uncounted(), given, choice, learn=False)
    return Cells(found, counted, shard)


def _without_warnings() -> warnings.catch_warnings[None]:
    """Leave out what a worker says of single cells: the client says it of all of them."""
    return warnings.catch_warnings(action="ignore", category=MismatchWarning)

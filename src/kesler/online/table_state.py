"""What an estimator knows of its table: the schema, moments of numbers, and the first rows."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

import numpy as np
import numpy.typing as npt

from kesler.data.inputs import row_weights
from kesler.data.schema.cells import INFINITE, plain
from kesler.data.schema.features import Moments
from kesler.data.schema.inference import N_ROWS, infer
from kesler.data.schema.measurements import (
    Forms,
    Inputs,
    Vectors,
    inputs_of,
    schema_of_numbers,
)
from kesler.data.schema.records import Table, concatenated, table_of
from kesler.data.schema.schema import Column, Schema
from kesler.errors import KeslerError
from kesler.learner.targets import NOTHING_SAID, Kind, Targets
from kesler.online.metadata import is_label
from kesler.state.fields import damaged


@dataclass(frozen=True, slots=True)
class Batch:
    """Rows of a table with their targets, and sample weights or None.

    Rows of numbers by name are stored as given as well, with their names in their own order.
    """

    table: Table
    targets: Targets
    weights: npt.NDArray[np.float64] | None = None
    entries: Sequence[Mapping[str, Any]] | None = None

    def __len__(self) -> int:
        return self.table.n_rows

    @property
    def words(self) -> list[dict[str, float]]:
        """The rows as counts of words, without missing values."""
        return [{n: v for n, v in entry.items() if v == v} for entry in self.entries or ()]

    def counted(self) -> Batch:
        """Return the rows whose weight is not 0, without weights if all are 1."""
        if self.weights is None or (self.weights == 1).all():
            return replace(self, weights=None)
        if self.weights.all():
            return self
        rows = np.flatnonzero(self.weights)
        taken = self.table.take(rows.tolist()), self.targets.take(rows), self.weights[rows]
        return Batch(*taken).counted()

    def followed_by(self, other: Batch) -> Batch:
        """Return the rows of both, whose targets are of the same labels."""
        table = Table.concatenate([self.table, other.table])
        one, two = self.targets, other.targets
        targets = replace(
            one,
            indptr=np.concatenate([one.indptr, one.indptr[-1] + two.indptr[1:]]),
            labels=[*one.labels, *two.labels],
            levels=np.concatenate([one.levels, two.levels]),
            costs=np.concatenate([one.costs, two.costs]),
        )
        weights = [np.ones(len(b)) if b.weights is None else b.weights for b in (self, other)]
        by_name = None not in (self.entries, other.entries)
        entries = [*(self.entries or ()), *(other.entries or ())] if by_name else None
        both = Batch(table, targets, None, entries)
        return replace(both, weights=np.concatenate(weights)).counted()

    def to_json(self) -> dict[str, Any]:
        """Return the rows as JSON can hold them."""
        targets, columns = self.targets, self.table.columns.items()
        rows: dict[str, Any] = {"cells": {name: list(map(_stored, c)) for name, c in columns}}
        if self.entries is not None:
            rows = {"entries": [{n: plain(v) for n, v in e.items()} for e in self.entries]}
        return {
            "n_rows": self.table.n_rows,
            **rows,
            "indptr": targets.indptr.tolist(),
            "labels": targets.labels,
            "levels": targets.levels.tolist(),
            "costs": targets.costs.tolist(),
            "columns": list(targets.columns),
            "weights": None if self.weights is None else self.weights.tolist(),
        }


def _stored(cell: Any) -> Any:
    """Return a cell as JSON can hold it."""
    if isinstance(cell, datetime):
        return {"date": cell.isoformat()}
    return {"number": repr(cell)} if cell in INFINITE else cell


@dataclass(frozen=True, slots=True)
class TableState:
    """What an estimator knows of its table; it never changes, but is replaced.

    Parameters
    ----------
    schema : the columns so far.
    moments : mean and squared deviations of each column of numbers.
    kept : the first rows, while there are fewer than `N_ROWS`; None afterwards.
    named : whether columns have names, not only positions.
    by_name : whether rows are mappings of names to numbers, which are words without a schema.
    inputs : what the learner, or members of an ensemble, read of rows as an array; None if they
        read features alone.
    """

    schema: Schema = field(default_factory=Schema)
    moments: Moments = field(default_factory=dict)
    kept: tuple[Batch, ...] | None = ()
    named: bool = True
    by_name: bool = False
    inputs: Inputs | None = None

    @property
    def are_words(self) -> bool:
        """Whether rows are counts of words, so far."""
        return self.by_name and not len(self.schema)

    @property
    def n_open(self) -> int:
        """The number of rows that are needed before the schema is final."""
        return 0 if self.kept is None else N_ROWS - sum(map(len, self.kept))

    def __deepcopy__(self, memo: Any) -> TableState:
        return self  # nothing in it changes

    def inferred(
        self,
        batch: Batch,
        given: Mapping[str, Column],
        reads: Forms,
        vectors: Vectors | None = None,
    ) -> tuple[Schema, Inputs | None]:
        """Return the schema and the inputs of the first rows, the last of which are of a batch.

        They follow from the forms of rows that the learner reads; `vectors` returns those of texts.
        """
        cells = concatenated([each.table for each in (*(self.kept or ()), batch)])
        first = {name: column[:N_ROWS] for name, column in cells.items()}
        if self.by_name:
            schema = schema_of_numbers(first, dense_only=not reads.features)
            return schema, Inputs.of_numbers(schema.names) if len(schema) else None
        schema = infer(first, given)
        return schema, inputs_of(schema, first, reads, vectors)

    def begun(self, schema: Schema, inputs: Inputs | None, *, again: bool) -> TableState:
        """Return the state with this schema and these inputs, before any row if `again`."""
        counted = schema if again else schema.counted_as(self.schema)
        moments = {} if again else self.moments
        return replace(self, schema=counted, inputs=inputs, moments=moments)

    def with_kept(self, kept: tuple[Batch, ...]) -> TableState:
        """Return the state with these rows, none of them if there are enough.

        Batches of the same labels become one, so that a file does not depend on the split.
        """
        if sum(map(len, kept)) >= N_ROWS:
            return replace(self, kept=None)
        merged = list[Batch]()
        for batch in filter(len, kept):
            joins = merged and merged[-1].targets.columns == batch.targets.columns
            merged[-1:] = [merged[-1].followed_by(batch)] if joins else [*merged[-1:], batch]
        return replace(self, kept=tuple(merged))

    def to_json(self) -> dict[str, Any]:
        """Return the state as JSON can hold it."""
        return {
            "schema": self.schema.to_json(),
            "moments": {name: list(each) for name, each in sorted(self.moments.items())},
            "kept": None if self.kept is None else [batch.to_json() for batch in self.kept],
            "named": self.named,
            "by_name": self.by_name,
            "inputs": None if self.inputs is None else self.inputs.to_json(),
            "beside": self.inputs is not None and self.inputs.beside,
        }


def restored(stored: Any, answer: Kind, n_virtual: int, *, takes_missing: bool) -> TableState:
    """Return the state that a file describes.

    Parameters
    ----------
    stored : what `TableState.to_json` returned, or anything.
    answer, n_virtual : the kind of targets of the estimator, and its number of virtual classes.
    takes_missing : whether its learner takes missing values.

    Raises
    ------
    KeslerError
        If it describes no state.
    """
    try:
        kept = stored["kept"]
        batches = None if kept is None else tuple(_batch(b, answer, n_virtual) for b in kept)
        moments = {name: _moment(each) for name, each in stored["moments"].items()}
        schema = Schema.from_json(stored["schema"])
        named, by_name = stored["named"], stored.get("by_name", False)
        if not all(isinstance(each, bool) for each in (named, by_name)):
            raise ValueError("columns neither have names nor lack them")
        if sum(map(len, batches or ())) >= N_ROWS:
            raise ValueError("its first rows are too many")
        inputs = _inputs(stored, schema, takes_missing=takes_missing)
        return TableState(schema, moments, batches, named, by_name, inputs)
    except (AttributeError, KeyError, OverflowError, TypeError, ValueError) as error:
        if isinstance(error, KeslerError):
            raise
        raise damaged(f"columns are not described as they should be ({error})") from None


def _inputs(stored: Any, schema: Schema, *, takes_missing: bool) -> Inputs | None:
    """Return the inputs in a file; files of before hold none of columns that are all numbers."""
    inputs, beside = stored.get("inputs"), stored.get("beside")
    if inputs is not None:
        return Inputs.from_json(inputs, beside=beside is not False)
    are_alone = beside is None and takes_missing and schema.measurements
    return Inputs.of_numbers(schema.measurements) if are_alone else None


def _moment(stored: Any) -> tuple[float, float, float]:
    n, mean, squares = (float(number) for number in stored)
    if not (all(map(math.isfinite, (n, mean, squares))) and n >= 0 and squares >= 0):
        raise ValueError(f"moments {stored}")
    return n, mean, squares


def _batch(stored: Any, answer: Kind, n_virtual: int) -> Batch:
    n_rows, entries = stored["n_rows"], _entries(stored.get("entries"))
    if entries is None:
        columns = {str(n): [plain(_cell(c)) for c in cells] for n, cells in stored["cells"].items()}
    else:
        columns = table_of(entries).columns if entries else {}
    lengths = {len(cells) for cells in columns.values()}
    if (
        type(n_rows) is not int
        or lengths - {n_rows}
        or (entries is not None and len(entries) != n_rows)
    ):
        raise ValueError("columns of different lengths")
    targets = _targets(stored, answer, n_virtual)
    if len(targets) != n_rows:
        raise ValueError(f"{len(targets)} targets of {n_rows} rows")
    weights = row_weights(stored["weights"], n_rows)
    return Batch(Table(n_rows, columns), targets, weights, entries)


def _entries(stored: Any) -> list[dict[str, float]] | None:
    """Return rows of numbers by name; None if there are none."""
    if stored is None:
        return None
    return [{str(n): _number(v) for n, v in e.items()} for e in stored]


def _number(stored: Any) -> float:
    """Return a number as it was given: a truth value and an integer make other columns."""
    number = math.nan if stored is None else float(stored)
    return stored if isinstance(stored, int) else number


def _cell(stored: Any) -> Any:
    if not isinstance(stored, dict):
        return stored
    return float(stored["number"]) if "number" in stored else datetime.fromisoformat(stored["date"])


def _targets(stored: Any, answer: Kind, n_virtual: int) -> Targets:
    """Return the targets of kept rows, whose levels are those that the estimator gives."""
    indptr = np.array(stored["indptr"], dtype=np.int64)
    levels = np.array(stored["levels"], dtype=np.int32)
    costs = np.array(stored.get("costs", ()), dtype=np.float64)
    labels, columns = list(stored["labels"]), tuple(stored["columns"])
    names_many = answer in ("levels", "sets", "costs")
    n_levels = {"levels": len(labels), "costs": 2}.get(answer, 1)
    if not (
        indptr.ndim == levels.ndim == 1
        and len(levels) == len(labels)
        and indptr[:1].tolist() == [0]
        and indptr[-1] == len(labels)
        and (np.diff(indptr) >= (not names_many)).all()
        and (names_many or (len(labels) == len(indptr) - 1 and not columns))
        and ((levels >= 0) & (levels < n_levels)).all()
        and all(map(is_label, [*labels, *columns]))
        and costs.shape == (len(labels) if answer == "costs" else 0,)
        and np.isfinite(costs).all()
    ):
        raise ValueError("targets that do not fit each other")
    if not names_many:
        return Targets(indptr, labels, levels, rest=1)
    if n_virtual:
        return Targets(indptr, labels, levels, 2, columns, threshold=1)
    return Targets(indptr, labels, levels, NOTHING_SAID, columns, costs=costs)

"""Features of one row of a table, without arrays: those that `features` returns of the row."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from datetime import date, datetime, timedelta
from itertools import combinations
from typing import Any

import numpy as np

from kesler.data.schema.cells import EPOCH, UnfitError, plain
from kesler.data.schema.entries import Coder, Part, scale_to
from kesler.data.schema.features import (
    CLIP,
    CYCLES,
    KNOTS,
    LENGTHS,
    MAKERS,
    Moments,
    escaped,
    pair_part,
    paired_columns,
    z_scores,
)
from kesler.data.schema.records import SIMPLE
from kesler.data.schema.schema import Column, Schema
from kesler.data.schema.terms import terms_of

Features = dict[str, float]
Cells = dict[str, Any]

CELLS = SIMPLE | {date, datetime}
"""The types of the cells that are read here."""

MICROSECOND = timedelta(microseconds=1)


class RowPlan:
    """What the features of a row follow from, computed once for the columns of a table.

    It reads the rows whose cells are plain and fit their columns. All others are left to the code
    that reads tables, which converts, counts, warns and raises errors.

    Parameters
    ----------
    schema : the columns.

    Examples
    --------
    >>> plan = RowPlan(Schema((Column("kind", "category"), Column("size", "number"))))
    >>> cells, stated = plan.parsed({"kind": "mail ", "size": None}, learn=True)
    >>> cells, stated, plan.parsed({"kind": "mail", "size": "large"}, learn=True)
    ({'kind': 'mail', 'size': None}, ['kind'], None)
    >>> plan.features_of(cells, {})
    ({'kind=mail': 0.625}, {})
    """

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self._columns = {column.name: column for column in schema}
        self._parsers = {c.name: (c.parser.parse, c.options) for c in schema}
        self._of_kinds = [(k, _named(schema, k), length) for k, length in LENGTHS.items()]
        self._pairs = [*combinations(paired_columns(schema), 2)]
        self._is_settled = not any(c.others or c.example or c.is_awaited for c in schema)
        self._is_readable = not schema.of_kind("sequence")

    def __reduce__(self) -> Any:
        return RowPlan, (self.schema,)

    def __deepcopy__(self, memo: Any) -> RowPlan:
        return self  # nothing in it changes

    def parsed(self, row: Mapping[Any, Any], *, learn: bool) -> tuple[Cells, list[str]] | None:
        """Return the parsed cells of a row, and the names of those that are not missing.

        None if the row is to be read as a table: if a cell is of another type or does not fit its
        column, or if learning it changes what is known of a column besides its counts.
        """
        if not self._is_readable or (learn and not self._is_settled):
            return None
        found, stated = Cells(), list[str]()
        for name, given in row.items():
            parser = self._parsers.get(name)
            if type(given) not in CELLS or (parser is None and (learn or type(name) is not str)):
                return None
            cell = None if parser is None else plain(given)
            if parser is None or cell is None:
                found[name] = None
                continue
            try:
                found[name] = parser[0](cell, parser[1])
            except UnfitError:
                return None
            stated.append(name)
        return found, stated

    def counted(self, schema: Schema, stated: Iterable[str]) -> Schema:
        """Return the schema of the plan with a cell more in the columns of these names."""
        names = {*stated}
        return Schema(tuple(c.counted(1) if c.name in names else c for c in schema))

    def features_of(
        self,
        cells: Cells,
        moments: Moments,
        *,
        learn: bool = False,
        decay: float = 1.0,
    ) -> tuple[Features, Moments]:
        """Return the features of parsed cells by name, and the moments of numbers after the row.

        The arguments are those of :func:`kesler.data.schema.features.entries_of`.
        """
        after = dict(moments) if learn else None

        def score(name: str, number: float | None) -> float:
            numbers = np.array([number], dtype=float)
            return float(z_scores(name, moments, None, after, decay, numbers)[0])

        found = Features()
        for kind, columns, length in self._of_kinds:
            if kind == "pair" and self._pairs:
                _add_parts(found, _pair_parts(self._pairs, cells), length)
            elif not columns:
                continue
            elif kind == "text":
                for name, column in columns:
                    if cells.get(column.name) is not None:
                        found = found | terms_of(name, cells[column.name], column.options)
            elif kind in MAKERS:
                _add_parts(found, _parts(kind, columns, cells), length)
            else:
                _add_grid(found, kind, columns, cells, length, score)
        return found, moments if after is None else after


def _named(schema: Schema, kind: str) -> list[tuple[str, Column]]:
    """Return the columns of a kind with what the names of their features begin with."""
    return [(escaped(column.name), column) for column in schema.of_kind(kind)]


# ---- cells that recur ---------------------------------------------------------------------------

Parts = tuple[list[str], list[Part | None]]
"""The names of features, and the features of cells by their places among these."""


def _parts(kind: str, columns: Iterable[tuple[str, Column]], cells: Cells) -> Parts:
    """Return the features of the cells of the columns of a kind."""
    names, found = list[str](), list[Part | None]()
    for name, column in columns:
        cell = cells.get(column.name)
        if cell is not None:
            found.append(MAKERS[kind](name, column.options, names)(cell))
    return names, found


def _pair_parts(pairs: Iterable[tuple[str, str]], cells: Cells) -> Parts:
    """Return the features of pairs of categories."""
    names = list[str]()
    return names, [
        pair_part(
            Coder(f"{escaped(one)}&{escaped(other)}=", names), (cells.get(one), cells.get(other))
        )
        for one, other in pairs
    ]


def _add_parts(found: Features, parts: Parts, length: float | None) -> None:
    """Add features, scaled so that all cells have the same share of a length."""
    names, known = parts[0], [part for part in parts[1] if part is not None]
    share = _share(known, length)
    for codes, values, own in known:
        scale = 1.0 if own is None else scale_to(own, values)
        for code, value in zip(codes, values, strict=True):
            scaled = share * (scale * value)
            if scaled:
                found[names[code]] = scaled


def _share(known: list[Any], length: float | None) -> float:
    return (length or 1.0) / math.sqrt(max(1, len(known)))


# ---- numbers and dates --------------------------------------------------------------------------


def _add_grid(
    found: Features,
    kind: str,
    columns: Iterable[tuple[str, Column]],
    cells: Cells,
    length: float | None,
    score: Callable[[str, float | None], float],
) -> None:
    """Add the features of numbers or dates, so that all cells have the same share of a length."""
    known = []
    for name, column in columns:
        if column.name not in cells:
            continue
        cell = cells[column.name]
        number = _seconds(cell) if kind == "date" else cell
        z = score(column.name, number)
        if z == z:
            known.append((name, cell, z))
    share = _share(known, length)
    for name, cell, z in known:
        entries = _of_date(name, cell, z) if kind == "date" else _of_number(name, z)
        for feature, value in entries:
            if value:
                found[feature] = share * value


def _of_number(name: str, z: float) -> Iterable[tuple[str, float]]:
    """Return the z-score of a number, and how near it is to each of the two knots around it."""
    place = (min(max(z, KNOTS[0]), KNOTS[-1]) - KNOTS[0]) / (KNOTS[1] - KNOTS[0])
    knot = min(int(place), len(KNOTS) - 2)
    part = place - knot
    return (name, z / CLIP), (f"{name}@{knot}", 1 - part), (f"{name}@{knot + 1}", part)


def _of_date(name: str, moment: datetime, z: float) -> Iterable[tuple[str, float]]:
    """Return the trend, and the places of a date in the day, the week and the year."""
    cycles = zip(CYCLES, _cycles_of(moment), strict=True)
    return (f"{name}@trend", z / CLIP), *((f"{name}@{cycle}", value) for cycle, value in cycles)


def _seconds(moment: datetime | None) -> float:
    """Return a date as seconds from 1970, NaN if it is missing."""
    return math.nan if moment is None else (moment - EPOCH) // MICROSECOND / 1e6


def _cycles_of(moment: datetime) -> list[float]:
    """Return the places of a date in the day, the week and the year, each on a circle."""
    from kesler.compiled.readers.columns import fill_circles

    day = (moment.hour + moment.minute / 60) / 24
    places = [day, (moment.weekday() + day) / 7, (moment.timetuple().tm_yday - 1) / 366]
    points = np.empty((1, 2 * len(places)))
    fill_circles(np.array([places]), points)
    found: list[float] = points[0].tolist()
    return found

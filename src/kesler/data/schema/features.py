"""Features of tables: those of each cell by the kind of its column, in blocks of equal length."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import lru_cache, partial
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt

from kesler.data.schema.cells import seconds_of
from kesler.data.schema.entries import Coder, Doubles, Entries, Grid, Part, Parts, scale_to
from kesler.data.schema.kinds import KINDS, Options
from kesler.data.schema.schema import Schema
from kesler.data.schema.terms import entries_of_texts
from kesler.data.schema.values import Values
from kesler.data.texts import tokenize

LENGTHS = {
    "text": None,
    "tags": 0.35,
    "vector": 0.75,
    "category": 0.625,
    "pair": 1.2,
    "number": 0.175,
    "date": 0.125,
}
"""The lengths of the blocks of a row: of all its columns of one kind together, each of which has
the same share, except that every text has a length of its own, in `terms.py`. They are chosen on
the tables of `benchmarks/mixed_tables.py`; the default learner scales whole rows to length 1, so
that only the ratios of these numbers matter to it."""

FURTHEST = 30.0  # a value further from the mean, in deviations, counts as this far
NEARLY_FURTHEST = 0.99 * FURTHEST**2
CLIP = 4.0  # the largest z-score
KNOTS = tuple(k / 2 for k in range(-4, 5))
OF_NUMBER = ("", *(f"@{k}" for k in range(len(KNOTS))))  # what ends the names of its features
CYCLES = tuple(f"{cycle}.{part}" for cycle in ("day", "week", "year") for part in ("sin", "cos"))
LEAST_VARIANCE = 1e-200
# Of tables without texts, pairs of so many columns of categories have features of their own.
MOST_PAIRED, UNPAIRED = 12, ("text", "tags", "vector")
LONGEST_CATEGORY, WORDS_OF_CATEGORY = 80, 1.25  # characters; length of the words of a category

Moments = Mapping[str, tuple[float, float, float]]
"""The sum of weights, the mean and the sum of squared deviations of each column of numbers."""

Scores = list[float | None]


def entries_of(
    values: Values,
    n_rows: int,
    schema: Schema,
    moments: Moments,
    weights: Any,
    *,
    learn: bool,
    decay: float = 1.0,
) -> tuple[Entries, Moments]:
    """Return the features of each row, and the moments of numbers after the rows.

    Parameters
    ----------
    values : the parsed cells of each column.
    n_rows : the number of rows.
    schema : the columns.
    moments : those of the rows before.
    weights : the sample weights of the rows, None if all are 1.
    learn : whether each row adds to the moments.
    decay : what remains of the influence of a number on the moments after another one.
    """
    after, found = dict(moments), list[Entries]()
    of_kinds: dict[str, Values] = {kind: {} for kind in KINDS}
    for column in schema:
        if column.name in values:
            of_kinds[column.kind][column.name] = values[column.name]
    for kind, length in LENGTHS.items():
        cells = of_kinds.get(kind)
        if kind in GRIDS and cells:
            update = after if learn else None
            scores = [
                z_scores(name, moments, weights, update, decay, _numbers(kind, column))
                for name, column in cells.items()
            ]
            found.append(GRIDS[kind](cells, scores).entries(length or 1.0))
        elif kind == "text" and cells:
            found += [
                entries_of_texts(escaped(name), column, schema[name].options)
                for name, column in cells.items()
            ]
        elif kind == "pair":
            found += _entries_of_pairs(paired_columns(schema), values, length)
        elif cells:
            found.append(_entries_of_parts(kind, cells, schema, length))
    return Entries.interleaved(found, n_rows), after


def _entries_of_parts(kind: str, cells: Values, schema: Schema, length: float | None) -> Entries:
    """Return the features of columns whose cells recur."""
    parts = Parts()
    for name, column in cells.items():
        keys = [None if c is None else tuple(c) for c in column] if kind in LISTS else column
        parts.add(keys, MAKERS[kind](escaped(name), schema[name].options, parts.names))
    return parts.entries(length)


def paired_columns(schema: Schema) -> list[str]:
    """Return the columns of categories whose pairs have features of their own.

    Examples
    --------
    >>> from kesler.data.schema.schema import Column
    >>> paired_columns(Schema((Column("a", "category"), Column("b", "category"))))
    ['a', 'b']
    """
    if any(column.kind in UNPAIRED for column in schema.columns):
        return []
    return [each.name for each in schema.columns if each.kind == "category"][:MOST_PAIRED]


def _entries_of_pairs(names: Sequence[str], values: Values, length: float | None) -> list[Entries]:
    """Return a feature for each pair of categories of a row."""
    parts, pairs = Parts(), [*combinations([name for name in names if name in values], 2)]
    for one, other in pairs:
        coder = Coder(f"{escaped(one)}&{escaped(other)}=", parts.names)
        parts.add([*zip(values[one], values[other], strict=True)], partial(pair_part, coder))
    return [parts.entries(length)] if pairs else []


def pair_part(coder: Coder, pair: tuple[str | None, str | None]) -> Part | None:
    """Return the feature of two categories; None if one is missing, or both are long.

    Examples
    --------
    >>> pair_part(Coder("kind&team=", names := []), ("mail", "sales")), names
    (([0], [1.0], 1.0), ['kind&team=mail&sales'])
    """
    one, other = pair
    if one is None or other is None or len(one) + len(other) > LONGEST_CATEGORY:
        return None
    return [coder[f"{one}&{other}"]], [1.0], 1.0


@lru_cache(maxsize=4096)
def escaped(name: str) -> str:
    """Return the name of a column without the characters that end names in features.

    Examples
    --------
    >>> escaped("size [m]"), escaped("a=b")
    ('size %5Bm]', 'a%3Db')
    """
    return re.sub(r"[%:=@~&\[]", lambda match: f"%{ord(match[0]):02X}", name)


def categories_of(name: str, options: Options, names: list[str]) -> Maker:
    """Return the function from a category to its feature, and the words of one of several words.

    Words are shared by similar categories, and by texts that were taken for categories; a long
    text has no feature of its own.

    Examples
    --------
    >>> part = categories_of("kind", {}, names := [])
    >>> part("House")[0], part("House, flat")[0], names
    ([0], [1, 2, 3], ['kind=House', 'kind=House, flat', 'kind:house', 'kind:flat'])
    """
    of_cells, of_words = Coder(f"{name}=", names), Coder(f"{name}:", names)

    def part(category: str) -> Part:
        is_long = len(category) > LONGEST_CATEGORY
        codes, values = ([], []) if is_long else ([of_cells[category]], [1.0])
        if " " in category:
            words = Counter(tokenize(category))
            codes += map(of_words.__getitem__, words)
            values += scaled([*map(float, words.values())], 1.0 if is_long else WORDS_OF_CATEGORY)
        return codes, values, None

    return part


def tags_of(name: str, options: Options, names: list[str]) -> Maker:
    """Return the function from tags to a feature each."""
    coder = Coder(f"{name}=", names)
    return lambda tags: ([coder[tag] for tag in tags], [1.0] * len(tags), 1.0)


def vectors_of(name: str, options: Options, names: list[str]) -> Maker:
    """Return the function from a list of numbers to a feature each."""
    coder = Coder(f"{name}[", names)
    return lambda vector: ([coder[f"{i}]"] for i in range(len(vector))], list(vector), 1.0)


Maker = Callable[[Any], Part]
MAKERS: Mapping[str, Callable[[str, Options, list[str]], Maker]] = {
    "category": categories_of,
    "tags": tags_of,
    "vector": vectors_of,
}
"""The functions, of the name of a column, its options and all names, that return those of cells."""

LISTS = ("tags", "vector")


def scaled(values: Sequence[float], length: float) -> list[float]:
    """Return values scaled to this length.

    Examples
    --------
    >>> scaled([3.0, 4.0], 10.0)
    [6.0, 8.0]
    """
    scale = scale_to(length, values)
    return [scale * value for value in values]


def z_scores(
    name: str,
    moments: Moments,
    weights: Any,
    update: dict[str, Any] | None,
    decay: float,
    numbers: Sequence[float | None],
) -> Scores:
    """Return z-scores over the numbers so far with the number itself, clipped; None if missing.

    The moments are those of West (1979).
    """
    (n, mean, squares), scores = moments.get(name, (0.0, 0.0, 0.0)), Scores()
    for row, number in enumerate(numbers):
        if number is None:
            scores.append(None)
            continue
        gap, seen = number - mean, n + 1.0
        if n * gap * gap > NEARLY_FURTHEST * squares > NEARLY_FURTHEST * LEAST_VARIANCE * n:
            most = FURTHEST * math.sqrt(squares / n)  # clipped where it is very far away
            gap = min(most, max(-most, gap))
        share = 1.0 / seen
        total, middle = squares + n * share * gap * gap, mean + share * gap
        z = (number - middle) / math.sqrt(total / seen) if total > LEAST_VARIANCE * seen else 0.0
        scores.append(z if -CLIP < z < CLIP else math.copysign(CLIP, z))
        if update is None:
            continue
        if weights is not None:
            weight = float(weights[row])
            seen, share = n + weight, weight / (n + weight)
            total, middle = squares + n * share * gap * gap, mean + share * gap
        n, mean, squares = decay * seen, middle, decay * total
    if update is not None:
        update[name] = n, mean, squares
    return scores


def _numbers(kind: str, cells: list[Any]) -> list[float | None]:
    """Return numbers, or dates as seconds."""
    if kind == "number":
        return cells
    return [None if cell is None else seconds_of(cell) for cell in cells]


def _of_numbers(cells: Values, scores: Sequence[Scores]) -> Grid:
    """Return the z-score of each number, and how near it is to each of the two knots around it."""
    names = [f"{name}{end}" for name in map(escaped, cells) for end in OF_NUMBER]
    z, known = _grid(scores)
    place = (np.clip(z, KNOTS[0], KNOTS[-1]) - KNOTS[0]) / (KNOTS[1] - KNOTS[0])
    knot = np.minimum(place.astype(np.int64), len(KNOTS) - 2)
    part = place - knot
    first = np.arange(len(cells)) * (1 + len(KNOTS))
    codes, values = np.empty((*z.shape, 3), dtype=np.int64), np.empty((*z.shape, 3))
    codes[:, :, 0], codes[:, :, 1], codes[:, :, 2] = first, first + 1 + knot, first + 2 + knot
    values[:, :, 0], values[:, :, 1], values[:, :, 2] = z / CLIP, 1 - part, part
    return Grid(codes, values, known, names)


def _of_dates(cells: Values, scores: Sequence[Scores]) -> Grid:
    """Return the trend, and the places of each date in the day, the week and the year."""
    names = [f"{name}@{each}" for name in map(escaped, cells) for each in ("trend", *CYCLES)]
    z, known = _grid(scores)
    values = np.empty((*z.shape, 1 + len(CYCLES)))
    values[:, :, 0] = z / CLIP
    for i, column in enumerate(cells.values()):
        values[:, i, 1:] = [*map(cycles_of, column)]
    codes = np.empty(values.shape, dtype=np.int64)
    codes[:] = np.arange(len(names)).reshape(len(cells), -1)
    return Grid(codes, values, known, names)


def _grid(scores: Sequence[Scores]) -> tuple[Doubles, npt.NDArray[np.bool_]]:
    """Return the scores of columns by rows, 0 where one is missing, and where none is."""
    z = np.array(scores, dtype=float).T
    known = ~np.isnan(z)
    return np.where(known, z, 0.0), known


def cycles_of(moment: datetime | None) -> tuple[float, ...]:
    """Return the places of a date in the day, the week and the year, each on a circle."""
    if moment is None:
        return (0.0,) * len(CYCLES)
    hour = (moment.hour + moment.minute / 60) / 24
    week = (moment.weekday() + hour) / 7
    year = (moment.timetuple().tm_yday - 1) / 366
    return tuple(
        f(2 * math.pi * place) for place in (hour, week, year) for f in (math.sin, math.cos)
    )


GRIDS = {"number": _of_numbers, "date": _of_dates}

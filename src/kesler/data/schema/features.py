"""Features of tables: those of each cell by the kind of its column, in blocks of equal length."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt

from kesler.data.schema.entries import Coder, Doubles, Entries, Grid, Part, Parts, scale_to
from kesler.data.schema.kinds import KINDS, Options
from kesler.data.schema.schema import Schema
from kesler.data.schema.sequences import entries_of_sequences
from kesler.data.schema.terms import entries_of_texts
from kesler.data.schema.values import Values
from kesler.data.texts import tokenize

LENGTHS = {
    "text": None,
    "sequence": None,
    "tags": 0.35,
    "vector": 0.75,
    "category": 0.625,
    "pair": 1.2,
    "number": 0.175,
    "date": 0.125,
}
"""The lengths of the blocks of a row: of all its columns of one kind together, each of which has
the same share, except that every text and sequence has a length of its own, in `terms.py` and
`sequences.py`. They are chosen on the tables of `benchmarks/mixed_tables.py`; the default learner
scales whole rows to length 1, so that only the ratios of these numbers matter to it."""

CLIP = 4.0  # the largest z-score
KNOTS = tuple(k / 2 for k in range(-4, 5))
OF_NUMBER = ("", *(f"@{k}" for k in range(len(KNOTS))))  # what ends the names of its features
CYCLES = tuple(f"{cycle}.{part}" for cycle in ("day", "week", "year") for part in ("sin", "cos"))
THURSDAY = 3  # the day of the week of 1970-01-01, from Monday
MOST_PAIRED = 12  # columns of categories that have features of pairs, in tables without texts
LONGEST_CATEGORY, WORDS_OF_CATEGORY = 80, 1.25  # characters; length of the words of a category

Moments = Mapping[str, tuple[float, float, float]]
"""The sum of weights, the mean and the sum of squared deviations of each column of numbers."""

Arrays = Mapping[str, npt.NDArray[Any]]


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
            update, arrays = after if learn else None, _arrays_of(kind, cells)
            scores = [
                z_scores(name, moments, weights, update, decay, _numbers(array))
                for name, array in arrays.items()
            ]
            found.append(GRIDS[kind](arrays, scores).entries(length or 1.0))
        elif kind in COUNTED and cells:
            found += [
                COUNTED[kind](escaped(name), column, schema[name].options)
                for name, column in cells.items()
            ]
        elif kind == "pair":
            found += _entries_of_pairs(paired_columns(schema), values, length)
        elif cells:
            found.append(_entries_of_parts(kind, cells, schema, length))
    return Entries.interleaved(found, n_rows), after


def moments_of(values: Values, schema: Schema) -> Moments:
    """Return the moments of the columns of numbers and dates of some rows.

    Examples
    --------
    >>> from kesler.data.schema.schema import Column
    >>> moments_of({"size": [1.0, None, 3.0]}, Schema((Column("size", "number"),)))
    {'size': (2.0, 2.0, 2.0)}
    """
    found = {}
    for column in schema:
        if column.kind in GRIDS and column.name in values:
            [array] = _arrays_of(column.kind, {column.name: values[column.name]}).values()
            numbers = _numbers(array)
            known = numbers[~np.isnan(numbers)]
            mean = float(known.mean()) if len(known) else 0.0
            found[column.name] = float(len(known)), mean, float(np.square(known - mean).sum())
    return found


def joined_moments(one: Moments, other: Moments) -> Moments:
    """Return the moments of the rows of both.

    Examples
    --------
    >>> joined_moments({"a": (2.0, 2.0, 2.0)}, {"a": (1.0, 5.0, 0.0), "b": (1.0, 3.0, 0.0)})
    {'a': (3.0, 3.0, 8.0), 'b': (1.0, 3.0, 0.0)}
    """
    joined = dict(one)
    for name, (n, mean, squares) in other.items():
        before, mean_before, squares_before = joined.get(name, (0.0, 0.0, 0.0))
        total, gap = before + n, mean - mean_before
        share = n / total if total else 0.0
        squares += squares_before + gap * gap * before * share
        joined[name] = total, mean_before + gap * share, squares
    return joined


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
    if schema.has_texts:
        return []
    names = [each.name for each in schema.columns if each.kind == "category"]
    return names if 1 < len(names) <= MOST_PAIRED else []


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
COUNTED = {"text": entries_of_texts, "sequence": entries_of_sequences}
"""The functions that count the parts of all cells of a column at once."""


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
    numbers: Doubles,
) -> Doubles:
    """Return z-scores over the numbers so far with the number itself, clipped; NaN if missing."""
    from kesler.compiled.readers.columns import fill_z_scores

    amount, *of_column = moments.get(name, (0.0, 0.0, 0.0))
    running, scores = np.array([[*of_column, amount]]), np.empty(len(numbers))
    weights = scores[:0] if weights is None else np.asarray(weights, dtype=float)
    fill_z_scores(numbers, weights, decay, update is not None, CLIP, running, scores)
    if update is not None:
        mean, squares, amount = running[0].tolist()
        update[name] = amount, mean, squares
    return scores


def _arrays_of(kind: str, cells: Values) -> Arrays:
    """Return columns of numbers, or of dates as microseconds from 1970, as arrays."""
    dtype = "datetime64[us]" if kind == "date" else float
    return {name: np.array(column, dtype=dtype) for name, column in cells.items()}


def _numbers(array: npt.NDArray[Any]) -> Doubles:
    """Return numbers, or dates as seconds from 1970; NaN where one is missing."""
    if array.dtype == float:
        return array
    return np.where(np.isnat(array), np.nan, array.astype(np.int64) / 1e6)


def _of_numbers(cells: Arrays, scores: Sequence[Doubles]) -> Grid:
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


def _of_dates(cells: Arrays, scores: Sequence[Doubles]) -> Grid:
    """Return the trend, and the places of each date in the day, the week and the year."""
    names = [f"{name}@{each}" for name in map(escaped, cells) for each in ("trend", *CYCLES)]
    z, known = _grid(scores)
    values = np.empty((*z.shape, 1 + len(CYCLES)))
    values[:, :, 0] = z / CLIP
    for i, column in enumerate(cells.values()):
        values[:, i, 1:] = cycles_of(column)
    codes = np.empty(values.shape, dtype=np.int64)
    codes[:] = np.arange(len(names)).reshape(len(cells), -1)
    return Grid(codes, values, known, names)


def _grid(scores: Sequence[Doubles]) -> tuple[Doubles, npt.NDArray[np.bool_]]:
    """Return the scores of columns by rows, 0 where one is missing, and where none is."""
    z = np.array(scores, dtype=float).T
    known = ~np.isnan(z)
    return np.where(known, z, 0.0), known


def cycles_of(moments: npt.NDArray[np.datetime64]) -> Doubles:
    """Return the places of dates in the day, the week and the year, each on a circle."""
    from kesler.compiled.readers.columns import fill_circles

    days, years = moments.astype("datetime64[D]"), moments.astype("datetime64[Y]")
    minutes = (moments - days).astype("timedelta64[m]").astype(np.int64)
    places, points = np.empty((len(moments), 3)), np.empty((len(moments), 6))
    places[:, 0] = (minutes // 60 + minutes % 60 / 60) / 24
    places[:, 1] = ((days.astype(np.int64) + THURSDAY) % 7 + places[:, 0]) / 7
    places[:, 2] = (days - years.astype("datetime64[D]")).astype(np.int64) / 366
    fill_circles(places, points)
    points[np.isnat(moments)] = 0.0
    return points


GRIDS = {"number": _of_numbers, "date": _of_dates}

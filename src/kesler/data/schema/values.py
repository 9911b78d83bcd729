"""Features of tables: the cells of each column, parsed, and the entries of each row."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import cache, lru_cache, partial
from itertools import combinations
from typing import Any

from kesler.data.schema.cells import seconds_of
from kesler.data.schema.inference import column_of
from kesler.data.schema.reading import ColumnReader, mismatch, warn_of
from kesler.data.schema.records import Table, Unfit
from kesler.data.schema.schema import Column, Schema
from kesler.data.texts import tokenize

LENGTHS = {
    "text": 0.75,
    "tags": 0.35,
    "vector": 0.75,
    "category": 0.625,
    "pair": 1.2,
    "number": 0.175,
    "date": 0.125,
}
"""The lengths of the blocks of a row: of all its columns of one kind together, each of which has
the same share, except that every text has a length of its own. They are chosen on the tables of
`benchmarks/mixed_tables.py`; the default learner scales whole rows to length 1, so that only the
ratios of these numbers matter to it."""

FURTHEST = 30.0  # a value further from the mean, in deviations, counts as this far
CLIP = 4.0  # the largest z-score
KNOTS = tuple(k / 2 for k in range(-4, 5))
LEAST_VARIANCE = 1e-200
MANY_WORDS, LEAST_OF_TEXT = 14, 0.13  # different words of a text of full length; the least length
# Of tables without texts, pairs of so many columns of categories have features of their own.
MOST_PAIRED, UNPAIRED = 12, ("text", "tags", "vector")
LONGEST_CATEGORY, WORDS_OF_CATEGORY = 80, 1.25  # characters; length of the words of a category

Moments = Mapping[str, tuple[float, float, float]]
"""The sum of weights, the mean and the sum of squared deviations of each column of numbers."""

Entry = dict[str, float]
Values = dict[str, list[Any]]


def parse(
    table: Table, schema: Schema, given: Mapping[str, Column], on_mismatch: str, *, learn: bool
) -> tuple[Values, Schema]:
    """Return the parsed cells of each column of the schema, and the schema with new columns.

    Parameters
    ----------
    table : the rows.
    schema : the columns known so far.
    given : the columns that the user named.
    on_mismatch : "raise", or "missing": a cell that its column cannot hold is then missing.
    learn : whether new columns are added, each inferred from its first cell.

    Raises
    ------
    KeslerError
        If a cell does not fit its column, unless such cells count as missing.
    """
    if learn:
        schema = with_new_columns(table, schema, given)
    values, columns = Values(), list(schema.columns)
    for i, column in enumerate(columns):
        if column.name in table.columns:
            cells = table.columns[column.name]
            reader = ColumnReader(table.first_row, on_mismatch, learn=learn)
            values[column.name], columns[i] = reader.read(column, cells)
    return values, Schema(tuple(columns)) if learn else schema


def with_new_columns(table: Table, schema: Schema, given: Mapping[str, Column]) -> Schema:
    """Return the schema with the new columns of a table, in the order of their first cells."""
    known = {column.name for column in schema.columns}
    found = []
    for place, (name, cells) in enumerate(table.columns.items()):
        if name in known:
            continue
        row = next((row for row, cell in enumerate(cells) if cell is not None), None)
        if row is not None:
            found.append((row, place, column_of(name, [cells[row]], given)))
    new = [column for _, _, column in sorted(found, key=lambda each: each[:2]) if column]
    return Schema((*schema.columns, *new)) if new else schema


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
        ignored = name in given and given[name].kind in ("identifier", "ignore")
        what = "a text, a number, a date or a list of texts or numbers"
        if on_mismatch == "raise" and not ignored:
            raise mismatch(name, table.first_row + row, what, cells[row].what)
        if not ignored:
            warn_of(name, table.first_row + row, what, cells[row].what)
        columns[name] = [None if isinstance(c, Unfit) else c for c in cells]
    return replace(table, columns=columns)


def entries_of(
    values: Values,
    n_rows: int,
    schema: Schema,
    moments: Moments,
    weights: Any,
    *,
    learn: bool,
    decay: float = 1.0,
) -> tuple[list[Entry], Moments]:
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
    after = dict(moments)
    entries: list[Entry] = [{} for _ in range(n_rows)]
    paired = paired_columns(schema)
    kinds = {column.kind for column in schema.columns} | ({"pair"} if len(paired) > 1 else set())
    for kind, length in LENGTHS.items():
        if kind not in kinds:
            continue
        blocks: list[list[Entry]] = [[] for _ in range(n_rows)]
        for column in schema.columns:
            if column.kind != kind:
                continue
            cells = values.get(column.name, ())
            features = _features(column, moments, weights, after if learn else None, decay)
            for row, found in enumerate(features(cells)):
                if found is not None:
                    blocks[row].append(found)
        if kind == "pair":
            _add_pairs(paired, values, blocks)
        for entry, block in zip(entries, blocks, strict=True):
            share = length / math.sqrt(max(1, len(block)))
            for part in block:
                if kind == "text":  # has its length already
                    entry.update(part)
                    continue
                for name, value in part.items():
                    if value:
                        entry[name] = share * value
    return entries, after


def _features(
    column: Column, moments: Moments, weights: Any, update: dict[str, Any] | None, decay: float
) -> Callable[[Sequence[Any]], Iterable[Entry | None]]:
    """Return the function from the cells of a column to the features of each row."""
    name = escaped(column.name)
    if column.kind in ("number", "date"):
        scores = partial(z_scores, column.name, moments, weights, update, decay)
        return partial(_number_entries if column.kind == "number" else _date_entries, name, scores)
    makers: dict[str, Callable[[Any], Entry]] = {
        "text": cache(lambda cell: text_entry(name, cell, column.options)),
        "category": cache(lambda cell: category_entry(name, cell)),
        "tags": lambda cell: scaled({f"{name}={tag}": 1.0 for tag in cell}, 1.0),
        "vector": lambda cell: scaled({f"{name}[{i}]": v for i, v in enumerate(cell)}, 1.0),
    }
    make = makers[column.kind]
    return lambda cells: [None if cell is None else make(cell) for cell in cells]


def paired_columns(schema: Schema) -> list[str]:
    """Return the columns of categories whose pairs have features of their own.

    Examples
    --------
    >>> paired_columns(Schema((Column("a", "category"), Column("b", "category"))))
    ['a', 'b']
    """
    if any(column.kind in UNPAIRED for column in schema.columns):
        return []
    return [each.name for each in schema.columns if each.kind == "category"][:MOST_PAIRED]


def _add_pairs(names: Sequence[str], values: Values, blocks: list[list[Entry]]) -> None:
    """Add a feature for each pair of categories of a row."""
    for one, other in combinations(names, 2):
        prefix = f"{escaped(one)}&{escaped(other)}="
        made: dict[tuple[Any, Any], Entry | None] = {}  # pairs recur
        for row, pair in enumerate(zip(values.get(one, ()), values.get(other, ()), strict=False)):
            if pair not in made:
                made[pair] = pair_entry(prefix, *pair)
            entry = made[pair]
            if entry is not None:
                blocks[row].append(entry)


def pair_entry(prefix: str, a: str | None, b: str | None) -> Entry | None:
    """Return the feature of two categories; None if one is missing, or both are long.

    Examples
    --------
    >>> pair_entry("kind&team=", "mail", "sales")
    {'kind&team=mail&sales': 1.0}
    """
    if a is None or b is None or len(a) + len(b) > LONGEST_CATEGORY:
        return None
    return {f"{prefix}{a}&{b}": 1.0}


@lru_cache(maxsize=4096)
def escaped(name: str) -> str:
    """Return the name of a column without the characters that end names in features.

    Examples
    --------
    >>> escaped("size [m]"), escaped("a=b")
    ('size %5Bm]', 'a%3Db')
    """
    return re.sub(r"[%:=@~&\[]", lambda match: f"%{ord(match[0]):02X}", name)


def text_entry(name: str, text: str, options: Mapping[str, Any]) -> Entry:
    """Return the damped counts of the words of a text, of less length if it has few words.

    Examples
    --------
    >>> text_entry("body", "To be", {"ngrams": 2}).keys()
    dict_keys(['body:to', 'body:be', 'body:to be'])
    """
    words = tokenize(text)
    names = [f"{name}:{word}" for word in words]
    for n in range(2, options.get("ngrams", 1) + 1):
        names += [f"{name}:{' '.join(words[i : i + n])}" for i in range(len(words) - n + 1)]
    if "chars" in options:
        shortest, longest = options["chars"]
        letters = f" {' '.join(words)} "
        names += [
            f"{name}~{letters[i : i + n]}"
            for n in range(shortest, longest + 1)
            for i in range(len(letters) - n + 1)
        ]
    counts = {word: 1 + math.log(n) if n > 1 else 1.0 for word, n in Counter(names).items()}
    share = min(1.0, max(LEAST_OF_TEXT, (len(set(words)) / MANY_WORDS) ** 0.7))
    return scaled(counts, share * LENGTHS["text"])


def category_entry(name: str, category: str) -> Entry:
    """Return the feature of a category, and the words of one of several words.

    Words are shared by similar categories, and by texts that were taken for categories; a long
    text has no feature of its own.

    Examples
    --------
    >>> category_entry("kind", "House").keys(), category_entry("kind", "House, flat").keys()
    (dict_keys(['kind=House']), dict_keys(['kind=House, flat', 'kind:house', 'kind:flat']))
    """
    entry = {} if len(category) > LONGEST_CATEGORY else {f"{name}={category}": 1.0}
    if " " in category:
        words = Counter(f"{name}:{word}" for word in tokenize(category))
        entry.update(scaled(words, WORDS_OF_CATEGORY if entry else 1.0))
    return entry


def scaled(entry: Mapping[str, float], length: float) -> Entry:
    """Return an entry of this length.

    Examples
    --------
    >>> scaled({"a": 3.0, "b": 4.0}, 10.0)
    {'a': 6.0, 'b': 8.0}
    """
    share = math.hypot(*entry.values())
    return {name: length / share * value for name, value in entry.items()} if share else {}


def z_scores(
    name: str,
    moments: Moments,
    weights: Any,
    update: dict[str, Any] | None,
    decay: float,
    numbers: Sequence[float | None],
) -> list[float | None]:
    """Return z-scores over the numbers so far with the number itself, clipped; None if missing.

    The moments are those of West (1979).
    """
    state, scores = moments.get(name, (0.0, 0.0, 0.0)), list[float | None]()
    for row, number in enumerate(numbers):
        if number is None:
            scores.append(None)
            continue
        n, mean, squares = state
        gap = number - mean
        if squares > LEAST_VARIANCE * n:  # clipped where it is very far away
            most = FURTHEST * math.sqrt(squares / n)
            gap = min(most, max(-most, gap))
        share = 1.0 / (n + 1.0)
        seen, total = n + 1.0, squares + n * share * gap * gap
        far = number - (mean + share * gap)
        z = far / math.sqrt(total / seen) if total > LEAST_VARIANCE * seen else 0.0
        scores.append(min(CLIP, max(-CLIP, z)))
        if update is not None:
            weight = 1.0 if weights is None else float(weights[row])
            share = weight / (n + weight)
            total = squares + n * share * gap * gap
            state = decay * (n + weight), mean + share * gap, decay * total
    if update is not None:
        update[name] = state
    return scores


def _number_entries(
    name: str, scores: Callable[[Any], list[float | None]], cells: Sequence[float | None]
) -> Iterable[Entry | None]:
    """Return the z-score of each number, and how near it is to each of the two knots around it."""
    found: list[Entry | None] = []
    for z in scores(cells):
        if z is None:
            found.append(None)
            continue
        place = (min(KNOTS[-1], max(KNOTS[0], z)) - KNOTS[0]) / (KNOTS[1] - KNOTS[0])
        knot = min(int(place), len(KNOTS) - 2)
        part = place - knot
        found.append({name: z / CLIP, f"{name}@{knot}": 1 - part, f"{name}@{knot + 1}": part})
    return found


def _date_entries(
    name: str, scores: Callable[[Any], list[float | None]], cells: Sequence[datetime | None]
) -> Iterable[Entry | None]:
    seconds = [None if cell is None else seconds_of(cell) for cell in cells]
    return (
        None if cell is None or z is None else date_entry(name, cell, z)
        for cell, z in zip(cells, scores(seconds), strict=True)
    )


def date_entry(name: str, moment: datetime, z: float) -> Entry:
    """Return the trend, and the places of a date in the day, the week and the year."""
    hour = (moment.hour + moment.minute / 60) / 24
    week = (moment.weekday() + hour) / 7
    year = (moment.timetuple().tm_yday - 1) / 366
    entry = {f"{name}@trend": z / CLIP}
    for cycle, place in (("day", hour), ("week", week), ("year", year)):
        entry[f"{name}@{cycle}.sin"] = math.sin(2 * math.pi * place)
        entry[f"{name}@{cycle}.cos"] = math.cos(2 * math.pi * place)
    return entry

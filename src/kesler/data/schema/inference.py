"""Inference: the kind of a column from its first cells."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from itertools import pairwise
from typing import Any

from kesler.data.schema.cells import Cell, UnfitError, is_gap, is_infinite
from kesler.data.schema.date_formats import date_formats, example_of, moments_of
from kesler.data.schema.dates import tidy
from kesler.data.schema.kinds import (
    KINDS,
    NOT_LEARNT,
    Options,
    category_of,
    listed,
    number_of,
)
from kesler.data.schema.numerals import DECIMALS, MANY, Notation, notation
from kesler.data.schema.schema import (
    NO_CELLS,
    OTHERS,
    Column,
    Reading,
    Schema,
    named_column,
)
from kesler.data.schema.sequences import K_OF_PROTEIN, K, are_nucleotides
from kesler.data.texts import RUNS, RUNS_OF_NAMES, SHORT_TEXT, n_words, tokenize, units

N_ROWS = 50
"""The number of rows from which kinds are inferred."""

NEARLY_UNIQUE = 0.9  # of at least MANY cells
LONG = 8.0  # words in the mean cell: text, even if texts are repeated
NAMED_ID = re.compile(r"(?:^|[^a-z])(?:id|ids|uid|uuid|guid|key)$|[a-z]I[dD]$|unnamed: 0|^$")
FEW_WORDS = 4.0  # in the mean cell: names, such as those of streets
TRUTH_VALUES = "truth values"
"""The reason of columns that hold True and False alone."""
NAMES = 2.0  # words in the mean cell of names
DAYS, DAY_NUMBER = "%Y%m%d", re.compile(r"(?:19|20)\d{6}")  # 20261231
UNSPACED = 12.0  # characters in the mean token: words that are not separated by spaces


def infer(table: Mapping[str, Sequence[Cell]], given: Mapping[str, Column]) -> Schema:
    """Return the schema of the first rows of a table.

    Parameters
    ----------
    table : the cells of each column; columns without any cell that is not missing are left out,
        unless all others hold numbers, whose rows have as many features from the first one on.
    given : columns whose kinds the user named.

    Examples
    --------
    >>> print(infer({"size": [1, 2.5], "colour": ["red", None]}, {}))
    column  kind      reason
    size    number    numbers
    colour  category  1 of 2 cells missing; 1 different in 1, 1.0 words on average
    """
    learnt = [name for name, cells in table.items() if _may_be_learnt(name, cells, given)]
    columns = {
        name: column_of(name, cells, given, alone=[name] == learnt) for name, cells in table.items()
    }
    found = Schema(tuple(column for column in columns.values() if column))
    if not found.measurements:
        return found
    all_columns = (column or _awaited(name, given) for name, column in columns.items())
    return Schema(tuple(column for column in all_columns if column))


def _awaited(name: str, given: Mapping[str, Column]) -> Column | None:
    """Return a column of numbers whose cells are missing so far, None if it is named otherwise."""
    named = named_column(given, name)
    if named is not None and named.kind not in ("number", "any"):
        return None
    return Column(name, "number", {} if named is None else named.options, NO_CELLS)


def _may_be_learnt(name: str, cells: Sequence[Cell], given: Mapping[str, Column]) -> bool:
    named = named_column(given, name)
    is_left_out = named is not None and named.kind in NOT_LEARNT
    return not is_left_out and any(cell is not None for cell in cells)


def column_of(
    name: str, cells: Sequence[Cell], given: Mapping[str, Column], *, alone: bool = False
) -> Column | None:
    """Return a column from its cells, which may be the only one learnt; None if all are missing."""
    known = [cell for cell in cells if cell is not None]
    if not known:
        return None
    named = named_column(given, name)
    hints = {**_hints(given.get(OTHERS)), **_hints(named)}
    if named is not None and named.kind != "any":
        return _completed(named, known, hints, alone=alone) if _is_open(named) else named
    found = _inferred(name, known, hints, alone=alone)
    n_missing = len(cells) - len(_stated(known) if found.kind in ("number", "date") else known)
    missing = f"{n_missing} of {len(cells)} cells missing; " if n_missing else ""
    return replace(found, reason=f"{missing}{found.reason}")


def _hints(column: Column | None) -> Options:
    """Return the options that hold for a column of whatever kind."""
    return column.options if column is not None and column.kind == "any" else {}


def _is_open(column: Column) -> bool:
    """Return whether an option must be inferred from cells."""
    needed = KINDS[column.kind].inferred
    return bool(needed) and not any(each in column.options for each in needed)


def _completed(column: Column, known: list[Any], hints: Options, *, alone: bool) -> Column:
    """Return a column with the options that are inferred from its cells."""
    texts = [cell for cell in _stated(known) if isinstance(cell, str)]
    if column.kind == "sequence":
        k = K if are_nucleotides(texts) else K_OF_PROTEIN
        return replace(column, options={**column.options, "k": k})
    if column.kind == "text":
        texts = [cell for cell in known if isinstance(cell, str)]
        differ = len(texts) >= MANY and len({*texts}) >= NEARLY_UNIQUE * len(texts)
        return replace(column, options=_options_of(texts, alone=alone or differ))
    if column.kind == "number":
        found = notation(texts, _decimals(hints), len(texts) - 1) if texts else None
        return _in_notation(column, found or Notation({}))
    if column.kind == "date":
        written = [category_of(c, {}) for c in _stated(known) if isinstance(c, (str, int, float))]
        return _in_formats(column, _formats(written, hints, len(written) - 1, named=True), written)
    length, _ = _length_of(known)
    return replace(column, options={"length": length}) if length else column


def _in_notation(column: Column, found: Notation) -> Column:
    """Return a column of numbers in a notation."""
    others = tuple(map(Reading, found.others))
    return replace(column, options=found.options, others=others, example=found.example)


def _in_formats(column: Column, formats: Sequence[Options], texts: Sequence[str]) -> Column:
    """Return a column of dates in the first of some formats."""
    if not formats:
        return column
    others, example = tuple(map(Reading, formats[1:])), example_of(formats, texts)
    return replace(column, options=formats[0], others=others, example=example)


def _decimals(hints: Options) -> tuple[str, ...]:
    return (hints["decimal"],) if "decimal" in hints else DECIMALS


def _formats(texts: list[str], hints: Options, n_odd: int, *, named: bool = False) -> list[Options]:
    """Return the formats of texts that are dates, only the given one if there is one."""
    if "format" not in hints:
        return date_formats(texts, n_odd, named=named)
    given = {option: hints[option] for option in ("format", "language") if option in hints}
    return [given] if named or _n_no_dates(texts, given) <= n_odd else []


def _n_no_dates(texts: Sequence[str], options: Options) -> int:
    return moments_of([*map(tidy, texts)], options).count(None)


def _inferred(name: str, known: list[Any], hints: Options, *, alone: bool) -> Column:
    """Return the column of cells that are not missing."""
    length, n_vectors = _length_of(known)
    if length > 1 and n_vectors >= len(known) - len(known) // MANY:
        return Column(name, "vector", {"length": length}, "lists of numbers of one length")
    if any(isinstance(cell, list) for cell in known):
        return Column(name, "tags", reason="lists")
    if all(isinstance(cell, bool) for cell in known):
        return Column(name, "category", reason=TRUTH_VALUES)
    stated = _stated(known)
    n_odd = len(stated) // MANY  # cells that may be neither numbers nor dates
    if _are_days(stated, n_odd):
        return Column(name, "date", {"format": DAYS}, "numbers that are days")
    found = _notation_of(stated, _decimals(hints), n_odd)
    if found is not None:
        return _of_numbers(name, *found)
    dates = _of_dates(name, stated, hints, n_odd)
    if dates is not None:
        return dates
    return Column(name, *_of_texts(name, [str(cell).strip() for cell in known], alone=alone))


def _of_dates(name: str, cells: list[Any], hints: Options, n_odd: int) -> Column | None:
    """Return the column of dates and of texts that are dates; None if too many are not."""
    texts = [cell.strip() for cell in cells if isinstance(cell, str)]
    n_dates = sum(isinstance(cell, datetime) for cell in cells)
    formats = _formats(texts, hints, n_odd) if texts and n_dates + len(texts) == len(cells) else []
    if formats:
        return _in_formats(Column(name, "date", reason="texts that are dates"), formats, texts)
    return (
        Column(name, "date", reason="dates") if n_dates > max(0, len(cells) - n_odd - 1) else None
    )


def _are_days(cells: Sequence[Any], n_odd: int) -> bool:
    """Return whether numbers are days without separators, which other numbers seldom all are."""
    texts = [category_of(cell, {}) for cell in cells if isinstance(cell, (str, int, float))]
    days = [text for text in texts if DAY_NUMBER.fullmatch(text)]
    n_others = len(cells) - len(days)
    return len(cells) >= MANY and n_others + _n_no_dates(days, {"format": DAYS}) <= n_odd


def _stated(known: Sequence[Any]) -> list[Any]:
    """Return the cells that are neither words for missing numbers and dates nor infinite."""
    return [cell for cell in known if not (is_gap(cell) or is_infinite(cell))]


def _length_of(known: Sequence[Any]) -> tuple[int, int]:
    """Return the most frequent length of the lists of numbers in cells, and how many have it."""
    found = Counter(len(items) for items in map(listed, known) if items and _are_numbers(items))
    return found.most_common(1)[0] if found else (0, 0)


def _are_numbers(items: Sequence[Any]) -> bool:
    return {*map(type, items)} <= {int, float}


def _notation_of(
    cells: list[Any], decimals: Sequence[str], n_odd: int
) -> tuple[Notation, list[float]] | None:
    """Return the notation in which cells are numbers, and these; None if too many are not."""
    found = notation([cell for cell in cells if isinstance(cell, str)], decimals, n_odd)
    numbers = [] if found is None else _numbers_in(cells, found.options)
    return None if found is None or len(numbers) < max(1, len(cells) - n_odd) else (found, numbers)


def _numbers_in(cells: Sequence[Any], options: Options) -> list[float]:
    """Return the numbers in those of the cells that hold one."""
    numbers = list[float]()
    for cell in cells:
        with suppress(UnfitError):
            number = number_of(cell, options)
            numbers += [] if number is None else [number]
    return numbers


def _of_numbers(name: str, found: Notation, numbers: list[float]) -> Column:
    """Return the column of numbers: an identifier if it counts or is named as one."""
    distinct = len(set(numbers)) == len(numbers) >= MANY
    whole = all(number == int(number) for number in numbers)
    steps = {b - a for a, b in pairwise(numbers)}
    if distinct and whole and (steps in ({1.0}, {-1.0}) or _names_id(name)):
        return Column(name, "identifier", reason="whole numbers, all different; ignored")
    return _in_notation(Column(name, "number", reason="numbers"), found)


def _names_id(name: str) -> bool:
    return bool(NAMED_ID.search(name) or NAMED_ID.search(name.lower()))


def _of_texts(name: str, texts: list[str], *, alone: bool) -> tuple[str, dict[str, Any], str]:
    """Return the kind of a column of texts; names that differ are texts, for their parts."""
    mean, n_different = sum(n_words(units(text)) for text in texts) / len(texts), len(set(texts))
    share = n_different / len(texts)
    why = f"{n_different} different in {len(texts)}, {mean:.1f} words on average"
    if len(texts) > 1 and are_nucleotides(texts):
        return (
            "sequence",
            {"k": K},
            f"letters of nucleotides, {n_different} different in {len(texts)}",
        )
    differ = len(texts) >= MANY and share >= NEARLY_UNIQUE
    of_letters = not any(any(map(str.isdigit, text)) for text in texts)
    if mean >= LONG or (alone and differ and of_letters):
        return "text", _options_of(texts, alone=alone), why
    codes = sum(map(_is_code, texts)) >= NEARLY_UNIQUE * len(texts)
    if differ and (codes or _names_id(name)):
        return "identifier", {}, f"codes, {why}; ignored"
    several = mean >= (1.5 if len(texts) >= MANY else 2.0)
    are_names = differ and of_letters and not several
    if are_names or (share > 0.5 and several):
        return "text", _options_of(texts, alone=alone or are_names), why
    return "category", {}, why


def _options_of(texts: list[str], *, alone: bool = False) -> dict[str, Any]:
    """Return the options of texts, as those by themselves: see :mod:`kesler.data.texts`.

    A single text, as that of a column that appears late, says too little. Scripts without spaces
    have few tokens, of many characters. Names have runs of characters if there is nothing else.

    Examples
    --------
    >>> _options_of(["how do I top up"] * 2), _options_of(["Baker Street"] * 2)
    ({'ngrams': 2, 'chars': (4, 4)}, {})
    >>> _options_of(["how do I top up " * 20] * 2)
    {'beginning': True}
    >>> _options_of(["Kowalski"] * 2, alone=True)
    {'ngrams': 1, 'chars': (1, 4)}
    """
    if alone and len(texts) > 1 and sum(len(tokenize(t)) for t in texts) < NAMES * len(texts):
        return {"ngrams": 1, "chars": RUNS_OF_NAMES}
    n_units, n_characters = sum(len(units(t)) for t in texts), sum(map(len, texts))
    if len(texts) > 1 and n_characters > SHORT_TEXT * len(texts):
        return {"beginning": True}
    is_sentence = n_units >= FEW_WORDS * len(texts) or n_characters > UNSPACED * n_units
    return {"ngrams": 2, "chars": RUNS} if len(texts) > 1 and is_sentence else {}


def _is_code(text: str) -> bool:
    """Return whether a text is one word with a digit in it, or a long one."""
    if any(map(str.isspace, text)) or not (len(text) > 20 or any(map(str.isdigit, text))):
        return False
    found = units(text)
    return n_words(found) <= len(found)  # no run of a script without spaces is long

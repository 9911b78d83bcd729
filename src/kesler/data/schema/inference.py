"""Inference: the kind of a column from its first cells."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from itertools import pairwise
from typing import Any

from kesler.data.schema.cells import Cell, UnfitError, is_gap
from kesler.data.schema.kinds import DATE_FORMATS, number_of, parse_date
from kesler.data.schema.numerals import closest_notation, notation
from kesler.data.schema.schema import Column, Schema
from kesler.data.texts import RUN_LENGTH, SHORT_TEXT, units

N_ROWS = 50
"""The number of rows from which kinds are inferred."""

MANY = 10  # cells from which near uniqueness says something
NEARLY_UNIQUE = 0.9
LONG = 8.0  # words in the mean cell: text, even if texts are repeated
NAMED_ID = re.compile(r"(?:^|[^a-z])(?:id|ids|uid|uuid|guid|key)$|[a-z]I[dD]$|unnamed: 0|^$")
FEW_WORDS = 4.0  # in the mean cell: names, such as those of streets
UNSPACED = 12.0  # characters in the mean token: words that are not separated by spaces
BEGINS_DATE = re.compile(r"\d{1,4}[-/.](?:\d{1,2}|[A-Za-z]{3})[-/.]\d{1,4}")


def infer(table: Mapping[str, Sequence[Cell]], given: Mapping[str, Column]) -> Schema:
    """Return the schema of the first rows of a table.

    Parameters
    ----------
    table : the cells of each column; columns without any cell that is not missing are left out.
    given : columns whose kinds the user named.

    Examples
    --------
    >>> print(infer({"size": [1, 2.5], "colour": ["red", None]}, {}))
    column  kind      reason
    size    number    numbers
    colour  category  1 of 2 cells missing; 1 different in 1, 1.0 words on average
    """
    columns = (column_of(name, cells, given) for name, cells in table.items())
    return Schema(tuple(column for column in columns if column is not None))


def column_of(name: str, cells: Sequence[Cell], given: Mapping[str, Column]) -> Column | None:
    """Return a column from its cells; None if all are missing."""
    known = [cell for cell in cells if cell is not None]
    if not known:
        return None
    if name in given and not _is_open(given[name]):
        return given[name]
    if name in given:
        return _completed(given[name], known)
    kind, options, why = _inferred(name, known)
    n_missing = len(cells) - len(_stated(known) if kind in ("number", "date") else known)
    missing = f"{n_missing} of {len(cells)} cells missing; " if n_missing else ""
    return Column(name, kind, options, f"{missing}{why}")


def _is_open(column: Column) -> bool:
    """Return whether an option must be inferred from cells."""
    needed = {
        "number": ("decimal", "unit"),
        "date": ("format",),
        "vector": ("length",),
        "text": ("ngrams", "chars"),
    }
    return column.kind in needed and not any(each in column.options for each in needed[column.kind])


def _completed(column: Column, known: list[Any]) -> Column:
    """Return a column with the options that are inferred from its cells."""
    if column.kind == "text":
        texts = [cell for cell in known if isinstance(cell, str)]
        return Column(column.name, "text", _options_of(texts), column.reason)
    if column.kind == "number":
        texts = [cell for cell in _stated(known) if isinstance(cell, str)]
        return Column(column.name, "number", closest_notation(texts), column.reason)
    if column.kind == "date":
        texts = [cell.strip() for cell in known if isinstance(cell, str)]
        fits = [form for n in range(len(texts)) if (form := date_format(texts[: n + 1]))]
        form = fits[-1] if fits else None
        return Column(column.name, "date", {"format": form}) if form else column
    lengths = [len(cell) for cell in known if isinstance(cell, list)]
    return Column(column.name, "vector", {"length": lengths[0]}) if lengths else column


def _inferred(name: str, known: list[Any]) -> tuple[str, dict[str, Any], str]:
    """Return the kind, the options and the reason for cells that are not missing."""
    if any(isinstance(cell, list) for cell in known):
        return _of_lists(known)
    if all(isinstance(cell, bool) for cell in known):
        return "category", {}, "truth values"
    stated = _stated(known)
    if stated and all(isinstance(cell, datetime) for cell in stated):
        return "date", {}, "dates"
    found = _notation_of(stated)
    if found is not None:
        return _of_numbers(name, stated, *found)
    texts = [str(cell).strip() for cell in stated]
    form = date_format(texts) if all(isinstance(cell, str) for cell in stated) else None
    if texts and form is not None:
        return "date", {"format": form}, "texts that are dates"
    return _of_texts(name, [str(cell).strip() for cell in known])


def _stated(known: Sequence[Any]) -> list[Any]:
    """Return the cells that are no words for missing numbers and dates."""
    return [cell for cell in known if not is_gap(cell)]


def _of_lists(known: list[Any]) -> tuple[str, dict[str, Any], str]:
    """Return the kind of a column with lists: a vector if all are of numbers and of one length."""
    lengths = {len(cell) if isinstance(cell, list) else 0 for cell in known}
    numbers = all(
        isinstance(item, (int, float)) and not isinstance(item, bool)
        for cell in known
        for item in (cell if isinstance(cell, list) else [""])
    )
    if numbers and len(lengths) == 1 and lengths != {1}:
        return "vector", {"length": lengths.pop()}, "lists of numbers of one length"
    return "tags", {}, "lists"


def _notation_of(cells: list[Any]) -> tuple[dict[str, Any], str] | None:
    """Return the options under which all cells are numbers, and a doubt; None if some are not."""
    found = notation([cell for cell in cells if isinstance(cell, str)])
    if not cells or found is None:
        return None
    try:
        for cell in cells:
            number_of(cell, found[0])
    except UnfitError:
        return None
    return found


def _of_numbers(
    name: str, known: list[Any], options: dict[str, Any], doubt: str
) -> tuple[str, dict[str, Any], str]:
    """Return the kind of a column of numbers: an identifier if it counts or is named as one."""
    numbers = [found for cell in known if (found := number_of(cell, options)) is not None]
    distinct = len(set(numbers)) == len(numbers) >= MANY
    whole = all(number == int(number) for number in numbers)
    steps = {b - a for a, b in pairwise(numbers)}
    if distinct and whole and (steps in ({1.0}, {-1.0}) or _names_id(name)):
        return "identifier", {}, "whole numbers, all different; ignored"
    return "number", options, f"numbers; {doubt}" if doubt else "numbers"


def _names_id(name: str) -> bool:
    return bool(NAMED_ID.search(name) or NAMED_ID.search(name.lower()))


def _of_texts(name: str, texts: list[str]) -> tuple[str, dict[str, Any], str]:
    """Return the kind of a column of texts."""
    n_words = [len(units(text)) for text in texts]
    mean, n_different = sum(n_words) / len(texts), len(set(texts))
    share = n_different / len(texts)
    why = f"{n_different} different in {len(texts)}, {mean:.1f} words on average"
    if mean >= LONG:
        return "text", _options_of(texts), why
    codes = sum(map(_is_code, texts)) >= NEARLY_UNIQUE * len(texts)
    if len(texts) >= MANY and share >= NEARLY_UNIQUE and (codes or _names_id(name)):
        return "identifier", {}, f"codes, {why}; ignored"
    several = mean >= (1.5 if len(texts) >= MANY else 2.0)
    if share > 0.5 and several:
        return "text", _options_of(texts), why
    return "category", {}, why


def _options_of(texts: list[str]) -> dict[str, Any]:
    """Return the options of texts: short ones have pairs of words and runs of characters, too.

    A single text, as that of a column that appears late, says too little. Scripts without spaces
    have few tokens, of many characters.

    Examples
    --------
    >>> _options_of(["how do I top up"] * 2), _options_of(["Baker Street"] * 2)
    ({'ngrams': 2, 'chars': (4, 4)}, {})
    """
    n_words, n_characters = sum(len(units(t)) for t in texts), sum(map(len, texts))
    is_short = len(texts) > 1 and n_characters <= SHORT_TEXT * len(texts)
    is_sentence = n_words >= FEW_WORDS * len(texts) or n_characters > UNSPACED * n_words
    return {"ngrams": 2, "chars": (RUN_LENGTH, RUN_LENGTH)} if is_short and is_sentence else {}


def _is_code(text: str) -> bool:
    """Return whether a text is one word with a digit in it, or a long one."""
    return not any(map(str.isspace, text)) and (len(text) > 20 or any(map(str.isdigit, text)))


def date_format(texts: list[str]) -> str | None:
    """Return the first format in which all texts are dates; None if there is none.

    Examples
    --------
    >>> date_format(["01/02/2020", "31/12/2020"]), date_format(["2020-01-02 10:00"])
    ('%d/%m/%Y', 'iso')
    """
    if not all(map(BEGINS_DATE.match, texts)):
        return None
    return next((form for form in DATE_FORMATS if _all_fit(texts, form)), None)


def _all_fit(texts: list[str], form: str) -> bool:
    try:
        for text in texts:
            parse_date(text, form)
    except UnfitError:
        return False
    return True

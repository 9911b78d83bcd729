"""The kinds of columns, and how each parses its cells."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from kesler.data.schema.cells import LARGEST, Cell, UnfitError, is_gap, short
from kesler.data.schema.dates import EPOCHS, ISO, LONGEST, moment_at, reader_of, tidy
from kesler.data.schema.languages import ENGLISH
from kesler.data.schema.numerals import DECIMALS, amount, amounts
from kesler.data.schema.sequences import letters_of

SEPARATORS = re.compile(r"[,;|]")

Options = Mapping[str, Any]

TEXT, NUMBER = "VARCHAR", "DOUBLE"  # types of SQL


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of column.

    Parameters
    ----------
    name : the name, as in ``columns={"body": "text"}``.
    what : what its cells are, as messages say it.
    parse : function of a plain cell that is not missing and of the column's options, which returns
        the value that features are made of; it raises `UnfitError`.
    options : the names of its options.
    together : for types of plain cells, the function that parses cells of this type alone, which
        are not missing; None if it cannot parse all of them.
    inferred : the options of which one must be known; cells tell it unless the user has named one.
    written : the options that say how cells are written, which differ from file to file.
    plain : options that mean the same as none, if options are inferred where none are named.
    is_learnt : whether the column has features.
    has_parts : whether its features are parts of cells, such as words.
    weight : of the column in distances between rows, as the root of its part; 0 if it is no input
        of an array.
    of_range : what the weight is multiplied by in units of the range.
    sql : the type of the column in SQL, unless a notation is read from texts.
    listed : what columns are of this kind, in the help of its option; "" without an option.
    advice : the option that names how its cells are written.
    """

    name: str
    what: str
    parse: Callable[[Any, Options], Any]
    options: tuple[str, ...] = ()
    together: Mapping[type, Callable[[list[Any], Options], list[Any] | None]] = field(
        default_factory=dict
    )
    inferred: tuple[str, ...] = ()
    written: tuple[str, ...] = ()
    plain: Options = field(default_factory=dict)
    is_learnt: bool = True
    has_parts: bool = False
    weight: float = 0.0
    of_range: float = 1.0
    sql: str = TEXT
    listed: str = ""
    advice: str = ""

    def parse_all(self, cells: Sequence[Any], options: Options) -> list[Any] | None:
        """Return all cells of a column parsed in one way, None unless all are of one type."""
        parsers = {*map(self.together.get, {*map(type, cells)} - {type(None)})}
        (parse,) = parsers if len(parsers) == 1 else (None,)
        found = parse and parse([cell for cell in cells if cell is not None], options)
        if not found or len(found) == len(cells):
            return found
        values = iter(found)
        return [None if cell is None else next(values) for cell in cells]


def number_of(cell: Cell, options: Options) -> float | None:
    """Return the number in a cell, in the notation of the options; None for words for missing.

    Examples
    --------
    >>> [number_of(cell, {}) for cell in (True, "7.5K", "-1,234.5", "$3", "12 %", "1e3", "n/a")]
    [1.0, 7500.0, -1234.5, 3.0, 12.0, 1000.0, None]
    >>> number_of("1.234,5 kg", {"decimal": ",", "unit": "kg"})
    1234.5
    """
    if isinstance(cell, str):
        if is_gap(cell):
            return None
        value = _stated(cell, options)
    elif isinstance(cell, (bool, int, float)):
        value = cell
    else:
        raise UnfitError(short(cell))
    if not abs(value) <= LARGEST:
        raise UnfitError(f"{short(cell)}, which float32 cannot hold")
    return float(value)


def numbers_of(texts: list[str], options: Options) -> list[float] | None:
    """Return the numbers in plain texts; None if some are written otherwise, or are too large."""
    if "unit" in options:
        return None
    found = amounts(texts, options.get("decimal", "."))
    return found if found is not None and max(map(abs, found)) <= LARGEST else None


def floats_of(numbers: list[Any], options: Options) -> list[float] | None:
    """Return numbers as those of float, None if some are too large for float32."""
    return [*map(float, numbers)] if max(map(abs, numbers)) <= LARGEST else None


def _stated(text: str, options: Options) -> float:
    value = amount(text, options.get("decimal", "."), options.get("unit", ""))
    if value is None:
        raise UnfitError(short(text))
    return value


def category_of(cell: Cell, options: Options) -> str:
    """Return the category in a cell as text; 3, 3.0 and "3" are one category.

    Examples
    --------
    >>> [category_of(cell, {}) for cell in (" red", 3, 3.0, "3", 2.5, True)]
    ['red', '3', '3', '3', '2.5', 'true']
    """
    if isinstance(cell, str):
        return cell.strip()
    if isinstance(cell, bool):
        return "true" if cell else "false"
    if isinstance(cell, (int, float)):
        return _digits(cell)
    if isinstance(cell, datetime):
        return cell.isoformat(sep=" ")
    raise UnfitError(short(cell))


def categories_of(texts: list[str], options: Options) -> list[str]:
    """Return the categories in texts."""
    return [*map(str.strip, texts)]


def _digits(number: float) -> str:
    """Return a number as text, without a fraction of zero."""
    return str(int(number)) if number % 1 == 0 else repr(number)


def text_of(cell: Cell, options: Options) -> str:
    """Return the text in a cell; the texts of a list are joined."""
    if isinstance(cell, str):
        return cell
    if isinstance(cell, list) and all(isinstance(item, str) for item in cell):
        return " ".join(cell)
    return category_of(cell, options)


def tags_of(cell: Cell, options: Options) -> list[str]:
    """Return the distinct tags in a list, or in a text that separates them by ``,``, ``;``, ``|``.

    Examples
    --------
    >>> tags_of(["a", 3, "a"], {}), tags_of("red; green", {})
    (['a', '3'], ['red', 'green'])
    """
    items = cell if isinstance(cell, list) else SEPARATORS.split(category_of(cell, options))
    tags = dict.fromkeys(category_of(item, options) for item in items)
    return [tag for tag in tags if tag]


def listed(cell: Cell) -> list[Any] | None:
    """Return a list, or the numbers in a text that lists them as Python or NumPy does; else None.

    Data frames write columns of lists and of arrays as such texts.

    Examples
    --------
    >>> listed([1, 2]), listed("[1.0, 2e-3]"), listed("[ 1.   0.002]"), listed("[sic]")
    ([1, 2], [1.0, 0.002], [1.0, 0.002], None)
    """
    if isinstance(cell, list) or not isinstance(cell, str):
        return cell if isinstance(cell, list) else None
    text = cell.strip()
    if not (text.startswith("[") and text.endswith("]")):
        return None
    try:
        numbers = [*map(float, text[1:-1].replace(",", " ").split())]
    except ValueError:
        return None
    return [number for number in numbers if number == number]


def vector_of(cell: Cell, options: Options) -> list[float]:
    """Return the numbers in a list, or in a text that lists them, of the length in the options."""
    items = listed(cell)
    if items is None:
        raise UnfitError(short(cell))
    are_plain = {*map(type, items)} <= {int, float} and max(map(abs, items), default=0) <= LARGEST
    vector = [*map(float, items)] if are_plain else _numbers_in(items, options)
    if len(vector) != options.get("length", len(vector)):
        raise UnfitError(f"a list of {len(vector)} numbers")
    return vector


def _numbers_in(cells: list[Any], options: Options) -> list[float]:
    """Return the numbers in cells that are not missing."""
    return [found for each in cells if (found := number_of(each, options)) is not None]


def date_of(cell: Cell, options: Options) -> datetime | None:
    """Return the date in a cell: a date, a text in the format of the options, or seconds from 1970.

    It is None for words for missing.

    Examples
    --------
    >>> str(date_of("31/12/2020 11:59 PM", {"format": "%d/%m/%Y"}))
    '2020-12-31 23:59:00'
    >>> str(date_of("2020-12-31", {})), str(date_of(86400000, {"format": "epoch-ms"}))
    ('2020-12-31 00:00:00', '1970-01-02 00:00:00')
    """
    if isinstance(cell, datetime):
        return cell
    if is_gap(cell):
        return None
    form = options.get("format", ISO)
    if not isinstance(cell, str) and "%" not in form:
        found = moment_at(number_of(cell, options) or 0.0, form if form in EPOCHS else "epoch")
    else:
        text = cell if isinstance(cell, str) else category_of(cell, options)
        read = reader_of(form, options.get("language", ENGLISH))
        found = read(tidy(text)) if len(text) <= LONGEST else None
    if found is None:
        raise UnfitError(short(cell))
    return found


def dates_of(texts: list[str], options: Options) -> list[datetime] | None:
    """Return the dates in texts; None if some are none."""
    if max(map(len, texts)) > LONGEST:
        return None
    read = reader_of(options.get("format", ISO), options.get("language", ENGLISH))
    found = list[datetime]()
    for text in texts:
        moment = read(tidy(text))
        if moment is None:
            return None
        found.append(moment)
    return found


def sequence_of(cell: Cell, options: Options) -> str:
    """Return the letters of a sequence of DNA or a protein, in upper case and without gaps."""
    if not isinstance(cell, str):
        raise UnfitError(short(cell))
    return letters_of(cell)


def nothing_of(cell: Cell, options: Options) -> None:
    """Return nothing: columns without features hold anything."""
    return None


KINDS = {
    kind.name: kind
    for kind in (
        Kind(
            "text",
            "a text",
            text_of,
            ("ngrams", "chars", "subwords", "beginning"),
            {str: lambda texts, _: texts},
            inferred=("ngrams", "chars", "subwords", "beginning"),
            plain={"ngrams": 1},
            has_parts=True,
            weight=1.0,
        ),
        Kind(
            "category",
            "a category",
            category_of,
            together={str: categories_of},
            weight=0.5,  # chosen on tables of which half have few categories that matter
            of_range=1 / math.sqrt(3),  # they differ by all of it, numbers by a third in squares
            listed="categories",
        ),
        Kind(
            "number",
            "a number",
            number_of,
            ("decimal", "unit"),
            {str: numbers_of, int: floats_of, float: floats_of, bool: floats_of},
            inferred=("decimal", "unit"),
            written=("decimal",),
            plain={"decimal": DECIMALS[0]},
            weight=1.0,
            sql=NUMBER,
            listed="numbers, such as 3.5, 1,200 or 7.85M",
            advice="--decimal . or --decimal ,",
        ),
        Kind(
            "date",
            "a date",
            date_of,
            ("format", "language"),
            {str: dates_of},
            inferred=("format",),
            written=("format", "language"),
            weight=1.0,
            sql="TIMESTAMP",
            listed="dates, each with its format if its cells do not tell, such as "
            "when:%%d/%%m/%%Y or when:epoch",
            advice="--date {name}:FORMAT, such as {name}:%d.%m.%Y",
        ),
        Kind(
            "vector",
            "a list of numbers",
            vector_of,
            ("length",),
            inferred=("length",),
            weight=1.0,
            sql=f"{NUMBER}[]",
        ),
        Kind(
            "sequence",
            "a sequence of letters",
            sequence_of,
            ("k", "reverse_complement"),
            {str: lambda texts, _: [*map(letters_of, texts)]},
            inferred=("k",),
            has_parts=True,
            listed="sequences of DNA or proteins, each with the length of its runs of letters if "
            "others than 8 and 3 are wanted, such as dna:7, or dna:7:both where either strand may "
            "be read",
        ),
        Kind("tags", "a list of tags", tags_of, has_parts=True, sql=f"{TEXT}[]"),
        Kind("identifier", "anything", nothing_of, is_learnt=False),
        Kind("ignore", "anything", nothing_of, is_learnt=False, listed="nothing to learn from"),
        Kind("any", "anything", nothing_of, ("decimal", "format", "language")),
    )
}
"""The kinds by name; any is that of a column whose kind is inferred, with options given for it.

Features are those of `LENGTHS` in :mod:`kesler.data.schema.features`."""

NOT_LEARNT = tuple(name for name, kind in KINDS.items() if not kind.is_learnt)
WITH_OPTION = tuple(name for name, kind in KINDS.items() if kind.listed)
"""The kinds with an option on the command line, beside texts."""

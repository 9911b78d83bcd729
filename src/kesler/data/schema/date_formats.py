"""The format of a column of dates, from its first cells."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from itertools import pairwise
from typing import Any

from kesler.data.schema.dates import EITHER, ISO, LONGEST, compiled, forms_of, reader_of, tidy
from kesler.data.schema.languages import ENGLISH, languages_in

Options = Mapping[str, Any]

_OWN_FORMS = {
    re.compile(expression): form
    for expression, form in {
        r"\d{4}-(?:\d\d-\d\d|W\d\d)(?!\d)": ISO,
        r"\d{8}T\d{4}|\d{4}W\d{3}(?!\d)|\d{4}-[0-3]\d\d[T ]\d\d": ISO,
        r"\d{8} \d\d?:\d\d": "%Y%m%d",
        r"\d{8}_\d{6}$": "%Y%m%d_%H%M%S",
        r"\d{4}:\d\d:\d\d \d\d:\d\d": "%Y:%m:%d",
        r"/Date\(": "epoch-ms",
        r"@\d{9}": "epoch",
    }.items()
}
"""How dates begin that say which format they are in."""

_SHAPE = re.compile(r"\d+|[^\W\d_]+")
_YEAR = re.compile(r"\d\d")
_COUNTS = {
    re.compile(expression): form
    for expression, form in {
        r"\d{8}": "%Y%m%d",
        r"(?:19|20)\d{12}": "%Y%m%d%H%M%S",
        r"-?\d{9,11}(?:\.\d+)?": "epoch",
        r"-?\d{12,14}(?:\.\d+)?": "epoch-ms",
        r"-?\d{15,17}(?:\.\d+)?": "epoch-us",
        r"-?\d{18,19}(?:\.\d+)?": "epoch-ns",
    }.items()
}
"""What numbers are in columns that are named as dates."""

_BETWEEN_NUMBERS = re.compile(r"[\s/.,년年月월-]{1,3}|\s?(?:tháng|thg|năm)\s?")
_BEFORE_NUMBERS = ("", "ngày ")
MOST = 4  # formats of a column that are followed
_NAME = "name"
ORDERS = ("dmy", "mdy", "ymd", "dby", "bdy", "ybd", "ydb", "my", "ym", "by", "yb")
"""The orders of day, month, name of the month and year; those before are preferred."""


def date_formats(texts: Sequence[str], n_odd: int = 0, *, named: bool = False) -> list[Options]:
    """Return the options with which most texts are dates, the likeliest first.

    Where day and month could be exchanged, it is the reading whose dates are closer to each other,
    else the one with the day first.

    Parameters
    ----------
    texts : the cells.
    n_odd : the most texts that may be no dates.
    named : whether the column is known to hold dates, which numbers then can be.

    Examples
    --------
    >>> date_formats(["01/02/2020", "12/31/2020"]), date_formats(["3. März 2020"])
    ([{'format': '%m/%d/%Y'}], [{'format': '%d. %b %Y', 'language': 'de'}])
    >>> date_formats(["01/02/2024 09:00", "01/03/2024 17:00"])
    [{'format': '%m/%d/%Y'}, {'format': '%d/%m/%Y'}]
    >>> date_formats(["soon", "20240131", "20240201"], 1, named=True)
    [{'format': '%Y%m%d'}]
    """
    tidied = [tidy(text) for text in texts if len(text) <= LONGEST and _YEAR.search(text)]
    n_odd -= len(texts) - len(tidied)
    if not tidied or n_odd < 0:
        return []
    fits = list[_Fit]()
    for text in _examples(tidied, n_odd, named=named):
        found = _fits(text, tidied, n_odd, named=named)
        fits = found if found and (not fits or found[0] < fits[0]) else fits
        if fits and not fits[0].n_odd:
            break
    if fits:
        return [fit.options for fit in fits[:MOST] if fit.n_odd == fits[0].n_odd]
    return [] if named else _two_formats(tidied, n_odd)


def _two_formats(texts: Sequence[str], n_odd: int) -> list[Options]:
    """Return two formats of one language of which each text is in one, none if there are none."""
    common = _examples(texts, 1, named=False)[-1]
    for fit in _fits(common, texts, 2 * len(texts) // 3, named=False):
        read = moments_of(texts, fit.options)
        rest = [text for text, moment in zip(texts, read, strict=True) if moment is None]
        others = _fits(_examples(rest, 1, named=False)[-1], rest, n_odd, named=False)
        language = fit.options.get("language")
        for other in others:
            if other.options.get("language", language) == language and len(rest) > n_odd:
                joined = sorted((fit.options["format"], other.options["format"]))
                return [{**fit.options, "format": EITHER.join(joined)}]
    return []


@dataclass(frozen=True, slots=True, order=True)
class _Fit:
    """How well texts are dates in a format; the least of several is the likeliest."""

    n_odd: int
    is_unusual: bool
    spread: float
    place: int
    options: Options = field(compare=False)


def _examples(texts: Sequence[str], n_odd: int, *, named: bool) -> list[str]:
    """Return texts of which one is in the format of most, if there is one.

    They are the first and one of the commonest shape, of which texts other than dates have many;
    of columns that are known to hold dates, one of each shape.
    """
    if not n_odd:
        return [texts[0]]
    shapes = [_SHAPE.sub(lambda run: "9" if run[0].isdigit() else "a", text) for text in texts]
    counted = sorted(Counter(shapes).items(), key=lambda each: (-each[1], each[0]))
    common = [texts[shapes.index(shape)] for shape, _ in counted]
    return common if named else [texts[0], common[0]]


def _fits(text: str, texts: Sequence[str], n_odd: int, *, named: bool) -> list[_Fit]:
    """Return how well texts fit the formats that one of them could be in, the best one first."""
    fits = list[_Fit]()
    for place, (usual, options) in enumerate(_candidates(text, named)):
        read = moments_of(texts, options)
        moments = [moment for moment in read if moment is not None]
        n_missing = len(read) - len(moments)
        if moments and n_missing <= n_odd:
            fits.append(_Fit(n_missing, not usual, _spread(moments), place, options))
        if sum(not fit.n_odd for fit in fits) == MOST:
            break
    return sorted(fits)


def example_of(formats: Sequence[Options], texts: Sequence[str]) -> str:
    """Return a text that is another date in the second of some formats, in words; else "".

    Examples
    --------
    >>> example_of([{"format": "%d/%m/%Y"}, {"format": "%m/%d/%Y"}], ["01/01/2024", "02/01/2024"])
    "'02/01/2024' could be 2024-02-01"
    """
    tidied = sorted({tidy(text) for text in texts if len(text) <= LONGEST})
    readings = [moments_of(tidied, options) for options in formats[:2]]
    pairs = zip(tidied, *readings, strict=True) if len(readings) == 2 else ()
    found = ((text, other) for text, one, other in pairs if one and other and one != other)
    return next((f"{text!r} could be {other:%Y-%m-%d}" for text, other in found), "")


def moments_of(texts: Sequence[str], options: Options) -> list[Any]:
    """Return the dates that tidy texts state, None where one states none."""
    return list(map(reader_of(options["format"], options.get("language", ENGLISH)), texts))


def _spread(moments: Sequence[datetime]) -> float:
    """Return the squared times between successive dates, which do not depend on the order."""
    return sum((b - a).total_seconds() ** 2 for a, b in pairwise(sorted(set(moments))))


def _candidates(text: str, named: bool) -> Iterator[tuple[bool, Options]]:
    """Yield the formats that a text could be in, and whether they are usual."""
    if named and text.lstrip("-").replace(".", "", 1).isdigit():
        forms = [form for number, form in _COUNTS.items() if number.fullmatch(text)]
        yield from ((True, {"format": form}) for form in forms[:1])
        return
    own = next((form for begin, form in _OWN_FORMS.items() if begin.match(text)), None)
    if own is not None or (named and reader_of(ISO)(text) is not None):
        yield True, {"format": own or ISO}
        return
    for code in languages_in(text):
        language = {} if code == ENGLISH else {"language": code}
        for usual, form in _in_language(text, code):
            yield usual, {"format": form, **language}


def _in_language(text: str, code: str) -> Iterator[tuple[bool, str]]:
    """Yield the formats of a day at the begin of a text, or behind a time."""
    start, time, part = _expressions(code)
    at = found.end() if (found := compiled(start).match(text)) else 0
    pieces, before = _pieces(part, text, at), ""
    if pieces is None and (found := compiled(time).match(text)) is not None:
        comma = "," if "," in found[0] else ""
        pieces, before = _pieces(part, text, found.end()), f"%T{comma} "
    if pieces is not None:
        gaps, parts = pieces
        for usual, order in _orders(parts, has_points="." in gaps[1]):
            form = "".join(f"{gap}%{each}" for gap, each in zip(gaps, order, strict=True))
            yield usual, f"{before}{form}"


def _pieces(part: str, text: str, at: int) -> tuple[list[str], list[str]] | None:
    """Return what is before each part of a day or of a month, and these, from a place on."""
    gaps, parts = list[str](), list[str]()
    while len(parts) < 3 and (found := compiled(part).match(text, at)) is not None:
        gaps.append(" %T " if found["gap"] is None else found["gap"].replace("%", "%%"))
        parts.append(found["number"] or _NAME)
        at = found.end()
    is_month = len(parts) == 2 and any(part.isdigit() and len(part) == 4 for part in parts)
    if len(parts) < 3 and not is_month:
        return None
    are_apart = _NAME in parts or (
        gaps[0] in _BEFORE_NUMBERS and all(map(_BETWEEN_NUMBERS.fullmatch, gaps[1:]))
    )
    return (gaps, parts) if are_apart else None


@lru_cache(maxsize=64)
def _expressions(code: str) -> tuple[str, str, str]:
    """Return a day of the week, a time, and a part of a day with what is before it."""
    forms = forms_of(code)
    day = rf"(?:\(?{forms['a']}(?![a-z])\)?[.,]*\s*)?"
    part = (
        rf"(?:\s+{forms['T']}\s+(?=\d{{4}})|(?P<gap>\D{{0,14}}?))"
        rf"(?:(?P<number>\d+)(?:(?:st|nd|rd|th|er|º|ª)(?![^\W\d_]))?|{forms['b']})"
    )
    return day, rf"{forms['T']}[\s,]+", part


def _orders(parts: Sequence[str], *, has_points: bool) -> Iterator[tuple[bool, str]]:
    """Yield the directives that the three parts of a day could be, and whether they are usual."""
    for order in ORDERS:
        found = "".join(map(_directive, order, parts))
        if len(found) == len(parts) == len(order):
            yield not (has_points and order == "mdy"), found


def _directive(meant: str, part: str) -> str:
    """Return the directive of a part of a date, "" if it cannot be what is meant."""
    if meant == "b" or part == _NAME:
        return "b" if meant == "b" and part == _NAME else ""
    if meant == "y":
        return {4: "Y", 2: "y"}.get(len(part), "")
    return meant if len(part) <= 2 else ""

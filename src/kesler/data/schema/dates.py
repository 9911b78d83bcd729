"""Dates as people write them: the date that a text states in a format.

A format is written as for `datetime.strptime`, in a language for its names of months and days. A
time of day may follow it in any form, and the day of the week may stand on either side.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from functools import lru_cache, partial

from kesler.data.schema.languages import ENGLISH, Language, language_of
from kesler.data.schema.numerals import western

ISO = "iso"
OF_ISO = ("%Y-%m-%d", "%G-W%V-%u", "%G-W%V", "%Y-%j")
"""The formats of ISO 8601: days, days of weeks, weeks and days of years."""

EPOCHS = {
    "epoch": (1.0, 0.0),
    "epoch-ms": (1e-3, 0.0),
    "epoch-us": (1e-6, 0.0),
    "epoch-ns": (1e-9, 0.0),
    "excel": (86_400.0, -25_569 * 86_400.0),
}
"""The units of numbers that count time, and their zero from the begin of 1970, in seconds."""

NAMED = (ISO, *EPOCHS)
EITHER = "|"  # between the formats of a column that has several

LONGEST = 100  # characters of a date
MOST_KNOWN = 1 << 12  # days and times that are kept
CENTURY = 69  # two digits from this number on are years before 2000, as in POSIX

_ZONES = (
    "Z UTC GMT UT TU WET WEST BST IST CET MEZ CEST MESZ EET EEST MSK TRT GST PKT NPT WIB ICT SGT "
    "HKT PHT JST KST AWST ACST ACDT AEST AEDT NZST NZDT HST AKST AKDT PST PDT MST MDT CST CDT EST "
    "EDT AST ADT NST NDT BRT ART CLT SAST EAT WAT CAT"
)
_ZONE = (
    rf"(?-i:(?:(?:{_ZONES.replace(' ', '|')})(?![^\W\d_]))?(?:[+-]\d\d?(?::?\d\d)?)?"
    r"(?:[A-Z][a-z]+(?:/[A-Za-z_]+)+)?(?:\s*[\[(][^\])\d]{1,40}[\])])?)"
)
_COUNTED = re.compile(r"@?(-?\d+(?:\.\d*)?)|/Date\((-?\d+)(?:[+-]\d{4})?\)/")
_BEFORE_TIME = (  # words between a date and a time in the CLDR
    r"[\s,\u060c:T|(-]+(?:(?:um|at|à|a las?|alle(?: ore)?|ore|às|om|kl|klo|v|ve|o|godz|la|ob|u|"
    r"saat|στις|в|о|у|ساعت|في الساعة|الساعة|בשעה|เวลา|lúc)\.?\s+)?"
)
_BEHIND_TIME = r"(?:\s?(?:Uhr|h|ч\.|น\.))?"
_BEHIND_DATE = r"(?:\s?(?:[гр]\.|d\.|\(a\)|[.日일月월]))?"

_FORMS = {
    "Y": r"(?P<Y>[12]\d{3})",
    "y": r"(?P<y>\d\d)",
    "m": r"(?P<m>1[0-2]|0?[1-9])",
    "d": r"(?P<d>3[01]|[12]\d|0?[1-9])(?:st|nd|rd|th|er|º|ª)?",
    "j": r"(?P<j>[0-3]\d\d)",
    "G": r"(?P<G>[12]\d{3})",
    "V": r"(?P<V>[0-5]\d)",
    "u": r"(?P<u>[1-7])",
    "H": r"(?P<H>2[0-4]|[01]?\d)",
    "I": r"(?P<H>1[0-2]|0?\d)",
    "M": r"(?P<M>[0-5]\d|\d(?=[분分]))",
    "S": r"(?P<S>60|[0-5]\d|\d(?=[초秒]))",
    "f": r"(?P<f>\d{1,9})",
    "z": _ZONE,
    "Z": _ZONE,
    "%": "%",
}
"""What the directives of formats stand for, except those of a language in `forms_of`."""

_TOKENS = re.compile(r"%(?P<directive>.?)|(?P<space>\s+)|(?P<sign>.)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Form:
    """A format in a language.

    Parameters
    ----------
    day, time : functions that read a day alone, and a time alone, as one of the first of all days;
        None where a text is something else.
    wholes : functions that read a day with any time behind or before it.
    n_spaces : the number of spaces in a day.
    """

    day: Callable[[str], datetime | None]
    time: Callable[[str], datetime | None]
    wholes: tuple[Callable[[str], datetime | None], ...]
    n_spaces: int

    def date_in(self, text: str) -> datetime | None:
        """Return the date that a text states in this form, None if it states none."""
        end = -1
        for _ in range(self.n_spaces + 1):
            end = text.find(" ", end + 1)
            if end < 0:
                break
        time = None if end < 0 else text[end + 1 :]
        # Days and times of day recur, and are known then.
        day = self.day(text if end < 0 else text[:end])
        if day is None or time is None:
            return day or self._whole(text)
        after = self.time(time)
        return self._whole(text) if after is None else _sum(day, after - datetime.min)

    def _whole(self, text: str) -> datetime | None:
        return next(filter(None, (read(text) for read in self.wholes)), None)


def _sum(day: datetime, time: timedelta) -> datetime | None:
    try:
        return day + time
    except OverflowError:  # 24:00 of the last day
        return None


def _moment(expression: str, language: Language, text: str) -> datetime | None:
    """Return the date that a text states, that of a time alone on the first of all days."""
    match = compiled(expression).fullmatch(text)
    if match is None:
        return None
    parts = {name: part for name, part in match.groupdict().items() if part is not None}
    try:
        day = _day(parts, language) if {*"YyG"} & parts.keys() else date.min
        start = datetime(day.year, day.month, day.day)
        return start + _time(parts, language) if "H" in parts else start
    except (ValueError, OverflowError):  # the 30th of February
        return None


def _time(parts: Mapping[str, str], language: Language) -> timedelta:
    half = parts.get("before") or parts.get("p")
    hours = int(parts["H"])
    if half is not None and hours <= 12:
        hours = hours % 12 + 12 * language.halves[_plain(half)]
    fraction = int(parts.get("f", "0").ljust(9, "0")) // 1000
    minutes, seconds = int(parts.get("M", 0)), int(parts.get("S", 0))
    return timedelta(hours=hours, minutes=minutes, seconds=seconds, microseconds=fraction)


def _day(parts: Mapping[str, str], language: Language) -> date:
    """Return the day of the parts of a match; raise ValueError if there is none."""
    if "G" in parts:
        return date.fromisocalendar(int(parts["G"]), int(parts["V"]), int(parts.get("u", 1)))
    year = int(parts["Y"]) if "Y" in parts else int(parts["y"])
    if "Y" not in parts:
        year += 1900 if year >= CENTURY else 2000
    if "j" in parts:
        day = date(year, 1, 1) + timedelta(days=int(parts["j"]) - 1)
        if day.year != year:
            raise ValueError("no day of this year")
        return day
    month = language.months[_plain(parts["B"])] + 1 if "B" in parts else int(parts.get("m", 1))
    return date(year, month, int(parts.get("d", 1)))


def _plain(name: str) -> str:
    return name.lower().rstrip(".")


@lru_cache(maxsize=256)
def form_of(form: str, code: str = ENGLISH) -> Form | None:
    """Return a format in a language; None if it has no year, or directives that are not known.

    Examples
    --------
    >>> form_of("%d. %B %Y", "de").date_in("3. März 2026, 10:05 Uhr")
    datetime.datetime(2026, 3, 3, 10, 5)
    >>> form_of("%m/%d/%y").date_in("2/28/26 11:59 PM").isoformat(), form_of("%H:%M")
    ('2026-02-28T23:59:00', None)
    """
    language = language_of(code)
    known, tokens = forms_of(code), list(_TOKENS.finditer(form))
    named = [token["directive"] for token in tokens if token["directive"] is not None]
    directives = [directive for directive in named if directive != "%"]
    is_known = len({*directives}) == len(directives) and known.keys() >= {*directives}
    if not is_known or {*"YyG"}.isdisjoint(directives):
        return None
    day = rf"(?:\(?{known['a']}\)?[.,]*\s*)?{''.join(_piece(token, known) for token in tokens)}"
    day += rf"{_BEHIND_DATE}(?:,?\s*\(?{known['a']}\)?)?"
    has_time = not {*"HIT"}.isdisjoint(directives)
    wholes = [rf"{day}(?:{_BEFORE_TIME}{known['T']})?", rf"{known['T']}[\s,]+{day}"]
    try:
        compiled(day)
    except re.error:  # two directives of one meaning
        return None
    reads = [
        lru_cache(maxsize=MOST_KNOWN)(partial(_moment, each, language))
        for each in (day, known["T"], *([day] if has_time else wholes))
    ]
    return Form(reads[0], reads[1], tuple(reads[2:]), form.count(" "))


@lru_cache(maxsize=256)
def compiled(expression: str) -> re.Pattern[str]:
    """Return an expression compiled, which takes milliseconds, when it is first used."""
    return re.compile(expression, re.IGNORECASE)


def _piece(token: re.Match[str], known: Mapping[str, str]) -> str:
    """Return the expression for a directive, spaces, or a sign, which spaces may surround."""
    if token["space"] is not None:
        return r"\s+"
    if token["directive"] is not None:
        return known[token["directive"]]
    sign = re.escape(token["sign"])
    return sign if token["sign"].isalpha() else rf"\s*{sign}\s*"


def _any_of(names: Iterable[str]) -> str:
    """Return the expression for any of some names; a point may follow."""
    longest = sorted(names, key=len, reverse=True)
    return rf"(?:{'|'.join(map(re.escape, longest))})\.?" if longest else "(?!)"


@lru_cache(maxsize=64)
def forms_of(code: str) -> dict[str, str]:
    """Return what the directives stand for in a language, `%T` for any time of day."""
    language = language_of(code)
    half, month, day = map(_any_of, (language.halves, language.months, language.days))
    seconds = rf"(?:[:.]|[분分]\s?){_FORMS['S']}(?:[.,:]{_FORMS['f']})?[초秒]?"
    minutes = rf"[:.h시时時点]\s?{_FORMS['M']}(?:{seconds}|[분分])?"
    time = (  # a number alone is no hour
        rf"(?:(?P<before>{half})\s*)?{_FORMS['H']}(?:{minutes}|(?=\s*{half}))"
        rf"(?:\s*(?P<p>{half}))?{_BEHIND_TIME}(?:\s*{_ZONE})\)?"
    )
    month = rf"(?<![a-z])(?P<B>{month})(?![^\W\d_])"
    names = {"b": month, "B": month, "a": day, "A": day}
    return {**_FORMS, **names, "p": rf"(?P<p>{half})", "T": time}


def tidy(text: str) -> str:
    """Return a text as formats read it: in composed letters, with the digits of ASCII.

    Logs have brackets around their dates.
    """
    text = text.strip() if text.isascii() else western(unicodedata.normalize("NFC", text))
    return text[1:-1] if text[:1] == "[" and text[-1:] == "]" else text


def reader_of(form: str, code: str = ENGLISH) -> Callable[[str], datetime | None]:
    """Return the function that reads tidy texts in a format, None where they state no date.

    Examples
    --------
    >>> read = reader_of("iso")
    >>> str(read("2026-W05")), str(read("2026-02-03 10:00:05,250 UTC")), read("soon")
    ('2026-01-26 00:00:00', '2026-02-03 10:00:05.250000', None)
    """
    if form == ISO:
        return _of_iso
    if form in EPOCHS:
        return lambda text: _counted(text, form)
    several = form.split(EITHER) if EITHER in form else []
    if several and all(map(is_format, several)):
        reads = [reader_of(each, code) for each in several]
        return lambda text: next(filter(None, (read(text) for read in reads)), None)
    found = form_of(form, code)
    assert found is not None  # options of columns are validated
    return found.date_in


def is_format(form: str) -> bool:
    """Return whether a text is the name of a format, a format, or several separated by "|".

    Examples
    --------
    >>> [is_format(form) for form in ("iso", "%d.%m.%Y", "iso|%d.%m.%Y", "epoch-s", "%d.%m")]
    [True, True, True, False, False]
    """
    if form in NAMED or form_of(form) is not None:
        return True
    return EITHER in form and all(map(is_format, form.split(EITHER)))


def _of_iso(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text).replace(tzinfo=None)
    except ValueError:
        forms = filter(None, map(form_of, OF_ISO))
        return next(filter(None, (form.date_in(text) for form in forms)), None)


def _counted(text: str, form: str) -> datetime | None:
    found = _COUNTED.fullmatch(text)
    return None if found is None else moment_at(float(found[1] or found[2]), form)


def moment_at(count: float, form: str = "epoch") -> datetime | None:
    """Return the date that a number counts in a named format; None if there is none.

    Examples
    --------
    >>> moment_at(86400), moment_at(45_292.5, "excel")
    (datetime.datetime(1970, 1, 2, 0, 0), datetime.datetime(2024, 1, 1, 12, 0))
    """
    size, start = EPOCHS[form]
    try:
        return datetime(1970, 1, 1) + timedelta(seconds=start + count * size)
    except OverflowError:
        return None

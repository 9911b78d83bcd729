"""Names of months and days in the languages of the CLDR; `tests/write_languages.py` wrote them."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import chain

ENGLISH = "en"
HALVES = {"am": 0, "a.m": 0, "a. m": 0, "pm": 1, "p.m": 1, "p. m": 1}
OTHER_MONTHS: Mapping[str, Mapping[str, int]] = {
    "de": {"jänner": 0, "jän": 0, "feber": 1, "mrz": 2},
}
"""The numbers of months by names that the CLDR lacks: those of Austria and of databases."""
SHORTEST_CUT = 3  # letters of the name of a month


@dataclass(frozen=True, slots=True)
class Language:
    """The names of a language, in small letters and without the points of abbreviations.

    Parameters
    ----------
    months : the number of each name of a month, from 0; none where these are numbers.
    days : the names of the days of the week.
    halves : 0 for each name of the half of the day before noon, 1 for those after it.
    """

    months: Mapping[str, int]
    days: tuple[str, ...]
    halves: Mapping[str, int]

    @property
    def own_names(self) -> list[str]:
        """All names but those of the halves of the day that every language takes."""
        return [*self.months, *self.days, *(half for half in self.halves if half not in HALVES)]


@cache
def _stored() -> dict[str, dict[str, list[str]]]:
    text = files("kesler.data.schema").joinpath("languages.json").read_text("utf-8")
    found: dict[str, dict[str, list[str]]] = json.loads(text)
    return found


def is_language(code: object) -> bool:
    """Return whether the names of the language of a code are known."""
    return isinstance(code, str) and code in _stored()


@cache
def language_of(code: str) -> Language:
    """Return the names of a language; those of months may be cut to three letters or more.

    Examples
    --------
    >>> language_of("de").months["märz"], language_of("en").months["sept"]
    (2, 8)
    """
    stored = _stored()[code]
    months = _numbered(stored["months"])
    longest = [names.split("|")[0] for names in stored["months"]]
    cuts = [[m[:n] for n in range(SHORTEST_CUT, len(m)) if m.isalpha()] for m in longest]
    shared = Counter(chain.from_iterable(cuts))
    cut = {name: i for i, names in enumerate(cuts) for name in names if shared[name] == 1}
    return Language(
        {**cut, **months, **OTHER_MONTHS.get(code, {})},
        tuple(chain.from_iterable(names.split("|") for names in stored["days"])),
        HALVES | _numbered(stored["halves"]),
    )


def _numbered(names: Iterable[str]) -> dict[str, int]:
    return {name: i for i, each in enumerate(names) for name in each.split("|")}


def languages_in(text: str) -> list[str]:
    """Return the languages that have names in a text; English where there are none.

    Examples
    --------
    >>> languages_in("3. März 2026"), languages_in("3/2/2026 10:00 PM")
    (['de', 'et'], ['en'])
    """
    folded = text.lower()
    words = {word.rstrip(".") for word in re.findall(r"[a-z][a-z.]*", folded)}
    return [code for code in _stored() if _has_name(code, folded, words)] or [ENGLISH]


def _has_name(code: str, text: str, words: set[str]) -> bool:
    """Return whether a text has a name of a language; those with other letters join words."""
    latin, others = _names_of(code)
    is_latin = not words.isdisjoint(latin)
    return is_latin or (not text.isascii() and any(map(text.__contains__, others)))


@cache
def _names_of(code: str) -> tuple[frozenset[str], tuple[str, ...]]:
    """Return the names of a language in ASCII, and the others."""
    names = language_of(code).own_names
    return frozenset(filter(str.isascii, names)), tuple(n for n in names if not n.isascii())

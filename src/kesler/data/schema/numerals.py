"""Numbers as people write them: the notation of a column, and the number that a text states."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from kesler.data.schema.durations import CLOCK, is_clear_duration, seconds_of
from kesler.data.schema.units import (
    MULTIPLIERS,
    USUAL_SIGNS,
    is_currency,
    is_unit,
    joined_units,
    sizes_of,
)

DECIMALS = (".", ",")
"""The decimal signs; the other of the two separates thousands, as do spaces and apostrophes."""

ANY_DECIMAL = ".,"  # a column in which each cell has one of them
MANY = 10  # texts of which some may be no numbers
SMALLEST_GROUPED = 1000

_OF_NUMBERS = {sign: f"0123456789+-eE\n{sign}".encode() for sign in DECIMALS}
_MINUS, _SPACES = "\u2212\u2012\u2013\ufe63", "\u2007\u2008\u2009\u200a\u202f\u00a0\t"
_APOSTROPHES = "\u2019\u02bc\u00b4`"
_UNSEEN = "\u200b\u200e\u200f\u061c\u2060\u2066\u2067\u2068\u2069\ufeff"
_SIGNS = str.maketrans(
    f"{_MINUS}{_SPACES}{_APOSTROPHES}\u066a",
    "-" * len(_MINUS) + " " * len(_SPACES) + "'" * len(_APOSTROPHES) + "%",
    _UNSEEN,
)
_OF_SCRIPTS = re.compile(r"[^\D0-9]|[\uff01-\uff5e\u066b\u066c]")
_OF_ARABIC = {
    ".": str.maketrans("\u066b\u066c", ".,"),
    ",": str.maketrans("\u066b\u066c", ",."),
}


_QUOTED = re.compile(
    r'=?"([^"]*)"|\x27([^\x27]*)\x27?'
)  # so that a spreadsheet takes it for a text
_ABOUT = r"(?:(?:ca\.?|circa|etwa|approx\.?|about|[~\u2248])\s*)?"
_BEFORE = r"[^\d\s(),.'+-]+\.?"
_TIMES = rf"(?:{'|'.join(sorted(MULTIPLIERS, key=len, reverse=True))})(?![^\W\d_])\.?"
_BEHIND = r"[^\d\s(),.'+-](?:[^\s()]*[^\s()+-])?"
_AT_END = rf"(?:(?P<times>{_TIMES})\s*)?(?P<behind>{_BEHIND})?\s*(?P<after>[-+]?)"
_OF_UNIT = re.compile(rf"[\d.,)][-+]?\s*{_AT_END}\)?$")


@lru_cache(maxsize=4)
def _number(decimal: str) -> str:
    other = DECIMALS[decimal == "."]
    grouped = rf"[1-9]\d{{0,2}}(?P<group>[{other}' ])(?:\d{{2,3}}(?P=group))*\d{{3}}"
    fraction = rf"[{decimal}](?:--?|\d*)|/-"  # 3.- and 3/- are prices without cents
    return rf"(?P<number>(?:{grouped}|\d+)?(?:{fraction})?(?:[eE][-+]?\d+)?)"


@lru_cache(maxsize=4)
def _usual_form(decimal: str) -> re.Pattern[str]:
    """Return the expression of numbers as most are written, which is tried first."""
    return re.compile(
        rf"(?P<sign>-?)(?P<before>{_BEFORE})?\s?{_number(decimal)}\s?(?P<behind>{_BEHIND})?"
    )


@lru_cache(maxsize=4)
def _form(decimal: str) -> re.Pattern[str]:
    return re.compile(
        rf"{_ABOUT}(?P<open>\()?\s*(?P<first>[-+]?)\s*(?P<before>{_BEFORE})?\s*(?P<inner>\()?\s*"
        rf"(?P<second>[-+]?)\s*{_number(decimal)}(?P<last>[-+]?)\s*(?P<end>\))?\s*"
        rf"{_AT_END}\s*(?P<close>\))?"
    )


_DIGIT = re.compile(r"\d")
_MAY_BE_TIME = re.compile(r"\d\s*[:A-Za-z]")
_PARENTHESES = ("open", "inner"), ("end", "close")


@lru_cache(maxsize=4)
def plain(decimal: str) -> re.Pattern[str]:
    """Return the expression of numbers without currencies, units and signs of other scripts."""
    other = DECIMALS[decimal == "."]
    grouped = rf"[1-9][0-9]{{0,2}}(?:[{other}][0-9]{{3}})+"
    return re.compile(rf"-?(?:{grouped}|[0-9]+)(?:[{decimal}][0-9]*)?(?:[eE][-+]?[0-9]+)?")


def amount(text: str, decimal: str = ".", unit: str = "") -> float | None:
    """Return the number that a text states, None if it states none.

    Parameters
    ----------
    text : the text.
    decimal : the decimal sign, "." or ","; ".," where it is the only possible one of a text.
    unit : a unit that may follow the number, or several such as "g|kg", the first of which the
        number is in; currencies, percent signs and what multiplies, such as K, always may.
        With ":", texts are times such as 13:45, 1:45 PM or 5h 3m, and numbers are seconds.

    Examples
    --------
    >>> [amount(text) for text in ("1,234.5", "$3", "12 %", "(1'000)", "5-", "7.85M", "١٢")]
    [1234.5, 3.0, 12.0, -1000.0, -5.0, 7850000.0, 12.0]
    >>> amount("-1.234,5 kg", ",", "kg"), amount("1 234,50 €", ","), amount("12 kg")
    (-1234.5, 1234.5, None)
    >>> amount("13:45", unit=":"), amount("1:45 PM", unit=":"), amount("0:01:02,5", unit=":")
    (49500.0, 49500.0, 62.5)
    """
    if unit == CLOCK:
        return seconds_of(western(text))
    if decimal == ANY_DECIMAL:
        found = {amount(text, sign, unit) for sign in DECIMALS} - {None}
        return found.pop() if len(found) == 1 else None
    if plain(decimal).fullmatch(text):
        return _size(text, decimal)
    if _DIGIT.search(text) is None:
        return None
    return _stated(_unquoted(western(text, decimal)), decimal, sizes_of(unit))


def _stated(text: str, decimal: str, units: Mapping[str, float]) -> float | None:
    """Return the number of a text with signs, a currency or one of some units, else None."""
    found = _usual_form(decimal).fullmatch(text)
    if found is not None:
        sign, before, number, _, behind = found.groups(default="")
        if before in USUAL_SIGNS and (behind in USUAL_SIGNS or behind in units):
            return _scaled(number, decimal, units.get(behind, 1.0), is_negative=bool(sign))
    found = _form(decimal).fullmatch(text)
    if found is None:
        return None
    n_open, n_closed = (sum(found[part] is not None for part in pair) for pair in _PARENTHESES)
    signs = "".join(found[sign] for sign in ("first", "second", "last", "after")) + "-" * n_open
    before, behind = found["before"] or "", found["behind"] or ""
    if n_open != n_closed or len(signs) > 1 or not (before in ("", "%") or is_currency(before)):
        return None
    if not (behind in ("", "%") or behind in units or is_currency(behind)):
        return None
    times = units.get(behind, 1.0) * MULTIPLIERS.get((found["times"] or "").removesuffix("."), 1.0)
    return _scaled(found["number"], decimal, times, is_negative="-" in signs)


def _scaled(digits: str, decimal: str, times: float, *, is_negative: bool) -> float | None:
    size = _size(digits, decimal)
    return None if size is None else size * (-times if is_negative else times)


def _unquoted(text: str) -> str:
    found = _QUOTED.fullmatch(text) if text[:1] in ("=", "'", '"') else None
    return text if found is None else (found[1] or found[2] or "").strip()


def _size(digits: str, decimal: str) -> float | None:
    whole = digits.replace(DECIMALS[decimal == "."], "").replace(",", ".")
    try:
        return float(whole.replace("'", "").replace(" ", "").rstrip("/-"))
    except ValueError:  # no digit
        return None


def western(text: str, decimal: str = ".") -> str:
    """Return a text with the digits, signs and spaces of ASCII, where it has others."""
    text = text.strip()
    if text.isascii() and "\t" not in text and "`" not in text:
        return text
    if _OF_SCRIPTS.search(text):
        text = "".join(chr(ord(c) - 0xFEE0) if "\uff01" <= c <= "\uff5e" else c for c in text)
        text = text.translate(_OF_ARABIC[decimal])
        text = "".join(str(unicodedata.decimal(c)) if c.isdecimal() else c for c in text)
    return text.translate(_SIGNS).strip()


@dataclass(frozen=True, slots=True)
class Notation:
    """How the numbers of a column are written.

    Parameters
    ----------
    options : the options of the column.
    others : other options under which all of its texts are numbers.
    example : a text that is another number under these, in words; "" if there is none.
    """

    options: dict[str, Any]
    others: tuple[dict[str, Any], ...] = ()
    example: str = ""


def notation(
    texts: Sequence[str], decimals: Sequence[str] = DECIMALS, n_odd: int = 0
) -> Notation | None:
    """Return the notation in which most texts are numbers; None if too many are not.

    Where the thousands of one notation could be the fractions of the other, as in "1.234", the
    column decides: fractions of always three digits have whole numbers below 1000 beside them in
    a column of thousands alone.

    Parameters
    ----------
    texts : the cells.
    decimals : the decimal signs to choose from.
    n_odd : the most texts that may be no numbers.

    Examples
    --------
    >>> notation(["1.234,5", "7"]).options, notation(["3 kg", "4.5 kg"]).options
    ({'decimal': ','}, {'unit': 'kg'})
    >>> notation(["1.234", "2.345"]).example, notation(["9:30", "13:45"]).options
    ("'1.234' could be 1234", {'unit': ':'})
    >>> notation(["1,5", "pending", "2,25"]), notation(["1,5", "pending"], n_odd=1).options
    (None, {'decimal': ','})
    """
    unit = _common_unit(texts, n_odd)
    numbers = {sign: [amount(text, sign, unit) for text in texts] for sign in DECIMALS}
    n_missing = {sign: numbers[sign].count(None) for sign in decimals}
    fewest = min(n_missing.values())
    if fewest > n_odd or 3 * fewest > len(texts):
        each = [amount(text, ANY_DECIMAL, unit) for text in texts] if len(decimals) > 1 else texts
        if each.count(None) <= min(n_odd, fewest - 1):
            return Notation({"decimal": ANY_DECIMAL, **({"unit": unit} if unit else {})})
    if fewest > n_odd:
        return None
    fit = [sign for sign in decimals if n_missing[sign] == fewest]
    with_unit = {"unit": unit} if unit else {}
    point, comma = with_unit, {"decimal": ",", **with_unit}
    if len(fit) == 1 or not texts:
        return Notation(comma if fit == [","] else point)
    pairs = zip(texts, numbers["."], numbers[","], strict=True)
    both = [(text, a, b) for text, a, b in pairs if a is not None and b is not None]
    doubtful = [(text, other) for text, one, other in both if one != other]
    alike = [one for _, one, other in both if one == other]
    points = doubtful and not any("," in text for text, _ in doubtful)
    if points and alike and max(map(abs, alike)) < SMALLEST_GROUPED:
        return Notation(comma, (point,))
    text, other = min(doubtful, default=("", 0.0))
    example = f"{text.strip()!r} could be {other:g}" if text else ""
    return Notation(point, (comma,), example)


def amounts(texts: Sequence[str], decimal: str = ".") -> list[float] | None:
    """Return the numbers of texts that are plain numbers without separators, else None.

    It takes a tenth of the time of a call for each.

    Examples
    --------
    >>> amounts(["12", "-3.5"]), amounts(["1,5"], ","), amounts(["12", "3 kg"])
    ([12.0, -3.5], [1.5], None)
    """
    if decimal == ANY_DECIMAL:
        return None
    lines = "\n".join(texts)
    if not lines.isascii() or lines.encode().translate(None, _OF_NUMBERS[decimal]):
        return None
    try:
        found = [*map(float, lines.replace(",", ".").split("\n"))]
    except ValueError:
        return None
    return found if len(found) == len(texts) else None


def _common_unit(texts: Sequence[str], n_odd: int) -> str:
    """Return what is behind the numbers, "" if it differs in more texts or is no unit of its own.

    That of times is ":". In many texts, what is behind a single number is no unit.
    """
    if _are_times(texts, n_odd):
        return CLOCK
    behind = Counter(map(_behind, texts))
    del behind[""], behind["%"]
    joined = joined_units(behind) if behind else ""
    if len(behind) > 1 and joined:
        return joined
    unit, n = max(behind.items(), key=lambda each: each[::-1], default=("", 0))
    if behind.total() - n > n_odd or (n == 1 and len(texts) >= MANY):
        return ""
    return unit if is_unit(unit) else ""


def _are_times(texts: Sequence[str], n_odd: int) -> bool:
    """Return whether texts are times or durations, and cannot all be numbers with a unit."""
    written = [western(text) for text in texts if _MAY_BE_TIME.search(text)]
    if 2 * len(written) <= len(texts) or not any(map(is_clear_duration, written)):
        return False
    n_times = sum(seconds_of(text) is not None for text in written)
    return n_times >= len(texts) - n_odd and 2 * n_times > len(texts)


def _behind(text: str) -> str:
    found = _OF_UNIT.search(western(text))
    return (found["behind"] or "") if found else ""

"""Numbers as people write them: the notation of a column, and the number that a text states."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

MULTIPLIERS = {"K": 1e3, "M": 1e6, "B": 1e9, "CR": 1.0, "Cr": 1.0, "DR": -1.0, "Dr": -1.0}
"""What may follow a number and multiplies it: K, M and B, and the credit and debit of accounts."""
DECIMALS = (".", ",")
"""The decimal signs; the other of the two separates thousands, as do spaces and apostrophes."""

CURRENCIES = frozenset(
    "AED ARS AUD BRL CAD CHF CLP CNY COP CZK DKK EGP EUR GBP HKD HUF IDR ILS INR JPY KES KRW MAD "
    "MXN MYR NGN NOK NZD PEN PHP PKR PLN RON RUB SAR SEK SGD THB TRY TWD UAH USD VND ZAR "
    "kr Kr Rs Rs. Rp Fr. Ft Kč zł lei RM R".split()
)
LONGEST_UNIT = 8  # characters
_UNIT = re.compile(r"(?:[°‰]|/?[^\W\d_])[^\d]*\d?")
MANY = 10  # texts of which some may be no numbers
SMALLEST_GROUPED = 1000
CLOCK = ":"  # the unit of times of day and durations, which are seconds
_TIME = re.compile(
    r"(?P<sign>-?)(?P<hours>\d{1,4}):(?P<minutes>[0-5]\d)(?::(?P<seconds>[0-5]\d(?:[.,]\d+)?))?"
    r"(?:\s*(?P<half>[AaPp])\.?[Mm]\.?)?"
)

_OF_NUMBERS = {sign: f"0123456789+-eE\n{sign}".encode() for sign in DECIMALS}
_MINUS, _SPACES = "\u2212\u2012\u2013\ufe63", "\u2009\u202f\u00a0\t"
_APOSTROPHES = "\u2019\u02bc\u00b4`"
_SIGNS = str.maketrans(f"{_MINUS}{_SPACES}{_APOSTROPHES}\u066a", "-" * 4 + " " * 4 + "'" * 4 + "%")
_UNSEEN = {ord(sign): None for sign in "\u200e\u200f\u061c\u2066\u2067\u2068\u2069"}
_OF_ARABIC = {
    ".": str.maketrans("\u066b\u066c", ".,"),
    ",": str.maketrans("\u066b\u066c", ",."),
}


@lru_cache(maxsize=4)
def _form(decimal: str) -> re.Pattern[str]:
    other = DECIMALS[decimal == "."]
    grouped = rf"[1-9]\d{{0,2}}(?P<group>[{other}' ])(?:\d{{2,3}}(?P=group))*\d{{3}}"
    fraction = rf"[{decimal}](?:--?|\d*)"  # 3.- is a price without cents
    number = rf"(?:{grouped}|\d+)?(?:{fraction})?(?:[eE][-+]?\d+)?"
    return re.compile(
        r"(?P<open>\()?\s*(?P<first>[-+]?)\s*(?P<before>[^\d\s(),.'+-]+\.?)?\s*(?P<second>[-+]?)\s*"
        rf"(?P<number>{number})(?P<last>-?)\s*(?P<behind>[^\d\s(),.'+-][^\s()]*)?\s*(?P<close>\))?"
    )


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
    decimal : the decimal sign, "." or ",".
    unit : a unit that may follow the number; currencies, percent signs, K, M, B, CR (credit) and DR
        (debit, negative) always may.
        With ":", texts are times such as 13:45, 1:45 PM or 0:59:03.5, and numbers are seconds.

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
        return _seconds(western(text))
    if plain(decimal).fullmatch(text):
        return _size(text, decimal)
    found = _form(decimal).fullmatch(western(text, decimal))
    if found is None or (found["open"] is None) != (found["close"] is None):
        return None
    before, behind = found["before"] or "", found["behind"] or ""
    signs = found["first"] + found["second"] + found["last"] + ("-" if found["open"] else "")
    if len(signs) > 1 or not (before in ("", "%") or is_currency(before)):
        return None
    if not (behind in ("", "%", unit) or behind in MULTIPLIERS or is_currency(behind)):
        return None
    size = _size(found["number"], decimal)
    if size is None:
        return None
    scaled = size * (1.0 if behind == unit else MULTIPLIERS.get(behind, 1.0))
    return -scaled if "-" in signs else scaled


def _seconds(text: str) -> float | None:
    """Return the seconds of a time of day or a duration, None if the text states none."""
    found = _TIME.fullmatch(text)
    if found is None:
        return None
    hours, half = int(found["hours"]), found["half"]
    if half is not None:
        if found["sign"] or not 1 <= hours <= 12:
            return None
        hours = hours % 12 + 12 * (half in "pP")
    seconds = float((found["seconds"] or "0").replace(",", "."))
    total = 3600 * hours + 60 * int(found["minutes"]) + seconds
    return -total if found["sign"] else total


def _size(digits: str, decimal: str) -> float | None:
    whole = digits.replace(DECIMALS[decimal == "."], "").replace(",", ".")
    try:
        return float(whole.replace("'", "").replace(" ", "").rstrip("-"))
    except ValueError:  # no digit
        return None


def western(text: str, decimal: str = ".") -> str:
    """Return a text with the digits, signs and spaces of ASCII, where it has others."""
    text = text.strip()
    if text.isascii() and "\t" not in text and "`" not in text:
        return text
    if not text.isascii():
        text = "".join(chr(ord(c) - 0xFEE0) if "\uff01" <= c <= "\uff5e" else c for c in text)
        text = text.translate(_UNSEEN).translate(_OF_ARABIC[decimal])
        text = "".join(str(unicodedata.decimal(c)) if c.isdecimal() else c for c in text)
    return text.translate(_SIGNS).strip()


@lru_cache(maxsize=1024)
def is_currency(sign: str) -> bool:
    """Return whether a text is the sign, the code or the abbreviation of a currency."""
    categories = {*map(unicodedata.category, sign)}
    return sign in CURRENCIES or ("Sc" in categories and "Nd" not in categories)


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
    if 2 * sum(":" in text and _is_time(text) for text in texts) > len(texts):
        return CLOCK
    behind = Counter(map(_behind, texts))
    del behind[""], behind["%"]
    unit, n = max(behind.items(), key=lambda each: each[::-1], default=("", 0))
    if behind.total() - n > n_odd or (n == 1 and len(texts) >= MANY):
        return ""
    is_word = bool(_UNIT.fullmatch(unit)) and len(unit) <= LONGEST_UNIT
    return "" if not is_word or unit in MULTIPLIERS or is_currency(unit) else unit


def _is_time(text: str) -> bool:
    return _TIME.fullmatch(western(text)) is not None


def _behind(text: str) -> str:
    match = re.search(r"[\d.,]-?\s*([^\d\s.,'+()-][^\s()]*)\)?$", western(text, "."))
    return match[1] if match else ""

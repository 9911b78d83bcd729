"""What stands beside numbers: currencies, multiples, and units of one quantity."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Mapping
from functools import lru_cache

MULTIPLIERS = {
    **dict.fromkeys(("k", "K", "Tsd", "tys", "тыс", "thousand"), 1e3),
    **dict.fromkeys(("M", "Mio", "mn", "mln", "Mln", "млн", "million", "Million", "millions"), 1e6),
    **dict.fromkeys(("B", "Mrd", "bn", "mld", "млрд", "billion", "Billion", "billions"), 1e9),
    **dict.fromkeys(("lakh", "Lakh", "lakhs"), 1e5),
    **dict.fromkeys(("crore", "Crore", "crores"), 1e7),
    **{"万": 1e4, "億": 1e8, "亿": 1e8, "만": 1e4, "억": 1e8},
    **dict.fromkeys(("CR", "Cr"), 1.0),
    **dict.fromkeys(("DR", "Dr"), -1.0),
}
"""What may follow a number and multiplies it, CR and DR being the credit and debit of accounts."""

CURRENCIES = frozenset(
    "AED ARS AUD BRL CAD CHF CLP CNY COP CZK DKK EGP EUR GBP HKD HUF IDR ILS INR JPY KES KRW MAD "
    "MXN MYR NGN NOK NZD PEN PHP PKR PLN RON RUB SAR SEK SGD THB TRY TWD UAH USD VND ZAR "
    "kr Kr Rs Rp Fr Fr. Ft Kč zł lei RM R".split()
)
USUAL_SIGNS = CURRENCIES | {"", "%", *"€$£¥₹₫₽₩₺₴฿"}
LONGEST_UNIT = 8  # characters
EITHER = "|"  # between units of one quantity
_UNIT = re.compile(r"(?:[°‰]|/?[^\W\d_])[^\d]*\d?")

_PREFIXES = {
    **{"n": 1e-9, "µ": 1e-6, "μ": 1e-6, "m": 1e-3, "c": 1e-2, "d": 1e-1, "": 1.0},
    **{"k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15},
}
_QUANTITIES: tuple[Mapping[str, float], ...] = (
    {"S": -1.0, "H": 1.0},  # debit and credit in German
    *(
        {prefix + base: size for prefix, size in _PREFIXES.items()}
        for base in "m l L W Wh Hz V A J Pa bit s".split()
    ),
    {**{prefix + "g": size for prefix, size in _PREFIXES.items()}, "t": 1e6},
    {
        **{prefix + "B": size for prefix, size in _PREFIXES.items() if size >= 1},
        **{"KB": 1e3, "KiB": 2.0**10, "MiB": 2.0**20, "GiB": 2.0**30, "TiB": 2.0**40},
    },
)
"""The units of each quantity, in one of them."""


@lru_cache(maxsize=1024)
def is_currency(sign: str) -> bool:
    """Return whether a text is the sign, the code or the abbreviation of a currency.

    Examples
    --------
    >>> [is_currency(sign) for sign in ("€", "US$", "kr.", "EUR", "kg", ".5$")]
    [True, True, True, True, False, False]
    """
    categories = {*map(unicodedata.category, sign)}
    is_named = sign in CURRENCIES or sign.removesuffix(".") in CURRENCIES
    return is_named or ("Sc" in categories and "Nd" not in categories)


def is_unit(text: str) -> bool:
    """Return whether a text can be the unit of a column, which is neither a currency nor a word."""
    is_short = bool(_UNIT.fullmatch(text)) and len(text) <= LONGEST_UNIT
    return is_short and not is_currency(text)


def joined_units(units: Collection[str]) -> str:
    """Return different units as one that stands for all, "" if they are not of one quantity.

    Examples
    --------
    >>> joined_units({"kg", "g"}), joined_units({"kg", "km"}), joined_units(["mg"])
    ('g|kg', '', 'mg')
    """
    if len(units) == 1:
        (unit,) = units
        return unit if is_unit(unit) else ""
    sizes = next((known for known in _QUANTITIES if known.keys() >= {*units}), {})
    return EITHER.join(sorted(units, key=sizes.__getitem__)) if sizes else ""


@lru_cache(maxsize=256)
def sizes_of(unit: str) -> Mapping[str, float]:
    """Return what may be behind numbers of a unit, and its size in the first of several units.

    Examples
    --------
    >>> sizes_of("MB|GB")["GB"], sizes_of("kg"), sizes_of("S|H")["S"]
    (1000.0, {'kg': 1.0}, -1.0)
    """
    units = unit.split(EITHER)
    if len(units) == 1:
        return {unit: 1.0}
    sizes = next((known for known in _QUANTITIES if known.keys() >= {*units}), {})
    return {each: size / abs(sizes[units[0]]) for each, size in sizes.items()}


def is_unit_option(unit: str) -> bool:
    """Return whether a text can be the option of a column: a unit, or several of one quantity."""
    return (
        bool(unit)
        and all(0 < len(each) <= LONGEST_UNIT for each in unit.split(EITHER))
        and (EITHER not in unit or bool(sizes_of(unit)))
    )

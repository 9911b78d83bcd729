"""Write the names of months, days and halves of a day, from the CLDR as babel has it.

python tests/write_languages.py
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from itertools import product
from pathlib import Path
from typing import Any

from babel.dates import get_day_names, get_month_names, get_period_names

from kesler.data.schema.numerals import western

LANGUAGES = (
    "en de fr es it pt nl sv nb da fi is pl cs sk hu ro bg hr sr_Latn sl uk ru el tr lt lv et ca "
    "gl eu ga sq id ms fil sw af vi th hi mr bn ta te gu kn ml pa ur ar fa he ka hy az kk mn ko "
    "zh_Hant ja"
).split()
HALVES = (("am", "morning1", "morning2", "night1"), ("pm", "afternoon1", "afternoon2", "evening1"))
PATH = Path(__file__).parent.parent / "src/kesler/data/schema/languages.json"


def plain(names: Iterable[str]) -> str:
    """Return different names in small letters, without the points of abbreviations."""
    return "|".join(dict.fromkeys(western(name).lower().rstrip(".") for name in names))


def named(get: Callable[..., Any], numbers: Iterable[int], language: str) -> list[str]:
    """Return the names of months or days, in full and short, alone and in dates."""
    ways = [
        get(width, context, language)
        for width, context in product(("wide", "abbreviated"), ("format", "stand-alone"))
    ]
    return [plain(names[i] for names in ways) for i in numbers]


def described(language: str) -> dict[str, list[str]]:
    """Return the names of a language; months that are numbers have none."""
    months = named(get_month_names, range(1, 13), language)
    words: Any = get_period_names("abbreviated", "format", language)
    # Only Chinese writes the parts of the day beside hours up to 12.
    kinds = HALVES if language.startswith("zh") else (("am",), ("pm",))
    return {
        "months": [] if any(c.isdigit() for c in "".join(months)) else months,
        "days": named(get_day_names, range(7), language),
        "halves": [plain(words[k] for k in half if k in words) for half in kinds],
    }


if __name__ == "__main__":
    found = {language.partition("_")[0]: described(language) for language in LANGUAGES}
    lines = [f'"{name}": {json.dumps(each, ensure_ascii=False)}' for name, each in found.items()]
    PATH.write_text("{\n" + ",\n".join(lines) + "\n}\n", "utf-8")

"""The names that dictionaries go by."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from sklearn.base import clone

from kesler.dictionaries.dictionary import Dictionary
from kesler.errors import KeslerError

DICTIONARIES = {
    "columns": "Columns",
    "stumps": "Stumps",
    "products": "Products",
    "pieces": "Pieces",
    "templates": "Templates",
}


def resolve_dictionary(given: Any) -> Dictionary:
    """Return a new unfitted dictionary for a name, or like a given one.

    Raises
    ------
    KeslerError
        If it is neither.
    """
    if isinstance(given, Dictionary):
        return clone(given)
    if not isinstance(given, str) or given not in DICTIONARIES:
        raise KeslerError(
            f"dictionary={given!r} is not known: use {', '.join(map(repr, DICTIONARIES))}, or an "
            "object of a class derived from kesler.dictionaries.Dictionary"
        )
    made: Dictionary = getattr(import_module("kesler.dictionaries"), DICTIONARIES[given])()
    return made

"""The registry of dictionaries, which are defined in one file each."""

from __future__ import annotations

from typing import Any

from sklearn.base import clone

from kesler.dictionaries.dictionary import Columns, Dictionary
from kesler.dictionaries.pieces import Pieces
from kesler.dictionaries.products import Products
from kesler.dictionaries.stumps import Stumps
from kesler.dictionaries.templates import Templates
from kesler.errors import KeslerError

DICTIONARIES: dict[str, type[Dictionary]] = {
    "columns": Columns,
    "stumps": Stumps,
    "products": Products,
    "pieces": Pieces,
    "templates": Templates,
}
"""The dictionaries by the names that `ShareBoostClassifier` and the command line accept."""


def resolve_dictionary(given: Any) -> Dictionary:
    """Return a new unfitted dictionary from a name, or a clone of a given one.

    Raises
    ------
    KeslerError
        If the argument is neither a dictionary nor a known name.

    Examples
    --------
    >>> resolve_dictionary("stumps")
    Stumps()
    """
    if isinstance(given, Dictionary):
        return clone(given)
    if not isinstance(given, str) or given not in DICTIONARIES:
        raise KeslerError(
            f"dictionary={given!r} is unknown: use {', '.join(map(repr, DICTIONARIES))}, or an "
            "instance of a class derived from kesler.dictionaries.Dictionary"
        )
    return DICTIONARIES[given]()

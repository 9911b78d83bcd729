"""Dictionaries: pools of candidate features from which ShareBoost picks."""

from kesler.sharing.dictionaries.dictionary import Columns, Dictionary, Pool
from kesler.sharing.dictionaries.pieces import Pieces
from kesler.sharing.dictionaries.products import Products
from kesler.sharing.dictionaries.registry import DICTIONARIES, resolve_dictionary
from kesler.sharing.dictionaries.steps import Step
from kesler.sharing.dictionaries.stumps import Stumps
from kesler.sharing.dictionaries.templates import Templates

__all__ = [
    "DICTIONARIES",
    "Columns",
    "Dictionary",
    "Pieces",
    "Pool",
    "Products",
    "Step",
    "Stumps",
    "Templates",
    "resolve_dictionary",
]

"""Dictionaries: pools of candidate features from which ShareBoost picks."""

from kesler.dictionaries.columns import Columns
from kesler.dictionaries.dictionary import Dictionary, Pool
from kesler.dictionaries.pieces import Pieces
from kesler.dictionaries.products import Products
from kesler.dictionaries.stumps import Stumps
from kesler.dictionaries.templates import Templates

__all__ = ["Columns", "Dictionary", "Pieces", "Pool", "Products", "Stumps", "Templates"]

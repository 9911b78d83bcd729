"""Readers: read files of every supported format as blocks of rows."""

from lazy_loader import attach_stub

from kesler.data.texts import tokenize as tokenize

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
__all__ = sorted([*__all__, "tokenize"])

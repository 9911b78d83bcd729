"""Dictionaries: pools of candidate features from which ShareBoost picks."""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)

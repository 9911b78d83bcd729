"""Bounds on mistakes: what the theorems of the sources allow on the rows of a run."""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)

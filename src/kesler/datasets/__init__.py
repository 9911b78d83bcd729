"""Data sets: bundled, read from a data directory or downloaded, and synthetic."""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)

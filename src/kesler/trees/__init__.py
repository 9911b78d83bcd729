"""Trees of classes: as hypotheses and costs, learnt from confusions, and measures of mistakes."""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)

"""fastText's functions for classifiers of texts: ``from kesler import fasttext``.

The names and files are those of fastText, whose package is no longer maintained; the classifiers
are Kesler's, which learn more texts and labels at any time. Models that fastText has saved predict.
"""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)

"""Small models of texts: files of kilobytes that predict in Python, C and WebAssembly.

A compact classifier is made of a trained one. It predicts and does not learn.
"""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)

"""A server for the learners of a journal, a page to teach them, and a client.

``kesler serve desk.db`` serves the models of a database (:class:`kesler.durable.Journal`) by JSON
and by pages; :class:`Client` uses it from Python. Both need the extra ``serve``, except the client.
"""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)

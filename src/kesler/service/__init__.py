"""A server for the learners of a journal, a page to teach them, and a client.

``kesler serve desk.db`` serves the models of a database (:class:`kesler.durable.Journal`) by JSON
and by pages; :class:`Client` uses it from Python. Both need the extra ``serve``, except the client.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kesler.service.client import Client as Client
    from kesler.service.desk import Desk as Desk
    from kesler.service.server import serve as serve
    from kesler.service.settings import Settings as Settings
    from kesler.service.tokens import Tokens as Tokens
    from kesler.service.web import application as application

_DEFINED_IN = {
    "Client": "client",
    "Desk": "desk",
    "Settings": "settings",
    "Tokens": "tokens",
    "application": "web",
    "serve": "server",
}

__all__ = list(_DEFINED_IN)


def __getattr__(name: str) -> Any:
    if name in _DEFINED_IN:
        return getattr(import_module(f"kesler.service.{_DEFINED_IN[name]}"), name)
    raise AttributeError(f"module 'kesler.service' has no attribute {name!r}")

"""The server: the application in a process that ends when what waits is written."""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Callable
from threading import Thread
from typing import TYPE_CHECKING, Any

from kesler.errors import KeslerError
from kesler.service.connections import protocol_of
from kesler.service.settings import Settings

if TYPE_CHECKING:
    from kesler.service.registry import ModelRegistry

BACKLOG = 100  # connections that wait to be accepted, and that are accepted at a time
SECONDS_TO_END = 10

_log = logging.getLogger("kesler.service")


def serve(path: str | os.PathLike[str], settings: Settings) -> None:
    """Serve the models of a journal until the process is asked to end.

    Parameters
    ----------
    path : str or path
        The database, which is made if it does not exist.
    settings : Settings
        Where to listen, who may do what, and how much.

    Raises
    ------
    KeslerError
        If the file is no journal, another process serves it, the address is in use, or the extra
        ``serve`` is not installed.

    Notes
    -----
    On SIGTERM and Ctrl-C, the server takes no more requests, finishes those that it has, writes
    what waits and closes the database. After SIGKILL, every answer that it had acknowledged is in
    the database.
    """
    run(path, settings, lambda address: None)


def run(path: str | os.PathLike[str], settings: Settings, started: Callable[[str], object]) -> None:
    """Serve as `serve` does; `started` is called with the address once the models are loaded."""
    uvicorn = require_extra()
    from kesler.service.registry import ModelRegistry

    with listening(settings.host, settings.port) as opened:
        registry = ModelRegistry(path)
        started(address_of(opened))
        if not registry.names():  # models that exist have loaded the loops that they need
            warm_up()
        uvicorn.Server(_config(registry, settings)).run(sockets=[opened])


def _config(registry: ModelRegistry, settings: Settings) -> Any:
    """Return how uvicorn serves a registry."""
    import uvicorn

    from kesler.service.web import application

    return uvicorn.Config(
        application(registry, settings),
        http=protocol_of(settings.patience, settings.max_connections),
        ws="none",
        log_level="warning",
        access_log=False,
        server_header=False,
        backlog=BACKLOG,
        timeout_keep_alive=int(settings.patience),
        timeout_graceful_shutdown=SECONDS_TO_END,
    )


def listening(host: str, port: int) -> socket.socket:
    """Return a socket that listens at an address; raise KeslerError if that cannot be used."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=BACKLOG)
    except (OSError, OverflowError) as error:
        raise KeslerError(
            f"{host}:{port} cannot be used ({error}): choose another port with --port"
        ) from error


def address_of(opened: socket.socket) -> str:
    """Return the address at which a socket listens, as browsers take it.

    Examples
    --------
    >>> with listening("127.0.0.1", 0) as opened:
    ...     address_of(opened) == f"http://127.0.0.1:{opened.getsockname()[1]}/"
    True
    """
    host, port = opened.getsockname()[:2]
    return f"http://[{host}]:{port}/" if ":" in host else f"http://{host}:{port}/"


def require_extra() -> Any:
    """Return the module uvicorn; raise KeslerError if the extra is not installed."""
    try:
        import jinja2  # noqa: F401
        import starlette  # noqa: F401
        import uvicorn
    except ImportError as error:
        raise KeslerError(
            "a server needs Starlette, uvicorn and Jinja2: install them with pip install "
            "'kesler[serve]'"
        ) from error
    return uvicorn


def warm_up() -> Thread:
    """Load the loops of the default learner of texts in a thread, which compiles missing ones.

    The first answer would wait for that.
    """

    def work() -> None:
        from kesler.online.classifier import OnlineClassifier
        from kesler.service.answers import Wanted, answer_of

        try:
            model = OnlineClassifier()
            for text, label in (("a b", "c"), ("d e", "f")):
                model.learn_one(text, label)
            answer_of(model, "a", Wanted())
        except Exception:
            _log.exception("the loops could not be loaded ahead: the first answer will take longer")

    thread = Thread(target=work, name="kesler-warm-up", daemon=True)
    thread.start()
    return thread

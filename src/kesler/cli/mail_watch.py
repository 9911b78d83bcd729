"""kesler mail watch: learn what people do in a mailbox, and file what is new."""

from __future__ import annotations

import logging
import sys
from argparse import Namespace
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from kesler.cli.mail import connected, line_of, sorter_of
from kesler.mail.server import LoginError, Server
from kesler.mail.settings import MailSettings
from kesler.progress import logged


def run(options: Namespace) -> None:
    """Print a line for each message with which something is done."""
    from kesler.mail.watching import watch

    with logged(_handler()), sorter_of(options) as sorter:
        sorter.settings = _with(sorter.settings, options)
        print(_begun(sorter.settings), file=sys.stderr)
        connect = partial(connected, sorter.settings)
        if options.once:
            with connect() as server:
                for done in sorter.look(server):
                    print(line_of(done), flush=True)
            return
        _try(connect)
        for done in watch(connect, sorter):
            print(line_of(done), flush=True)


def _try(connect: Callable[[], Server]) -> None:
    """Connect once: a wrong password or name is said at once, and not tried again.

    Without a terminal nobody reads it, and what has started the command would start it again: a
    password that is refused is then tried after ever longer pauses.
    """
    try:
        connect().close()
    except LoginError:
        if sys.stdin is not None and sys.stdin.isatty():
            raise


def _with(settings: MailSettings, options: Namespace) -> MailSettings:
    """Return the settings with those of the command line."""
    names = ("action", "error", "every")
    asked = {name: getattr(options, name) for name in names}
    given = {name: value for name, value in asked.items() if value is not None}
    return replace(settings, values={**settings.values, **given})


def _begun(settings: MailSettings) -> str:
    does = {
        "nothing": "nothing is changed in the mailbox",
        "keyword": "sure suggestions become keywords",
        "move": "messages are moved where the suggestion is sure",
    }
    return f"watching {settings.place}: {does[settings.action]}"


def _handler() -> logging.Handler:
    """Return what prints records on standard error: they name no folder and no message."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
    return handler

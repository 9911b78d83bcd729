"""kesler mail: a mailbox whose messages are learnt from where people put them."""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING

from kesler.errors import KeslerError

if TYPE_CHECKING:
    from kesler.mail.server import Server
    from kesler.mail.settings import MailSettings
    from kesler.mail.sorter import Done, Sorter


def run(options: Namespace) -> None:
    """Run one of the actions."""
    import_module(f"kesler.cli.mail_{options.mail_action}").run(options)


@contextmanager
def sorter_of(options: Namespace, *, is_new: bool = False) -> Iterator[Sorter]:
    """Yield the sorter of the settings file that is named; one that is not new has learnt."""
    from kesler.durable import Journal
    from kesler.mail.settings import read_settings
    from kesler.mail.sorter import Sorter

    settings = read_settings(options.settings)
    path = settings.path("database")
    if not is_new and not os.path.exists(path):
        raise _unlearnt(options)
    with Journal(path) as journal:
        if not is_new and settings.account not in journal.models():
            raise _unlearnt(options)
        sorter = Sorter(journal, settings)
        if not is_new and not sorter.known.statuses:  # learning has ended before its first look
            raise _unlearnt(options)
        yield sorter


def _unlearnt(options: Namespace) -> KeslerError:
    return KeslerError(
        f"nothing has been read of the mailbox of {options.settings}: run kesler mail learn "
        f"{options.settings} first"
    )


def connected(settings: MailSettings) -> Server:
    """Return a connection to the server of the settings, or their Maildir."""
    if settings.maildir:
        from kesler.mail.maildir import Maildir

        return Maildir(settings.path("maildir"))
    from kesler.mail import imap
    from kesler.mail.passwords import secret_of

    imap.required()
    return imap.Server(settings, secret_of(settings))


def line_of(done: Done) -> str:
    """Return a line of what was done, with nothing of the content of the message."""
    sure = "" if done.confidence is None else f"{done.confidence:.2f}"
    return "\t".join([done.what, done.identity, done.folder or "", sure]).rstrip()


def message_of(sorter: Sorter, options: Namespace) -> str:
    """Return the identity of a message, which may be given without angle brackets."""
    records = sorter.known.records
    for each in (options.message, f"<{options.message}>"):
        if each in records:
            return str(each)
    raise KeslerError(
        f"there is no message {options.message} in the folders that were looked at: give its "
        "Message-ID"
    )

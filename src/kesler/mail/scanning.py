"""A look at the folders of a server: only those are read that have changed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from kesler.mail.folders import is_inbox
from kesler.mail.known import Known, Status
from kesler.mail.server import RefusedError, Server
from kesler.mail.state import Folder, Mailbox
from kesler.progress import LOGGER

NEVER = "never/"
"""What the names of values begin with that tell a folder which is never touched."""


def scan(
    server: Server, known: Known, never: Iterable[str]
) -> tuple[dict[str, Folder], dict[str, Status]]:
    """Return the inbox and the classes as they are now, and what the server says of them.

    Parameters
    ----------
    server : the server.
    known : what was known of the mailbox.
    never : the names of folders that are never touched.
    """
    mailbox: dict[str, Folder] = {}
    statuses: dict[str, Status] = {}
    for name in _watched(server, known, {*never}):
        former = known.mailbox.get(name)
        try:
            status = server.status(name)
            if former is None or status != known.statuses[name]:
                former = _read(server, name, former, known.statuses.get(name, Status()))
                # If fewer were seen than there are, as some are marked as deleted or the answer was
                # not whole, the next look reads the folder again.
                status = status._replace(n_messages=len(former.messages))
        except RefusedError as error:
            LOGGER.warning("a folder cannot be read: %s", error)
            if former is None:
                continue
            status = known.statuses[name]
        mailbox[name], statuses[name] = former, status
    return mailbox, statuses


def _read(server: Server, name: str, former: Folder | None, status: Status) -> Folder:
    """Return a folder; the server is asked for the identities of new messages alone.

    Parameters
    ----------
    former : the folder as it was seen, None if it was not.
    status : what the server said of it before.
    """
    if former is None or not status.modseq:
        validity, numbers = server.open(name)
    else:
        validity, numbers = server.reopen(name, former, status.modseq)
    is_same = former is not None and former.validity == validity
    found = dict(former.messages) if former is not None and is_same else {}
    new = [number for number in numbers if number not in found]
    there = {*numbers}
    kept = {number: identity for number, identity in found.items() if number in there}
    return Folder(validity, kept | server.identities(new))


def _watched(server: Server, known: Known, never: set[str]) -> list[str]:
    """Return the names of the inbox and of the folders that are classes."""
    names = [each.name for each in server.folders() if each.can_hold_messages]
    left_out = _never(server, known, names, never)
    return [name for name in names if is_inbox(name) or name not in left_out]


def _never(server: Server, known: Known, names: list[str], never: set[str]) -> set[str]:
    """Return the folders that are never touched, those included that have been renamed."""
    kept = known.model.kept(NEVER)
    found = {name.removeprefix(NEVER): value for name, value in kept.items() if value[1] in never}
    before = dict(found)
    for name in names:
        if name in found or name in known.mailbox:
            continue
        validity = _validity_of(server, name)
        origin = name if name in never else _origin(server, names, validity, before)
        if validity is not None and origin is not None:
            found[name] = [validity, origin]
            known.model.keep(NEVER + name, found[name])
    return never | {*found}


def _origin(
    server: Server, names: list[str], validity: int | None, before: Mapping[str, list[Any]]
) -> str | None:
    """Return which folder that is never touched a new one has been; None if none.

    It has the UIDVALIDITY of that, which is gone or has been made anew.
    """
    for name, (former, origin) in before.items():
        if former == validity and (name not in names or _validity_of(server, name) != former):
            return str(origin)
    return None


def _validity_of(server: Server, name: str) -> int | None:
    try:
        return server.status(name).validity
    except RefusedError:
        return None


def gone_classes(known: Known, after: Mailbox, names: dict[str, str]) -> list[str]:
    """Return the classes whose folders are gone, and have not been renamed."""
    return [name for name in known.classes if name not in after and name not in names]

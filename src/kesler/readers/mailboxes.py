"""Mailboxes: where each message of a Maildir, a tree of folders or an mbox stands, by date."""

from __future__ import annotations

import calendar
import os
import re
from collections.abc import Iterator
from email.utils import parsedate_tz
from itertools import pairwise, takewhile
from pathlib import Path
from typing import BinaryIO, NamedTuple, NoReturn

from kesler.errors import KeslerError
from kesler.readers.faults import readable

INBOX = "INBOX"
MAILDIR = {"cur", "new"}
MBOX_SUFFIXES = {".mbox", ".mbx"}
SEPARATOR = b"From "
HEADER = re.compile(rb"[!-9;-~]+:")
DATE = re.compile(rb"^date:(.*(?:\n[ \t].*)*)", re.IGNORECASE | re.MULTILINE)


class Mailbox(NamedTuple):
    """A file of messages: an mbox, or a file that is one message.

    Parameters
    ----------
    path : Path
        The file.
    folder : str
        The folder that its messages are filed in.
    is_mbox : bool
        Whether it can hold more than one.
    """

    path: Path
    folder: str
    is_mbox: bool


class Place(NamedTuple):
    """Where a message stands; places sort by date, then by path and offset.

    Parameters
    ----------
    timestamp : int
        When it was sent, in seconds since 1970 (UTC).
    path : str
        The file that holds it.
    offset, length : int
        The bytes of the file that are its own.
    folder : str
        The folder it is filed in.
    """

    timestamp: int
    path: str
    offset: int
    length: int
    folder: str

    def __str__(self) -> str:
        return f"{self.path} at byte {self.offset}" if self.offset else self.path


def index(root: str) -> list[Place]:
    """Find the messages under a path, in the order of their dates.

    Parameters
    ----------
    root : str
        A directory, or an mbox file.

    Raises
    ------
    KeslerError
        If a directory or a file can't be read, or a file given as root is no mbox.
    """
    with readable(root, "mail", OSError):
        return sorted(place for mailbox in _mailboxes(Path(root)) for place in _places(mailbox))


def _mailboxes(root: Path) -> Iterator[Mailbox]:
    if root.is_file():
        if not _is_mbox(root):
            raise KeslerError(f"{root} is no mbox file: those begin with 'From '; check it")
        yield _mailbox(root, root.parent)
        return
    for path, subdirectories, files in os.walk(root, onerror=_refuse):
        directory = Path(path)
        if set(subdirectories) >= MAILDIR:
            subdirectories[:] = set(subdirectories) - MAILDIR - {"tmp"}
            yield from _maildir(directory, _folder(directory.relative_to(root)))
        elif directory != root and directory.name.startswith("."):
            subdirectories.clear()
        else:
            paths = (directory / name for name in files if not name.startswith("."))
            yield from (_mailbox(path, root) for path in paths if path.is_file())


def _maildir(directory: Path, folder: str) -> Iterator[Mailbox]:
    for part in MAILDIR:
        for path in (directory / part).iterdir():
            yield Mailbox(path, folder, is_mbox=False)


def _mailbox(path: Path, root: Path) -> Mailbox:
    relative = path.relative_to(root)
    if not _is_mbox(path):
        return Mailbox(path, _folder(relative.parent), is_mbox=False)
    named = relative.with_suffix("") if relative.suffix in MBOX_SUFFIXES else relative
    return Mailbox(path, _folder(named), is_mbox=True)


def _is_mbox(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(len(SEPARATOR)) == SEPARATOR


def _folder(relative: Path) -> str:
    """Name the folder at a path; Maildirs write the folder Work/Old as a directory .Work.Old."""
    parts = [
        part[1:].replace(".", "/") if part.startswith(".") else part for part in relative.parts
    ]
    # A name that isn't UTF-8 comes from the system in halves of characters, which none can print.
    return os.fsencode("/".join(parts)).decode(errors="replace") or INBOX


def _places(mailbox: Mailbox) -> Iterator[Place]:
    path, folder, is_mbox = mailbox
    with path.open("rb") as file:
        status = os.fstat(file.fileno())
        starts = _starts(file) if is_mbox else [0]
        timestamp, name = int(status.st_mtime), str(path)
        for start, end in pairwise([*starts, status.st_size]):
            file.seek(start)
            header = list(takewhile(bytes.strip, file))
            timestamp = _timestamp(b"".join(header), undated=timestamp)
            yield Place(timestamp, name, start, end - start, folder)


def _starts(mbox: BinaryIO) -> Iterator[int]:
    """Where the messages of an mbox begin: at a From line after an empty line, before a header.

    Not every program escapes the lines of a text that begin with From; few such lines pass for
    this.
    """
    yield 0
    candidate, after_empty, offset = -1, False, 0
    for line in mbox:
        if candidate >= 0 and HEADER.match(line):
            yield candidate
        candidate = offset if after_empty and line.startswith(SEPARATOR) else -1
        after_empty = not line.strip()
        offset += len(line)


def _timestamp(header: bytes, *, undated: int) -> int:
    date = DATE.search(header)
    parsed = parsedate_tz(date[1].decode("latin-1")) if date else None
    if parsed is None:
        return undated
    try:
        return calendar.timegm(parsed[:6]) - (parsed[9] or 0)
    except (ValueError, OverflowError):
        return undated


def _refuse(error: OSError) -> NoReturn:
    raise error

"""The index of mail: where each message is, in the order of the dates."""

from __future__ import annotations

import calendar
import os
import re
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from email.utils import parsedate_tz
from itertools import pairwise
from mmap import ACCESS_READ, mmap
from pathlib import Path
from tempfile import TemporaryFile
from typing import BinaryIO, NamedTuple

from kesler.errors import ReadingWarning, warn
from kesler.readers.encodings import wide_encoding
from kesler.readers.mail.charsets import in_utf8
from kesler.readers.mail.folders import Mailbox, mailboxes
from kesler.readers.mail.labels import common_in, labels_of, system_of
from kesler.readers.mail.mbox import END_OF_HEADERS, begins_mbox, holds_mail, starts
from kesler.readers.mail.outlook import ARCHIVES, OF_MESSAGE, as_sent
from kesler.readers.reader import BadRow, readable

SMALL = 1 << 16  # bytes; larger files are mapped to memory, which takes longer than reading these
DATE = re.compile(rb"^date:(.*(?:\n[ \t].*)*)", re.IGNORECASE | re.MULTILINE)
DELETED = re.compile(
    rb"^x-mozilla-status:[ \t]*[\da-f]{3}[89a-f]|^x-status:[ \t]*[A-Z]*D", re.I | re.M
)
"""What Thunderbird (its flag 8) and mail servers write to a message that they will remove."""
LENGTH = re.compile(rb"[ \t]*(\d{1,12})[ \t]*\r?\n")
"""The first line of a message of Apple Mail (.emlx): its length, as properties follow it."""
NOTHING = re.compile(rb"From [^\n]*\s*")
MOST_NAMED = 5
"""Files that a warning names."""


class Place(NamedTuple):
    """The location of a message; places sort by date, then by path and offset.

    Parameters
    ----------
    timestamp : int
        When the message was sent, in seconds since 1970 (UTC).
    path : str
        The file that contains it.
    offset, length : int
        Its position and length in the file, in bytes.
    folder : str or None
        The folder of the message, if it is known.
    labels : tuple of str or None
        The labels that the user has given it in Gmail, None if it is not of Gmail.
    of_system : tuple of str
        Its other labels in Gmail.
    is_deleted : bool
        Whether it is marked as deleted: often the copy of one that was moved elsewhere.
    """

    timestamp: int
    path: str
    offset: int
    length: int
    folder: str | None
    labels: tuple[str, ...] | None
    of_system: tuple[str, ...] = ()
    is_deleted: bool = False

    @property
    def label(self) -> str | None:
        """The class of the message: the first of the user's labels in Gmail, or its folder."""
        return self.folder if self.labels is None else next(iter(self.labels), None)

    @property
    def label_set(self) -> list[str] | None:
        """The classes of the message: all of the user's labels in Gmail, or its folder."""
        if self.labels is None:
            return None if self.folder is None else [self.folder]
        return [*self.labels]

    def __str__(self) -> str:
        return f"{self.path} at byte {self.offset}" if self.offset else self.path

    def message(self) -> bytes:
        """Return the bytes of the message; raise BadRow if its file cannot be read."""
        try:
            with open(self.path, "rb") as file:
                file.seek(self.offset)
                content = file.read(self.length)
        except OSError as error:
            raise BadRow(f"it can't be opened ({error.strerror})") from None
        return as_sent(content) if content.startswith(OF_MESSAGE) else content


def index(root: str) -> list[Place]:
    """Find the messages under a path, in the order of their dates.

    Parameters
    ----------
    root : str
        A directory, an mbox file, or a file that is one message.

    Raises
    ------
    KeslerError
        If a directory or a file cannot be read.
    """
    with readable(root, "mail", OSError):
        left_out = list[Path]()
        boxes = mailboxes(Path(root), left_out)
        places = [*_filed([(mailbox, _places(mailbox, left_out)) for mailbox in boxes])]
    if left_out:
        _report(Path(root), left_out)
    return sorted(_with_parted_labels(places), key=lambda place: place[:4])


def _report(root: Path, left_out: list[Path]) -> None:
    """Warn of what is no mail."""
    named = sorted(str(path.relative_to(root)) for path in left_out)
    n_more = len(named) - MOST_NAMED
    more = f" and {n_more} more" if n_more > 0 else ""
    warn(
        f"{root}: what is no mail is left out ({len(named)}): "
        f"{', '.join(named[:MOST_NAMED])}{more}",
        ReadingWarning,
    )


def _filed(found: list[tuple[Mailbox, list[Place]]]) -> Iterator[Place]:
    """Yield the messages of mailboxes, those of files for each message in the directory's folder.

    Such files can begin with a From line, as those of procmail, and look like an mbox.
    """
    of_many = {mailbox.path.parent for mailbox, places in found if len(places) > 1}
    for mailbox, places in found:
        is_mbox = len(places) == 1 and places[0].folder != mailbox.folder
        if is_mbox and mailbox.is_of_one and mailbox.path.parent not in of_many:
            yield places[0]._replace(folder=mailbox.folder)
        else:
            yield from places


def _with_parted_labels(places: list[Place]) -> list[Place]:
    """Return places whose labels are the user's, common ones last, and the system's."""
    if all(place.labels is None for place in places):
        return places
    labels = [place.labels or () for place in places]
    system = system_of(labels)
    own = [tuple(label for label in each if not system.fullmatch(label)) for each in labels]
    common = common_in(own)

    def parted(place: Place, own: tuple[str, ...]) -> Place:
        others = tuple(label for label in place.labels or () if label not in own)
        by_use = tuple(sorted(own, key=lambda label: label in common))
        return place if place.labels is None else place._replace(labels=by_use, of_system=others)

    return [*map(parted, places, own)]


def _places(mailbox: Mailbox, left_out: list[Path]) -> list[Place]:
    """Return the messages of a file; what holds none is left out."""
    path = mailbox.path
    with path.open("rb") as file:
        status = os.fstat(file.fileno())
        with _content(file, status.st_size) as content:
            if not len(content):
                left_out += [] if mailbox.folder is None or mailbox.is_of_folder else [path]
                return []
            if not (mailbox.is_named or _is_of_outlook(content) or holds_mail(content)):
                left_out.append(path)
                return []
            return [*_places_in(mailbox, content, int(status.st_mtime))]


def _is_of_outlook(content: bytes | mmap) -> bool:
    return content[: len(OF_MESSAGE)].startswith((OF_MESSAGE, *ARCHIVES))


def _places_in(mailbox: Mailbox, content: bytes | mmap, timestamp: int) -> Iterator[Place]:
    is_mbox = mailbox.base is not None and begins_mbox(content)
    name, folder = str(mailbox.path), mailbox.own if is_mbox else mailbox.folder
    spans = pairwise([*starts(content), len(content)]) if is_mbox else [_span(mailbox, content)]
    for start, end in spans:
        if is_mbox and NOTHING.fullmatch(content, start, end):
            continue  # a From line alone
        header = _header(content, start, end)
        timestamp = timestamp_of(header, undated=timestamp)
        deleted = _is_deleted(mailbox.path.name, header)
        found = labels_of(header)
        yield Place(timestamp, name, start, end - start, folder, found, (), deleted)


def _is_deleted(name: str, header: bytes) -> bool:
    """Return whether a message is marked as deleted, in a Maildir and by MH in its name."""
    if "T" in name.partition(":2,")[2] or name.startswith(","):
        return True
    return b"-Status:" in header and DELETED.search(header) is not None


@contextmanager
def _content(file: BinaryIO, n_bytes: int) -> Iterator[bytes | mmap]:
    """Provide the bytes of a file, in which returns that end all lines are line feeds."""
    if n_bytes <= SMALL:
        content = file.read()
        yield content.replace(b"\r", b"\n") if _has_returns(content) else content
        return
    with closing(mmap(file.fileno(), 0, access=ACCESS_READ)) as mapped:
        if not _has_returns(mapped[:SMALL]):
            yield mapped
            return
    with TemporaryFile() as copy:
        while block := file.read(SMALL):
            copy.write(block.replace(b"\r", b"\n"))
        copy.flush()
        with closing(mmap(copy.fileno(), 0, access=ACCESS_READ)) as mapped:
            yield mapped


def _has_returns(head: bytes) -> bool:
    return b"\n" not in head and b"\r" in head


def _span(mailbox: Mailbox, content: bytes | mmap) -> tuple[int, int]:
    """Return where the only message of a file begins and ends."""
    counted = LENGTH.match(content) if mailbox.path.name.endswith(".emlx") else None
    start = counted.end() if counted else 0
    end = start + int(counted[1]) if counted else len(content)
    return start, min(end, len(content))


def _header(content: bytes | mmap, start: int, end: int) -> bytes:
    if content[start : start + len(OF_MESSAGE)] == OF_MESSAGE:
        with suppress(BadRow):  # raised again when the message is read
            content = as_sent(content[start:end])
            start, end = 0, len(content)
    if wide_encoding(content[start : start + 4]):
        content = in_utf8(content[start:end])
        start, end = 0, len(content)
    headers = END_OF_HEADERS.search(content, start, end)
    return content[start : headers.end() if headers else end]


def timestamp_of(header: bytes, *, undated: int) -> int:
    """Return the date in a header in seconds since 1970, `undated` if it has none."""
    date = DATE.search(header)
    parsed = parsedate_tz(date[1].decode("latin-1")) if date else None
    if parsed is None:
        return undated
    try:
        return calendar.timegm(parsed[:6]) - (parsed[9] or 0)
    except (ValueError, OverflowError):
        return undated

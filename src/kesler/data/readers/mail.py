"""Mail: messages in the order of their dates, the folder that one is filed in being its class.

Mail is read in two passes: an index of where each message stands and when it was sent, then the
messages themselves, one by one, in the order of the index.
"""

from __future__ import annotations

import calendar
import email
import os
import re
from collections.abc import Callable, Iterator
from email.errors import HeaderParseError
from email.header import decode_header
from email.message import Message
from email.utils import parsedate_tz
from html.parser import HTMLParser
from itertools import pairwise, takewhile
from pathlib import Path
from typing import BinaryIO, NamedTuple, NoReturn

from kesler.data.inputs import presence
from kesler.data.readers.features import Names
from kesler.data.readers.reader import BadRow, Example, Reader, readable
from kesler.errors import KeslerError

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


# What mail programs write when they file a message: these headers give its folder away. (A news
# article's group is its folder.)
FILING_HEADERS = re.compile(
    r"x-folder|folder|x-original-folder|x-gmail-labels|x-gm-labels|x-labels?|x-keywords|keywords"
    r"|x-mozilla-.*|x-imap.*|x-uid|x-status|status|x-evolution.*|newsgroups|xref",
    re.IGNORECASE,
)


def message_tokens(message: bytes) -> dict[str, float]:
    r"""Return the binary features of a message: the tokens of its headers and its text.

    The text is that of the parts text/plain and text/html, of the latter without its tags; of an
    attachment, only the name counts. FILING_HEADERS are left out.

    Parameters
    ----------
    message : bytes
        As it stands in its file; broken headers and unknown charsets are read as well as can be.

    Raises
    ------
    BadRow
        If there is not one header.

    Examples
    --------
    >>> list(message_tokens(b"Subject: Lunch?\nX-Folder: Friends\n\nAt *one*"))
    ['lunch', 'at', 'one']
    """
    try:
        parsed = email.message_from_bytes(message)
        texts = [*_header_texts(parsed), *_body_texts(parsed)]
    except RecursionError:
        raise BadRow("its parts are nested too deeply") from None
    if not parsed.keys():
        raise BadRow("it begins with no header, so it is no message")
    return presence(texts)


def _header_texts(message: Message) -> Iterator[str]:
    for name, value in message.items():
        if not FILING_HEADERS.fullmatch(name):
            yield _decoded_words(str(value))


def _body_texts(message: Message) -> Iterator[str]:
    for part in message.walk():
        yield _decoded_words(_parameter(part.get_filename) or "")
        read = TEXT_PARTS.get(part.get_content_type())
        payload = part.get_payload(decode=True)
        if read and isinstance(payload, bytes) and part.get_content_disposition() != "attachment":
            yield read(_decoded(payload, _parameter(part.get_content_charset)))


def _parameter(read: Callable[[], str | None]) -> str | None:
    try:
        return read()
    except Exception:
        # Over broken parameters the email package stumbles in ways that it doesn't promise.
        return None


def _decoded_words(value: str) -> str:
    """Return a header with its encoded words (RFC 2047) decoded."""
    try:
        pieces = decode_header(value)
    except (ValueError, HeaderParseError):
        return value
    return "".join(
        piece if isinstance(piece, str) else _decoded(piece, charset) for piece, charset in pieces
    )


def _decoded(text: bytes, charset: str | None) -> str:
    try:
        return text.decode(charset or "utf-8", errors="replace")
    except (LookupError, ValueError):
        # The charset is unknown or no charset at all; ASCII is what tokens are made of.
        return text.decode("ascii", errors="replace")


class _HtmlText(HTMLParser):
    """Gathers what stands between the tags, scripts and style sheets apart."""

    def __init__(self) -> None:
        super().__init__()
        self.texts = list[str]()
        self._hidden = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._hidden = tag in ("script", "style")

    def handle_endtag(self, tag: str) -> None:
        self._hidden = False

    def handle_data(self, data: str) -> None:
        if not self._hidden:
            self.texts.append(data)


def _without_tags(html: str) -> str:
    parser = _HtmlText()
    try:
        parser.feed(html)
        parser.close()
    except AssertionError:
        # Some Pythons give up at a malformed declaration: what stands before it counts.
        pass
    return " ".join(parser.texts)


TEXT_PARTS: dict[str, Callable[[str], str]] = {"text/plain": str, "text/html": _without_tags}


def mail_reader(path: str, names: Names) -> Reader:
    """Read mail (Maildir, tree or mbox) in the order of its dates; the class is the folder.

    A Maildir's own messages are in the folder ``INBOX``, those of its ``.Work.Old`` in
    ``Work/Old``. Elsewhere a file is one message, filed in its directory (``INBOX`` at the root),
    unless it begins with ``From`` and a space: then it is an mbox, whose own path, without
    ``.mbox`` or ``.mbx``, is the folder. Hidden files and directories are passed over.

    Dates are taken to UTC. Messages of the same second stand in the order of their paths, then of
    their places in the file. A message without a readable date takes that of the message before it
    in its mbox; the first of a file, the time at which the file was last changed.
    """

    def parse(place: Place) -> Example:
        return Example(place.folder, message_tokens(_message(place)))

    rows = ((str(place), place) for place in index(path))
    return Reader("message", rows, parse, names.gather, names.vocabulary)


def begins_mbox(line: str) -> bool:
    """Whether a first line is that of an mbox: it begins with ``From`` and a space."""
    return line.startswith("From ")


def _message(place: Place) -> bytes:
    try:
        with open(place.path, "rb") as file:
            file.seek(place.offset)
            return file.read(place.length)
    except OSError as error:
        raise BadRow(f"it can't be opened ({error.strerror})") from None

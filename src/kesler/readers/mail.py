"""Mail: messages in the order of their dates; the class of a message is its folder.

Mail is read in two passes: the first builds an index of the locations and dates of messages, the
second reads the messages one by one in the order of the index.
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

from kesler.data.texts import presence
from kesler.errors import KeslerError
from kesler.readers.features import Names
from kesler.readers.reader import BadRow, Example, Reader, readable

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
        The folder of its messages.
    is_mbox : bool
        Whether it can hold more than one message.
    """

    path: Path
    folder: str
    is_mbox: bool


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
    folder : str
        The folder of the message.
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
        If a directory or a file cannot be read, or `root` is a file but not an mbox.
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
    """Return the folder at a path; a Maildir stores the folder Work/Old in .Work.Old."""
    parts = [
        part[1:].replace(".", "/") if part.startswith(".") else part for part in relative.parts
    ]
    # Python decodes a name that is not UTF-8 to lone surrogates, which cannot be printed.
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
    """Yield where messages of an mbox begin: at a From line between an empty line and a header.

    Not every program escapes the lines of a text that begin with From; few of these are mistaken
    for the beginning of a message.
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


# Headers that mail programs write when they file a message, which reveal its folder. (The folder
# of a news article is its group.)
FILING_HEADERS = re.compile(
    r"x-folder|folder|x-original-folder|x-gmail-labels|x-gm-labels|x-labels?|x-keywords|keywords"
    r"|x-mozilla-.*|x-imap.*|x-uid|x-status|status|x-evolution.*|newsgroups|xref",
    re.IGNORECASE,
)


def message_tokens(message: bytes) -> dict[str, float]:
    r"""Return the binary features of a message: the tokens of its headers and its text.

    The text is that of the parts text/plain and text/html, without HTML tags; only the names of
    attachments are used. FILING_HEADERS are omitted.

    Parameters
    ----------
    message : bytes
        The bytes in the file; broken headers and unknown charsets are read as far as possible.

    Raises
    ------
    BadRow
        If there is no header, or parts are nested too deeply.

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
        # For broken parameters, the email package raises undocumented errors.
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
        # The charset is unknown or invalid; the ASCII characters are enough for most tokens.
        return text.decode("ascii", errors="replace")


class _HtmlText(HTMLParser):
    """Collects the text between the tags, except scripts and style sheets."""

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
        # Some versions of Python stop at a malformed declaration; the text before it is used.
        pass
    return " ".join(parser.texts)


TEXT_PARTS: dict[str, Callable[[str], str]] = {"text/plain": str, "text/html": _without_tags}


def mail_reader(path: str, names: Names) -> Reader:
    """Read mail (Maildir, tree or mbox) in the order of its dates; the class is the folder.

    The folder of a Maildir's own messages is ``INBOX``, that of messages in ``.Work.Old`` is
    ``Work/Old``. Elsewhere a file is one message, whose folder is its directory (``INBOX`` at the
    root). But a file that begins with ``From`` and a space is an mbox, whose folder is its path
    without ``.mbox`` or ``.mbx``. Hidden files and directories are ignored.

    Dates are converted to UTC. Messages of the same second are ordered by path, then by position in
    the file. A message without a readable date has the date of the preceding message in its mbox;
    the first message of a file has the modification time of the file.
    """

    def parse(place: Place) -> Example:
        return Example(place.folder, message_tokens(_message(place)))

    rows = ((str(place), place) for place in index(path))
    return Reader("message", rows, parse, names.gather, names.vocabulary)


def begins_mbox(line: str) -> bool:
    """Return whether a first line is that of an mbox: it begins with ``From`` and a space."""
    return line.startswith("From ")


def _message(place: Place) -> bytes:
    try:
        with open(place.path, "rb") as file:
            file.seek(place.offset)
            return file.read(place.length)
    except OSError as error:
        raise BadRow(f"it can't be opened ({error.strerror})") from None

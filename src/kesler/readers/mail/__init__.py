"""Mail: messages in the order of their dates; the class of a message is its folder.

Mail is read in two passes: the first builds an index of the locations and dates of messages, the
second reads the messages one by one in the order of the index.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from kesler.readers.features import Names
from kesler.readers.lines import COMPRESSED, Lines
from kesler.readers.mail.index import Place, index
from kesler.readers.mail.message import message_tokens
from kesler.readers.reader import Example, Reader

__all__ = ["begins_mail", "mail_reader", "message_tokens"]

FIRST_LINE = re.compile(
    r"From |(?:Return-Path|Received|Delivered-To|From|To|Subject|Date|Message-ID|MIME-Version|"
    r"DKIM-Signature|X-[\w-]+): ",
    re.IGNORECASE,
)


def mail_reader(path: str, lines: Lines, names: Names) -> Reader:
    """Read mail (Maildir, tree, mbox, message) in the order of its dates; the class is the folder.

    The folder of a Maildir's own messages is ``INBOX``, that of messages in ``.Work.Old`` is
    ``Work/Old``. Elsewhere a file is one message, whose folder is its directory (``INBOX`` at the
    root). But a file that begins with ``From`` and a space is an mbox, whose folder is its path
    without ``.mbox`` or ``.mbx``. So are the folders of Thunderbird and Apple Mail. Hidden files
    and directories, and the indexes of these programs, are ignored.

    Dates are converted to UTC. Messages of the same second are ordered by path, then by position in
    the file. A message without a readable date has the date of the preceding message in its mbox;
    the first message of a file has the modification time of the file.
    """

    def parse(place: Place) -> Example:
        return Example(place.folder, message_tokens(place.message()))

    is_copied = lines.is_piped or Path(path).suffix.lower() in COMPRESSED
    rows = _copied(path, lines) if is_copied else ((str(each), each) for each in index(path))
    return Reader("message", rows, parse, names.gather, names.vocabulary)


def _copied(path: str, lines: Lines) -> Iterator[tuple[str, Place]]:
    """Copy what can be read only once to a file, as mail is read twice, and yield its messages."""
    with TemporaryDirectory() as directory:
        copy = Path(directory, Path(path).stem)
        with copy.open("wb") as file:
            file.writelines(line for _, line in lines)
        for place in index(str(copy)):
            named = place._replace(folder=None) if lines.is_piped else place
            yield f"at byte {place.offset}", named


def begins_mail(line: str) -> bool:
    """Return whether a first line is one of mail: a From line of an mbox, or a usual header.

    Examples
    --------
    >>> begins_mail("From ann Mon Jan  1 10:00:00 2024"), begins_mail("Subject: lunch")
    (True, True)
    """
    return FIRST_LINE.match(line) is not None

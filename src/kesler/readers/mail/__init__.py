"""Mail: messages in the order of their dates; the class of a message is its folder.

Mail is read in two passes: the first builds an index of the locations and dates of messages, the
second reads the messages one by one in the order of the index.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from kesler.errors import KeslerError, ReadingWarning, warn
from kesler.readers.compression import is_compressed, source_name
from kesler.readers.features import Names
from kesler.readers.lines import Lines
from kesler.readers.reader import Example, Reader

if TYPE_CHECKING:
    from kesler.readers.mail.index import Place

__all__ = ["begins_mail", "mail_reader", "without_deleted"]

LOGGER = logging.getLogger("kesler")

FIRST_LINE = re.compile(
    r"From |(?:Return-Path|Received(?:-SPF)?|Delivered-To|From|To|Cc|Bcc|Reply-To|Sender|Subject|"
    r"Date|Message-ID|In-Reply-To|References|MIME-Version|Content-(?:Type|Transfer-Encoding)|"
    r"(?:DKIM|ARC|Authentication|List|Resent|Thread|X)-[\w-]+): ",
    re.IGNORECASE,
)


def mail_reader(
    path: str, lines: Lines, names: Names, require_labels: bool, label_sets: bool, id: str | None
) -> Reader:
    """Read mail (Maildir, tree, mbox, message) in the order of its dates; the class is the folder.

    The folder of a Maildir's own messages is ``INBOX``, that of messages in ``.Work.Old`` is
    ``Work/Old``. Elsewhere a file is one message, whose folder is its directory (``INBOX`` at the
    root). But a file that begins with ``From`` and a space is an mbox, whose folder is its path
    without ``.mbox`` or ``.mbx``. So are the folders of Thunderbird and Apple Mail. Hidden files
    and directories, and the indexes of these programs, are ignored. The class of a message with
    labels of Gmail is the first that is not the system's; with ``label_sets``, all of them are.
    What identifies a message is the header of the name ``id``.

    Messages that are marked as deleted are left out where classes are required.

    Dates are converted to UTC. Messages of the same second are ordered by path, then by position in
    the file. A message without a readable date has the date of the preceding message in its mbox;
    the first message of a file has the modification time of the file.
    """
    # Imported here, since all formats are known wherever one is read.
    from kesler.readers.mail.index import index
    from kesler.readers.mail.message import header_of, message_tokens

    def parse(place: Place) -> Example:
        label = place.label_set if label_sets else place.label
        message = place.message()
        found = None if id is None else header_of(message, id)
        return Example(label, message_tokens(message), id=found)

    is_copied = lines.is_piped or is_compressed(path)
    found = (
        _copied(path, lines, require_labels, label_sets)
        if is_copied
        else [
            (str(each), each) for each in _labelled(index(path), path, require_labels, label_sets)
        ]
    )
    return Reader("message", found, parse, names.gather_words, names.vocabulary)


def _copied(
    path: str, lines: Lines, require_labels: bool, label_sets: bool
) -> Iterator[tuple[str, Place]]:
    """Copy what can be read only once to a file, as mail is read twice, and yield its messages."""
    from kesler.readers.mail.index import index

    with TemporaryDirectory() as directory:
        copy = Path(directory, Path(path).stem)
        with copy.open("wb") as file:
            file.writelines(lines.as_they_are())
        found = index(str(copy))
        if lines.is_piped:
            found = [place._replace(folder=None) for place in found]
        for place in _labelled(found, source_name(path), require_labels, label_sets):
            yield f"at byte {place.offset}", place


def _labelled(
    places: list[Place], source: str, require_labels: bool, label_sets: bool
) -> list[Place]:
    """Return the messages to read: to learn, neither deleted ones nor those without a class."""
    if require_labels:
        places = without_deleted(places, source)
        _require_folders(places, source)
    from kesler.readers.mail.labels import how_labelled

    said = how_labelled(places, require_labels, label_sets)
    if not said:
        return places
    LOGGER.warning("%s: %s", source, said)
    if label_sets or not require_labels:
        return places
    return [place for place in places if place.labels is None or place.label is not None]


def _require_folders(places: list[Place], source: str) -> None:
    if places and all(place.folder is None and place.labels is None for place in places):
        raise KeslerError(
            f"{source}: there is no label, as a message by itself is in no folder, whose name is "
            "its class: put it into a directory of that name, such as mail/bills, and give the "
            "directory above, such as mail"
        )


def without_deleted(places: list[Place], source: str) -> list[Place]:
    """Return the messages that are not marked as deleted; warn of the others."""
    kept = [place for place in places if not place.is_deleted]
    if len(kept) < len(places):
        warn(
            f"{source}: {len(places) - len(kept)} of {len(places)} messages are left out, as they "
            "are marked as deleted: most were moved to another folder",
            ReadingWarning,
        )
    return kept


def begins_mail(line: str) -> bool:
    """Return whether a first line is one of mail: a From line of an mbox, or a usual header.

    Examples
    --------
    >>> begins_mail("From ann Mon Jan  1 10:00:00 2024"), begins_mail("Subject: lunch")
    (True, True)
    """
    return FIRST_LINE.match(line) is not None

"""Mail: messages in the order of their dates, the folder that one is filed in being its class.

Mail is read in two passes: an index of where each message stands and when it was sent, then the
messages themselves, one by one, in the order of the index.
"""

from __future__ import annotations

from kesler.readers.faults import BadRow
from kesler.readers.features import Names
from kesler.readers.mailboxes import Place, index
from kesler.readers.messages import message_tokens
from kesler.readers.reader import Example, Reader


def mail_reader(root: str, names: Names) -> Reader:
    """Read messages in the order of their Date headers, taken to UTC; the class is the folder.

    A Maildir's own messages are in the folder ``INBOX``, those of its ``.Work.Old`` in
    ``Work/Old``. Elsewhere a file is one message, filed in its directory (``INBOX`` at the root),
    unless it begins with ``From`` and a space: then it is an mbox, whose own path, without
    ``.mbox`` or ``.mbx``, is the folder. Hidden files and directories are passed over.

    Messages of the same second stand in the order of their paths, then of their places in the
    file. A message without a readable date takes that of the message before it in its mbox; the
    first of a file, the time at which the file was last changed.
    """

    def parse(place: Place) -> Example:
        return Example(place.folder, message_tokens(_message(place)))

    rows = ((str(place), place) for place in index(root))
    return Reader("message", rows, parse, names.gather, names.vocabulary)


def _message(place: Place) -> bytes:
    try:
        with open(place.path, "rb") as file:
            file.seek(place.offset)
            return file.read(place.length)
    except OSError as error:
        raise BadRow(f"it can't be opened ({error.strerror})") from None

"""Labels of Gmail, which an export by Google Takeout has in a header of each message."""

from __future__ import annotations

import csv
import logging
import re
from collections import Counter
from collections.abc import Sequence

from kesler.readers.mail.charsets import text_of
from kesler.readers.mail.message import decoded_words

LABELS = re.compile(rb"^x-gmail-labels:(.*(?:\n[ \t].*)*)", re.IGNORECASE | re.MULTILINE)
OF_SYSTEM = re.compile(
    r"Inbox|Opened|Unread|Sent|Starred|Important|Archived|Drafts?|Trash|Chat|Muted|Category .*",
    re.IGNORECASE,
)
"""Labels that Gmail gives by itself, which say where a message is and not what it is about."""
LOGGER = logging.getLogger("kesler")


def labels_of(header: bytes) -> tuple[str, ...] | None:
    r"""Return the labels in the headers of a message, None if it is not of Gmail.

    Examples
    --------
    >>> labels_of(b'X-Gmail-Labels: Inbox,"Bills, paid",=?UTF-8?Q?Entw=C3=BCrfe?=\n')
    ('Inbox', 'Bills, paid', 'Entwürfe')
    """
    found = LABELS.search(header)
    if found is None:
        return None
    line = " ".join(decoded_words(text_of(found[1], None)).split())
    return tuple(filter(None, map(str.strip, next(csv.reader([line], skipinitialspace=True), []))))


def of_user(labels: Sequence[str]) -> list[str]:
    """Return the labels that are not those of the system.

    Examples
    --------
    >>> of_user(["Inbox", "Bills", "Unread"])
    ['Bills']
    """
    return [label for label in labels if not OF_SYSTEM.fullmatch(label)]


def report(source: str, found: Sequence[Sequence[str]], are_required: bool) -> None:
    """Log a line that says which labels are no classes, and how many messages that concerns."""
    system = Counter(each for labels in found for each in labels if OF_SYSTEM.fullmatch(each))
    n_own = Counter(len(of_user(labels)) for labels in found)
    line = f"{source}: the class of a message is its Gmail label"
    if system:
        listed = ", ".join(f"{label} ({n})" for label, n in system.most_common())
        line += f"; labels of the system are no classes: {listed}"
    if n_own[0]:
        what = "left out" if are_required else "of no class"
        line += f"; {n_own[0]} messages without another label are {what}"
    n_several = sum(n for number, n in n_own.items() if number > 1)
    if n_several:
        line += f"; {n_several} have several, of which the first is the class"
    LOGGER.warning("%s", line)

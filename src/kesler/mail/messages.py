"""Messages as rows: the words, the people, the thread and the attachments of each."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date
from email.message import Message
from email.parser import BytesHeaderParser
from email.utils import parsedate
from itertools import islice
from pathlib import PurePosixPath
from typing import NamedTuple

from kesler.data.texts import counted
from kesler.mail.threads import (
    LONGEST_KEY,
    LONGEST_VALUE,
    Keys,
    Threads,
    addresses,
    header,
    keys_of,
    list_of,
    plain_subject,
)
from kesler.readers.mail.message import (
    FILING_HEADERS,
    body_texts,
    decoded_words,
    filename_of,
    parsed_message,
)

__all__ = ["Read", "read", "row_of"]

MOST_BYTES = 1 << 18
"""Bytes of a message that are read."""
MOST_HEADERS = 200
MOST_ATTACHMENTS = 100
OF_SUBJECT, FILED = 3.0, 10.0
"""The occurrences that a word of the subject counts as, beside its own, and a folder of `Threads`.

Chosen on the mail of seven Enron users (`benchmarks/mail.py`), where 2 to 5 and 10 to 30 make
nearly the same mistakes."""
NO_WORDS = re.compile(
    r"message-id|in-reply-to|references|date|received.*|return-path|delivered-to|mime-version"
    r"|content-.*|dkim-.*|domainkey-.*|arc-.*|authentication-results|thread-.*|list-.*|feedback-id"
    r"|x-received|x-google-.*|x-gm-.*|x-ms-.*|x-microsoft-.*|x-forefront-.*|x-originat.*|x-spam-.*"
    r"|x-virus-.*|x-originalarrivaltime|x-uidl|x-origin|x-filename|autocrypt|openpgp",
    re.IGNORECASE,
)
"""Headers whose words are of machines on the way: codes that occur once, or, in exports of mail,
the file and the moment of the export, which tell the folder of a message and are not there when it
arrives."""


def row_of(message: bytes | Message, threads: Threads | None = None) -> dict[str, float]:
    r"""Return the features of a message, as a mapping that learners take.

    Features are the words of its text and headers, with how often they occur; and, each with its
    kind before a colon, the words of the subject (``subject:``), the sender (``from:``) and its
    domain (``domain:``), the list that it came by (``list:``), its date (``weekday:``, ``day:``,
    ``month:``, ``year:``), the types and suffixes of attachments (``attachment:``), and the folders
    where `threads` finds its thread (``thread in:``), the last message of the same people
    (``people in:``), that of its sender with the same subject (``series in:``) and that of its
    sender (``sender in:``). HTML is read without its tags, and of attachments only the names.

    Headers in which mail programs file messages, and those of the machines on the way, are left
    out. At most 256 KiB of a message, 10,000 characters of a header, 200 headers and the names of
    100 attachments are read; of a message whose parts are nested too deeply, the headers and the
    source.

    Parameters
    ----------
    message : bytes or email.message.Message
        A message in any state: what is broken is read as far as possible, and nothing is raised.
    threads : Threads, optional
        The folders of the messages so far. The message itself is not learnt.

    Returns
    -------
    dict from str to float
        Positive values; at least one, as a message without any word has the feature ``empty:``.

    Notes
    -----
    A message of 2 kB takes 0.5 ms; the worst of any size that were found take 3 s.

    Examples
    --------
    >>> list(row_of(b"From: ann@a.org\nSubject: Lunch\n\nAt one"))
    ['ann', 'a', 'org', 'lunch', 'at', 'one', 'subject:lunch', 'from:ann@a.org', 'domain:a.org']
    """
    raw = message if isinstance(message, bytes) else bytes(message)
    return read(raw).row(threads)


class Read(NamedTuple):
    """What is read of a message: its features without its threads, and what it is found by."""

    features: dict[str, float]
    keys: Keys

    def row(self, threads: Threads | None = None) -> dict[str, float]:
        """Return the features, with the folders that threads find; see `row_of`."""
        found = {} if threads is None else threads.found(self.keys)
        row = self.features | {f"{what} in:{folder}": FILED for what, folder in found.items()}
        return row or {"empty:": 1.0}


def read(message: bytes) -> Read:
    """Read a message, see `row_of`."""
    parsed, texts = _read(message[:MOST_BYTES])
    row = counted([*_headers(parsed), *texts])
    subject = counted([plain_subject(header(parsed, "subject"))])
    row.update({f"subject:{word}": OF_SUBJECT for word in subject})
    row.update(dict.fromkeys(_facts(parsed), 1.0))
    return Read(row, keys_of(parsed))


def _read(raw: bytes) -> tuple[Message, list[str]]:
    """Return a message and the texts of its parts, or its source if they are nested too deeply."""
    try:
        parsed = parsed_message(raw)
        return parsed, [*body_texts(parsed)]
    except RecursionError:
        parsed = BytesHeaderParser().parsebytes(raw)
        return parsed, [str(parsed.get_payload())]


def _headers(message: Message) -> Iterator[str]:
    """Yield the headers that say something about a message."""
    for name, value in islice(message.items(), MOST_HEADERS):
        if not (FILING_HEADERS.fullmatch(name) or NO_WORDS.fullmatch(name)):
            yield decoded_words(str(value)[:LONGEST_VALUE])


def _facts(message: Message) -> Iterator[str]:
    """Yield what is known of a message beside its words, each with its kind."""
    for sender in addresses(message, "from"):
        yield f"from:{sender[:LONGEST_KEY]}"
        yield f"domain:{sender.rpartition('@')[2][:LONGEST_KEY]}"
    if listed := list_of(message):
        yield f"list:{listed[:LONGEST_KEY]}"
    yield from _day(header(message, "date"))
    yield from islice(_attachments(message), MOST_ATTACHMENTS)


def _day(text: str) -> Iterator[str]:
    """Yield the parts of the day of a date, in the time zone of its sender; none if it is none."""
    if not (parsed := parsedate(text)):
        return
    try:
        day = date(*parsed[:3])
    except (ValueError, OverflowError):
        return
    yield f"weekday:{day.isoweekday()}"
    yield from (f"day:{day.day}", f"month:{day.month}", f"year:{day.year}")


def _attachments(message: Message) -> Iterator[str]:
    """Yield the types of attachments and the suffixes of their names."""
    for part in message.walk():
        name = filename_of(part)
        if name or part.get_content_disposition() == "attachment":
            yield f"attachment:{part.get_content_type()}"[:LONGEST_KEY]
            yield f"attachment:{PurePosixPath(name.lower()).suffix}"[:LONGEST_KEY]

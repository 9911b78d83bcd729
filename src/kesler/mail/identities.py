"""Message-IDs, and the identity of a message: its Message-ID, or else a digest of its headers."""

from __future__ import annotations

import re
from hashlib import sha256

OWN = re.compile(rb"^message-id:[ \t]*(?:\r?\n[ \t]+)?([!-~]{3,190})[ \t]*\r?$", re.I | re.M)
"""The header of the Message-ID, which some programs write without angle brackets."""

LISTED = re.compile(r"<[^<>\s]{1,250}>")
"""A Message-ID among others, which angle brackets tell from the words between them."""


def identity_of(header: bytes) -> str | None:
    r"""Return the Message-ID in a header; None if there is none of 3 to 190 plain characters.

    A longer one would be no id of a journal, in which a number may follow it.

    Examples
    --------
    >>> identity_of(b"Subject: Lunch\r\nMessage-ID: <1@example.org>\r\n")
    '<1@example.org>'
    """
    found = OWN.search(header)
    return None if found is None else found[1].decode("ascii")


def ids_in(text: str) -> list[str]:
    """Return the Message-IDs in a header such as In-Reply-To or References.

    Examples
    --------
    >>> ids_in("message of ann <1@example.org><2@example.org>")
    ['<1@example.org>', '<2@example.org>']
    """
    return LISTED.findall(text)


def digest_of(header: bytes, size: int) -> str:
    """Return the identity of a message without a Message-ID, by its headers and its size."""
    return "sha256:" + sha256(b"%d\n" % size + header).hexdigest()

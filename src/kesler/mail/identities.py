"""The identity of a message: its Message-ID, or else a digest of its headers."""

from __future__ import annotations

import re
from hashlib import sha256

MESSAGE_ID = re.compile(rb"^message-id:[ \t]*(?:\r?\n[ \t]+)?([!-~]{3,200})[ \t]*\r?$", re.I | re.M)


def identity_of(header: bytes) -> str | None:
    r"""Return the Message-ID in a header; None if there is none of 3 to 200 plain characters.

    Examples
    --------
    >>> identity_of(b"Subject: Lunch\r\nMessage-ID: <1@example.org>\r\n")
    '<1@example.org>'
    """
    found = MESSAGE_ID.search(header)
    return None if found is None else found[1].decode("ascii")


def digest_of(header: bytes, size: int) -> str:
    """Return the identity of a message without a Message-ID, by its headers and its size."""
    return "sha256:" + sha256(b"%d\n" % size + header).hexdigest()

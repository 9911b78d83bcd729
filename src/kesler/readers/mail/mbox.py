"""Where the messages of an mbox begin."""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import IntEnum
from mmap import mmap

WEEKDAY = r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*,?[ ]+"
MONTH = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"
TIME = r"\d{1,2}:\d\d(?::\d\d(?:\.\d+)?)?"
ZONE = r"(?:[ ]*(?:[A-Za-z]{1,5}|[+-]\d\d:?\d\d|\([A-Za-z ]+\)))*"
DATE = (
    rf"(?:(?:{WEEKDAY})?{MONTH}[ ]+\d{{1,2}},?[ ]+{TIME}{ZONE}[ ]+\d{{4}}"  # of C's asctime
    rf"|(?:{WEEKDAY})?\d{{1,2}}[ -]{MONTH}[ -]\d{{2,4}}[ ]+{TIME}"  # of the header Date
    rf"|\d{{4}}-\d\d-\d\d[T ]{TIME}){ZONE}"  # of ISO 8601
)
WORD = r"[^\s\d:@]{2,}"
"""A weekday or a month in any language."""
LOOSE_DATE = (
    rf"(?:(?:{WORD}[ ]+){{1,2}}\d{{1,2}},?[ ]+(?:{TIME}{ZONE}[ ]+)?\d{{4}}"
    rf"|(?:{WORD}[ ]+)?\d{{1,2}}\.?[ -]{WORD}[ -]\d{{4}}(?:[ ]+{TIME})?"
    rf"|\d{{1,4}}[./年-][ ]?\d{{1,2}}[./月-][ ]?\d{{1,4}}日?(?:[T, ]+{TIME})?){ZONE}"
)
END = r"(?:[ ]+remote from [^\n]*)?[ \t]*\r?\n"
FROM_LINE = re.compile(rf"From (?:([^\n]*?)[ \t]+)??{DATE}{END}".encode())
"""A From line: a sender, who may be left out or a name of several words, and a date."""
LOOSE_LINE = re.compile(rf"From (?:[^\n]*[ \t])?{LOOSE_DATE}{END}")
LONGEST_LINE = 1 << 10  # bytes of a From line with a date
BLOCK = 1 << 20  # bytes in which line ends are counted at once
HEADER = re.compile(rb"(?:>*From [^\n]*\n)*[!-9;-~]+[ \t]*:")
KNOWN_HEADER = re.compile(
    rb"(?:(?:Return-Path|Received|Delivered-To|Envelope-To|From|Sender|Reply-To|To|Cc|Bcc|Subject"
    rb"|Date|Message-ID|In-Reply-To|References|MIME-Version|Status|Lines|Path|Newsgroups"
    rb"|DKIM-Signature|Authentication-Results|(?:Content|List|Resent|ARC|X)-[\w-]+)[ \t]*:)",
    re.IGNORECASE,
)
KNOWN_AHEAD = re.compile(rb"(?:[^\r\n]{1,2000}\r?\n){1,20}?" + KNOWN_HEADER.pattern, re.IGNORECASE)
"""Lines that are not empty before one that begins with the name of a usual header."""
OF_MESSAGE = re.compile(
    rb"(?:\d{1,12}[ \t]*\r?\n|\xef\xbb\xbf)?\s*(?!BEGIN:)"
    rb"(?:(?:[^\r\n:]{1,200}:|[ \t])[^\r\n]{0,2000}\r?\n){0,20}?" + KNOWN_HEADER.pattern,
    re.IGNORECASE,
)
"""The beginning of a message: lines with a colon, one of which is a usual header."""
BEFORE = re.compile(rb"(?:\xef\xbb\xbf)?\s*")
EMPTY_LINE_BEFORE = (b"\n\n", b"\n\r\n")
END_OF_HEADERS = re.compile(rb"\n\r?\n")
CONTENT_LENGTH = re.compile(rb"\ncontent-length:[ \t]*(\d{1,12})[ \t]*\r?$", re.I | re.M)
EMPTY_LINES = re.compile(rb"(?:[ \t\r]*\n)*")


class Form(IntEnum):
    """How much a From line looks like one, from little to much."""

    UNDATED = 0
    LOOSE = 1
    """Its date is of another language, has no time, or stands behind several words."""
    USUAL = 2


def begins_mbox(content: bytes | mmap) -> bool:
    r"""Return whether a file is an mbox: its first line that is not empty is a From line.

    Examples
    --------
    >>> begins_mbox(b"\nFrom ann Mon Jan  1 10:00:00 2024\nTo: me\n"), begins_mbox(b"From: ann\n")
    (True, False)
    """
    start = _first(content)
    return content[start : start + 5] == b"From "


def holds_mail(content: bytes | mmap) -> bool:
    r"""Return whether a file holds mail, judged by its first lines.

    Examples
    --------
    >>> holds_mail(b"X-To: me\nSubject: lunch\n"), holds_mail(b"From here on: see below\n")
    (True, False)
    """
    start = _first(content)
    if content[start : start + 5] != b"From ":
        return OF_MESSAGE.match(content) is not None
    line = _line(content, start)
    is_before_header = KNOWN_HEADER.match(content, start + len(line)) is not None
    return _form(line) > Form.UNDATED or is_before_header


def starts(content: bytes | mmap) -> Iterator[int]:
    r"""Yield where the messages of an mbox begin: at a From line with a date, before a header.

    Behind a text that nothing escapes, From lines whose date is unusual or missing begin messages
    if the first one is so; others need an empty line before them. Content-Length is followed where
    it leads to a From line or to the end.

    Examples
    --------
    >>> one = b"From ann Mon Jan  1 10:00:00 2024\nTo: me\n\nFrom then on: yes\n"
    >>> list(starts(one + one))
    [0, 60]
    """
    start = _first(content)
    boundaries = _Boundaries(content, start)
    while start >= 0:
        yield start
        start = boundaries.after(start)


def _first(content: bytes | mmap) -> int:
    before = BEFORE.match(content)
    return before.end() if before else 0


def _line(content: bytes | mmap, at: int) -> bytes:
    """Return a From line; of one that is too long the beginning, which has no date."""
    head = content[at : at + LONGEST_LINE]
    return head[: head.find(b"\n") + 1] or head


def _form(line: bytes) -> Form:
    """Return the form of a From line."""
    found = FROM_LINE.match(line)
    if found and b" " not in (found[1] or b""):
        return Form.USUAL
    if found or LOOSE_LINE.match(line.decode("utf-8", "replace")):
        return Form.LOOSE
    return Form.UNDATED


class _Boundaries:
    """Where messages of an mbox begin, judged by its first From line.

    Parameters
    ----------
    content : bytes or mmap
        The mbox.
    first : int
        Where its first message begins.
    """

    def __init__(self, content: bytes | mmap, first: int) -> None:
        self._content = content
        line = _line(content, first)
        self._form, self._sender = _form(line), _sender(line)
        self._counts_feeds: bool | None = None

    def after(self, start: int) -> int:
        """Return where the message after that at `start` begins, -1 if it is the last."""
        after = self._after_counted(start)
        if after is not None:
            return after
        while (start := self._content.find(b"\nFrom ", start) + 1) > 0:
            if self._is_start(start):
                return start
        return -1

    def _is_start(self, at: int) -> bool:
        line = _line(self._content, at)
        form, behind = _form(line), at + len(line)
        is_before_header = HEADER.match(self._content, behind) is not None
        if form is Form.USUAL and is_before_header:
            return True
        has_space = self._content[max(at - 3, 0) : at].endswith(EMPTY_LINE_BEFORE)
        if form < self._form:
            return form is Form.LOOSE and has_space and is_before_header
        if KNOWN_HEADER.match(self._content, behind) or (has_space and is_before_header):
            return True
        if form is Form.UNDATED:
            return False
        is_like_first = has_space and _sender(line) == self._sender
        return is_like_first or KNOWN_AHEAD.match(self._content, behind) is not None

    def _after_counted(self, start: int) -> int | None:
        """Return where the message ends by its Content-Length, -1 at the end, None if unknown."""
        headers = END_OF_HEADERS.search(self._content, start)
        counted = CONTENT_LENGTH.search(self._content, start, headers.end()) if headers else None
        if not headers or not counted:
            return None
        begin, length = headers.end(), int(counted[1])
        after = self._after_end(begin + length)
        has_returns = headers[0] == b"\n\r\n"
        if after is None and has_returns and self._counts_feeds is not False:
            after = self._after_end(self._end_with_returns(begin, length))
            self._counts_feeds = after is not None
        return after

    def _end_with_returns(self, begin: int, length: int) -> int:
        """Return where a text ends whose length was counted before its line ends got returns."""
        end = begin + length
        while begin < end <= len(self._content):
            stop = min(end, begin + BLOCK)
            end += self._content[begin:stop].count(b"\n")
            begin = stop
        return end

    def _after_end(self, end: int) -> int | None:
        """Return where a message begins behind the end of another, -1 if the file ends there."""
        if end > len(self._content):
            return None
        following = EMPTY_LINES.match(self._content, end)
        at = following.end() if following else end
        if at == len(self._content):
            return -1
        line = _line(self._content, at)
        return at if line.startswith(b"From ") and _form(line) >= self._form else None


def _sender(line: bytes) -> bytes:
    """Return what senders of From lines by one program have in common: an @, or all of it."""
    sender = line.split(maxsplit=2)[1:2]
    return b"@" if sender and b"@" in sender[0] else b"".join(sender)

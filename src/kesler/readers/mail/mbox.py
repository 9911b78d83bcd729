"""Where the messages of an mbox begin."""

from __future__ import annotations

import re
from collections.abc import Iterator
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
FROM_LINE = re.compile(
    rf"From (?:([^\n]*?)[ \t]+)??{DATE}(?:[ ]+remote from [^\n]*)?[ \t]*\r?\n".encode()
)
"""A From line: a sender, who may be left out or a name of several words, and a date."""
UNDATED = re.compile(rb"From ([^\n]*)\n")
HEADER = re.compile(rb"(?:>*From [^\n]*\n)*[!-9;-~]+[ \t]*:")
BEFORE = re.compile(rb"(?:\xef\xbb\xbf)?\s*")
EMPTY_LINE_BEFORE = (b"\n\n", b"\n\r\n")
END_OF_HEADERS = re.compile(rb"\n\r?\n")
CONTENT_LENGTH = re.compile(rb"^content-length:[ \t]*(\d{1,12})[ \t]*\r?$", re.I | re.M)
EMPTY_LINES = re.compile(rb"(?:[ \t\r]*\n)*")


def begins_mbox(content: bytes | mmap) -> bool:
    r"""Return whether a file is an mbox: its first line that is not empty is a From line.

    Examples
    --------
    >>> begins_mbox(b"\nFrom ann Mon Jan  1 10:00:00 2024\nTo: me\n"), begins_mbox(b"From: ann\n")
    (True, False)
    """
    start = _first(content)
    return content[start : start + 5] == b"From "


def starts(content: bytes | mmap) -> Iterator[int]:
    r"""Yield where the messages of an mbox begin: at a From line with a date, before a header.

    Behind a text that nothing escapes, there must be an empty line if the sender has several words,
    or if From lines of this file have no date. Content-Length is followed where it leads to a From
    line or to the end.

    Examples
    --------
    >>> one = b"From ann Mon Jan  1 10:00:00 2024\nTo: me\n\nFrom then on: yes\n"
    >>> list(starts(one + one))
    [0, 60]
    """
    start = _first(content)
    line = FROM_LINE if FROM_LINE.match(content, start) else UNDATED
    while start >= 0:
        yield start
        start = _next(content, start, line)


def _first(content: bytes | mmap) -> int:
    before = BEFORE.match(content)
    return before.end() if before else 0


def _next(content: bytes | mmap, start: int, line: re.Pattern[bytes]) -> int:
    """Return where the message after that at `start` begins, -1 if it is the last."""
    after = _after_counted(content, start, line)
    if after is not None:
        return after
    while (start := content.find(b"\nFrom ", start) + 1) > 0:
        if _is_start(content, start, line):
            return start
    return -1


def _is_start(content: bytes | mmap, at: int, line: re.Pattern[bytes]) -> bool:
    found = line.match(content, at)
    if not found or not HEADER.match(content, found.end()):
        return False
    is_plain = line is FROM_LINE and b" " not in (found[1] or b"")
    return is_plain or content[max(at - 3, 0) : at].endswith(EMPTY_LINE_BEFORE)


def _after_counted(content: bytes | mmap, start: int, line: re.Pattern[bytes]) -> int | None:
    """Return where the message ends by its Content-Length, -1 at the end, None if that is wrong."""
    headers = END_OF_HEADERS.search(content, start)
    counted = CONTENT_LENGTH.search(content, start, headers.end()) if headers else None
    if not headers or not counted:
        return None
    end = headers.end() + int(counted[1])
    if end > len(content):
        return None
    following = EMPTY_LINES.match(content, end)
    at = following.end() if following else end
    if at == len(content):
        return -1
    return at if line.match(content, at) else None

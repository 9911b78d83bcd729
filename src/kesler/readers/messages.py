"""Messages: the tokens of one mail message, headers and body alike."""

from __future__ import annotations

import email
import re
from collections.abc import Callable, Iterator
from email.errors import HeaderParseError
from email.header import decode_header
from email.message import Message
from html.parser import HTMLParser

from kesler.readers.faults import BadRow
from kesler.readers.tokens import presence

# What mail programs write when they file a message: these headers give its folder away. (A news
# article's group is its folder.)
FILING_HEADERS = re.compile(
    r"x-folder|folder|x-original-folder|x-gmail-labels|x-gm-labels|x-labels?|x-keywords|keywords"
    r"|x-mozilla-.*|x-imap.*|x-uid|x-status|status|x-evolution.*|newsgroups|xref",
    re.IGNORECASE,
)


def message_tokens(message: bytes) -> dict[str, float]:
    r"""Return the binary features of a message: the tokens of its headers and its text.

    The text is that of the parts text/plain and text/html, of the latter without its tags; of an
    attachment, only the name counts. FILING_HEADERS are left out.

    Parameters
    ----------
    message : bytes
        As it stands in its file; broken headers and unknown charsets are read as well as can be.

    Raises
    ------
    BadRow
        If there is not one header.

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
        # Over broken parameters the email package stumbles in ways that it doesn't promise.
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
        # The charset is unknown or no charset at all; ASCII is what tokens are made of.
        return text.decode("ascii", errors="replace")


class _HtmlText(HTMLParser):
    """Gathers what stands between the tags, scripts and style sheets apart."""

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
        # Some Pythons give up at a malformed declaration: what stands before it counts.
        pass
    return " ".join(parser.texts)


TEXT_PARTS: dict[str, Callable[[str], str]] = {"text/plain": str, "text/html": _without_tags}

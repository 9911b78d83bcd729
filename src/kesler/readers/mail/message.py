"""A message as features: the words of its headers and of its text."""

from __future__ import annotations

import email
import re
from binascii import a2b_base64
from collections.abc import Callable, Iterator
from email.errors import HeaderParseError, InvalidBase64LengthDefect
from email.header import decode_header
from email.message import Message
from email.policy import Compat32
from typing import Any

from kesler.data.texts import counted
from kesler.readers.mail.charsets import in_utf8, text_of, without_surrogates
from kesler.readers.mail.html import without_tags
from kesler.readers.mail.mbox import END_OF_HEADERS, KNOWN_AHEAD
from kesler.readers.mail.outlook import ARCHIVES
from kesler.readers.reader import BadRow

# Headers that mail programs write when they file a message, which reveal its folder. (The folder
# of a news article is its group.)
FILING_HEADERS = re.compile(
    r"x-folder|folder|x-original-folder|x-gmail-labels|x-gm-labels|x-labels?|x-keywords|keywords"
    r"|x-mozilla-.*|x-imap.*|x-uid|x-status|status|x-evolution.*|newsgroups|xref",
    re.IGNORECASE,
)
BEFORE_HEADERS = re.compile(rb"(?:\xef\xbb\xbf)?(?:[ \t\r]*\n)*(?:>*From [^\n]*\n)*")
"""What programs write before the headers: a byte order mark, empty lines, From lines."""
BEGINS_MBOX = re.compile(rb"(?:\xef\xbb\xbf)?\s*From ")
CHARSET = re.compile(rb"charset[ \t]*=[ \t]*[\"']?([\w.:-]+)", re.IGNORECASE)
SPACED = re.compile(rb"^([!-9;-~]+)[ \t]+:", re.MULTILINE)
ODD = re.compile(rb"^(?![!-9;-~]+:|[ \t\r\n])(?=.)", re.MULTILINE)
REGULAR = re.compile(rb"(?:(?:[!-9;-~]++:|[ \t])[^\n]*+\n?|\r?\n)*+")
"""Headers none of whose lines is spaced or odd."""
ENCODING = re.compile(r"[\w-]+")
PADDED = re.compile(r"=[ \t\r]*\n[A-Za-z0-9+/]+={0,2}[ \t\r]*(?:\n|$)")
BOUNDARY = re.compile(rb"^--([^\r\n\"]{1,70}?)[ \t]*\r?\n[!-9;-~]+:", re.MULTILINE)
NOT_BASE64 = re.compile(rb"[^A-Za-z0-9+/]")
ENCODED_WORD = r"=\?[^?\r\n]*\?[bqBQ]\?(?:.{0,9999}?\?=|[^?]{0,9999}\Z)"
ENCODED_WORDS = re.compile(rf"{ENCODED_WORD}(?:\s*{ENCODED_WORD})*", re.DOTALL)

LONGEST_HEADER = 1 << 16
"""Characters of a header that are read; the email package needs the square of them for some."""
FOLD = re.compile(r"\r?\n[ \t]*")
FORWARDED = {"message/rfc822", "message/global", "message/partial", "message/news"}


class _Headers(Compat32):
    """Decodes headers with bytes beyond ASCII; `charset` is that of the text of the message."""

    charset: str | None = None

    def header_source_parse(self, sourcelines: list[str]) -> tuple[str, str]:
        name, value = super().header_source_parse(sourcelines)
        return name, value[:LONGEST_HEADER]

    def header_fetch_parse(self, name: str, value: str) -> str:
        return _raw_text(value, self.charset)


ASCII_HEADERS = _Headers()


def message_tokens(message: bytes) -> dict[str, float]:
    r"""Return how often each token is in the texts of a message.

    Raises
    ------
    BadRow
        As `message_texts`.

    Examples
    --------
    >>> list(message_tokens(b"Subject: Lunch?\nX-Folder: Friends\n\nAt *one*"))
    ['lunch', 'at', 'one']
    """
    return counted(message_texts(message))


def message_texts(message: bytes) -> list[str]:
    r"""Return the values of the headers of a message and its text.

    The text is that of the parts text/plain and text/html, without HTML tags, or of another type of
    text if there are none. Forwarded messages are read with their headers. Only the names of
    attachments are used. FILING_HEADERS are omitted, and headers are cut to 65,536 characters.

    Parameters
    ----------
    message : bytes
        The bytes in the file; broken headers and unknown charsets are read as far as possible.

    Raises
    ------
    BadRow
        If there is no header and no From line of an mbox, or parts are nested too deeply.

    Examples
    --------
    >>> message_texts(b"Subject: Lunch?\nX-Folder: Friends\n\nAt *one*")
    ['Lunch?', '', 'At *one*']
    """
    try:
        parsed = parsed_message(message)
        texts = [*_header_texts(parsed), *body_texts(parsed)]
    except RecursionError:
        raise BadRow("its parts are nested too deeply") from None
    for begin, what in ARCHIVES.items():
        if message.startswith(begin):
            raise BadRow(what)
    if not parsed.keys() and not BEGINS_MBOX.match(message):
        raise BadRow("it begins with no header, so it is no message")
    return texts


def header_of(message: bytes, name: str) -> str | None:
    r"""Return a header of a message, None if it has none of this name.

    Examples
    --------
    >>> header_of(b"Message-ID: <1@a>\nSubject: Lunch\n\nAt one", "message-id")
    '<1@a>'
    """
    found = parsed_message(message)[name]
    return None if found is None else decoded_words(str(found)).strip()


def parsed_message(message: bytes) -> Message:
    r"""Return a message as the email package parses it, after its broken headers are mended.

    Raises
    ------
    RecursionError
        If its parts are nested too deeply.

    Examples
    --------
    >>> parsed_message(b"From ann Mon Jan  1 10:00:00 2024\nSubject : Lunch\n\nAt one")["subject"]
    'Lunch'
    """
    message = in_utf8(message)
    before = BEFORE_HEADERS.match(message)
    assert before is not None
    policy = ASCII_HEADERS
    if not message.isascii() and (found := CHARSET.search(message)):
        policy = ASCII_HEADERS.clone(charset=found[1].decode())  # type: ignore[call-arg]
    return email.message_from_bytes(_mended(message[before.end() :]), policy=policy)


def _mended(message: bytes) -> bytes:
    """Return a message whose headers are lines that the email package takes for headers.

    A line that is none, before a usual header, becomes a comment, or a part of the one before.
    """
    found = END_OF_HEADERS.search(message)
    end = found.start() + 1 if found else len(message)
    if REGULAR.fullmatch(message, 0, end):
        return message
    headers = SPACED.sub(rb"\1:", message[:end])

    def mended(odd: re.Match[bytes]) -> bytes:
        if not KNOWN_AHEAD.match(headers, odd.start()):
            return b""
        return b" " if odd.start() else b"Comments: "

    return ODD.sub(mended, headers) + message[end:]


def _header_texts(message: Message) -> Iterator[str]:
    for name, value in message.items():
        if not FILING_HEADERS.fullmatch(name):
            yield decoded_words(value)


def body_texts(message: Message) -> Iterator[str]:
    r"""Yield the texts of the parts of a message, and the names of its attachments.

    Raises
    ------
    RecursionError
        If its parts are nested too deeply.

    Examples
    --------
    >>> list(body_texts(parsed_message(b"Subject: Lunch?\n\nAt *one*")))
    ['', 'At *one*']
    """
    parts = [(part, part.get_content_type()) for part in message.walk()]
    is_typed = any(kind in TEXT_PARTS for _, kind in parts)
    for part, kind in parts:
        yield filename_of(part)
        if part.is_multipart():
            for each in part.get_payload() if kind in FORWARDED else []:
                if isinstance(each, Message):
                    yield from _header_texts(each)
        elif kind.startswith("multipart/"):
            yield from _unparted_texts(part)
        elif part.get_content_disposition() != "attachment":
            read = TEXT_PARTS.get(kind) if is_typed else _reader_alone(kind)
            if read:
                yield read(_payload(part), _parameter(part.get_content_charset))


def filename_of(part: Message) -> str:
    r"""Return the name of the file that a part of a message is, empty if it has none.

    Examples
    --------
    >>> filename_of(parsed_message(b"Content-Disposition: attachment; filename=bill.pdf\n\n"))
    'bill.pdf'
    """
    return without_surrogates(decoded_words(_parameter(part.get_filename) or ""))


def _reader_alone(kind: str) -> Callable[[bytes, str | None], str] | None:
    """Return what reads the text of a message without plain text or HTML."""
    if kind in ("application/xhtml+xml", "text/enriched", "text/richtext"):
        return _html
    return text_of if kind.startswith("text/") else None


def _unparted_texts(part: Message) -> Iterator[str]:
    """Yield the texts of parts whose boundary is missing or wrong: by the one that they have."""
    content = _payload(part)
    found = BOUNDARY.search(content)
    if found is not None:
        typed = b'Content-Type: multipart/mixed; boundary="%s"\n\n' % found[1]
        parted = email.message_from_bytes(typed + content, policy=part.policy)
        if parted.is_multipart():
            yield from body_texts(parted)
            return
    yield text_of(content, None)


def _payload(part: Message) -> bytes:
    encoding = str(part.get("Content-Transfer-Encoding", ""))
    if encoding:
        found = ENCODING.search(encoding)
        if found and found[0] != encoding:
            part.replace_header("Content-Transfer-Encoding", found[0])
        if found and found[0].lower() == "base64":
            encoded = _parameter(part.get_payload)
            if isinstance(encoded, str) and PADDED.search(encoded):
                return _of_padded_texts(encoded)
    payload = part.get_payload(decode=True)
    assert isinstance(payload, bytes)
    if any(isinstance(defect, InvalidBase64LengthDefect) for defect in part.defects):
        # Python leaves text encoded whose last group of letters is cut to one letter.
        letters = NOT_BASE64.sub(b"", payload)
        return a2b_base64(letters[: len(letters) // 4 * 4])
    return payload


def _of_padded_texts(encoded: str) -> bytes:
    """Decode texts in base64 that are one after another, each with its own padding."""
    texts = (NOT_BASE64.sub(b"", each) for each in encoded.encode("ascii", "ignore").split(b"="))
    whole = (text[: len(text) - (len(text) % 4 == 1)] for text in texts)
    return b"".join(a2b_base64(text + b"=" * (-len(text) % 4)) for text in whole)


def _parameter(read: Callable[[], Any]) -> Any:
    try:
        return read()
    except Exception:
        # For broken parameters, the email package raises undocumented errors.
        return None


def decoded_words(value: str) -> str:
    """Return a header with its encoded words (RFC 2047) decoded.

    Examples
    --------
    >>> decoded_words("=?utf-8?q?Gr=C3=BC=C3=9Fe?= aus =?iso-8859-1?q?K=F6ln?=")
    'Grüße aus Köln'
    """
    return ENCODED_WORDS.sub(_words, value) if "=?" in value else value


def _words(found: re.Match[str]) -> str:
    """Decode encoded words, of which the last may be cut off within a letter."""
    words = FOLD.sub(" ", found[0])
    for whole in (words,) if words.endswith("?=") else (f"{words}?=", f"{words[:-1]}?="):
        try:
            pieces = decode_header(whole)
        except (ValueError, HeaderParseError):
            continue
        return "".join(
            piece if isinstance(piece, str) else text_of(piece, charset)
            for piece, charset in pieces
        )
    return found[0]


def _raw_text(value: str, charset: str | None) -> str:
    """Return the text of a header, in which the email package holds bytes as lone surrogates."""
    if value.isascii() and "\x1b" not in value:
        return value
    return text_of(value.encode("utf-8", "surrogateescape"), charset)


def _html(content: bytes, charset: str | None) -> str:
    """Return the text of HTML, which may declare its charset itself."""
    own = CHARSET.search(content, 0, 2048) if charset is None else None
    return without_tags(text_of(content, own[1].decode() if own else charset))


TEXT_PARTS: dict[str, Callable[[bytes, str | None], str]] = {
    "text/plain": text_of,
    "text/html": _html,
}

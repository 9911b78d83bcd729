"""Text in any encoding as UTF-8, with lines that end with a line feed.

Text is UTF-8 if it can be. UTF-16 and UTF-32 are known by their byte order marks or their zero
bytes, and other encodings by the first bytes that are not ASCII, wherever these are.
"""

from __future__ import annotations

import codecs
import io
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from kesler.errors import KeslerError, ReadingWarning, warn

UTF8 = "utf-8"
WIDE = {
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
"""The byte order marks of encodings that are no superset of ASCII."""
WITHOUT_MARK = re.compile(
    rb"(?P<utf_16_le>[^\0]\0[^\0]\0)|(?P<utf_16_be>\0[^\0]\0[^\0])"
    rb"|(?P<utf_32_le>[^\0]\0\0\0)|(?P<utf_32_be>\0\0\0[^\0])"
)
WESTERN = "windows-1252"
DOS = "cp850"
"""The encoding of DOS, which no detector knows; its letters are those of cp437 as well."""
SUPERSETS = {
    "ISO-8859-1": WESTERN,
    "ISO-8859-8": "windows-1255",
    "EUC-KR": "cp949",
    "GBK": "gb18030",
    "Shift_JIS": "cp932",
    "windows-874": "cp874",
}
"""Encodings as they are found, and Python's names of those that contain them."""
LETTERS = re.compile(rb"[A-Za-z\x80-\xff][\x80-\xff]|[\x80-\xff][A-Za-z]")
INNER = re.compile(rb"(?<=[A-Za-z])[\x80-\x84\x86-\x90\x93-\x95\x98-\xff](?=[A-Za-z\xe1])")
"""Bytes within words, also before a sharp s of DOS, without apostrophes and dashes of Windows."""
SIGNS = re.compile(rb"[\x91-\x97\xa7\xa9\xab\xae\xb0\xb1\xb5\xb7\xbb]")
"""Signs that are the same in all encodings of Windows, such as quotation marks and degrees."""
BLOCK = 1 << 18  # bytes that are converted together
AHEAD = 1 << 20  # bytes that are read ahead, except from a pipe, to find an encoding
CARRIAGE_RETURN, LINE_FEED = b"\r\n"

UNREADABLE = "kesler.unreadable"
"""The handler of bytes that are no text in an encoding: a byte that is not UTF-8 replaces them."""
codecs.register_error(UNREADABLE, lambda error: ("\udcff", error.end))  # type: ignore[attr-defined]


def require_encoding(name: str | None) -> None:
    """Raise KeslerError if an encoding of text does not exist.

    Examples
    --------
    >>> require_encoding("latin1")
    >>> require_encoding("hex")
    Traceback (most recent call last):
    ...
    kesler.errors.KeslerError: there is no encoding of text 'hex': give encoding=... a name such \
as 'windows-1252', 'utf-16' or 'gb18030'
    """
    if name is None:
        return
    try:
        " ".encode(name)  # refuses encodings of other things than text
    except (LookupError, ValueError):
        raise KeslerError(
            f"there is no encoding of text {name!r}: give encoding=... a name such as "
            f"{WESTERN!r}, 'utf-16' or 'gb18030'"
        ) from None


def wide_encoding(start: bytes) -> str | None:
    r"""Return the encoding of a text that begins with a mark or zero bytes, None without.

    Examples
    --------
    >>> wide_encoding(b"\xff\xfea\0"), wide_encoding(b"a\0b\0"), wide_encoding(b"a,b")
    ('utf-16', 'utf-16-le', None)
    """
    for mark, encoding in WIDE.items():
        if start.startswith(mark):
            return encoding
    found = WITHOUT_MARK.match(start)
    return found.lastgroup.replace("_", "-") if found and found.lastgroup else None


def found_encoding(sample: bytes) -> str:
    r"""Return the encoding of a sample that is not ASCII: UTF-8 if most of it can be.

    Examples
    --------
    >>> found_encoding("Köln".encode()), found_encoding("Köln".encode("latin-1"))
    ('utf-8', 'windows-1252')
    """
    text = codecs.getincrementaldecoder(UTF8)("surrogateescape").decode(sample)
    n_bad = sum("\udc80" <= letter <= "\udcff" for letter in text)
    if 2 * n_bad <= sum(letter >= "\x80" for letter in text):
        return UTF8
    if not LETTERS.search(SIGNS.sub(b" ", sample)):
        return WESTERN  # signs alone, such as that of pounds, tell no language
    try:
        from chardetng_py import EncodingDetector
    except ImportError:
        return WESTERN
    detector = EncodingDetector()
    detector.feed(sample, last=True)
    found: str = detector.guess(tld=None, allow_utf8=False)
    if found.startswith("windows") and _is_dos(sample, found):
        return DOS
    return SUPERSETS.get(found, found)


def _is_dos(sample: bytes, encoding: str) -> bool:
    """Return whether many letters within words of DOS are none in the encoding that was found."""
    inner = b"".join(INNER.findall(sample))
    is_odd = [not letter.isalpha() for letter in inner.decode(encoding, "replace")]
    return 5 * sum(is_odd) > len(is_odd) and inner.decode(DOS).isalpha()


class Utf8(io.RawIOBase):
    r"""A text as UTF-8, whose lines end with a line feed if all of them end with a return.

    What is UTF-8 is passed on as it is.

    Parameters
    ----------
    file : file object
        The bytes.
    source : str
        The name of the source in messages.
    encoding : str or None
        The encoding; None if it is to be found.
    is_piped : bool
        Whether more data may arrive at any time, for which nothing waits.

    Examples
    --------
    >>> text = Utf8(io.BytesIO("Köln\rBonn\r".encode("utf-16")), "towns", "utf-16", False)
    >>> io.BufferedReader(text).readlines()
    [b'K\xc3\xb6ln\n', b'Bonn\n']
    """

    def __init__(self, file: Any, source: str, encoding: str | None, is_piped: bool) -> None:
        self._read_into = file.readinto1 if is_piped else file.readinto
        self._is_piped = is_piped
        self._source = source
        self._is_ascii = encoding is None
        self._has_returns: bool | None = None
        self._decode: Callable[[bytes, bool], str] | None = None
        self._waiting = memoryview(b"")
        if encoding is not None and codecs.lookup(encoding).name != UTF8:
            self._begin(encoding)

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read what is available, at most as much as the buffer holds."""
        n_read = 0 if self._waiting or self._decode else self._read_plain(buffer)
        if self._decode and not self._waiting:
            self._convert_more()
        if self._waiting:
            n_read = min(len(buffer), len(self._waiting))
            buffer[:n_read], self._waiting = self._waiting[:n_read], self._waiting[n_read:]
        if self._has_returns is not False:
            self._end_lines(np.frombuffer(buffer, dtype=np.uint8, count=n_read))
        return n_read

    def _read_plain(self, buffer: Any) -> int:
        """Read bytes as they are; find the encoding of the first ones that are not ASCII."""
        n_read: int = self._read_into(buffer)
        if self._is_ascii:
            block = np.frombuffer(buffer, dtype=np.uint8, count=n_read)
            if block.max(initial=0) >= 0x80:
                self._is_ascii = False
                self._settle(block.tobytes())
        return n_read

    def _settle(self, block: bytes) -> None:
        """Find the encoding, and convert a block if it is not UTF-8."""
        if _may_be_utf8(block):
            return
        sample = block if self._is_piped else block + self._read(AHEAD)
        encoding = found_encoding(sample)
        if encoding == UTF8:
            self._waiting = memoryview(sample)
            return
        self._begin(encoding)
        self._waiting = self._converted(sample)
        warn(
            f"{self._source} is not UTF-8 and is read as {encoding}: if letters are wrong, name "
            "its encoding with encoding=...",
            ReadingWarning,
        )

    def _begin(self, encoding: str) -> None:
        self._decode = codecs.getincrementaldecoder(encoding)(UNREADABLE).decode

    def _convert_more(self) -> None:
        while not self._waiting:
            content = self._read(BLOCK)
            self._waiting = self._converted(content)
            if not content:
                return

    def _converted(self, content: bytes) -> memoryview:
        assert self._decode is not None
        text = self._decode(content, not content)
        return memoryview(text.encode(UTF8, "surrogateescape"))

    def _end_lines(self, block: npt.NDArray[np.uint8]) -> None:
        """Replace returns by line feeds if there are no others in the first bytes."""
        if self._has_returns is None:
            is_return = block[:-1] == CARRIAGE_RETURN
            self._has_returns = False if LINE_FEED in block else bool(is_return.any()) or None
        if self._has_returns:
            block[block == CARRIAGE_RETURN] = LINE_FEED

    def _read(self, n_bytes: int) -> bytes:
        buffer = memoryview(bytearray(n_bytes))
        return bytes(buffer[: self._read_into(buffer)])


def _may_be_utf8(block: bytes) -> bool:
    """Return whether a block is UTF-8, whose last letter may be cut."""
    try:
        codecs.getincrementaldecoder(UTF8)().decode(block)
    except UnicodeDecodeError:
        return False
    return True

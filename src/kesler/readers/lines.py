"""Lines of text files, compressed or not, and of standard input."""

from __future__ import annotations

import codecs
import io
import math
import re
from collections import deque
from collections.abc import Callable, Generator, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from kesler.errors import KeslerError
from kesler.readers.compression import STANDARD_INPUT, Begun, first_bytes, source_name, unpacked
from kesler.readers.encodings import WIDE, Utf8, require_encoding, wide_encoding
from kesler.readers.reader import LASTING, BadRow

Text = npt.NDArray[np.uint8]

BEYOND = 64  # bytes that may be read past the end of a text
LONGEST_LINE = 1 << 26
"""The default of the most bytes of a line, which are all held in memory."""
SHORT_TOKEN = 64  # bytes; tokens up to this length are extracted together, which is faster
NEWLINE = ord("\n")
LINE_END = re.compile(rb"\n")
ENDS = b"\x1a\0"
"""Bytes that some programs write behind the last line."""


def text_of(content: bytes) -> Text:
    """Return a text, with `BEYOND` bytes of padding after it.

    Examples
    --------
    >>> text = text_of(b"a b")
    >>> text.tobytes(), len(text.base) >= 3 + BEYOND
    (b'a b', True)
    """
    buffer = np.zeros(len(content) + BEYOND, dtype=np.uint8)
    buffer[: len(content)] = np.frombuffer(content, dtype=np.uint8)
    return buffer[: len(content)]


def read_texts(
    read_into: Callable[[memoryview], int], n_bytes: int, number: int, longest: int = LONGEST_LINE
) -> Iterator[tuple[int, Text]]:
    r"""Yield texts of whole lines, of about `n_bytes` bytes; a newline is added to the last line.

    Each text comes with the number of its first line, counted from `number`. It is valid until
    `LASTING` more texts are requested, which reuse its memory.

    Raises
    ------
    KeslerError
        If a line has more than `longest` bytes, which is at least `n_bytes`.

    Examples
    --------
    >>> from io import BytesIO
    >>> texts = read_texts(BytesIO(b"a\nb\nc d\ne").readinto, 5, 1)
    >>> [(number, text.tobytes()) for number, text in texts]
    [(1, b'a\nb\n'), (3, b'c d\n'), (4, b'e\n')]
    """
    buffers = deque(bytearray(n_bytes + BEYOND) for _ in range(LASTING))
    n_begun = 0
    while n_read := read_into(memoryview(buffers[0])[n_begun:-BEYOND]):
        buffer, n_there = buffers[0], n_begun + n_read
        end = buffer.rfind(b"\n", n_begun, n_there) + 1
        n_begun = n_there - end
        if end:
            text = np.frombuffer(buffer, dtype=np.uint8, count=end)
            yield number, text
            number += int(np.count_nonzero(text == NEWLINE))
            buffers.rotate(-1)
        if n_begun > longest:
            raise too_long(number, longest)
        if n_begun + BEYOND >= len(buffers[0]):
            # No line longer than allowed, with its end, fits into a buffer.
            buffers[0] = bytearray(min(2 * n_begun, longest + 1) + BEYOND)
        if buffers[0] is not buffer:
            buffers[0][:n_begun] = buffer[end:n_there]
    n_begun = len(buffers[0][:n_begun].rstrip(ENDS))
    if n_begun:
        buffers[0][n_begun] = NEWLINE
        yield number, np.frombuffer(buffers[0], dtype=np.uint8, count=n_begun + 1)


def too_long(number: int, longest: int) -> KeslerError:
    """Return the error for a line with too many bytes."""
    return KeslerError(
        f"line {number} has more than {longest:,} bytes: check the file, or allow more bytes of "
        "memory for a line with max_line=..."
    )


def end_of_line(text: Text, start: int) -> int:
    r"""Return the position after the line at `start`; every line of a text ends with a newline.

    Examples
    --------
    >>> end_of_line(text_of(b"a\nb c\n"), 2)
    6
    """
    found = LINE_END.search(text.data, start)
    assert found is not None
    return found.end()


def tokens_of(text: Text, spans: npt.NDArray[np.int64]) -> list[bytes]:
    """Return the tokens in the given spans, none of which ends with a NUL byte.

    Examples
    --------
    >>> tokens_of(text_of(b"spam | a"), np.array([[0, 4], [7, 8], [2, 2]]))
    [b'spam', b'a', b'']
    """
    starts, ends = spans[:, :1], spans[:, 1:]
    longest = max(1, int((ends - starts).max(initial=0)))
    if longest > SHORT_TOKEN:
        return [text[start:end].tobytes() for start, end in spans.tolist()]
    places = starts + np.arange(longest)
    letters = text.take(places, mode="clip")
    letters[places >= ends] = 0
    tokens: list[bytes] = letters.view(f"S{longest}").ravel().tolist()
    return tokens


def is_utf8(text: Text) -> bool:
    r"""Return whether a text is UTF-8.

    Examples
    --------
    >>> is_utf8(text_of("é".encode())), is_utf8(text_of(b"\xe9"))
    (True, False)
    """
    if text.max(initial=0) >= 0x80:
        try:
            text.tobytes().decode()
        except UnicodeDecodeError:
            return False
    return True


BUFFER = 1 << 16  # bytes that are read at once while lines are read one by one
AHEAD = 1 << 18  # bytes of lines that are looked at before they are read
CHUNK = 1 << 18  # bytes, which fit in a core's own cache while they are scanned
# Compiled code is loaded after this number of bytes: Python reads fewer in about the time that
# loading takes, and nothing is compiled for them.
SMALL = 1 << 18


class Lines:
    """The lines of a source as bytes in UTF-8, numbered from 1, read once.

    Parameters
    ----------
    source : str
        A path, or ``-`` for standard input. The first bytes show whether it is compressed.
    longest : int
        The largest number of bytes of a line, at least `CHUNK`.
    encoding : str or None
        The encoding of the text; None if it is to be found.

    Attributes
    ----------
    is_piped : bool
        Whether the source is standard input, where more data may arrive at any time.
    n_bytes : int
        Number of bytes read so far, after decompression.
    encoding : str or None
        As given.
    longest : int
        As given.
    seen : bytes
        The bytes up to the end of the first line, once this has been looked at.
    start : bytes
        These bytes, or the first of the source where these are more, as a database that is piped by
        mistake may have a line break among them.

    Raises
    ------
    KeslerError
        If `longest` is too small or there is no such encoding; on reading, if the file cannot be
        opened, is cut short or damaged, or a line is too long.
    """

    def __init__(
        self, source: str, longest: int = LONGEST_LINE, encoding: str | None = None
    ) -> None:
        if longest < CHUNK:
            raise KeslerError(f"max_line={longest!r} is too small: give {CHUNK:,} bytes or more")
        require_encoding(encoding)
        self.is_piped = source == STANDARD_INPUT
        self.n_bytes = 0
        self._source = source
        self.longest = longest
        self.encoding = encoding
        self._n_read: Callable[[], float] = lambda: 0
        self.seen = self.start = b""
        self._is_peeked = False
        self._is_raw = False
        self._in_chunks = False
        self._in_pieces = False
        self._ahead = deque[tuple[int, bytes]]()
        self._rest: Iterator[Any] = self._read()

    def __iter__(self) -> Iterator[tuple[int, bytes]]:
        """Yield all lines, including empty ones."""
        while self._ahead:
            yield self._counted(self._ahead.popleft())
        yield from map(self._counted, self._rest)

    @property
    def is_long(self) -> bool:
        """Whether enough has been read line by line to justify loading compiled code."""
        return self.n_bytes > SMALL

    @property
    def share(self) -> float:
        """How much of the source has been read, from 0 to 1; NaN if its size is unknown."""
        path = Path(self._source)
        if self.is_piped or not path.is_file():
            return math.nan
        return min(self._n_read() / (path.stat().st_size or 1), 1.0)  # NaN remains NaN

    def chunks(self) -> Generator[tuple[int, Text], None, None]:
        """Yield the lines as texts with the numbers of their first lines; the last ends as well.

        `read_texts` says how long a text is valid.
        """
        for number, line in self._ahead:
            yield number, text_of(line if line.endswith(b"\n") else line + b"\n")
        self._in_chunks = True
        for number, text in self._rest:
            self.n_bytes += len(text)
            yield number, text

    def pieces(self) -> Iterator[bytes]:
        """Yield all bytes, in pieces that end anywhere."""
        self._in_pieces = True
        for piece in self._rest:
            self.n_bytes += len(piece)
            yield piece

    def filled(self) -> Iterator[tuple[int, bytes]]:
        """Return an iterator of the lines that are not empty."""
        return ((number, line) for number, line in self if line.strip())

    def first(self) -> bytes:
        """Return the first line that is neither empty nor a comment, or an empty line.

        The line remains to be read. It is as it is in the file unless its encoding is known. Of a
        line of more than `CHUNK` bytes, it is the beginning.
        """
        self._is_peeked = True
        lines = iter(lambda: next(self._rest)[1], b"")
        found = next((line for line in lines if line.strip() and not line.startswith(b"#")), b"")
        self._is_peeked = False
        return _unmarked(found).strip().splitlines()[0] if found else b""

    def ahead(self, n_lines: int) -> list[bytes]:
        """Return the next lines, which remain to be read; fewer if they have many bytes."""
        while len(self._ahead) < n_lines and sum(len(line) for _, line in self._ahead) < AHEAD:
            numbered = next(self._rest, None)
            if numbered is None:
                break
            self._ahead.append(numbered)
        return [line for _, line in self._ahead]

    def as_they_are(self) -> Iterator[bytes]:
        """Yield the lines in no encoding, as they are in the file."""
        self._is_raw = True
        return (line for _, line in self)

    def _counted(self, numbered: tuple[int, bytes]) -> tuple[int, bytes]:
        self.n_bytes += len(numbered[1])
        return numbered

    def _read(self) -> Iterator[Any]:
        """Yield lines that are peeked at, then pieces, or lines and then texts of several lines."""
        with unpacked(self._source) as (packed, self._n_read):
            start = first_bytes(packed, tuple(WIDE))
            encoding = self.encoding or wide_encoding(start)
            file: Any = io.BufferedReader(Begun(packed, start))
            if encoding is not None:
                file = self._in_utf8(file, encoding)
            # They may show that this is mail, whose messages have encodings of their own.
            while self._is_peeked:
                line = file.readline(CHUNK)
                self.seen += line
                self.start = max(start, self.seen, key=len)
                yield 1, line
            if self.seen:
                file = io.BufferedReader(Begun(file, self.seen))
            if encoding is None and not self._is_raw:
                file = self._in_utf8(file, None)
            if self._in_pieces:
                yield from iter(partial(file.read1, CHUNK), b"")
            else:
                yield from self._numbered(file)

    def _in_utf8(self, file: Any, encoding: str | None) -> io.BufferedReader:
        text = Utf8(file, source_name(self._source), encoding, self.is_piped)
        return io.BufferedReader(text, BUFFER)

    def _line(self, file: Any, number: int) -> bytes:
        line: bytes = file.readline(self.longest + 1)
        if len(line) > self.longest and not line.endswith(b"\n"):
            raise too_long(number, self.longest)
        return line

    def _numbered(self, file: Any) -> Iterator[tuple[int, Any]]:
        number = 1
        while line := self._line(file, number):
            line = line if line.endswith(b"\n") else line.rstrip(ENDS)
            yield number, _unmarked(line) if number == 1 else line
            number += 1
            if self._in_chunks:
                # A pipe may be empty for a while, so only the data that is available is read.
                read_into = file.readinto1 if self.is_piped else file.readinto
                yield from read_texts(read_into, CHUNK, number, self.longest)


def _unmarked(line: bytes) -> bytes:
    """Return the first line of a text without byte order marks, of which joined files have two."""
    while line.startswith(codecs.BOM_UTF8):
        line = line.removeprefix(codecs.BOM_UTF8)
    return line


def decode(line: bytes) -> str:
    """Return the text of a line; raise BadRow if it is not UTF-8."""
    try:
        return line.decode()
    except UnicodeDecodeError as error:
        raise BadRow(
            f"byte {error.start + 1} is not UTF-8 text (encoding=... names another)"
        ) from None


def require_text(text: str) -> None:
    """Raise BadRow if a text cannot be encoded as UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise BadRow(
            f"character {error.start + 1} is not UTF-8 text (encoding=... names another)"
        ) from None

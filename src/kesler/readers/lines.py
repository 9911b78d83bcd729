"""Lines of text files, compressed or not, and of standard input."""

from __future__ import annotations

import bz2
import codecs
import lzma
import math
import re
import sys
from collections import deque
from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from kesler.errors import KeslerError
from kesler.readers.reader import BadRow, readable

try:
    from isal import igzip, isal_zlib
except ImportError:  # there is no wheel for this processor
    import gzip
    import zlib

    open_gzip: Callable[[str], Any] = gzip.open
    InflateError: type[Exception] = zlib.error
else:  # inflates several times faster than zlib
    open_gzip = igzip.open
    InflateError = cast(type[Exception], isal_zlib.error)

Text = npt.NDArray[np.uint8]

BEYOND = 64  # bytes that may be read past the end of a text
LONGEST_LINE = 1 << 26
"""The default of the most bytes of a line, which are all held in memory."""
LASTING = 4  # buffers for the texts of a file, used in turn
SHORT_TOKEN = 64  # bytes; tokens up to this length are extracted together, which is faster
NEWLINE = ord("\n")
LINE_END = re.compile(rb"\n")


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


STANDARD_INPUT = "-"
COMPRESSED: dict[str, Callable[[str], Any]] = {
    ".gz": open_gzip,
    ".bz2": bz2.open,
    ".xz": lzma.open,
}
CHUNK = 1 << 18  # bytes, which fit in a core's own cache while they are scanned
# Compiled code is loaded after this number of bytes: Python reads fewer in about the time that
# loading takes, and nothing is compiled for them.
SMALL = 1 << 18


class Lines:
    """The lines of a source as bytes, numbered from 1, read once.

    Parameters
    ----------
    source : str
        A path, whose suffix determines the compression, or ``-`` for standard input.
    longest : int
        The largest number of bytes of a line, at least `CHUNK`.

    Attributes
    ----------
    is_piped : bool
        Whether the source is standard input, where more data may arrive at any time.
    n_bytes : int
        Number of bytes read so far, after decompression.

    Raises
    ------
    KeslerError
        If `longest` is too small; on reading, if the file cannot be opened, is cut short or
        damaged, or a line is too long.
    """

    def __init__(self, source: str, longest: int = LONGEST_LINE) -> None:
        if longest < CHUNK:
            raise KeslerError(f"max_line={longest!r} is too small: give {CHUNK:,} bytes or more")
        self.is_piped = source == STANDARD_INPUT
        self.n_bytes = 0
        self._source = source
        self._peeked: list[tuple[int, bytes]] = []
        self._in_chunks: list[bool] = []
        self._rest: Iterator[tuple[int, Any]] = _numbered(source, longest, self._in_chunks)

    def __iter__(self) -> Iterator[tuple[int, bytes]]:
        """Yield all lines, including empty ones."""
        while self._peeked:
            yield self._counted(self._peeked.pop(0))
        yield from map(self._counted, self._rest)

    @property
    def is_long(self) -> bool:
        """Whether enough has been read line by line to justify loading compiled code."""
        return self.n_bytes > SMALL

    @property
    def share(self) -> float:
        """How much of the source has been read, from 0 to 1; NaN if its size is unknown."""
        path = Path(self._source)
        if self.is_piped or path.suffix.lower() in COMPRESSED or not path.is_file():
            return math.nan
        return min(1.0, self.n_bytes / (path.stat().st_size or 1))

    def chunks(self) -> Generator[tuple[int, Text], None, None]:
        """Yield the lines as texts with the numbers of their first lines; the last ends as well.

        `read_texts` says how long a text is valid.
        """
        for number, line in self._peeked:
            yield number, text_of(line if line.endswith(b"\n") else line + b"\n")
        self._in_chunks.append(True)
        for number, text in self._rest:
            self.n_bytes += len(text)
            yield number, text

    def filled(self) -> Iterator[tuple[int, bytes]]:
        """Return an iterator of the lines that are not empty."""
        return ((number, line) for number, line in self if line.strip())

    def first(self) -> bytes:
        """Return the first line that is neither empty nor a comment, or an empty line.

        The line remains to be read.
        """
        for number, line in self._rest:
            self._peeked.append((number, line))
            if line.strip() and not line.startswith(b"#"):
                return bytes(line)
        return b""

    def _counted(self, numbered: tuple[int, bytes]) -> tuple[int, bytes]:
        self.n_bytes += len(numbered[1])
        return numbered


def decode(line: bytes) -> str:
    """Return the text of a line; raise BadRow if it is not UTF-8."""
    try:
        return line.decode()
    except UnicodeDecodeError as error:
        raise BadRow(f"byte {error.start + 1} is not UTF-8 text") from None


def require_text(text: str) -> None:
    """Raise BadRow if a text cannot be encoded as UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise BadRow(f"character {error.start + 1} is not UTF-8 text") from None


def source_name(source: str) -> str:
    """Return the name of a source in messages."""
    return "standard input" if source == STANDARD_INPUT else source


def _numbered(source: str, longest: int, in_chunks: list[bool]) -> Iterator[tuple[int, Any]]:
    """Yield lines, and texts of several lines as soon as `in_chunks` is not empty."""
    errors = (EOFError, OSError, InflateError, lzma.LZMAError)
    with readable(source_name(source), "text", *errors), _opened(source) as file:
        number = 1
        while line := file.readline(longest + 1):
            if len(line) > longest and not line.endswith(b"\n"):
                raise too_long(number, longest)
            yield number, line.removeprefix(codecs.BOM_UTF8) if number == 1 else line
            number += 1
            if in_chunks:
                break
        else:
            return
        # A pipe may be empty for a while, so only the data that is available is read.
        read_into = file.readinto1 if source == STANDARD_INPUT else file.readinto
        yield from read_texts(read_into, CHUNK, number, longest)


def _opened(source: str) -> AbstractContextManager[Any]:
    if source == STANDARD_INPUT:
        return nullcontext(sys.stdin.buffer)
    opener = COMPRESSED.get(Path(source).suffix.lower(), _plain)
    file: AbstractContextManager[Any] = opener(source)
    return file


def _plain(path: str) -> Any:
    return open(path, "rb")

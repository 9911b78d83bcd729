"""Lines: the one way into a text file, compressed or not, and into standard input."""

from __future__ import annotations

import bz2
import codecs
import gzip
import lzma
import sys
import zlib
from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

from kesler.readers.faults import BadRow, readable
from kesler.readers.texts import Text, read_texts, text_of

STANDARD_INPUT = "-"
COMPRESSED: dict[str, Callable[[str], Any]] = {
    ".gz": gzip.open,
    ".bz2": bz2.open,
    ".xz": lzma.open,
}
CHUNK = 1 << 18  # bytes, which stay in a core's own cache while they are scanned
# Compiled code is loaded when so many bytes have been read: fewer are read in Python in about the
# time that loading takes, and nothing is compiled for them.
SMALL = 1 << 18


class Lines:
    """The lines of a source as bytes, numbered from 1, read once.

    Parameters
    ----------
    source : str
        A path, its suffix saying how it is compressed, or ``-`` for standard input.

    Attributes
    ----------
    is_piped : bool
        Whether the source is standard input, which may have more to say at any time.
    n_bytes : int
        How much has been read line by line.

    Raises
    ------
    KeslerError
        On reading: the file can't be opened, is cut short or damaged.
    """

    def __init__(self, source: str) -> None:
        self.is_piped = source == STANDARD_INPUT
        self.n_bytes = 0
        self._peeked: list[tuple[int, bytes]] = []
        self._in_chunks: list[bool] = []
        self._rest: Iterator[tuple[int, Any]] = _numbered(source, self._in_chunks)

    def __iter__(self) -> Iterator[tuple[int, bytes]]:
        """All lines, empty ones too."""
        while self._peeked:
            yield self._counted(self._peeked.pop(0))
        yield from map(self._counted, self._rest)

    @property
    def is_long(self) -> bool:
        """Whether so much has been read line by line that compiled code is worth its start."""
        return self.n_bytes > SMALL

    def chunks(self) -> Generator[tuple[int, Text], None, None]:
        """All lines in texts, each with the number of its first; the last line is ended too.

        How long a text holds, `texts.read_texts` says.
        """
        for number, line in self._peeked:
            yield number, text_of(line if line.endswith(b"\n") else line + b"\n")
        self._in_chunks.append(True)
        yield from self._rest

    def filled(self) -> Iterator[tuple[int, bytes]]:
        """Lines that are not empty."""
        return ((number, line) for number, line in self if line.strip())

    def first(self) -> bytes:
        """Return the first line that is neither empty nor a comment, and keep it for reading.

        Empty if there is none.
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
    """Return the text of a line; raises BadRow if it isn't UTF-8."""
    try:
        return line.decode()
    except UnicodeDecodeError as error:
        raise BadRow(f"byte {error.start + 1} is not UTF-8 text") from None


def require_text(text: str) -> None:
    """Raise BadRow if a text holds what UTF-8 can't write."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise BadRow(f"character {error.start + 1} is not UTF-8 text") from None


def source_name(source: str) -> str:
    """Return what messages call a source."""
    return "standard input" if source == STANDARD_INPUT else source


def _numbered(source: str, in_chunks: list[bool]) -> Iterator[tuple[int, Any]]:
    """Yield lines, and texts of them once `in_chunks` says so."""
    errors = (EOFError, OSError, zlib.error, lzma.LZMAError)
    with readable(source_name(source), "text", *errors), _opened(source) as file:
        number = 1
        while line := file.readline():
            yield number, line.removeprefix(codecs.BOM_UTF8) if number == 1 else line
            number += 1
            if in_chunks:
                break
        else:
            return
        # A pipe may have no more to give for a while: what is there is taken.
        read_into = file.readinto1 if source == STANDARD_INPUT else file.readinto
        yield from read_texts(read_into, CHUNK, number)


def _opened(source: str) -> AbstractContextManager[Any]:
    if source == STANDARD_INPUT:
        return nullcontext(sys.stdin.buffer)
    opener = COMPRESSED.get(Path(source).suffix.lower(), _plain)
    file: AbstractContextManager[Any] = opener(source)
    return file


def _plain(path: str) -> Any:
    return open(path, "rb")

"""Lines: the one way into a text file, compressed or not, and into standard input."""

from __future__ import annotations

import bz2
import codecs
import gzip
import lzma
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

from kesler.readers.faults import BadRow, readable

STANDARD_INPUT = "-"
COMPRESSED: dict[str, Callable[[str], Any]] = {
    ".gz": gzip.open,
    ".bz2": bz2.open,
    ".xz": lzma.open,
}


class Lines:
    """The lines of a source as bytes, numbered from 1, read once.

    Parameters
    ----------
    source : str
        A path, its suffix saying how it is compressed, or ``-`` for standard input.

    Raises
    ------
    KeslerError
        On reading: the file can't be opened, is cut short or damaged.
    """

    def __init__(self, source: str) -> None:
        self._peeked: list[tuple[int, bytes]] = []
        self._rest = _numbered(source)

    def __iter__(self) -> Iterator[tuple[int, bytes]]:
        """All lines, empty ones too."""
        yield from self._peeked
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
                return line
        return b""


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


def _numbered(source: str) -> Iterator[tuple[int, bytes]]:
    errors = (EOFError, OSError, zlib.error, lzma.LZMAError)
    with readable(source_name(source), "text", *errors), _opened(source) as file:
        for number, line in enumerate(file, start=1):
            yield number, line.removeprefix(codecs.BOM_UTF8) if number == 1 else line


def _opened(source: str) -> AbstractContextManager[Any]:
    if source == STANDARD_INPUT:
        return nullcontext(sys.stdin.buffer)
    opener = COMPRESSED.get(Path(source).suffix.lower(), _plain)
    file: AbstractContextManager[Any] = opener(source)
    return file


def _plain(path: str) -> Any:
    return open(path, "rb")

"""Files as they are after decompression, which their first bytes determine, not their names."""

from __future__ import annotations

import bz2
import io
import lzma
import math
import shutil
import sys
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, cast

from kesler.errors import KeslerError
from kesler.readers.reader import readable

try:
    from isal import igzip, isal_zlib
except ImportError:  # there is no wheel for this processor
    import gzip

    open_gzip: Callable[[Any], Any] = gzip.open
    InflateError: type[Exception] = zlib.error
else:  # inflates several times faster than zlib
    open_gzip, InflateError = igzip.open, cast(type[Exception], isal_zlib.error)

STANDARD_INPUT = "-"
SUFFIXES = (".gz", ".bz2", ".xz", ".zst", ".zip")
"""The usual suffixes of compressed files, before which that of the format stands."""
LONGEST_MAGIC = 16  # bytes that show a format
WORKBOOKS = {"xl/workbook.xml", "xl/workbook.bin", "content.xml"}
"""Files in archives that are workbooks of Excel or LibreOffice."""


OF_OUTLOOK = "com.microsoft.__Messages"
"""A directory in archives of Outlook for Mac (.olm)."""
TAR, AT_TAR = b"ustar", 257
"""What stands in archives of tar, and where."""


def source_name(source: str) -> str:
    """Return the name of a source in messages."""
    return "standard input" if source == STANDARD_INPUT else source


class Begun(io.RawIOBase):
    r"""A file of which some bytes have been read already, which are read again.

    Attributes
    ----------
    n_bytes : int
        Number of bytes read, those read again included.

    Examples
    --------
    >>> file = io.BufferedReader(Begun(io.BytesIO(b"c\nd"), b"a\nb"))
    >>> file.readlines()
    [b'a\n', b'bc\n', b'd']
    """

    def __init__(self, file: Any, start: bytes = b"") -> None:
        self._file = file
        self._start = memoryview(start)
        self.n_bytes = 0

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read what is available, at most as much as the buffer holds."""
        n_read = min(len(buffer), len(self._start))
        if n_read:
            buffer[:n_read], self._start = self._start[:n_read], self._start[n_read:]
        else:
            n_read = self._file.readinto1(buffer)
        self.n_bytes += n_read
        return n_read


_Opened = tuple[Any, tuple[type[Exception], ...]]
"""A decompressed file, and the errors that it raises besides those of files."""


def _zstd(file: Any, *_: Any) -> _Opened:
    if sys.version_info >= (3, 14):
        from compression import zstd
    else:
        try:
            from backports import zstd
        except ImportError:
            raise KeslerError(
                "files of Zstandard need backports.zstd: pip install backports.zstd, or unpack it"
            ) from None
    return zstd.open(file), (zstd.ZstdError,)


def _zip(file: Any, path: Any, stack: ExitStack) -> _Opened:
    """Open the only file of an archive, which is copied if it can be read only once."""
    name, whole = source_name(path), path
    with readable(name, "a zip archive", zipfile.BadZipFile, RuntimeError):
        if not Path(path).is_file():
            whole = stack.enter_context(TemporaryFile())
            shutil.copyfileobj(file, whole)
        archive = stack.enter_context(zipfile.ZipFile(whole))
        if WORKBOOKS.intersection(archive.namelist()):
            raise KeslerError(f"{name} is a workbook, which is read by its path: give one")
        if any(OF_OUTLOOK in each for each in archive.namelist()):
            raise KeslerError(
                f"{name} is an archive of Outlook for Mac: export its folders as .mbox, by "
                "dragging them to the desktop, and name these"
            )
        members = [each for each in archive.infolist() if _is_content(each)]
        if len(members) != 1:
            raise KeslerError(
                f"{name} is an archive of {len(members)} files, of which one would be read: unpack "
                "it, and name one of them"
            )
        return archive.open(members[0]), (zipfile.BadZipFile, zlib.error)


def _is_content(member: zipfile.ZipInfo) -> bool:
    return not (member.is_dir() or member.filename.startswith("__MACOSX/"))


_OPENERS: dict[bytes, Callable[[Any, str, ExitStack], _Opened]] = {
    b"\x1f\x8b": lambda file, *_: (open_gzip(file), (InflateError,)),
    b"BZh": lambda file, *_: (bz2.open(file), ()),
    b"\xfd7zXZ\x00": lambda file, *_: (lzma.open(file), (lzma.LZMAError,)),
    b"\x28\xb5\x2f\xfd": _zstd,
    b"PK\x03\x04": _zip,
}
"""How files that begin with these bytes are decompressed."""


def is_compressed(path: str) -> bool:
    """Return whether a file is compressed, judged by its first bytes."""
    return _opener(start_of(path, max(map(len, _OPENERS)))) is not None


def start_of(path: str, n_bytes: int) -> bytes:
    """Return the first bytes of a file, and none of what can be read only once."""
    if not Path(path).is_file():
        return b""
    with open(path, "rb") as file:
        return file.read(n_bytes)


@contextmanager
def unpacked(source: str) -> Iterator[tuple[Any, Callable[[], float]]]:
    """Open a file or standard input, and decompress what is compressed.

    Parameters
    ----------
    source : str
        A path, or ``-`` for standard input.

    Yields
    ------
    file : file object
        What is in it.
    n_read : callable () -> float
        Returns how many bytes of it have been read, before decompression; NaN if that is unknown.

    Raises
    ------
    KeslerError
        If it cannot be opened, is cut short or damaged.
    """
    with ExitStack() as stack:
        stack.enter_context(readable(source_name(source), "text", EOFError, OSError))
        opened: Any = (
            require_standard_input()
            if source == STANDARD_INPUT
            else stack.enter_context(open(source, "rb"))
        )
        start = first_bytes(opened, tuple(_OPENERS))
        packed = Begun(opened, start)
        file: Any = io.BufferedReader(packed)
        opener = _opener(start)
        if opener is not None:
            file, errors = opener(file, source, stack)
            stack.enter_context(readable(source_name(source), "text", *errors))
            stack.enter_context(file)
            _refuse_tar(file, source_name(source))
        yield file, lambda: math.nan if opener is _zip else packed.n_bytes


def _refuse_tar(file: Any, name: str) -> None:
    """Raise KeslerError if a compressed file is an archive of tar."""
    if file.peek(AT_TAR + len(TAR))[AT_TAR:].startswith(TAR):
        raise KeslerError(
            f"{name} is an archive of tar: unpack it with tar -xf, and name a file or directory"
        )


def first_bytes(file: Any, known: tuple[bytes, ...]) -> bytes:
    """Read as many bytes as decide with which of some known ones a file begins.

    These are up to `LONGEST_MAGIC`. Nothing is awaited that is not needed, as more of a pipe may
    come late.
    """
    found = bytearray()
    while not found or any(each.startswith(found) and each != found for each in known):
        piece = file.read1(LONGEST_MAGIC)
        if not piece:
            break
        found += piece
    return bytes(found)


def _opener(start: bytes) -> Callable[[Any, str, ExitStack], _Opened] | None:
    return next((each for magic, each in _OPENERS.items() if start.startswith(magic)), None)


def require_standard_input() -> Any:
    """Return standard input as a file of bytes; raise if the process has none."""
    if sys.stdin is None:
        raise KeslerError("standard input is closed: pipe rows into it, or give a file")
    return sys.stdin.buffer

"""Files that are written whole: a reader sees the old contents or the new ones, never a part."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from kesler.errors import KeslerError

try:
    import fcntl
except ImportError:
    # Windows has no such locks: temporary files of killed processes remain there, and a second
    # server of a database is not noticed.
    fcntl = None  # type: ignore[assignment]

SUFFIX = ".part"


def write_whole(path: str | os.PathLike[str], contents: bytes) -> None:
    """Write a file: if the process is killed or the machine stops, the old file remains.

    Parameters
    ----------
    path : the path of the file. An existing file is replaced, and its permissions are kept; a new
        one has those that the umask leaves. A symbolic link is followed; a pipe or a device is
        written to.
    contents : what the file will hold.

    Raises
    ------
    KeslerError
        If the folder cannot be written to.

    Notes
    -----
    The contents and the name of the file are on the disk when the function returns. Temporary files
    next to it that killed processes left are removed.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "new"
    >>> write_whole(path, b"whole")
    >>> path.read_bytes(), [each.name for each in path.parent.iterdir()]
    (b'whole', ['new'])
    """
    if Path(path).is_fifo() or Path(path).is_char_device():
        Path(path).write_bytes(contents)
        return
    with whole_file(path) as file:
        file.write(contents)


@contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a file that is written whole, as by :func:`write_whole`; nothing remains of errors.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "new"
    >>> with whole_file(path) as file:
    ...     _ = file.write(b"whole")
    ...     path.exists()
    False
    >>> path.read_bytes()
    b'whole'
    """
    try:
        place = Path(os.path.realpath(path))
        _remove_left(place)
        with _temporary(place) as (descriptor, name):
            copy_permissions(place, descriptor)
            with open(descriptor, "wb", closefd=False) as file:
                yield file
            os.fsync(descriptor)
            os.replace(name, place)
        _synchronise(place.parent)
    except OSError as error:
        raise KeslerError(f"{path}: cannot be written ({error.strerror})") from error


@contextmanager
def _temporary(place: Path) -> Iterator[tuple[int, str]]:
    """Create a locked file beside another, and remove it unless it was renamed."""
    descriptor, name = _locked(place)
    try:
        yield descriptor, name
    finally:
        with suppress(FileNotFoundError):
            os.unlink(name)
        os.close(descriptor)


def _locked(place: Path) -> tuple[int, str]:
    """Create a file, and lock it for as long as this process has it open."""
    flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY | getattr(os, "O_BINARY", 0)
    while True:
        name = f"{place}.{secrets.token_hex(4)}{SUFFIX}"
        descriptor = os.open(name, flags, 0o666)
        if fcntl is None or (take_lock(descriptor, waits=True) and os.path.exists(name)):
            return descriptor, name
        os.close(descriptor)  # another process took it for one that was left


def _remove_left(place: Path) -> None:
    """Remove temporary files of a file that no process has locked."""
    if fcntl is None:
        return
    for left in place.parent.glob(f"{_escaped(place.name)}.*{SUFFIX}"):
        with suppress(OSError):
            descriptor = os.open(left, os.O_WRONLY | os.O_NOFOLLOW)
            try:
                if take_lock(descriptor):
                    os.unlink(left)
            finally:
                os.close(descriptor)


def take_lock(descriptor: int, *, waits: bool = False) -> bool:
    """Lock an open file until this process closes it or ends; return whether it is locked.

    Parameters
    ----------
    descriptor : of the file.
    waits : whether to wait for another process that has locked it.

    Notes
    -----
    A system without such locks answers as if nobody else had the file.
    """
    if fcntl is not None:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if waits else fcntl.LOCK_NB))
        except BlockingIOError:
            return False
    return True


def _escaped(name: str) -> str:
    """Return a pattern that matches this name only."""
    return "".join(f"[{letter}]" if letter in "*?[" else letter for letter in name)


def copy_permissions(place: Path, descriptor: int) -> None:
    """Give a file the permissions, and if possible the owner, of the one that it will replace."""
    if fcntl is None or not place.exists():
        return
    old = place.stat()
    with suppress(PermissionError):
        os.fchown(descriptor, old.st_uid, old.st_gid)
    os.fchmod(descriptor, stat.S_IMODE(old.st_mode))


def _synchronise(folder: Path) -> None:
    """Have the names in a folder written to the disk, where the system offers that."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

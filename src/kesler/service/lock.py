"""The lock of a database: one process at a time serves it."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from kesler.data.whole_file import copy_permissions, take_lock
from kesler.errors import KeslerError

SUFFIX = "-server"


class ServerLock:
    """What the process that serves a database holds; the system takes it from one that is killed.

    It is held on a file beside the database, which contains the number of the process. The database
    itself must not be opened here: to close it would take the locks of SQLite from this process.

    Parameters
    ----------
    path : str
        The database.

    Raises
    ------
    KeslerError
        If another process serves the database, or the file cannot be written.
    """

    def __init__(self, path: str) -> None:
        self._path, self._place = path, os.path.realpath(path) + SUFFIX
        try:
            self._descriptor: int | None = self._taken()
        except OSError as error:
            raise KeslerError(
                f"{self._place}: cannot be written ({error.strerror}): name a database in an "
                "existing folder that this user may write to"
            ) from error

    def release(self) -> None:
        """Let other processes serve the database; a second call does nothing."""
        if self._descriptor is not None:
            with suppress(OSError):
                os.unlink(self._place)
            os.close(self._descriptor)
            self._descriptor = None

    def _taken(self) -> int:
        """Return a descriptor of the file, which this process has locked."""
        while True:
            # A link would have another file written. Whoever may write the database may write the
            # file, so that one that was left by a killed server keeps nobody out.
            follow = getattr(os, "O_NOFOLLOW", 0)
            descriptor = os.open(self._place, os.O_CREAT | os.O_RDWR | follow, 0o666)
            try:
                with suppress(PermissionError):  # of the file of somebody else
                    copy_permissions(Path(self._place.removesuffix(SUFFIX)), descriptor)
                self._take(descriptor)
                if self._is_there(descriptor):
                    os.ftruncate(descriptor, 0)
                    os.write(descriptor, str(os.getpid()).encode())
                    return descriptor
            except BaseException:
                os.close(descriptor)
                raise
            os.close(descriptor)  # the process that held it has removed the file meanwhile

    def _take(self, descriptor: int) -> None:
        if not take_lock(descriptor):
            number = os.read(descriptor, 20).decode()
            raise KeslerError(
                f"{self._path}: {f'process {number}' if number else 'another process'} serves "
                "this database already: use that server, or stop it first"
            )

    def _is_there(self, descriptor: int) -> bool:
        """Return whether the file has not been removed."""
        try:
            return os.path.samestat(os.fstat(descriptor), os.stat(self._place))
        except FileNotFoundError:
            return False

"""Errors of a database, as sentences."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from kesler.errors import KeslerError

_LOW_BYTE = 0xFF  # the kind of an error code; the rest says where it came from

_SENTENCES = {
    sqlite3.SQLITE_BUSY: "another process is writing to the journal, and has not finished in the "
    "time that calls wait: try again, or give a longer wait=",
    sqlite3.SQLITE_LOCKED: "the journal is locked: try again",
    sqlite3.SQLITE_FULL: "the disk is full, and nothing was changed: make space and try again",
    sqlite3.SQLITE_READONLY: "the journal cannot be written to: allow writing to the file and its "
    "folder",
    sqlite3.SQLITE_CANTOPEN: "the journal cannot be opened: name a file in an existing folder that "
    "this user may read and write",
    sqlite3.SQLITE_PERM: "the journal may not be opened by this user: allow it, or use another",
    sqlite3.SQLITE_AUTH: "the journal may not be opened by this user: allow it, or use another",
    sqlite3.SQLITE_IOERR: "the disk does not read or write the journal, and nothing was changed: "
    "look at its state and at the space that is left",
    sqlite3.SQLITE_TOOBIG: "a row is too large for the journal: give a smaller one",
    sqlite3.SQLITE_NOMEM: "there is not enough memory: close other programs and try again",
}
_DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_FORMAT)


def sentence_of(error: sqlite3.Error, path: Path) -> KeslerError:
    """Return an error of SQLite as one that says what to do.

    Examples
    --------
    >>> print(sentence_of(sqlite3.ProgrammingError("Cannot operate on a closed database."), "j.db"))
    j.db: the journal is closed: open it again
    """
    kind = getattr(error, "sqlite_errorcode", 0) & _LOW_BYTE
    if kind in _DAMAGED:
        return not_a_journal(path, str(error))
    if kind in _SENTENCES:
        return KeslerError(f"{path}: {_SENTENCES[kind]} ({error})")
    if isinstance(error, sqlite3.ProgrammingError) and "closed" in str(error):
        return KeslerError(f"{path}: the journal is closed: open it again")
    return KeslerError(f"{path}: the journal cannot be read, or is damaged ({error}): {_RESTORE}")


_RESTORE = "restore it from a backup, or call check() to see what is wrong"


def not_a_journal(path: Path, why: str = "its tables are those of another program") -> KeslerError:
    """Return the error for a file that is no journal, or is damaged."""
    return KeslerError(f"{path}: not a journal, or one that is damaged ({why}): {_RESTORE}")

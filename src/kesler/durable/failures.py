"""Errors of a journal: sentences, and reasons that programs can tell apart."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Literal

from kesler.errors import KeslerError

Reason = Literal["not found", "conflict", "busy", "full", "unusable"]
"""Why a journal refuses a call: an event, a class or a model is not there; an id or a name has been
given away; another process writes; the disk is full; the file cannot be used."""


class JournalError(KeslerError):
    """Exception for calls that a journal refuses for what it holds, or for the state of its file.

    Calls that no journal can accept, such as those with rows that a learner refuses, raise a
    :class:`~kesler.KeslerError` that is no `JournalError`.

    Parameters
    ----------
    sentence : str
        What was wrong, where, and what to do.
    reason : "not found", "conflict", "busy", "full" or "unusable"
        Why: see :data:`Reason`. After "busy", the same call may succeed later.

    Examples
    --------
    >>> import tempfile
    >>> from kesler import OnlineClassifier
    >>> from kesler.durable import Journal, JournalError
    >>> with Journal(tempfile.mkdtemp() + "/desk.db") as journal:
    ...     mail = journal.open("mail", OnlineClassifier())
    ...     try:
    ...         receipt = mail.undo("m1")
    ...     except JournalError as error:
    ...         print(error.reason)
    not found
    """

    def __init__(self, sentence: str, reason: Reason) -> None:
        super().__init__(sentence)
        self.reason = reason

    def __reduce__(self) -> tuple[type[JournalError], tuple[str, Reason]]:
        return type(self), (str(self), self.reason)


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
_REASONS: dict[int, Reason] = {
    sqlite3.SQLITE_BUSY: "busy",
    sqlite3.SQLITE_LOCKED: "busy",
    sqlite3.SQLITE_FULL: "full",
}
_DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_FORMAT)


def sentence_of(error: sqlite3.Error, path: Path) -> JournalError:
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
        return JournalError(f"{path}: {_SENTENCES[kind]} ({error})", _REASONS.get(kind, "unusable"))
    if isinstance(error, sqlite3.ProgrammingError) and "closed" in str(error):
        return JournalError(f"{path}: the journal is closed: open it again", "unusable")
    sentence = f"{path}: the journal cannot be read, or is damaged ({error}): {_RESTORE}"
    return JournalError(sentence, "unusable")


class InWords:
    """A context that raises errors of SQLite as sentences; it may be entered within itself.

    Parameters
    ----------
    path : path of the database, which the sentences name.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: object, traceback: object) -> None:
        if isinstance(error, sqlite3.Error):
            raise sentence_of(error, self._path) from error


_RESTORE = "restore it from a backup, or call check() to see what is wrong"


def not_a_journal(path: Path, why: str = "its tables are those of another program") -> JournalError:
    """Return the error for a file that is no journal, or is damaged."""
    sentence = f"{path}: not a journal, or one that is damaged ({why}): {_RESTORE}"
    return JournalError(sentence, "unusable")

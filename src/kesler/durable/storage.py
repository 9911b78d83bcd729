"""Storage: the history of the models and their snapshots in an SQLite database.

Everything that a journal asks of a database is a method here, so that one of a server can take its
place.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from kesler.durable.chain import (
    Beginning,
    Content,
    End,
    Link,
    digest_after,
    new_nonce,
    seal_of,
)
from kesler.durable.failures import InWords, JournalError, not_a_journal
from kesler.errors import KeslerError

APPLICATION = 0x6B736C72  # "kslr": what tells a journal from other SQLite databases
VERSION = 4  # of the tables
PART = 64 << 20  # bytes of a snapshot in one row of its table: SQLite refuses more than 1 GB

_TABLES = """
CREATE TABLE models (
    key INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL UNIQUE,
    settings TEXT NOT NULL,
    last INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE events (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    model INTEGER NOT NULL,
    kind TEXT NOT NULL,
    id TEXT NOT NULL,
    subject TEXT,
    answer TEXT,
    old TEXT,
    target INTEGER,
    time REAL NOT NULL,
    author TEXT,
    taken_back INTEGER,
    changed_from INTEGER,
    n_rows INTEGER NOT NULL DEFAULT 0
);
CREATE UNIQUE INDEX events_by_id ON events (model, id);
CREATE INDEX events_by_model ON events (model, number);
CREATE INDEX events_by_subject ON events (model, subject) WHERE subject IS NOT NULL;
CREATE INDEX changes_by_model ON events (model, number) WHERE kind <> 'learn';
CREATE INDEX events_by_target ON events (target) WHERE target IS NOT NULL;
CREATE TABLE rows (
    number INTEGER PRIMARY KEY,
    form TEXT NOT NULL,
    row TEXT NOT NULL
);
CREATE TABLE state (purging INTEGER NOT NULL);
INSERT INTO state VALUES (0);
"""

_SNAPSHOTS = """
CREATE TABLE snapshots (
    model INTEGER NOT NULL,
    at INTEGER NOT NULL,
    part INTEGER NOT NULL,
    digest TEXT NOT NULL,
    maker TEXT NOT NULL,
    contents BLOB NOT NULL,
    PRIMARY KEY (model, at, part)
);
"""

_CHAIN = """
ALTER TABLE models ADD COLUMN head TEXT NOT NULL DEFAULT '';
ALTER TABLE events ADD COLUMN forgotten TEXT;
ALTER TABLE events ADD COLUMN nonce TEXT NOT NULL DEFAULT '';
ALTER TABLE events ADD COLUMN sealed TEXT;
ALTER TABLE events ADD COLUMN digest TEXT NOT NULL DEFAULT '';
CREATE TABLE forgotten (
    model INTEGER NOT NULL,
    number INTEGER NOT NULL,
    digest TEXT NOT NULL,
    sealed TEXT NOT NULL,
    PRIMARY KEY (model, number)
);
"""

_KEPT = """
CREATE TABLE IF NOT EXISTS kept (
    model INTEGER NOT NULL,
    name TEXT NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY (model, name)
) WITHOUT ROWID;
"""

# From each version to the next.
_UPGRADES = {1: f"DROP TABLE snapshots; {_SNAPSHOTS}", 2: _CHAIN, 3: _KEPT}

_COLUMNS = (
    "number, kind, id, subject, answer, old, target, time, author, taken_back, changed_from, n_rows"
)
_CHANGES = "kind <> 'learn'"  # as the index of changes says it, which SQLite then uses
_REMAINING = "kind = 'learn' AND taken_back IS NULL"
_CONTENT = ", ".join(Content._fields)
_OF_EVENT = [each for each in Content._fields if each not in ("form", "row")]
_APPEND = (
    f"INSERT INTO events (number, model, digest, nonce, {', '.join(_OF_EVENT)}) "
    f"VALUES ({', '.join('?' * (4 + len(_OF_EVENT)))})"
)
_NEXT = "(SELECT coalesce(max(seq), 0) + 1 FROM sqlite_sequence WHERE name = 'events')"
_LINKS = (
    f"SELECT number, digest, sealed, nonce, taken_back, {_CONTENT} "
    "FROM events LEFT JOIN rows USING (number) WHERE"
)
_CHAIN_OF = (
    f"{_LINKS} model = ? UNION ALL "
    f"SELECT number, digest, sealed{', NULL' * (2 + len(Content._fields))} "
    "FROM forgotten WHERE model = ? ORDER BY number"
)


class Stored(NamedTuple):
    """An event as it is stored; answers and names of classes are JSON."""

    number: int
    kind: str
    id: str
    subject: str | None
    answer: str | None
    old: str | None
    target: int | None
    time: float
    author: str | None
    taken_back: int | None
    changed_from: int | None
    n_rows: int


class Learnt(NamedTuple):
    """A row that has been learnt, as it is stored."""

    number: int
    answer: str
    form: str
    row: str


class Snapshot(NamedTuple):
    """What is stored beside the contents of a snapshot."""

    at: int
    digest: str
    maker: str


class Storage:
    """A database of histories and snapshots, of which one process writes at a time.

    Parameters
    ----------
    path : path of the database file, which is created if it does not exist.
    wait : float, 0 or more
        The seconds that a call waits for another process that writes.

    Raises
    ------
    KeslerError
        If the file cannot be opened, or is not a journal that this version can read.
    """

    def __init__(self, path: str | os.PathLike[str], wait: float) -> None:
        self.path, self._wait = Path(os.path.abspath(path)), wait
        self._in_words = InWords(self.path)
        with self._in_words:
            self._connection = self._opened()
        try:
            with self._in_words:
                self._prepare()
        except BaseException:
            self._connection.close()
            raise

    def _opened(self) -> sqlite3.Connection:
        return sqlite3.connect(
            self.path, timeout=self._wait, isolation_level=None, check_same_thread=False
        )

    def _prepare(self) -> None:
        """Set the options of the connection; create the tables of a new file."""
        (application,) = self._one("PRAGMA application_id")
        (n_tables,) = self._one("SELECT count(*) FROM sqlite_master")
        if n_tables and application != APPLICATION:
            raise not_a_journal(self.path)
        # What is removed for good is purged by writing the file anew, without zeroes before.
        for option in ("synchronous = FULL", "secure_delete = OFF", "cell_size_check = ON"):
            self._connection.execute(f"PRAGMA {option}")
        self._connection.execute("PRAGMA trusted_schema = OFF")
        if not n_tables:
            self._create()
        (version,) = self._one("PRAGMA user_version")
        if version < 1:
            raise not_a_journal(self.path)
        if version > VERSION:
            raise JournalError(
                f"{self.path}: written by a newer Kesler (tables {version}, this one reads up to "
                f"{VERSION}): update Kesler",
                "unusable",
            )
        if version < VERSION:
            self._upgrade()

    def _create(self) -> None:
        self._connection.execute("PRAGMA journal_mode = WAL")
        with self.writing():
            if self._one("SELECT count(*) FROM sqlite_master")[0]:
                return  # another process has been faster
            self._run(_TABLES + _SNAPSHOTS + _CHAIN + _KEPT)
            self._connection.execute(f"PRAGMA application_id = {APPLICATION}")
            self._connection.execute(f"PRAGMA user_version = {VERSION}")

    def _upgrade(self) -> None:
        """Change the tables of an earlier version to those of this one."""
        with self.writing():
            (version,) = self._one("PRAGMA user_version")  # another process may have been faster
            for each in range(version, VERSION):
                self._run(_UPGRADES[each])
            if version < 3:
                self._seal_former()
            self._connection.execute(f"PRAGMA user_version = {VERSION}")

    def _seal_former(self) -> None:
        """Chain the events of a version that had no digests."""
        query = "UPDATE events SET nonce = ?, digest = ? WHERE number = ?"
        for key, *described in [*self._all("SELECT key, name, settings FROM models")]:
            head = Beginning(*described).digest
            for event in self.history(key, None, None)[::-1]:
                link = self._link(event.number)._replace(nonce=new_nonce())
                head = digest_after(head, link.number, link.first_seal)
                self._do(query, link.nonce, head, link.number)
            self._do("UPDATE models SET head = ? WHERE key = ?", head, key)

    def _run(self, statements: str) -> None:
        for statement in filter(str.strip, statements.split(";")):
            self._connection.execute(statement)

    def close(self) -> None:
        """Close the database; a second call does nothing."""
        with self._in_words:
            self._connection.close()

    # ---- transactions -----------------------------------------------------------------------

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Run a transaction that no other process writes beside; it is on disk afterwards."""
        with self._transaction("IMMEDIATE"):
            yield

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Read one state of the database, which others may change meanwhile.

        Within a transaction, it is the state of that.
        """
        with self._in_words:
            is_within = self._connection.in_transaction
        if is_within:
            yield
            return
        with self._transaction("DEFERRED"):
            yield

    @contextmanager
    def _transaction(self, kind: str) -> Iterator[None]:
        with self._in_words:
            self._connection.execute(f"BEGIN {kind}")
            try:
                yield
                self._commit()
            except BaseException:
                if self._connection.in_transaction:  # SQLite has ended it after some errors
                    with suppress(sqlite3.Error):
                        self._connection.execute("ROLLBACK")
                raise

    def _commit(self) -> None:
        self._connection.execute("COMMIT")

    def _one(self, query: str, *values: Any) -> Any:
        with self._in_words:
            return self._connection.execute(query, values).fetchone()

    def _all(self, query: str, *values: Any) -> Iterator[Any]:
        with self._in_words:
            yield from self._connection.execute(query, values)

    def _do(self, statement: str, *values: Any) -> int:
        """Run a statement; return the number of rows that it has changed."""
        with self._in_words:
            return self._connection.execute(statement, values).rowcount

    def clock(self) -> int:
        """Return a number that changes whenever another connection has written."""
        found: int = self._one("PRAGMA data_version")[0]
        return found

    # ---- models -----------------------------------------------------------------------------

    def models(self) -> list[str]:
        """Return the names of the models, in the order of their creation."""
        return [name for (name,) in self._all("SELECT name FROM models ORDER BY key")]

    def model(self, name: str) -> tuple[int, str] | None:
        """Return the key and the settings of a model; None if there is none of the name."""
        found: tuple[int, str] | None = self._one(
            "SELECT key, settings FROM models WHERE name = ?", name
        )
        return found

    def add_model(self, name: str, settings: str) -> int:
        """Add a model and return its key."""
        query = "INSERT INTO models (name, settings, head) VALUES (?, ?, ?)"
        self._do(query, name, settings, Beginning(name, settings).digest)
        found: int = self._one("SELECT key FROM models WHERE name = ?", name)[0]
        return found

    def remove_model(self, key: int) -> None:
        """Remove a model and all that is stored of it."""
        self._do("DELETE FROM snapshots WHERE model = ?", key)
        self._do(
            "DELETE FROM rows WHERE number IN (SELECT number FROM events WHERE model = ?)", key
        )
        for table in ("events", "forgotten", "kept"):
            self._do(f"DELETE FROM {table} WHERE model = ?", key)
        self._do("DELETE FROM models WHERE key = ?", key)
        self._require_purge()

    def last(self, key: int) -> int | None:
        """Return the number of the last event of a model, removed ones included; None if gone."""
        found = self._one("SELECT last FROM models WHERE key = ?", key)
        return None if found is None else found[0]

    # ---- events -----------------------------------------------------------------------------

    def next_number(self) -> int:
        """Return the number of the next event of any model, until others write."""
        found: int = self._one(f"SELECT {_NEXT}")[0]
        return found

    def append(self, key: int, kind: str, id: str, **values: Any) -> int:
        """Append an event to the history of a model, with its row, and return its number."""
        content = Content(kind, id, time.time(), **values)
        end: tuple[int, str] = self._one(f"SELECT {_NEXT}, head FROM models WHERE key = ?", key)
        (number, head), nonce = end, new_nonce()
        digest = digest_after(head, number, seal_of(nonce, content.text))
        self._do(_APPEND, number, key, digest, nonce, *content[: len(_OF_EVENT)])
        if content.row is not None:
            self._do("INSERT INTO rows VALUES (?, ?, ?)", number, content.form, content.row)
        self._do("UPDATE models SET last = ?, head = ? WHERE key = ?", number, digest, key)
        if content.changed_from is not None:  # those before it have not met the row
            query = "DELETE FROM snapshots WHERE model = ? AND at >= ?"
            self._do(query, key, content.changed_from)
        return number

    def row(self, number: int) -> tuple[str, str]:
        """Return the form and the text of the row of an event."""
        found: tuple[str, str] = self._one("SELECT form, row FROM rows WHERE number = ?", number)
        return found

    def find(self, key: int, id: str) -> Stored | None:
        """Return the event of an id; None if the model has none."""
        query = f"SELECT {_COLUMNS} FROM events WHERE model = ? AND id = ?"
        found = self._one(query, key, id)
        return None if found is None else Stored(*found)

    def event(self, number: int) -> Stored:
        """Return the event of a number."""
        return Stored(*self._one(f"SELECT {_COLUMNS} FROM events WHERE number = ?", number))

    def _events(
        self, columns: str, key: int, which: str, *values: Any, order: str = "number"
    ) -> Iterator[Any]:
        """Yield columns of the events of a model that fulfil a condition, in order."""
        query = f"SELECT {columns} FROM events WHERE model = ? {which} ORDER BY {order}"
        return self._all(query, key, *values)

    def _numbers(self, key: int, which: str, *values: Any) -> list[int]:
        return [number for (number,) in self._events("number", key, which, *values)]

    def set_taken_back(self, number: int, by: int | None) -> None:
        """Store which event has taken an event back; None if it is valid again."""
        self._do("UPDATE events SET taken_back = ? WHERE number = ?", by, number)

    def set_answer(self, number: int, answer: str) -> str:
        """Change the answer of an event for good; return the seal of what it says then."""
        link, nonce = self._link(number), new_nonce()
        assert link.content is not None
        query = "UPDATE events SET answer = ?, nonce = ?, sealed = ? WHERE number = ?"
        self._do(query, answer, nonce, link.first_seal, number)
        return seal_of(nonce, link.content._replace(answer=answer).text)

    def changes(self, key: int, after: int) -> list[Stored]:
        """Return the events after a number that are not rows learnt, in order."""
        which = f"AND number > ? AND {_CHANGES}"
        return [Stored(*each) for each in self._events(_COLUMNS, key, which, after)]

    def learnt(self, key: int, after: int, until: int | None = None) -> Iterator[Learnt]:
        """Yield the rows after a number that have been learnt and not taken back, in order.

        The last is at most that of the number `until`, unless it is None.
        """
        query = (
            "SELECT number, answer, form, row FROM events JOIN rows USING (number) "
            f"WHERE model = ? AND number > ? AND number <= ? AND {_REMAINING} ORDER BY number"
        )
        end = 1 << 62 if until is None else until
        return (Learnt(*found) for found in self._all(query, key, after, end))

    def answers(self, key: int, *, taken_back: bool = False) -> Iterator[tuple[int, str]]:
        """Yield the numbers and first answers of all rows, perhaps without those taken back."""
        which = "" if taken_back else "AND taken_back IS NULL"
        return self._events("number, answer", key, f"AND kind = 'learn' {which}")

    def numbers(self, key: int, after: int) -> list[int]:
        """Return the numbers of the rows after one that have not been taken back, in order."""
        return self._numbers(key, f"AND number > ? AND {_REMAINING}", after)

    def relabels(self, key: int) -> Iterator[tuple[int, int, str]]:
        """Yield the row, the number and the answer of relabels that are valid, in order."""
        which = f"AND {_CHANGES} AND kind = 'relabel' AND taken_back IS NULL"
        return self._events("target, number, answer", key, which)

    def renames(self, key: int) -> Iterator[tuple[int, str, str]]:
        """Yield the number, the old and the new class of valid renames and merges, in order."""
        which = f"AND {_CHANGES} AND kind IN ('rename', 'merge') AND taken_back IS NULL"
        return self._events("number, old, answer", key, which)

    def history(self, key: int, limit: int | None, before: int | None) -> list[Stored]:
        """Return the last events, latest first."""
        end, most = 1 << 62 if before is None else before, -1 if limit is None else limit
        found = self._events(
            _COLUMNS, key, "AND number < ?", end, most, order="number DESC LIMIT ?"
        )
        return [Stored(*each) for each in found]

    def since(self, key: int, after: int, but_by: str | None) -> list[Stored]:
        """Return the events after one, the first of them first, without those of an author."""
        which = "AND number > ? AND (? IS NULL OR author IS NOT ?)"
        found = self._events(_COLUMNS, key, which, after, but_by, but_by)
        return [Stored(*each) for each in found]

    def of_subject(self, key: int, subject: str) -> list[int]:
        """Return the numbers of the rows about a subject, those taken back included."""
        return self._numbers(key, "AND subject = ?", subject)

    # ---- values beside the events -----------------------------------------------------------

    def keep(self, key: int, name: str, value: str | None) -> None:
        """Store a value of a model under a name, in place of an earlier one; None removes it."""
        if value is None:
            self._do("DELETE FROM kept WHERE model = ? AND name = ?", key, name)
        else:
            self._do("INSERT OR REPLACE INTO kept VALUES (?, ?, ?)", key, name, value)

    def kept(self, key: int, prefix: str) -> Iterator[tuple[str, str]]:
        """Yield the names that begin with a text, in order, and their values."""
        query = "SELECT name, value FROM kept WHERE model = ? AND name >= ? ORDER BY name"
        for name, value in self._all(query, key, prefix):
            if not name.startswith(prefix):
                return
            yield name, value

    # ---- removal ----------------------------------------------------------------------------

    def remove(self, key: int, numbers: list[int]) -> list[int]:
        """Remove events, and those that are about them; return the numbers of all."""
        gone, orphans = [], numbers
        while orphans:
            for number in orphans:
                self._remove_event(key, number)
            gone += orphans
            which = f"AND {_CHANGES} AND target IS NOT NULL"
            orphans = self._numbers(key, f"{which} AND target NOT IN (SELECT number FROM events)")
        self._require_purge()
        return gone

    def _remove_event(self, key: int, number: int) -> None:
        """Remove an event but for its number, its seal and its digest."""
        link = self._link(number)
        query = "INSERT INTO forgotten (model, number, digest, sealed) VALUES (?, ?, ?, ?)"
        self._do(query, key, number, link.digest, link.first_seal)
        self._do("DELETE FROM rows WHERE number = ?", number)
        self._do("DELETE FROM events WHERE number = ?", number)

    def naming(self, key: int) -> list[int]:
        """Return the numbers of the relabels, renames and merges."""
        return self._numbers(key, "AND kind IN ('relabel', 'rename', 'merge')")

    def first_changed(self, key: int) -> int | None:
        """Return the first row that an event has changed, for readers that have not followed it."""
        query = "SELECT min(changed_from) FROM events WHERE model = ? AND kind <> 'learn'"
        found: int | None = self._one(query, key)[0]
        return found

    def _require_purge(self) -> None:
        self._do("UPDATE state SET purging = 1")

    def purge(self) -> None:
        """Write the database anew if events have been removed: nothing of them is left in files.

        Raises
        ------
        KeslerError
            If other processes read for longer than the wait, or the disk is full. What was removed
            is then in no state of the database, but still in its files, until the next purge or
            the next opening of the journal.
        """
        if not self._one("SELECT purging FROM state")[0]:
            return
        self._do("VACUUM")
        self._truncate_log()
        self._do("UPDATE state SET purging = 0")
        self._truncate_log()

    def purge_if_possible(self) -> None:
        """Purge what an interrupted process has left, unless the journal cannot be written to."""
        with suppress(KeslerError):
            self.purge()

    def _truncate_log(self) -> None:
        """Move the write-ahead log into the database and make its file empty."""
        end = time.monotonic() + self._wait
        while self._one("PRAGMA wal_checkpoint(TRUNCATE)")[0]:
            if time.monotonic() > end:
                raise JournalError(
                    f"{self.path}: what was forgotten is removed, but other processes are reading "
                    "the journal, so that its files cannot be purged yet: call purge() when they "
                    "have finished",
                    "busy",
                )
            time.sleep(0.01)

    # ---- the chain --------------------------------------------------------------------------

    @contextmanager
    def any_bytes(self) -> Iterator[None]:
        """Read texts that are not UTF-8, with surrogates in place of their bytes."""
        before = self._connection.text_factory
        self._connection.text_factory = partial(str, encoding="utf-8", errors="surrogateescape")
        try:
            yield
        finally:
            self._connection.text_factory = before

    def chains(self) -> list[tuple[int, Beginning, End]]:
        """Return the keys of all models, with what their chains begin and end with."""
        query = "SELECT key, name, settings, last, head FROM models ORDER BY key"
        return [
            (key, Beginning(name, settings), End(last, head))
            for key, name, settings, last, head in self._all(query)
        ]

    def links(self, key: int) -> Iterator[Link]:
        """Yield the events of a model in order, with those that have been forgotten."""
        return map(_link_of, self._all(_CHAIN_OF, key, key))

    def _link(self, number: int) -> Link:
        return _link_of(self._one(f"{_LINKS} number = ?", number))

    def strays(self) -> list[str]:
        """Return which events and rows are of no model, in words."""
        of_no_model = "model NOT IN (SELECT key FROM models)"
        queries = {
            "is of no model": f"SELECT number FROM events WHERE {of_no_model} "
            f"UNION SELECT number FROM forgotten WHERE {of_no_model}",
            "has a row and no content": "SELECT number FROM rows "
            "WHERE number NOT IN (SELECT number FROM events)",
        }
        return [
            f"event {number!r} {what}: it has been removed or put in by hand"
            for what, query in queries.items()
            for (number,) in self._all(f"{query} ORDER BY number LIMIT 1")
        ]

    # ---- snapshots --------------------------------------------------------------------------

    def snapshots(self, key: int) -> list[Snapshot]:
        """Return the snapshots of a model, the last first, without their contents."""
        columns = "SELECT at, digest, maker FROM snapshots"
        query = f"{columns} WHERE model = ? AND part = 0 ORDER BY at DESC"
        return [Snapshot(*found) for found in self._all(query, key)]

    def contents(self, key: int, at: int) -> bytes:
        """Return the contents of a snapshot."""
        query = "SELECT contents FROM snapshots WHERE model = ? AND at = ? ORDER BY part"
        return b"".join(part for (part,) in self._all(query, key, at))

    def add_snapshot(self, key: int, snapshot: Snapshot, contents: bytes) -> None:
        """Store a snapshot, in place of an earlier one of the same number."""
        self.remove_snapshots(key, [snapshot.at])
        at, *described = snapshot
        for part, start in enumerate(range(0, len(contents), PART)):
            values = (key, at, part, *described, memoryview(contents)[start : start + PART])
            self._do("INSERT INTO snapshots VALUES (?, ?, ?, ?, ?, ?)", *values)

    def remove_snapshots(self, key: int, numbers: list[int]) -> None:
        """Remove snapshots."""
        for at in numbers:
            self._do("DELETE FROM snapshots WHERE model = ? AND at = ?", key, at)

    # ---- whole database ---------------------------------------------------------------------

    def backup(self, path: str | os.PathLike[str]) -> None:
        """Copy one state of the database to a new file, while others may write."""
        if os.path.exists(path):
            sentence = f"{path}: exists already: name a new file for the backup"
            raise JournalError(sentence, "conflict")
        try:
            with self._in_words:
                copy = sqlite3.connect(path)
                try:
                    self._connection.backup(copy)
                finally:
                    copy.close()
        except BaseException:
            with suppress(OSError):
                os.unlink(path)
            raise

    def damages(self) -> list[str]:
        """Return what SQLite finds wrong with the file; empty if nothing."""
        with self._in_words:
            found = self._connection.execute("PRAGMA integrity_check(20)").fetchall()
        return [] if found == [("ok",)] else [str(line) for (line,) in found]


def _link_of(found: Any) -> Link:
    """Return an event of the chain, given the columns of `_LINKS`."""
    number, digest, sealed, nonce, taken_back, *content = found
    is_there = nonce is not None
    return Link(number, digest, sealed, nonce, Content(*content) if is_there else None, taken_back)

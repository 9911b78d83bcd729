"""The inbox: rows that wait for an answer, in a table of the journal's database."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import RLock
from typing import Any, NamedTuple

from kesler.durable.failures import sentence_of
from kesler.service.refusals import refusal_of

_TABLES = """
CREATE TABLE IF NOT EXISTS service_items (
    place INTEGER PRIMARY KEY,
    model TEXT NOT NULL,
    id TEXT NOT NULL,
    data TEXT NOT NULL,
    subject TEXT,
    arrived REAL NOT NULL,
    UNIQUE (model, id)
);
"""
_COLUMNS = "id, data, subject, arrived"


class Item(NamedTuple):
    """A row that waits for an answer."""

    id: str
    row: Any
    subject: str | None = None
    arrived: float = 0.0


class Items:
    """The rows of all models that wait for an answer.

    Parameters
    ----------
    path : str
        The database of the journal.
    """

    def __init__(self, path: str) -> None:
        self._lock, self._path = RLock(), Path(path)
        self._database = sqlite3.connect(
            path, timeout=30, check_same_thread=False, isolation_level=None
        )
        # SQLite's own lower() knows the letters of English alone.
        self._database.create_function("folded", 1, str.casefold, deterministic=True)
        with self._writing():
            self._database.execute(_TABLES)
            self._database.execute("PRAGMA secure_delete = ON")

    def close(self) -> None:
        """Close the connection."""
        with self._lock:
            self._database.close()

    # ---- changes ----------------------------------------------------------------------------

    def add(self, model: str, items: Iterable[Item]) -> list[bool]:
        """Add items; return which were new. Those with the id of another item are left out."""
        now = time.time()
        rows = [
            (model, i.id, json.dumps(i.row, ensure_ascii=False), i.subject, i.arrived or now)
            for i in items
        ]
        with self._writing() as database:
            insert = (
                "INSERT OR IGNORE INTO service_items (model, id, data, subject, arrived) "
                "VALUES (?, ?, ?, ?, ?)"
            )
            return [database.execute(insert, row).rowcount > 0 for row in rows]

    def remove(self, model: str, ids: Iterable[str]) -> None:
        """Remove the items of these ids, if there are any; nothing is written if there are none."""
        waiting = [id for id in ids if self._waits(model, id)]
        if waiting:
            with self._writing() as database:
                database.executemany(
                    "DELETE FROM service_items WHERE model = ? AND id = ?",
                    [(model, id) for id in waiting],
                )

    def discard(self, model: str, ids: Sequence[str] | None = None, text: str = "") -> int:
        """Remove the items of these ids, or all that contain a text; return how many."""
        where, given = "AND instr(folded(data), ?)", [_written(text)]
        if ids is not None:
            where, given = "AND id = ?", [*ids]
        rows = [(model, each) for each in given]
        with self._writing() as database:
            before = database.total_changes
            database.executemany(f"DELETE FROM service_items WHERE model = ? {where}", rows)
            return database.total_changes - before

    def _waits(self, model: str, id: str) -> bool:
        query = "SELECT 1 FROM service_items WHERE model = ? AND id = ?"
        with self._lock, self._in_words():
            return self._database.execute(query, (model, id)).fetchone() is not None

    def remove_subject(self, model: str, subject: str) -> None:
        """Remove all items of a subject."""
        with self._writing() as database:
            database.execute(
                "DELETE FROM service_items WHERE model = ? AND subject = ?", (model, subject)
            )

    def remove_model(self, model: str) -> None:
        """Remove all items of a model."""
        with self._writing() as database:
            database.execute("DELETE FROM service_items WHERE model = ?", (model,))

    # ---- questions --------------------------------------------------------------------------

    def get(self, model: str, id: str) -> Item | None:
        """Return an item, or None."""
        found = self._found(
            f"SELECT {_COLUMNS} FROM service_items WHERE model = ? AND id = ?", (model, id)
        )
        return found[0] if found else None

    def count(self, model: str, text: str = "") -> int:
        """Return the number of items that contain a text."""
        with self._lock, self._in_words():
            (found,) = self._database.execute(
                "SELECT COUNT(*) FROM service_items WHERE model = ? AND instr(folded(data), ?)"
                if text
                else "SELECT COUNT(*) FROM service_items WHERE model = ?",
                (model, _written(text)) if text else (model,),
            ).fetchone()
            return int(found)

    def page(self, model: str, text: str = "", start: int = 0, limit: int = 20) -> list[Item]:
        """Return items that contain a text, in the order in which they came."""
        where, given = ("AND instr(folded(data), ?)", (_written(text),)) if text else ("", ())
        return self._found(
            f"SELECT {_COLUMNS} FROM service_items WHERE model = ? {where} "
            "ORDER BY place LIMIT ? OFFSET ?",
            (model, *given, limit, start),
        )

    def ids(self, model: str) -> list[str]:
        """Return the ids of all items."""
        with self._lock, self._in_words():
            found = self._database.execute("SELECT id FROM service_items WHERE model = ?", (model,))
            return [each for (each,) in found]

    def _found(self, query: str, given: Sequence[Any]) -> list[Item]:
        with self._lock, self._in_words():
            rows = self._database.execute(query, given).fetchall()
        return [Item(i, json.loads(data), subject, when) for i, data, subject, when in rows]

    @contextmanager
    def _in_words(self) -> Iterator[None]:
        """Raise errors of the database as refusals."""
        try:
            yield
        except sqlite3.Error as error:
            raise refusal_of(sentence_of(error, self._path)) from error

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """One transaction, which is on the disk at the end."""
        with self._lock, self._in_words():
            self._database.execute("BEGIN IMMEDIATE")
            try:
                yield self._database
            except BaseException:
                self._database.execute("ROLLBACK")
                raise
            self._database.execute("COMMIT")


def _written(text: str) -> str:
    """Return a text as it is written in JSON, without case."""
    return json.dumps(text.casefold(), ensure_ascii=False)[1:-1]

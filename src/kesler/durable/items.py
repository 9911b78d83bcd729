"""The inbox: rows that wait for an answer, in a table of the journal's database."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import RLock
from typing import Any, NamedTuple

from kesler.durable.failures import InWords

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
_LATER = ("title", "note", "answered")  # columns that databases of former versions lack
_INDEX = """
CREATE INDEX IF NOT EXISTS service_answered ON service_items (model, answered)
WHERE answered IS NOT NULL
"""
MOST_PLACES = 1000
"""The answers of a model whose items, taken back, wait again where they were."""
_COLUMNS = "id, data, subject, arrived, title, note"

ANSWERS = "answers"
"""The name under which a program that adds items to a model keeps the answers that it can use."""


class Item(NamedTuple):
    """A row that waits for an answer.

    With a title, that is shown in place of the row; with an empty one, the id alone. A note says
    what has been done with it so far.
    """

    id: str
    row: Any
    subject: str | None = None
    arrived: float = 0.0
    title: str | None = None
    note: str | None = None


class Items:
    """The rows of all models that wait for an answer.

    Of the last `MOST_PLACES` that have been answered, the ids and the places are kept.

    Parameters
    ----------
    path : str
        The database of the journal.
    """

    def __init__(self, path: str) -> None:
        self._lock, self._in_words = RLock(), InWords(Path(path))
        self._database = sqlite3.connect(
            path, timeout=30, check_same_thread=False, isolation_level=None
        )
        # SQLite's own lower() knows the letters of English alone.
        self._database.create_function("folded", 1, str.casefold, deterministic=True)
        with self._writing():
            self._database.execute(_TABLES)
            self._add_columns()
            self._database.execute(_INDEX)
            self._database.execute("PRAGMA secure_delete = ON")

    def _add_columns(self) -> None:
        known = {row[1] for row in self._database.execute("PRAGMA table_info(service_items)")}
        for name in _LATER:
            if name not in known:
                self._database.execute(f"ALTER TABLE service_items ADD COLUMN {name}")

    def close(self) -> None:
        """Close the connection."""
        with self._lock:
            self._database.close()

    # ---- changes ----------------------------------------------------------------------------

    def add(self, model: str, items: Iterable[Item]) -> list[bool]:
        """Add items; return which were new. Those with the id of another item are left out.

        One that has been answered waits where it waited before.
        """
        now = time.time()
        rows = [(model, *_stored(each._replace(arrived=each.arrived or now))) for each in items]
        again = ", ".join(f"{name} = excluded.{name}" for name in ("data", "subject", "title"))
        insert = (
            f"INSERT INTO service_items (model, {_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?) "
            f"ON CONFLICT (model, id) DO UPDATE SET answered = NULL, {again} "
            "WHERE answered IS NOT NULL"
        )
        with self._writing() as database:
            return [database.execute(insert, row).rowcount > 0 for row in rows]

    def describe(
        self, model: str, descriptions: Mapping[str, tuple[str | None, str | None]]
    ) -> None:
        """Replace the titles and the notes of the items of these ids."""
        with self._writing() as database:
            database.executemany(
                "UPDATE service_items SET title = ?, note = ? WHERE model = ? AND id = ?",
                [(*each, model, id) for id, each in descriptions.items()],
            )

    def answer(self, model: str, ids: Iterable[str]) -> None:
        """Remove the items of these ids but their places; nothing is written if there are none."""
        waiting = [(model, id) for id in ids if self.get(model, id) is not None]
        if not waiting:
            return
        known = "model = ?1 AND answered IS NOT NULL"
        last = f"SELECT COALESCE(MAX(answered), 0) FROM service_items WHERE {known}"
        with self._writing() as database:
            database.executemany(
                f"UPDATE service_items SET answered = ({last}) + 1, data = 'null', subject = NULL, "
                "title = NULL, note = NULL WHERE model = ?1 AND id = ?2",
                waiting,
            )
            database.execute(
                f"DELETE FROM service_items WHERE {known} AND answered <= ({last}) - ?2",
                (model, MOST_PLACES),
            )

    def answered(self, model: str) -> list[str]:
        """Return the ids of items that have been answered, and whose places are kept."""
        query = "SELECT id FROM service_items WHERE model = ? AND answered IS NOT NULL"
        with self._lock, self._in_words:
            return [id for (id,) in self._database.execute(query, (model,))]

    def remove(self, model: str, ids: Iterable[str]) -> None:
        """Remove the items of these ids and their places; nothing is written without an id."""
        gone = [(model, id) for id in ids]
        if gone:
            with self._writing() as database:
                database.executemany("DELETE FROM service_items WHERE model = ? AND id = ?", gone)

    def discard(self, model: str, ids: Sequence[str] | None = None, text: str = "") -> int:
        """Remove the items of these ids, or all that contain a text; return how many."""
        where: str = _CONTAINS
        rows: list[tuple[str, ...]] = [_containing(model, text)]
        if ids is not None:
            where, rows = "AND id = ?", [(model, each) for each in ids]
        with self._writing() as database:
            before = database.total_changes
            database.executemany(f"DELETE FROM service_items WHERE {_WAITS} {where}", rows)
            return database.total_changes - before

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
            f"SELECT {_COLUMNS} FROM service_items WHERE {_WAITS} AND id = ?", (model, id)
        )
        return found[0] if found else None

    def count(self, model: str, text: str = "") -> int:
        """Return the number of items that contain a text."""
        with self._lock, self._in_words:
            where, given = (_CONTAINS, _containing(model, text)) if text else ("", (model,))
            (found,) = self._database.execute(
                f"SELECT COUNT(*) FROM service_items WHERE {_WAITS} {where}", given
            ).fetchone()
            return int(found)

    def page(self, model: str, text: str, start: int, limit: int) -> list[Item]:
        """Return items that contain a text, in the order in which they came."""
        where, given = (_CONTAINS, _containing(model, text)) if text else ("", (model,))
        return self._found(
            f"SELECT {_COLUMNS} FROM service_items WHERE {_WAITS} {where} "
            "ORDER BY place LIMIT ? OFFSET ?",
            (*given, limit, start),
        )

    def descriptions(self, model: str) -> dict[str, tuple[str | None, str | None]]:
        """Return the titles and the notes of all items by their ids."""
        query = f"SELECT id, title, note FROM service_items WHERE {_WAITS}"
        with self._lock, self._in_words:
            found = self._database.execute(query, (model,)).fetchall()
        return {id: (title, note) for id, title, note in found}

    def _found(self, query: str, given: Sequence[Any]) -> list[Item]:
        with self._lock, self._in_words:
            rows = self._database.execute(query, given).fetchall()
        return [Item(id, json.loads(data), *others) for id, data, *others in rows]

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """One transaction, which is on the disk at the end."""
        with self._lock, self._in_words:
            self._database.execute("BEGIN IMMEDIATE")
            try:
                yield self._database
            except BaseException:
                self._database.execute("ROLLBACK")
                raise
            self._database.execute("COMMIT")


def _stored(item: Item) -> tuple[Any, ...]:
    """Return the columns of an item."""
    return item._replace(row=json.dumps(item.row, ensure_ascii=False))


_WAITS = "model = ? AND answered IS NULL"
_CONTAINS = "AND (instr(folded(data), ?) OR instr(folded(coalesce(title, '')), ?))"


def _containing(model: str, text: str) -> tuple[str, str, str]:
    """Return what `_CONTAINS` asks for: a text as it is written in JSON, and as it is."""
    folded = text.casefold()
    return model, json.dumps(folded, ensure_ascii=False)[1:-1], folded

"""Databases of SQLite and DuckDB: the rows of a table or of a query, which can only read."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

from kesler.errors import KeslerError
from kesler.readers.compression import start_of
from kesler.readers.features import Names
from kesler.readers.lines import LONGEST_LINE
from kesler.readers.reader import Reader, readable
from kesler.readers.records import Fields, listed, table_reader

BLOCK_ROWS = 1024
SQLITE_MAGIC = b"SQLite format 3\0"
DUCKDB_MAGIC = b"DUCK"  # behind a checksum of 8 bytes


class Engine(NamedTuple):
    """How databases of a kind are read.

    Parameters
    ----------
    what : str
        What a file is, in messages.
    connect : callable (path) -> connection
        Opens a database so that queries can change nothing.
    tables : str
        The query for the schemas and names of its tables and views.
    errors : tuple of exception types
        The errors that its library raises.
    """

    what: str
    connect: Callable[[str], Any]
    tables: str
    errors: tuple[type[Exception], ...]


def sqlite_reader(path: str, fields: Fields, names: Names, sql: str | None) -> Reader:
    """Read a database of SQLite, its only table or the rows of a query.

    The query is ``sql=`` or what stands behind the path and a question mark. It runs read-only, and
    a few rows of its result are in memory at a time.
    """
    engine = Engine(
        "a database of SQLite",
        _sqlite,
        "select '', name from sqlite_master where type in ('table', 'view') "
        "and name not like 'sqlite\\_%' escape '\\' order by name",
        (sqlite3.Error, sqlite3.Warning),
    )
    return _reader(path, engine, sql, fields, names)


def duckdb_reader(path: str, fields: Fields, names: Names, sql: str | None) -> Reader:
    """Read a database of DuckDB, its only table or the rows of a query.

    As for SQLite; the query cannot read or write other files.
    """
    try:
        import duckdb
    except ImportError as error:
        raise KeslerError(
            f"reading {path} needs duckdb: install it with pip install 'kesler[duckdb]'"
        ) from error
    engine = Engine(
        "a database of DuckDB",
        _duckdb,
        "select schema_name, table_name from duckdb_tables() where not internal union all "
        "select schema_name, view_name from duckdb_views() where not internal order by all",
        (duckdb.Error, RuntimeError, OverflowError, ValueError),
    )
    return _reader(path, engine, sql, fields, names)


def begins_sqlite(start: bytes) -> bool:
    """Return whether first bytes are those of a database of SQLite."""
    return start.startswith(SQLITE_MAGIC)


def begins_duckdb(start: bytes) -> bool:
    """Return whether first bytes are those of a database of DuckDB."""
    return start[8:].startswith(DUCKDB_MAGIC)


def is_database(path: str) -> bool:
    """Return whether a file is a database, judged by its first bytes."""
    start = start_of(path, len(SQLITE_MAGIC))
    return begins_sqlite(start) or begins_duckdb(start)


def _reader(path: str, engine: Engine, sql: str | None, fields: Fields, names: Names) -> Reader:
    rows = _rows(path, engine, sql)
    _, header = next(rows)
    return table_reader("row", header, rows, fields, names)


def _rows(path: str, engine: Engine, sql: str | None) -> Iterator[tuple[int, Sequence[Any]]]:
    """Yield the names of the columns of a query, then its rows with their numbers."""
    with readable(path, engine.what, *engine.errors), closing(engine.connect(path)) as connection:
        tables = connection.execute(engine.tables).fetchall()
        cursor = _executed(path, engine, connection, sql or _only(path, tables), tables)
        yield 0, [column[0] for column in cursor.description]
        number = 1
        while block := cursor.fetchmany(BLOCK_ROWS):
            yield from enumerate(block, number)
            number += len(block)


def _only(path: str, tables: Sequence[tuple[str, str]]) -> str:
    """Return the query for all rows of the only table; raise KeslerError if there are others."""
    if len(tables) == 1:
        return f"select * from {_quoted(*tables[0])}"
    if not tables:
        raise KeslerError(f"{path} has no tables: check it")
    raise KeslerError(
        f"{path} has the tables {_listed(tables)}, of which one is read: name it in a query, such "
        f'as sql="select * from {_shown(*tables[0])}"'
    )


def _executed(
    path: str, engine: Engine, connection: Any, query: str, tables: Sequence[tuple[str, str]]
) -> Any:
    """Return the cursor of a query that returns rows."""
    try:
        cursor = connection.execute(query)
    except engine.errors as error:
        raise _refused(path, str(error), tables) from error
    if cursor.description is None:
        raise _refused(path, "it returns no rows", tables)
    return cursor


def _refused(path: str, why: str, tables: Sequence[tuple[str, str]]) -> KeslerError:
    reason = " ".join(why.split())
    return KeslerError(
        f"the query cannot be run on {path} ({reason}): give one query that reads, such as "
        f'sql="select * from ..."; the tables are {_listed(tables)}'
    )


def _shown(schema: str, table: str) -> str:
    return table if schema in ("", "main") else f"{schema}.{table}"


def _quoted(*parts: str) -> str:
    return ".".join('"' + part.replace('"', '""') + '"' for part in parts if part)


def _listed(tables: Sequence[tuple[str, str]]) -> str:
    return listed(_shown(*table) for table in tables)


def _sqlite(path: str) -> sqlite3.Connection:
    """Open a database of SQLite in such a way that a query can only read it."""
    _require_whole(path)
    uri = f"{Path(path).resolve().as_uri()}?mode=ro"
    connection = sqlite3.connect(uri, uri=True, check_same_thread=False)
    # Text that is not UTF-8 makes its row a bad one.
    connection.text_factory = lambda text: text.decode(errors="surrogateescape")
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LONGEST_LINE)
    connection.execute("pragma trusted_schema = off")
    connection.set_authorizer(_authorized)
    return connection


READING = {
    sqlite3.SQLITE_SELECT,
    sqlite3.SQLITE_READ,
    sqlite3.SQLITE_FUNCTION,
    sqlite3.SQLITE_RECURSIVE,
}


def _authorized(action: int, first: str | None, second: str | None, *_: Any) -> int:
    """Allow what reads, and what the indexes of full-text search ask for."""
    is_of_index = action == sqlite3.SQLITE_PRAGMA and first == "data_version"
    is_reading = action in READING and second != "load_extension"
    return sqlite3.SQLITE_OK if is_reading or is_of_index else sqlite3.SQLITE_DENY


def _require_whole(path: str) -> None:
    """Raise KeslerError if a file is shorter than its first bytes say."""
    start = start_of(path, 100)
    size = int.from_bytes(start[16:18], "big")
    n_bytes = (size if size > 1 else 1 << 16) * int.from_bytes(start[28:32], "big")
    is_known = start[24:28] == start[92:96]  # of files of old versions it is not
    if start.startswith(SQLITE_MAGIC) and is_known and os.path.getsize(path) < n_bytes:
        raise KeslerError(
            f"{path} is cut short: it has {os.path.getsize(path):,} of {n_bytes:,} bytes; fetch "
            "it again"
        )


def _duckdb(path: str) -> Any:
    """Open a database of DuckDB in such a way that a query can read it and nothing else."""
    import duckdb

    connection = duckdb.connect(path, read_only=True, config={"enable_external_access": "false"})
    connection.execute("set timezone = 'UTC'")  # times with a zone do not depend on the machine
    connection.execute("set lock_configuration = true")
    return _OneQuery(connection)


class _OneQuery:
    """A connection to DuckDB that runs single queries."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def execute(self, query: str) -> Any:
        """Run a query; raise ValueError if it is not one."""
        found = self._connection.extract_statements(query)
        if [statement.type.name for statement in found] != ["SELECT"]:
            raise ValueError("it is not one SELECT")
        return self._connection.execute(found[0])

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

"""Models as functions of DuckDB and SQLite: rows per second beside loops in Python.

    python benchmarks/in_databases.py [--rows N]

The model has learnt the questions of banking77; it is asked for a million texts, these questions
with a number behind, which are rows of a table of DuckDB, of SQLite, and a list in Python. One
thread predicts in each case; times are those of the processor. The script writes
benchmarks/results/in_databases.md.
"""

from __future__ import annotations

import sqlite3
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import duckdb
import pyarrow as pa

import kesler.duckdb
import kesler.sqlite
from kesler import OnlineClassifier
from kesler.datasets import load

sys.path.append(str(Path(__file__).parents[1] / "papers"))
from report import Report, table
from script_arguments import folder_of, script_parser

ROWS, BLOCK = 1_000_000, 10_000
QUERY = "select classify(text), count(*) from texts group by 1"
Counts = Counter[str]


def in_duckdb(model: OnlineClassifier, texts: list[str]) -> Callable[[], Counts]:
    """Return a query of DuckDB that counts the classes of texts."""
    connection = duckdb.connect(config={"threads": 1})
    kesler.duckdb.register(connection, model)
    connection.register("given", pa.table({"text": texts}))
    connection.execute("create table texts as select * from given")
    return lambda: Counter(dict(connection.sql(QUERY).fetchall()))


def in_sqlite(model: OnlineClassifier, texts: list[str]) -> Callable[[], Counts]:
    """Return a query of SQLite that counts the classes of texts."""
    connection = sqlite3.connect(":memory:")
    kesler.sqlite.register(connection, model)
    connection.execute("create table texts(text text)")
    connection.executemany("insert into texts values (?)", ((text,) for text in texts))
    return lambda: Counter(dict(connection.execute(QUERY).fetchall()))


def one_by_one(model: OnlineClassifier, texts: list[str]) -> Callable[[], Counts]:
    """Return a loop over the rows of DuckDB that predicts each."""
    connection = duckdb.connect(config={"threads": 1})
    connection.register("texts", pa.table({"text": texts}))

    def run() -> Counts:
        found, query = Counts(), connection.execute("select text from texts")
        while rows := query.fetchmany(BLOCK):
            found.update(model.predict_one(text) for (text,) in rows)
        return found

    return run


def in_blocks(model: OnlineClassifier, texts: list[str]) -> Callable[[], Counts]:
    """Return a loop over a list that predicts blocks of texts."""

    def run() -> Counts:
        found = Counts()
        for start in range(0, len(texts), BLOCK):
            found.update(model.predict(texts[start : start + BLOCK]).tolist())
        return found

    return run


WAYS = {
    "classify(text) in DuckDB": in_duckdb,
    "classify(text) in SQLite": in_sqlite,
    "rows of DuckDB, predict_one": one_by_one,
    f"a list, predict of {BLOCK:,} texts": in_blocks,
}


def main() -> int:
    """Run all ways and write their page."""
    parser = script_parser(__doc__, __file__)
    parser.add_argument(
        "--rows", type=int, default=ROWS, help=f"number of texts (default {ROWS:,})"
    )
    options = parser.parse_args()
    data = load("banking77")
    questions = [" ".join(each.values()) for each in data.records]
    model = OnlineClassifier().fit(questions, [str(label) for label in data.y])
    texts = [f"{questions[i % len(questions)]} {i}" for i in range(options.rows)]
    page = Report(
        "in_databases",
        "Models in databases",
        folder_of(parser, options, is_whole=options.rows == ROWS),
    )
    rows, answers = [], []
    for name, way in WAYS.items():
        run = way(model, texts)
        start = time.process_time()
        answers.append(run())
        seconds = time.process_time() - start
        rows.append([name, f"{seconds:.1f}", f"{options.rows / seconds:,.0f}"])
        print(*rows[-1], flush=True)
    page.add(f"{options.rows:,} texts, 77 classes.", table(["", "s", "rows/s"], rows))
    page.check("all ways count the same classes", all(each == answers[0] for each in answers))
    return page.write()


if __name__ == "__main__":
    sys.exit(main())

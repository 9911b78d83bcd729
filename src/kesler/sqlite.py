"""Models as functions of SQLite, which classify the rows of a query one by one."""

from __future__ import annotations

import sqlite3
from typing import Any

from kesler.data.labels import plain
from kesler.errors import KeslerError
from kesler.sql import TRUTH, Function, functions_of

__all__ = ["register"]


def register(connection: sqlite3.Connection, model: Any, name: str = "classify") -> list[str]:
    """Register a model as functions of a connection to SQLite.

    They are those that :func:`kesler.duckdb.register` makes, and do not learn either.

    Parameters
    ----------
    connection : sqlite3.Connection
        The connection.
    model, name : as in :func:`kesler.duckdb.register`
        Rows are texts or tables.

    Returns
    -------
    list of str
        The arguments of the functions: the columns of a table in the order in which the model knows
        them, or "text".

    Raises
    ------
    KeslerError
        If the model does not predict classes, `name` is no name, or its rows are lists, which
        SQLite does not have.

    Notes
    -----
    SQLite calls a function once for each row; :func:`kesler.duckdb.register` predicts rows
    together, which is faster.

    Examples
    --------
    >>> import sqlite3
    >>> import kesler.sqlite
    >>> model = kesler.OnlineClassifier()
    >>> _ = model.learn_one("wrong invoice", "billing").learn_one("cannot log in", "support")
    >>> connection = sqlite3.connect(":memory:")
    >>> kesler.sqlite.register(connection, model)
    ['text']
    >>> connection.execute("select classify('an invoice')").fetchall()
    [('billing',)]
    """
    functions = functions_of(model, name)
    for each in functions:
        if any(type_.endswith("[]") for type_ in each.parameters.values()):
            raise KeslerError(
                "the model has learnt lists of numbers or names, which SQLite does not have: use "
                "kesler.duckdb, or predict in Python"
            )
        connection.create_function(
            each.name, len(each.parameters), _of_row(each), deterministic=True
        )
    return [column or "text" for column in functions[0].parameters]


def _of_row(function: Function) -> Any:
    names = [*function.parameters]
    truths = [name for name, type_ in function.parameters.items() if type_ == TRUTH]

    def result(*cells: Any) -> Any:
        if names == [""]:
            return plain(function.result_of(cells[0] or ""))
        row = dict(zip(names, cells, strict=True))
        for name in truths:  # SQLite has 1 and 0 in their place
            row[name] = bool(row[name]) if row[name] in (0, 1) else row[name]
        return plain(function.result_of(row))

    return result

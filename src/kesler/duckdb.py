"""Models as functions of DuckDB, which classify the rows of a query in batches."""

from __future__ import annotations

from inspect import Parameter, Signature
from typing import Any

import numpy as np

from kesler.errors import KeslerError
from kesler.sql import Function, functions_of

__all__ = ["register"]


def register(connection: Any, model: Any, name: str = "classify") -> dict[str, str]:
    """Register a model as functions of a connection to DuckDB.

    ``select classify(body) from tickets`` then returns the class of each row, and
    ``classify_confidence(body)`` the probability that it is right. The functions do not learn.

    Parameters
    ----------
    connection : duckdb.DuckDBPyConnection
        The connection.
    model : OnlineClassifier, str or path
        A fitted classifier, or a file that one was saved to. It should not learn while queries run.
    name : str, default "classify"
        The name of the function of classes; an existing function of this name is replaced.

    Returns
    -------
    dict of str to str
        The arguments of the functions and their types: the columns of a table in the order in which
        the model knows them, one text, or one list of numbers.

    Raises
    ------
    KeslerError
        If the model does not predict classes, or `name` is no name.
    ImportError
        If duckdb or pyarrow is not installed.

    Notes
    -----
    DuckDB passes some 2,000 rows at once, as Arrow arrays, which are predicted together.

    Examples
    --------
    >>> import duckdb
    >>> import kesler.duckdb
    >>> model = kesler.OnlineClassifier()
    >>> _ = model.learn_one("wrong invoice", "billing").learn_one("cannot log in", "support")
    >>> connection = duckdb.connect()
    >>> kesler.duckdb.register(connection, model)
    {'text': 'VARCHAR'}
    >>> connection.sql("select classify('an invoice') as team").fetchall()
    [('billing',)]
    """
    functions = functions_of(model, name)
    for each in functions:
        _replace(connection, each)
    return {column or _only(type_): type_ for column, type_ in functions[0].parameters.items()}


def _only(type_: str) -> str:
    return "text" if type_ == "VARCHAR" else "numbers"


def _replace(connection: Any, function: Function) -> None:
    import duckdb
    import pyarrow

    types = [*function.parameters.values()]
    arrow = {"VARCHAR": pyarrow.string(), "BIGINT": pyarrow.int64(), "DOUBLE": pyarrow.float64()}

    def results(*columns: Any) -> Any:
        found = function.results(_rows(function, columns))
        return pyarrow.array(np.asarray(found).tolist(), type=arrow[function.result])

    # DuckDB counts the arguments by the signature.
    names = (Parameter(f"column_{i}", Parameter.POSITIONAL_ONLY) for i in range(len(types)))
    results.__signature__ = Signature([*names])  # type: ignore[attr-defined]
    try:
        connection.remove_function(function.name)
    except duckdb.InvalidInputException:  # there is none of this name
        pass
    connection.create_function(
        *(function.name, results, types, function.result),
        type="arrow",
        null_handling="special",  # a missing cell is one that the model knows of
    )


def _rows(function: Function, columns: tuple[Any, ...]) -> Any:
    """Return the rows of columns of Arrow in a form that models predict."""
    import pyarrow

    if [*function.parameters] != [""]:
        return pyarrow.table(dict(zip(function.parameters, columns, strict=True)))
    cells = columns[0].to_pylist()
    if [*function.parameters.values()] == ["VARCHAR"]:
        return [cell or "" for cell in cells]
    if None in cells:
        raise KeslerError("a row is NULL, not a list of numbers: leave it out with a condition")
    return np.array(cells, dtype=np.float64)

"""What models are as functions of SQL: their parameters, results and rows."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from kesler.data.schema.inference import TRUTH_VALUES
from kesler.data.schema.kinds import KINDS, NUMBER, TEXT
from kesler.data.schema.schema import Column
from kesler.errors import KeslerError
from kesler.online.classifier import OnlineClassifier
from kesler.online.loading import load

TRUTH = "BOOLEAN"


@dataclass(frozen=True)
class Function:
    """A function of SQL whose arguments are the columns of a row.

    Parameters
    ----------
    name : str
        Its name in SQL.
    parameters : dict of str to str
        The types of its arguments, by the names of the columns; one column "" is the row itself.
    result : str
        The type of its results.
    results : callable (rows) -> array
        The results of rows in any form that the `predict` of the model takes.
    result_of : callable (row) -> result
        The result of a single row.
    """

    name: str
    parameters: dict[str, str]
    result: str
    results: Callable[[Any], Any]
    result_of: Callable[[Any], Any]


def functions_of(model: Any, name: str) -> list[Function]:
    """Return the functions of a classifier: its classes, and the confidence in each.

    Parameters
    ----------
    model : OnlineClassifier, str or path
        A fitted classifier, or a file that one was saved to.
    name : str
        The name of the first function; that of the other ends in ``_confidence``.

    Raises
    ------
    KeslerError
        If the model does not predict classes, or the name is no name of SQL.
    """
    if isinstance(model, (str, os.PathLike)):
        model = load(model)
    if not name.isidentifier():
        raise KeslerError(f"name={name!r}: give letters, digits and underscores")
    if not isinstance(model, OnlineClassifier):
        raise KeslerError(
            f"the model is a {type(model).__name__}: give an OnlineClassifier, or its file"
        )
    parameters, type_ = _parameters(model), _type_of(model.classes_)
    return [
        Function(name, parameters, type_, model.predict, model.predict_one),
        Function(f"{name}_confidence", parameters, NUMBER, model.confidence, model.confidence_one),
    ]


def _parameters(model: Any) -> dict[str, str]:
    """Return the types of the columns that a model has learnt, or of the row itself."""
    if model.schema_ is None:
        return {"": KINDS["vector"].sql if model.vocabulary_ is None else TEXT}
    return {each.name: _type_of_column(each) for each in model.schema_.learnt}


def _type_of_column(column: Column) -> str:
    if column.reason.endswith(TRUTH_VALUES):  # which may have gaps
        return TRUTH
    kind = KINDS[column.kind]
    return TEXT if kind.written and column.options else kind.sql


def _type_of(classes: Any) -> str:
    kind = np.asarray(classes).dtype.kind
    return {"i": "BIGINT", "u": "BIGINT", "f": NUMBER}.get(kind, TEXT)

"""Sets of relevant labels: as users give them, as levels, and as they are handed back."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from kesler.classes import ClassTable, Label
from kesler.errors import KeslerError
from kesler.estimators.tables import as_matrix, is_table, name_columns, require_answers
from kesler.estimators.told import Told

RELEVANT, THRESHOLD, IRRELEVANT = range(3)
"""Levels: relevant labels must outscore the threshold, and the threshold irrelevant ones."""


def told_of_sets(y: Any, classes: Any, known: ClassTable) -> Told:
    """Return label sets, given as an indicator table or as one collection of labels a row."""
    y = require_answers(y, "label set")
    if is_table(y):
        return _of_table(y, name_columns(y, classes, known))
    sets = [_labels_of(row, labels) for row, labels in enumerate(y)]
    return Told.of_lists(sets, [[RELEVANT] * len(s) for s in sets], IRRELEVANT, THRESHOLD)


def require_contrast(told: Told) -> None:
    """Raise if every row names every label, or none names any."""
    n_labels = len(set(told.names))
    named = np.diff(told.indptr)
    if len(told) > 1 and n_labels > 1 and (named == n_labels).all():
        raise KeslerError(
            f"every row of y names all {n_labels} labels, so that nothing tells when one is not "
            "relevant: is y an indicator matrix of the right labels?"
        )
    if len(told) > 1 and n_labels and not named.any():
        raise KeslerError(
            f"no row of y names any of the {n_labels} labels, so that nothing tells when one is "
            "relevant: is y an indicator matrix of the right labels?"
        )


def _of_table(y: Any, names: tuple[Label, ...]) -> Told:
    matrix = as_matrix(y)
    wrong = np.flatnonzero(matrix.data != 1)
    if len(wrong):
        row = int(np.searchsorted(matrix.indptr, wrong[0], side="right")) - 1
        raise KeslerError(
            f"y has {matrix.data[wrong[0]]} in row {row}, column {matrix.indices[wrong[0]]}: an "
            "indicator matrix holds 1 for a relevant label and 0 for any other"
        )
    labels = [names[column] for column in matrix.indices.tolist()]
    levels = np.full(len(labels), RELEVANT, dtype=np.int32)
    indptr = matrix.indptr.astype(np.int64)
    return Told(indptr, labels, levels, IRRELEVANT, names, THRESHOLD)


def _labels_of(row: int, labels: Any) -> list[Label]:
    """Return the labels of one row; those of a set in order, so that every process agrees."""
    if isinstance(labels, (str, bytes)) or not isinstance(labels, Iterable):
        raise KeslerError(
            f"row {row} of y is {labels!r}, which is not a set of labels: write [{labels!r}], or "
            "give an indicator matrix"
        )
    if isinstance(labels, (set, frozenset)):
        try:
            return sorted(labels)
        except TypeError:  # the table of classes says which label does not fit in
            return list(labels)
    require_no_table_row(row, labels)
    named = list(labels)
    require_each_once(row, named)
    return named


def require_no_table_row(row: int, labels: Any) -> None:
    """Raise if the answer to a row may be meant as a row of a table."""
    if isinstance(labels, np.ndarray):
        raise KeslerError(
            f"row {row} of y is an array, which may be labels or a row of a table: give labels as "
            "a list, or a table as one array of shape (n_rows, n_labels), to partial_fit for "
            "instance"
        )


def require_each_once(row: int, named: list[Any]) -> None:
    """Raise if a row names a label twice; labels are compared as they are, hashable or not."""
    for i, label in enumerate(named):
        if label in named[:i]:
            raise KeslerError(
                f"row {row} of y names the label {label!r} twice: name each label once, or give "
                "indicators and ranks as one array, not as lists"
            )

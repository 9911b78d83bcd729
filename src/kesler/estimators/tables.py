"""Answers that come as tables: one column a label."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from kesler.classes import ClassTable, Label
from kesler.entries import is_sparse
from kesler.errors import KeslerError

if TYPE_CHECKING:
    from scipy import sparse


def require_answers(y: Any, kind: str) -> Any:
    """Return answers that are there: as they are, or as an array if they say that they are one."""
    if y is None:
        raise KeslerError(
            f"requires y to be passed, but the target y is None: give one {kind} for each row"
        )
    return y if isinstance(y, Iterable) or is_sparse(y) else np.asarray(y)


def is_table(y: Any) -> bool:
    """Return whether answers are a table: a matrix, an array or a data frame, but no lists."""
    return is_sparse(y) or getattr(y, "ndim", 1) == 2


def as_matrix(y: Any) -> sparse.csr_array:
    """Return a table as a sparse matrix of float64, without zeros; None in it becomes NaN."""
    from scipy import sparse

    try:
        table: Any = y if is_sparse(y) else np.asarray(y, dtype=np.float64)
        matrix = sparse.csr_array(table, dtype=np.float64, copy=True)
    except (TypeError, ValueError) as error:
        raise KeslerError(
            f"a table of answers must hold numbers ({error}): labels themselves are given as one "
            "list a row"
        ) from error
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    return matrix


def name_columns(y: Any, classes: Any, known: ClassTable) -> tuple[Label, ...]:
    """Return the label of each column of a table.

    Parameters
    ----------
    y : the table, of shape (n_rows, n_labels).
    classes : the labels, or None: the columns of a data frame, else 0 to n_labels - 1.
    known : the labels that the model knows, each of which needs a column.

    Raises
    ------
    KeslerError
        If there are not as many names as columns, a label has two columns, or a known one none.
    """
    if classes is None:
        classes = getattr(y, "columns", range(y.shape[1]))
    names = tuple(classes.tolist() if isinstance(classes, np.ndarray) else classes)
    if len(names) != y.shape[1]:
        raise KeslerError(
            f"y has {y.shape[1]} columns, but classes= names {len(names)} labels: give one name "
            "for each column"
        )
    if len(set(names)) < len(names):
        raise KeslerError(f"classes={list(names)!r} names a label twice: a label has one column")
    missing = [label for label in known.labels if label not in set(names)]
    if missing:
        raise KeslerError(
            f"the columns of y stand for {_listed(names)}, but none for the label {missing[0]!r}, "
            "which this model knows: say with classes= which label each column stands for"
        )
    return names


def _listed(names: tuple[Label, ...]) -> str:
    shown = ", ".join(map(repr, names[:3]))
    return f"{shown} and {len(names) - 3} more" if len(names) > 3 else shown

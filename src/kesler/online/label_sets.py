"""Label sets and rankings: validation of targets, encoding as levels, and ranks of scores."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from kesler.data.labels import Label, class_of
from kesler.data.matrices import well_formed
from kesler.data.sparse_rows import is_sparse
from kesler.errors import KeslerError
from kesler.learner.classes import ClassTable
from kesler.learner.targets import NOTHING_SAID, Targets

if TYPE_CHECKING:
    from scipy import sparse


def require_answers(y: Any, kind: str) -> Any:
    """Return `y`, converted to an array if it is not iterable; raise if it is one value."""
    if y is None:
        raise KeslerError(
            f"requires y to be passed, but the target y is None: give one {kind} for each row"
        )
    given = y if isinstance(y, Iterable) else np.asarray(y)
    if getattr(given, "ndim", 1) == 0:
        raise KeslerError(f"y is {y!r}, which is one value: give one {kind} for each row")
    return given


def is_table(y: Any) -> bool:
    """Return whether `y` is a table: a matrix, a 2-D array or a data frame, not lists."""
    return getattr(y, "ndim", 1) == 2


def as_matrix(y: Any) -> sparse.csr_array:
    """Return a table as a sparse float64 matrix without explicit zeros; None becomes NaN."""
    from scipy import sparse

    try:
        table: Any = well_formed(y, "y") if is_sparse(y) else np.asarray(y, dtype=np.float64)
        matrix = sparse.csr_array(table, dtype=np.float64, copy=True)
    except (TypeError, ValueError) as error:
        raise KeslerError(
            f"a table of targets must hold numbers ({error}): give labels as one list for each row"
        ) from error
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    return matrix


def name_columns(y: Any, classes: Any, known: ClassTable) -> tuple[Label, ...]:
    """Return the label of each column of a table.

    Parameters
    ----------
    y : the table, of shape (n_rows, n_labels).
    classes : the labels; None means the columns of a data frame, or 0 to n_labels - 1.
    known : the labels that the model has seen, each of which needs a column.

    Raises
    ------
    KeslerError
        If the numbers of names and columns differ, a label has two columns, or a known label has
        no column.
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
        raise KeslerError(f"classes={list(names)!r} names a label twice: name each label once")
    missing = [label for label in known.labels if label not in set(names)]
    if missing:
        raise KeslerError(
            f"the columns of y stand for {_listed(names)}, but none for the label {missing[0]!r}, "
            "which this model has seen: name the label of each column with classes="
        )
    return names


def _listed(names: tuple[Label, ...]) -> str:
    shown = ", ".join(map(repr, names[:3]))
    return f"{shown} and {len(names) - 3} more" if len(names) > 3 else shown


RELEVANT, THRESHOLD, IRRELEVANT = range(3)
"""Levels: relevant labels must outscore the threshold, which must outscore irrelevant labels."""


def targets_of_sets(y: Any, classes: Any, known: ClassTable) -> Targets:
    """Return the encoded label sets of an indicator table, or of collections of labels."""
    y = require_answers(y, "label set")
    if is_table(y):
        return _of_table(y, name_columns(y, classes, known))
    sets = [_labels_of(row, labels) for row, labels in enumerate(y)]
    return Targets.of_lists(sets, [[RELEVANT] * len(s) for s in sets], IRRELEVANT, THRESHOLD)


def require_contrast(targets: Targets) -> None:
    """Raise if every row names every label, or none names any."""
    n_labels = len(set(targets.names))
    named = np.diff(targets.indptr)
    if len(targets) > 1 and n_labels > 1 and (named == n_labels).all():
        raise KeslerError(
            f"every row of y names all {n_labels} labels, so there is no example of an irrelevant "
            "label: check that y is an indicator matrix of the right labels"
        )
    if len(targets) > 1 and n_labels and not named.any():
        raise KeslerError(
            f"no row of y names any of the {n_labels} labels, so there is no example of a relevant "
            "label: check that y is an indicator matrix of the right labels"
        )


def _of_table(y: Any, names: tuple[Label, ...]) -> Targets:
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
    return Targets(indptr, labels, levels, IRRELEVANT, names, THRESHOLD)


def _labels_of(row: int, labels: Any) -> list[Label]:
    """Return the labels of one row; sets are sorted, so that every process gets the same order."""
    if isinstance(labels, (str, bytes)) or not isinstance(labels, Iterable):
        raise KeslerError(
            f"row {row} of y is {labels!r}, which is not a set of labels: write [{labels!r}], or "
            "give an indicator matrix"
        )
    if isinstance(labels, (set, frozenset)):
        try:
            return sorted({class_of(label) for label in labels})
        except TypeError:  # the class table raises the error that names the label
            return list(labels)
    require_no_table_row(row, labels)
    named = list(map(class_of, labels))
    require_each_once(row, named)
    return named


def require_no_table_row(row: int, labels: Any) -> None:
    """Raise if the target of a row is an array, which could also be a row of a table."""
    if isinstance(labels, np.ndarray):
        raise KeslerError(
            f"row {row} of y is an array, which may be labels or a row of a table: give labels as "
            "a list, or a table as one array of shape (n_rows, n_labels), for example to "
            "partial_fit"
        )


def require_each_once(row: int, named: list[Any]) -> None:
    """Raise if a row names a label twice; labels need not be hashable."""
    for i, label in enumerate(named):
        if label in named[:i]:
            raise KeslerError(
                f"row {row} of y names the label {label!r} twice: name each label once, or give "
                "indicators and ranks as one array, not as lists"
            )


def targets_of_rankings(y: Any, classes: Any, known: ClassTable) -> Targets:
    """Return the encoded rankings of a table of ranks, or of lists of labels, best first."""
    y = require_answers(y, "ranking")
    if is_table(y):
        names = name_columns(y, classes, known)
        ranks = rank_table(y)
        rows, columns = np.nonzero(ranks)
        indptr = np.concatenate([[0], np.cumsum((ranks > 0).sum(axis=1))]).astype(np.int64)
        levels = levels_of(ranks)[rows, columns]
        return Targets(indptr, [names[c] for c in columns.tolist()], levels, NOTHING_SAID, names)
    orders = [_order_of(row, labels) for row, labels in enumerate(y)]
    return Targets.of_lists(orders, [list(range(len(order))) for order in orders], NOTHING_SAID)


def rank_table(y: Any) -> npt.NDArray[np.float64]:
    """Return a table of ranks as an array, with 0 for labels that are not ranked."""
    ranks: npt.NDArray[np.float64] = np.nan_to_num(
        as_matrix(y).toarray(), posinf=np.inf, neginf=-np.inf
    )
    wrong = np.argwhere((ranks < 0) | ~np.isfinite(ranks))
    if len(wrong):
        row, column = wrong[0]
        raise KeslerError(
            f"y has the rank {ranks[row, column]} in row {row}, column {column}: give ranks above "
            "0, 1 for the best, and 0 or NaN for a label that is not ranked"
        )
    return ranks


def levels_of(ranks: npt.NDArray[np.float64]) -> npt.NDArray[np.int32]:
    """Return the number of distinct better ranks for each ranked label of a row, else -1.

    Examples
    --------
    >>> levels_of(np.array([[3.0, 1.0, 0.0, 3.0], [7.0, 9.0, 8.0, 7.0]])).tolist()
    [[1, 0, -1, 1], [0, 2, 1, 0]]
    """
    ranked = np.where(ranks > 0, ranks, np.inf)
    order = np.argsort(ranked, axis=1, kind="stable")
    ascending = np.take_along_axis(ranked, order, axis=1)
    higher = np.zeros(ranks.shape, dtype=np.int32)
    higher[:, 1:] = np.cumsum(ascending[:, 1:] > ascending[:, :-1], axis=1)
    levels = np.empty_like(higher)
    np.put_along_axis(levels, order, higher, axis=1)
    levels[ranks == 0] = NOTHING_SAID
    return levels


def ranks_by_score(scores: npt.NDArray[np.floating[Any]]) -> npt.NDArray[np.int64]:
    """Return the rank of each label, 1 for the highest score; ties go to the first label.

    Examples
    --------
    >>> ranks_by_score(np.array([[0.5, 2.0, 0.5]], dtype=np.float32)).tolist()
    [[2, 1, 3]]
    """
    order = np.argsort(-scores, axis=1, kind="stable")
    ranks = np.empty(scores.shape, dtype=np.int64)
    np.put_along_axis(ranks, order, np.arange(1, scores.shape[1] + 1)[None], axis=1)
    return ranks


def _order_of(row: int, labels: Any) -> list[Label]:
    require_no_table_row(row, labels)
    if not isinstance(labels, (list, tuple)):
        raise KeslerError(
            f"row {row} of y is {labels!r}, which is not a list of labels: give the labels of a "
            "row in order, best first"
        )
    order = list(map(class_of, labels))
    require_each_once(row, order)
    return order

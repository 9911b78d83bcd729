"""Rankings of labels: as users give them, as levels, and as ranks by score."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from kesler.answers import NOTHING_SAID
from kesler.classes import ClassTable, Label
from kesler.errors import KeslerError
from kesler.estimators.label_sets import require_each_once, require_no_table_row
from kesler.estimators.tables import as_matrix, is_table, name_columns, require_answers
from kesler.estimators.told import Told


def told_of_rankings(y: Any, classes: Any, known: ClassTable) -> Told:
    """Return rankings, given as a table of ranks or as one list of labels a row, best first."""
    y = require_answers(y, "ranking")
    if is_table(y):
        names = name_columns(y, classes, known)
        ranks = rank_table(y)
        rows, columns = np.nonzero(ranks)
        indptr = np.concatenate([[0], np.cumsum((ranks > 0).sum(axis=1))]).astype(np.int64)
        levels = levels_of(ranks)[rows, columns]
        return Told(indptr, [names[c] for c in columns.tolist()], levels, NOTHING_SAID, names)
    orders = [_order_of(row, labels) for row, labels in enumerate(y)]
    return Told.of_lists(orders, [list(range(len(order))) for order in orders], NOTHING_SAID)


def rank_table(y: Any) -> npt.NDArray[np.float64]:
    """Return a table of ranks as an array: 0 for labels that are not ranked."""
    ranks: npt.NDArray[np.float64] = np.nan_to_num(
        as_matrix(y).toarray(), posinf=np.inf, neginf=-np.inf
    )
    wrong = np.argwhere((ranks < 0) | ~np.isfinite(ranks))
    if len(wrong):
        row, column = wrong[0]
        raise KeslerError(
            f"y has the rank {ranks[row, column]} in row {row}, column {column}: ranks are above "
            "0, the best 1, and 0 or NaN stands for a label that is not ranked"
        )
    return ranks


def levels_of(ranks: npt.NDArray[np.float64]) -> npt.NDArray[np.int32]:
    """Return, for each ranked label of a row, how many different ranks are better; else -1.

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
    """Return the rank of each label, 1 for the highest score, the first among equals.

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
            f"row {row} of y is {labels!r}, which is not a list of labels, best first: a ranking "
            "needs an order"
        )
    order = labels.tolist() if isinstance(labels, np.ndarray) else list(labels)
    require_each_once(row, order)
    return order

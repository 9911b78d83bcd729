"""Targets that are costs of classes: their validation, and the cost of predictions."""

from __future__ import annotations

import math
from collections.abc import Mapping
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt

from kesler.data.labels import Label, class_of
from kesler.data.sparse_rows import is_sparse
from kesler.errors import KeslerError
from kesler.learner.classes import ClassTable
from kesler.learner.targets import NOTHING_SAID, Targets
from kesler.online.label_sets import is_table, name_columns, require_answers

CHEAPEST, COSTLIER = range(2)
"""Levels: the cheapest classes must outscore the others that a target names."""


def targets_of_costs(y: Any, classes: Any = None) -> Targets:
    """Return the encoded costs of mappings {label: cost}, one for each row, or of a table.

    The cheapest classes of a row come first, then the others in the order given.

    Parameters
    ----------
    y : sequence of mappings, or array or data frame of shape (n_rows, n_classes)
        Costs are finite numbers, 0 or more; NaN in a table means that the row does not name the
        class.
    classes : sequence of labels or None, default None
        The labels of the columns of a table; None stands for the names of the columns of a data
        frame, or 0 to n_classes - 1.

    Raises
    ------
    KeslerError
        If a row names no class, a cost is negative or not finite, or the target is of another form.

    Examples
    --------
    >>> found = targets_of_costs([{"a": 2.5, "b": 0.0}])
    >>> found.labels, found.levels.tolist(), found.costs.tolist()
    (['b', 'a'], [0, 1], [0.0, 2.5])
    """
    y = require_answers(y, "mapping of labels to costs")
    given = _rows_of_table(y, classes) if is_table(y) else list(y)
    vectors = [_checked(row, costs) for row, costs in enumerate(given)]
    labels = [label for vector in vectors for label in vector]
    costs = np.array([cost for vector in vectors for cost in vector.values()], dtype=np.float64)
    levels = [
        CHEAPEST if cost == min(vector.values()) else COSTLIER
        for vector in vectors
        for cost in vector.values()
    ]
    indptr = np.cumsum([0, *map(len, vectors)], dtype=np.int64)
    return Targets(indptr, labels, np.array(levels, dtype=np.int32), NOTHING_SAID, costs=costs)


def _rows_of_table(y: Any, classes: Any) -> list[dict[Label, float]]:
    """Return the costs that each row of a table names."""
    if is_sparse(y):
        raise KeslerError(
            "costs in a sparse matrix leave open which classes a row does not name: give an array "
            "with NaN for these, or mappings {label: cost}"
        )
    names = name_columns(y, classes, ClassTable())
    try:
        table = np.asarray(y, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise KeslerError(
            f"a table of costs must hold numbers ({error}): give NaN for classes that a row does "
            "not name"
        ) from error
    return [
        {name: cost for name, cost in zip(names, row, strict=True) if not math.isnan(cost)}
        for row in table.tolist()
    ]


def _checked(row: int, costs: Any) -> dict[Label, float]:
    """Return the costs of a row, the cheapest classes first."""
    if not isinstance(costs, Mapping):
        raise KeslerError(
            f"the target of row {row} is {costs!r:.60}, which has no costs: give a mapping "
            "{label: cost}, or an array of shape (n_rows, n_classes)"
        )
    if not costs:
        raise KeslerError(f"row {row} names no class: give the cost of at least one")
    found = {class_of(label): _cost(row, label, cost) for label, cost in costs.items()}
    least = min(found.values())
    return dict(sorted(found.items(), key=lambda item: item[1] > least))


def _cost(row: int, label: Label, cost: Any) -> float:
    if not (isinstance(cost, Real) and math.isfinite(cost) and float(cost) >= 0):
        raise KeslerError(
            f"row {row} gives the label {label!r} a cost of {cost!r}: a cost must be a finite "
            "number, 0 or more"
        )
    return float(cost)


def costs_of(predictions: npt.NDArray[np.int32], targets: Targets, codes: Any) -> Any:
    """Return the cost of each prediction, NaN for none.

    A class that the target does not name costs as much as the costliest that it names.

    Parameters
    ----------
    predictions : int32 array of shape (n_rows,)
        The numbers of the predicted classes, -1 for none.
    targets : Targets
        The costs.
    codes : int32 array of shape (n_named,)
        The numbers of the labels of the targets.

    Returns
    -------
    float64 array of shape (n_rows,).
    """
    found = np.maximum.reduceat(targets.costs, targets.indptr[:-1])  # the costliest of each row
    rows = np.repeat(np.arange(len(targets)), np.diff(targets.indptr))
    is_named = codes == predictions[rows]
    found[rows[is_named]] = targets.costs[is_named]
    found[predictions < 0] = np.nan
    return found


def cheapest(
    predictions: npt.NDArray[np.int32], targets: Targets, codes: Any
) -> npt.NDArray[np.int32]:
    """Return the prediction of each row if it is one of the cheapest classes, else the first.

    Parameters
    ----------
    predictions, targets, codes : as in `costs_of`.
    """
    rows = np.repeat(np.arange(len(targets)), np.diff(targets.indptr))
    found: npt.NDArray[np.int32] = codes[targets.indptr[:-1]]
    right = rows[(codes == predictions[rows]) & (targets.levels == CHEAPEST)]
    found[right] = predictions[right]
    return found


def costly(
    predictions: npt.NDArray[np.int32], targets: Targets, codes: Any, n_known: int
) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """Return the rows with a mistake, and those of which none of the cheapest classes was known.

    A row is a mistake if one of its cheapest and one of its other classes were known, and none of
    the cheapest was predicted.

    Parameters
    ----------
    predictions, targets, codes : as in `costs_of`.
    n_known : int
        The number of classes known before the first row.
    """
    starts, rows = targets.indptr[:-1], np.repeat(np.arange(len(targets)), np.diff(targets.indptr))
    highest = np.maximum.accumulate(np.maximum.reduceat(codes, starts)) + 1
    known = codes < np.maximum(n_known, np.concatenate([[0], highest[:-1]]))[rows]
    best = targets.levels == CHEAPEST
    compared = [np.logical_or.reduceat(known & mask, starts) for mask in (best, ~best)]
    right = np.logical_or.reduceat(best & (codes == predictions[rows]), starts)
    return compared[0] & compared[1] & ~right, ~compared[0]

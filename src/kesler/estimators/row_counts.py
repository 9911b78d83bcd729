"""What rows count in a batch: their weight times that of their class."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils import compute_class_weight
from sklearn.utils.validation import _check_sample_weight

from kesler.classes import plain
from kesler.errors import KeslerError

Doubles = npt.NDArray[np.float64]


def row_counts(
    X: Any,
    y: Any,
    classes: npt.NDArray[Any],
    labels: npt.NDArray[np.int64],
    sample_weight: Any,
    class_weight: Any,
) -> Doubles:
    """Return what rows count, float64 of shape (n_rows,), 0 or more.

    Parameters
    ----------
    X, y : validated rows and their labels, as they were given.
    classes : array of shape (n_classes,)
        Sorted.
    labels : int64 array of shape (n_rows,)
        The class of each row by number.
    sample_weight, class_weight : as scikit-learn has them.

    Raises
    ------
    KeslerError
        If there is one class only, or no row counts.
    ValueError
        If a weight is below 0.
    """
    _require_two(classes)
    weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
    per_class = compute_class_weight(class_weight, classes=classes, y=y)
    counts = np.asarray(weights * per_class[labels])
    if not counts.any():
        raise KeslerError("every sample_weight is zero, so there is no row to learn from")
    return counts


def class_weights(
    classes: npt.NDArray[Any], n_rows: npt.NDArray[np.int64], class_weight: Any
) -> Doubles:
    """Return what a row of each class counts, where it is known how many rows each has.

    Raises
    ------
    KeslerError
        If there is one class only, or no row counts.
    """
    _require_two(classes)
    if isinstance(class_weight, str) and class_weight == "balanced":
        return np.asarray(n_rows.sum() / (len(classes) * n_rows))
    weights = np.asarray(compute_class_weight(class_weight, classes=classes, y=classes))
    if not weights.any():
        raise KeslerError("class_weight is zero for every class, so there is no row to learn from")
    return weights


def _require_two(classes: npt.NDArray[Any]) -> None:
    if len(classes) < 2:
        raise KeslerError(
            f"y holds one class only, {plain(classes[0])!r}: give rows of at least two classes"
        )

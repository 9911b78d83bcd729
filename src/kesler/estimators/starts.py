"""What batch learners take from a learner that is to be their start: its scores, or its weights."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from kesler.classes import plain
from kesler.errors import KeslerError

Doubles = npt.NDArray[np.float64]

# Scores that weights give must be those of the learner up to this part of the largest.
ALIKE = 1e-3
# On so many rows.
N_COMPARED = 100


def scores_of(start: Any, X: Any, classes: npt.NDArray[Any]) -> Doubles:
    """Return the scores that a fitted classifier gives rows, a column for each of these classes.

    Raises
    ------
    KeslerError
        If it gives none, or does not know one of the classes.
    """
    if not hasattr(start, "decision_function"):
        raise KeslerError(
            f"start={type(start).__name__} has no decision_function: give a fitted classifier that "
            "scores classes, an OnlineClassifier for one"
        )
    check_is_fitted(start)
    known = {label: column for column, label in enumerate(start.classes_.tolist())}
    unknown = [label for label in classes.tolist() if label not in known]
    if unknown:
        raise KeslerError(
            f"start does not know the class {plain(unknown[0])!r}: let it learn a row of each"
        )
    scores = np.asarray(start.decision_function(X), dtype=np.float64)
    if scores.ndim == 1:
        scores = np.column_stack([np.zeros_like(scores), scores])
    return np.ascontiguousarray(scores[:, [known[label] for label in classes.tolist()]])


def linear_weights_of(start: Any, X: Any, classes: npt.NDArray[Any]) -> tuple[Doubles, Doubles]:
    """Return the weights (n_features, n_classes) and constants by which a classifier scores rows.

    They are told by its scores of each feature alone.

    Raises
    ------
    KeslerError
        If its scores of the first rows are not those that these weights give.
    """
    n_features = X.shape[1]
    alone: Any = sparse.vstack(
        [sparse.csr_array((1, n_features)), sparse.eye_array(n_features)], format="csr"
    ).astype(X.dtype)
    scores = scores_of(start, alone if sparse.issparse(X) else alone.toarray(), classes)
    constants, weights = scores[0], scores[1:] - scores[0]
    wanted = scores_of(start, X[:N_COMPARED], classes)
    given = X[:N_COMPARED] @ weights + constants
    if np.abs(given - wanted).max() > ALIKE * max(np.abs(wanted).max(), np.finfo(float).tiny):
        raise KeslerError(
            "the scores of start are not linear in the rows: give a linear learner of the rows as "
            'they are, OnlineClassifier("multi", conditioning=None) for one'
        )
    return weights, constants

"""What the theorems on ShareBoost promise of a fit: what they ask for is looked after here."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from kesler.dictionaries import Dictionary
from kesler.errors import KeslerError
from kesler.solvers.certificates import Certificate
from kesler.solvers.row_sums import Task

Floats = npt.NDArray[Any]
Ints = npt.NDArray[np.int64]

# Candidates whose columns are looked at together where a competitor's loss is computed.
AT_ONCE = 256
# How far above 1 a feature that was scaled to [-1, 1] may be.
ROUNDING = 1e-6


def certified(model: Any, task: Task, rows: Any, W: Any, delta: float) -> Certificate:
    """Return what is promised of a fitted ShareBoostClassifier.

    Parameters
    ----------
    model : ShareBoostClassifier
    task : Task
        Of the training rows, without a penalty.
    rows : the training rows.
    W : array of shape (n_classes, n_columns)
    delta : float

    Raises
    ------
    KeslerError
        If the theorems do not speak of the fit, or W has not the shape.
    """
    _require_covered(model, delta)
    dictionary: Dictionary = model.dictionary_
    competitor = _competitor(W, dictionary, task.n_classes)
    columns = _bounded_columns(dictionary, rows, model.support_)
    own = np.asarray(columns @ model.coef_.T + model.intercept_, dtype=np.float64)
    return Certificate(
        n_rounds=model.n_rounds_,
        n_classes=task.n_classes,
        n_candidates=dictionary.n_candidates_,
        n_rows=len(task.labels),
        norm=float(np.abs(competitor).max(axis=0).sum()),
        loss_of_competitor=task.loss(_scores(dictionary, rows, competitor))[0],
        loss=task.loss(own)[0],
        training_error=float(task.counts @ (own.argmax(axis=1) != task.labels)),
        delta=float(delta),
    )


def _scores(dictionary: Dictionary, rows: Any, W: Floats) -> Floats:
    """Return the scores of weights for all candidates, some of which are computed at a time."""
    widths = dictionary.widths(np.arange(dictionary.n_candidates_))
    owners = np.repeat(np.arange(len(widths)), widths)
    weighed = np.unique(owners[W.any(axis=0)])
    scores = np.zeros((rows.shape[0], len(W)))
    for first in range(0, len(weighed), AT_ONCE):
        some = weighed[first : first + AT_ONCE]
        scores += _bounded_columns(dictionary, rows, some) @ W[:, np.isin(owners, some)].T
    return scores


def _bounded_columns(dictionary: Dictionary, rows: Any, candidates: Ints) -> Floats:
    columns = dictionary.columns(rows, candidates)
    largest = float(np.abs(columns).max(initial=0.0))
    if largest > 1 + ROUNDING:
        raise KeslerError(
            f"a column has a value of size {largest:.4g}, but the theorems are on values from -1 "
            "to 1: divide the features by their largest"
        )
    return columns


def _competitor(W: Any, dictionary: Dictionary, n_classes: int) -> Floats:
    W = np.asarray(W, dtype=np.float64)
    widths = dictionary.widths(np.arange(dictionary.n_candidates_))
    shape = n_classes, int(widths.sum())
    if W.shape != shape or not np.isfinite(W).all():
        raise KeslerError(
            f"W has shape {W.shape}: give finite weights of shape {shape}, a row for each class "
            "and a column for each column of the candidates"
        )
    return W


def _require_covered(model: Any, delta: float) -> None:
    unlike = {
        "scale": model.scale is not None,
        "penalty": model.penalty is not None,
        "groups": model.groups is not None,
        "choice": model.choice == "line",
        "shortlist": model.shortlist is not None,
    }
    for name, differs in unlike.items():
        if differs:
            raise KeslerError(
                f"{name}={getattr(model, name)!r} is not what the theorems speak of: fit with "
                'scale=None, penalty=None, groups=None, shortlist=None and choice="gradient", '
                '"column" or "full"'
            )
    if not model.n_rounds_:
        raise KeslerError("nothing was chosen, so there is nothing to certify")
    if not 0 < delta < 1:
        raise KeslerError(f"delta={delta!r} must be between 0 and 1")

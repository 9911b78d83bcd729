"""Metrics of scores, probabilities and predicted ranks.

Scores are float arrays of shape (n_rows, n_labels); NaN marks a label that was not known, which
ranks last. Rows for which a metric is not defined are ignored; the result is NaN if no row is
left.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from kesler.errors import KeslerError

__all__ = [
    "calibration_error",
    "hamming_loss",
    "kendall_tau",
    "log_loss",
    "mean_absolute_error",
    "micro_f1",
    "one_error",
    "ranking_loss",
]

Floats = npt.NDArray[np.floating[Any]]


def one_error(scores: Floats, relevant: npt.NDArray[np.bool_]) -> float:
    """Return the share of rows with a label whose label of highest score is irrelevant.

    Examples
    --------
    >>> one_error(np.array([[2.0, 1.0], [2.0, 1.0]]), np.array([[True, False], [False, True]]))
    0.5
    """
    known = with_unknown_last(scores)
    top = known.argmax(axis=1)[:, None]
    right = np.take_along_axis(relevant & (known > -np.inf), top, axis=1)[:, 0]
    return mean_or_nan(1.0 - right[relevant.any(axis=1)])


def ranking_loss(scores: Floats, relevant: npt.NDArray[np.bool_]) -> float:
    """Return the share of (relevant, irrelevant) pairs in the wrong order; ties count half.

    Examples
    --------
    >>> ranking_loss(np.array([[3.0, 2.0, 1.0]]), np.array([[False, True, False]]))
    0.5
    """
    from scipy.stats import rankdata

    ranks = rankdata(with_unknown_last(scores), axis=1)
    n_relevant = relevant.sum(axis=1)
    n_pairs = n_relevant * (relevant.shape[1] - n_relevant)
    # Mann and Whitney's U counts the pairs in the right order.
    right = np.where(relevant, ranks, 0).sum(axis=1) - n_relevant * (n_relevant + 1) / 2
    some = n_pairs > 0
    return mean_or_nan(1.0 - right[some] / n_pairs[some])


def hamming_loss(scores: Floats, relevant: npt.NDArray[np.bool_]) -> float:
    """Return the share of irrelevant labels with scores above 0 or relevant ones without.

    Examples
    --------
    >>> hamming_loss(np.array([[0.5, -0.5]]), np.array([[True, True]]))
    0.5
    """
    return mean_or_nan((scores > 0) != relevant)


def micro_f1(scores: Floats, relevant: npt.NDArray[np.bool_]) -> float:
    r"""Return the F1 of all predicted labels of all rows together, those with scores above 0.

    .. math:: F_1 = \frac{2 \sum_t |Y_t \cap \hat Y_t|}{\sum_t |Y_t| + |\hat Y_t|}

    Examples
    --------
    >>> micro_f1(np.array([[0.5, -0.5]]), np.array([[True, True]]))
    0.6666666666666666
    """
    predicted = scores > 0
    named = int(predicted.sum()) + int(relevant.sum())
    return 2 * int((predicted & relevant).sum()) / named if named else float("nan")


def mean_absolute_error(
    predicted: npt.NDArray[Any], answered: npt.NDArray[Any], ranks: Sequence[Any]
) -> float:
    r"""Return the mean absolute difference between predicted and true ranks.

    Parameters
    ----------
    predicted, answered : arrays of shape (n_rows,) of labels.
    ranks : all labels, from the lowest to the highest, such as `classes_`.

    Raises
    ------
    KeslerError
        If a label is not among the ranks.

    Examples
    --------
    >>> mean_absolute_error(["mid", "low"], ["high", "low"], ["low", "mid", "high"])
    0.5
    """
    places = {label: place for place, label in enumerate(ranks)}
    try:
        there, right = ([places[label] for label in each] for each in (predicted, answered))
    except KeyError as error:
        raise KeslerError(f"label {error} is not among the ranks {list(places)}") from None
    return mean_or_nan(np.abs(np.subtract(there, right)))


def log_loss(probabilities: Floats) -> float:
    r"""Return the mean negative logarithm of the probability of each target.

    .. math:: -\frac1T \sum_t \ln p_t(y_t)

    Parameters
    ----------
    probabilities : float array of shape (n_rows,)
        Probabilities of the targets; NaN where the class was not known.

    Examples
    --------
    >>> round(log_loss(np.array([0.5, np.nan, 0.5])), 3)
    0.693
    """
    known = probabilities[~np.isnan(probabilities)]
    return mean_or_nan(-np.log(np.maximum(known, np.finfo(np.float64).tiny)))


def calibration_error(
    probabilities: Floats, right: npt.NDArray[np.bool_], n_bins: int = 15
) -> float:
    r"""Return the expected calibration error: the deviation of probabilities from accuracy.

    .. math:: \sum_b \frac{|b|}{T} \left| \frac1{|b|} \sum_{t \in b} p_t(\hat y_t)
        - \frac1{|b|} \sum_{t \in b} 1[\hat y_t = y_t] \right|

    over equal bins b of the probability (Naeini, Cooper and Hauskrecht 2015).

    Parameters
    ----------
    probabilities : float array of shape (n_rows,)
        Probabilities of the predicted classes; rows of NaN are ignored.
    right : bool array of shape (n_rows,)
        Whether each prediction was right.
    n_bins : int, default 15
        Number of bins. Larger values resolve more detail and add more noise.

    Examples
    --------
    >>> p = np.array([0.75, 0.75, 0.75, 0.75])
    >>> calibration_error(p, np.array([True, True, True, False]))
    0.0
    >>> calibration_error(p, np.array([True, False, False, False]))
    0.5
    """
    known = ~np.isnan(probabilities)
    p, hit = probabilities[known].astype(np.float64), right[known]
    if not p.size:
        return float("nan")
    gaps = np.bincount(np.minimum(p * n_bins, n_bins - 1).astype(np.int64), p - hit)
    return float(np.abs(gaps).sum() / p.size)


def kendall_tau(scores: Floats, levels: npt.NDArray[np.int32]) -> float:
    r"""Return the mean over rows of Kendall's tau, over the pairs that the levels compare.

    .. math:: \tau = \frac{\#\text{pairs in order} - \#\text{pairs out of order}}{\#\text{pairs}}

    Levels below 0 and pairs of equal levels are not compared; a lower level is better.

    Examples
    --------
    >>> round(kendall_tau(np.array([[3.0, 2.0, 1.0]]), np.array([[0, 2, 1]])), 3)
    0.333
    """
    from scipy.stats import rankdata

    ranks = rankdata(with_unknown_last(scores), axis=1)
    r, s = np.triu_indices(scores.shape[1], 1)
    wanted = np.sign(levels[:, s] - levels[:, r])
    wanted[(levels[:, r] < 0) | (levels[:, s] < 0)] = 0
    agreement = (wanted * np.sign(ranks[:, r] - ranks[:, s])).sum(axis=1)
    n_pairs = (wanted != 0).sum(axis=1)
    some = n_pairs > 0
    return mean_or_nan(agreement[some] / n_pairs[some])


def with_unknown_last(scores: Floats) -> Floats:
    """Return scores with NaN replaced by -inf, which ranks last."""
    known: Floats = np.where(np.isnan(scores), -np.inf, scores)
    return known


def mean_or_nan(values: npt.NDArray[Any]) -> float:
    """Return the mean of values, NaN if there are none."""
    return float(values.mean()) if values.size else float("nan")

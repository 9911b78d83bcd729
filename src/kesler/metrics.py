"""How well scores and probabilities agree with answers, and predicted ranks with the right ones.

Scores are float arrays of shape (n_rows, n_labels); NaN stands for a label that was not known,
which comes after all others. Rows that say nothing of what is measured are left out; where none is
left, the result is NaN.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from kesler.errors import KeslerError

Floats = npt.NDArray[np.floating[Any]]


def one_error(scores: Floats, relevant: npt.NDArray[np.bool_]) -> float:
    """Return the share of rows whose label of highest score is irrelevant, of those with a label.

    Examples
    --------
    >>> one_error(np.array([[2.0, 1.0], [2.0, 1.0]]), np.array([[True, False], [False, True]]))
    0.5
    """
    known = _with_unknown_last(scores)
    top = known.argmax(axis=1)[:, None]
    right = np.take_along_axis(relevant & (known > -np.inf), top, axis=1)[:, 0]
    return _mean(1.0 - right[relevant.any(axis=1)])


def ranking_loss(scores: Floats, relevant: npt.NDArray[np.bool_]) -> float:
    """Return the share of (relevant, irrelevant) pairs in the wrong order, equals by half.

    Examples
    --------
    >>> ranking_loss(np.array([[3.0, 2.0, 1.0]]), np.array([[False, True, False]]))
    0.5
    """
    from scipy.stats import rankdata

    ranks = rankdata(_with_unknown_last(scores), axis=1)
    n_relevant = relevant.sum(axis=1)
    n_pairs = n_relevant * (relevant.shape[1] - n_relevant)
    # Mann and Whitney's U counts the pairs in the right order.
    right = np.where(relevant, ranks, 0).sum(axis=1) - n_relevant * (n_relevant + 1) / 2
    some = n_pairs > 0
    return _mean(1.0 - right[some] / n_pairs[some])


def hamming_loss(scores: Floats, relevant: npt.NDArray[np.bool_]) -> float:
    """Return the share of labels whose score is above 0 and are irrelevant, or the other way.

    Examples
    --------
    >>> hamming_loss(np.array([[0.5, -0.5]]), np.array([[True, True]]))
    0.5
    """
    return _mean((scores > 0) != relevant)


def kendall_tau(scores: Floats, levels: npt.NDArray[np.int32]) -> float:
    r"""Return the mean of Kendall's tau over the pairs that each row's levels compare.

    .. math:: \tau = \frac{\#\text{pairs in order} - \#\text{pairs out of order}}{\#\text{pairs}}

    Levels below 0 compare with nothing, equal ones not with each other; the lower one is better.

    Examples
    --------
    >>> round(kendall_tau(np.array([[3.0, 2.0, 1.0]]), np.array([[0, 2, 1]])), 3)
    0.333
    """
    from scipy.stats import rankdata

    ranks = rankdata(_with_unknown_last(scores), axis=1)
    r, s = np.triu_indices(scores.shape[1], 1)
    wanted = np.sign(levels[:, s] - levels[:, r])
    wanted[(levels[:, r] < 0) | (levels[:, s] < 0)] = 0
    agreement = (wanted * np.sign(ranks[:, r] - ranks[:, s])).sum(axis=1)
    n_pairs = (wanted != 0).sum(axis=1)
    some = n_pairs > 0
    return _mean(agreement[some] / n_pairs[some])


def mean_absolute_error(
    predicted: npt.NDArray[Any], answered: npt.NDArray[Any], ranks: Sequence[Any]
) -> float:
    r"""Return how many ranks predictions are away from the answers, on average.

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
    return _mean(np.abs(np.subtract(there, right)))


def log_loss(probabilities: Floats) -> float:
    r"""Return the mean of minus the logarithm of the probability that each answer was given.

    .. math:: -\frac1T \sum_t \ln p_t(y_t)

    Parameters
    ----------
    probabilities : float array of shape (n_rows,)
        Of the answers; NaN where the answer was not known.

    Examples
    --------
    >>> round(log_loss(np.array([0.5, np.nan, 0.5])), 3)
    0.693
    """
    known = probabilities[~np.isnan(probabilities)]
    return _mean(-np.log(np.maximum(known, np.finfo(np.float64).tiny)))


def calibration_error(
    probabilities: Floats, right: npt.NDArray[np.bool_], n_bins: int = 15
) -> float:
    r"""Return the expected calibration error: how far probabilities are from shares of hits.

    .. math:: \sum_b \frac{|b|}{T} \left| \frac1{|b|} \sum_{t \in b} p_t(\hat y_t)
        - \frac1{|b|} \sum_{t \in b} 1[\hat y_t = y_t] \right|

    over equal bins b of the probability (Naeini, Cooper and Hauskrecht 2015).

    Parameters
    ----------
    probabilities : float array of shape (n_rows,)
        Of the classes predicted; rows of NaN are left out.
    right : bool array of shape (n_rows,)
        Whether each prediction was right.
    n_bins : int, default 15
        Larger values look closer, and see more of chance.

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


def _with_unknown_last(scores: Floats) -> Floats:
    known: Floats = np.where(np.isnan(scores), -np.inf, scores)
    return known


def _mean(values: npt.NDArray[Any]) -> float:
    return float(values.mean()) if values.size else float("nan")

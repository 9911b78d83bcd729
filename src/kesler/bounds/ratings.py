"""The linear-max bounds on ratings: a number for each trial, class and sub-expert."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kesler.errors import KeslerError

Array = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class RatingsBound:
    """The bounds of linear-max learners on ratings, for one competitor.

    Attributes
    ----------
    delta : float
        The least margin of the competitor, score(right class) - score(another), over all trials.
    perceptron : float
        s^2 ||u||^2 / delta^2, s the longest difference of the ratings of two classes that a trial
        compares; infinite unless delta > 0.
    weighted_majority : float
        2 ln n / delta^2, of u scaled to sum to 1, with alpha^2 = (1 + delta) / (1 - delta);
        infinite unless delta > 0, no weight is negative and ratings differ by 1 at most.
    weights : float64 array of shape (n_subexperts,)
        The competitor u, which sums to 1 if it was found in hindsight.
    """

    delta: float
    perceptron: float
    weighted_majority: float
    weights: Array


def weighted_majority_bound(n: int, delta: float) -> float:
    r"""Return the most mistakes of WMA with the step that suits a margin.

    .. math:: M \le \frac{2 \ln n}{\delta^2}, \quad \alpha^2 = \frac{1 + \delta}{1 - \delta}

    Parameters
    ----------
    n : int > 0
        Sub-experts, whose ratings are in [0, 1], or attributes.
    delta : float
        The least margin of weights u >= 0 that sum to 1; the bound is infinite unless it is above
        0.

    References
    ----------
    Littlestone (1989); Mesterharm (2001), Section 4.2.

    Examples
    --------
    >>> round(weighted_majority_bound(100, 0.5), 2)
    36.84
    """
    return 2 * math.log(n) / delta**2 if delta > 0 else math.inf


def ratings_bound(
    ratings: npt.ArrayLike, y: npt.ArrayLike, competitor: npt.ArrayLike | None = None
) -> RatingsBound:
    r"""Evaluate the bounds of the linear-max Perceptron and of WMA on a stream of ratings.

    .. math:: \delta = \min_t \min_{j \ne y_t} \sum_i u_i (x_{t,i}^{y_t} - x_{t,i}^j)

    Parameters
    ----------
    ratings : array of shape (n_trials, n_classes, n_subexperts)
        What each sub-expert says of each class; in [0, 1] for WMA.
    y : int array of shape (n_trials,)
        The right class of each trial.
    competitor : array of shape (n_subexperts,) or None, default None
        The weights u. None finds those of the largest delta among all that are not negative and
        sum to 1, by linear programming, which takes memory for every trial, class and sub-expert.

    Raises
    ------
    KeslerError
        If the shapes do not fit, or a number is not finite.

    References
    ----------
    Mesterharm (2001), Sections 4.1 and 4.2.

    Examples
    --------
    >>> ratings = [[[1, 0, 1], [0, 1, 1]], [[0, 1, 0], [1, 1, 1]]]
    >>> found = ratings_bound(ratings, [0, 1])
    >>> found.delta, found.weights.tolist(), round(found.weighted_majority, 2)
    (1.0, [1.0, 0.0, 0.0], 2.2)
    """
    differences = _differences(np.asarray(ratings, dtype=np.float64), np.asarray(y))
    n = differences.shape[1]
    u = _widest(differences) if competitor is None else np.asarray(competitor, dtype=np.float64)
    if u.shape != (n,) or not np.isfinite(u).all():
        raise KeslerError(f"the competitor must hold {n} finite weights, one a sub-expert")
    delta = float((differences @ u).min())
    square = float((differences**2).sum(axis=1).max() * (u @ u))
    total = float(u.sum())
    is_mean = (u >= 0).all() and total > 0 and abs(differences).max() <= 1
    return RatingsBound(
        delta=delta,
        perceptron=square / delta**2 if delta > 0 else math.inf,
        weighted_majority=weighted_majority_bound(n, delta / total) if is_mean else math.inf,
        weights=u,
    )


def _differences(ratings: Array, y: npt.NDArray[np.int64]) -> Array:
    """Return x^y - x^j for every trial and j != y, (n_pairs, n_subexperts)."""
    if ratings.ndim != 3 or y.shape != ratings.shape[:1] or not np.isfinite(ratings).all():
        raise KeslerError(
            f"ratings have shape {ratings.shape} and y {y.shape}: give finite ratings of shape "
            "(n_trials, n_classes, n_subexperts) and one right class a trial"
        )
    k = ratings.shape[1]
    if k < 2 or not len(y) or y.min() < 0 or y.max() >= k:
        raise KeslerError(
            f"y must name one of the classes 0 to {k - 1} in each trial, 2 or more of them"
        )
    others = np.arange(k) != y[:, None]
    all_differences = ratings[np.arange(len(y)), y][:, None] - ratings
    found: Array = all_differences[others]
    return found


def _widest(differences: Array) -> Array:
    """Return u >= 0, sum u = 1, of the largest delta: maximise delta, differences @ u >= delta."""
    n_pairs, n = differences.shape
    from scipy.optimize import linprog

    found = linprog(
        np.append(np.zeros(n), -1.0),
        A_ub=np.column_stack([-differences, np.ones(n_pairs)]),
        b_ub=np.zeros(n_pairs),
        A_eq=np.append(np.ones(n), 0.0)[None],
        b_eq=[1.0],
        bounds=[(0, None)] * n + [(None, None)],
    )
    u = np.maximum(np.array(found.x)[:n], 0.0)
    widest: Array = u / u.sum()
    return widest

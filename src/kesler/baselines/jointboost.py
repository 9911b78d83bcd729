"""JointBoostClassifier: boosted stumps shared by sets of classes."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
from scipy.special import log_expit, logsumexp
from sklearn.base import BaseEstimator, ClassifierMixin

from kesler.batch.distinct_rows import DistinctRows
from kesler.batch.estimator import ClassScores, row_weights
from kesler.data.matrices import validate_data
from kesler.errors import KeslerError, integer_of, keep_settings, require_unasked
from kesler.progress import progress

Doubles = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int32]
Ints = npt.NDArray[np.int64]

# A round's minimum gain of squared error, as a share of the weight: smaller ones are rounding.
LEAST_GAIN = 1e-12


@dataclass(frozen=True, eq=False)
class Thresholds:
    """Thresholds of all features, and their number below each value.

    Parameters
    ----------
    values : float64 array of shape (n_thresholds,)
        The thresholds feature by feature, in ascending order for each.
    starts : int64 array of shape (n_features + 1,)
        The thresholds of feature f are numbers starts[f] to starts[f + 1] - 1.
    codes : int32 array of shape (n_features, n_rows)
        The number of the feature's thresholds that each row is above.
    """

    values: Doubles
    starts: Ints
    codes: Codes

    @classmethod
    def of(cls, X: npt.NDArray[Any], counts: Doubles, most: int | None) -> Thresholds:
        """Return all thresholds between the values of each feature, or `most` quantiles."""
        cuts = [_cuts(column, counts, most) for column in X.T]
        codes = [np.searchsorted(cut, column) for cut, column in zip(cuts, X.T, strict=True)]
        starts = np.cumsum([0, *map(len, cuts)])
        return cls(np.concatenate(cuts), starts, np.array(codes, dtype=np.int32))

    def feature_of(self, threshold: int) -> int:
        """Return the feature of a threshold."""
        return int(np.searchsorted(self.starts, threshold, side="right")) - 1

    def above(self, threshold: int) -> npt.NDArray[np.bool_]:
        """Return whether each row is above a threshold."""
        feature = self.feature_of(threshold)
        return np.asarray(self.codes[feature] > threshold - self.starts[feature])


def _cuts(column: npt.NDArray[Any], counts: Doubles, most: int | None) -> Doubles:
    """Return midpoints of neighbouring values of a feature, or the lower value if they round up."""
    values, numbers = np.unique(column.astype(np.float64), return_inverse=True)
    lower, upper = values[:-1], values[1:]
    halfway = lower + (upper - lower) / 2
    cuts = np.where(halfway < upper, halfway, lower)
    if most is None or len(cuts) <= most:
        return cuts
    below = np.cumsum(np.bincount(numbers, counts))
    nearest = np.searchsorted(below[:-1] / below[-1], np.arange(1, most + 1) / (most + 1))
    return np.asarray(cuts[np.unique(np.minimum(nearest, len(cuts) - 1))])


@dataclass(frozen=True, eq=False)
class SharedStump:
    """A stump, the function that a round adds to the score of each class.

    Parameters
    ----------
    feature : int
    threshold : float
    members : bool array of shape (n_classes,)
        The classes that share the stump; each other class has a constant.
    below, above : float64 arrays of shape (n_classes,)
        The values added up to the threshold, and above it.
    loss : float
        The mean exponential loss after the round.
    seconds : float
        Time from the start of boosting to the end of the round.
    """

    feature: int
    threshold: float
    members: npt.NDArray[np.bool_]
    below: Doubles
    above: Doubles
    loss: float
    seconds: float


def boost(
    thresholds: Thresholds, signs: Doubles, counts: Doubles, n_rounds: int
) -> Iterator[SharedStump]:
    r"""Yield the stumps of GentleBoost, with shared classes found by best-first search.

    Newton steps minimise

    .. math:: \sum_i c_i \sum_r e^{-z_{ir} H_r(x_i)}.

    Each round fits z by least squares with the weights :math:`c_i e^{-z_{ir} H_r(x_i)}`, and adds
    the fitted stump to H. Boosting ends early if no threshold has a gain.

    Parameters
    ----------
    thresholds : Thresholds
    signs : float64 array of shape (n_rows, n_classes)
        z: 1 for the row's class, -1 for others.
    counts : float64 array of shape (n_rows,)
        The weights of rows, c, above 0.
    n_rounds : int
    """
    from kesler.compiled.batch.jointboost import best_sharing, sum_above

    start, scores = time.perf_counter(), np.zeros_like(signs)
    shape = len(thresholds.values), signs.shape[1]
    weights_above, pulls_above = np.empty(shape), np.empty(shape)
    members = np.zeros(shape[1], dtype=bool)
    for _ in range(n_rounds):
        weights = _weights(signs, scores, counts)
        pulls = weights * signs
        sum_above(thresholds.codes, thresholds.starts, weights, pulls, weights_above, pulls_above)
        totals = weights.sum(axis=0), pulls.sum(axis=0)
        best, gain = best_sharing(weights_above, pulls_above, *totals, members)
        if not gain > LEAST_GAIN * weights.sum():
            return
        is_above = thresholds.above(best)
        below, above = _fitted(is_above, weights, pulls, members)
        scores += np.where(is_above[:, None], above, below)
        yield SharedStump(
            thresholds.feature_of(best),
            float(thresholds.values[best]),
            members.copy(),
            below,
            above,
            float(counts @ np.exp(-signs * scores).sum(axis=1) / counts.sum()),
            time.perf_counter() - start,
        )


def _weights(signs: Doubles, scores: Doubles, counts: Doubles) -> Doubles:
    """Return the weights of rows and classes, up to an irrelevant factor."""
    exponents = -signs * scores
    return np.asarray(counts[:, None] * np.exp(exponents - exponents.max()))


def _fitted(
    is_above: npt.NDArray[np.bool_],
    weights: Doubles,
    pulls: Doubles,
    members: npt.NDArray[np.bool_],
) -> tuple[Doubles, Doubles]:
    """Return the values of the classes below and above a threshold: weighted means."""
    constant = pulls.sum(axis=0) / weights.sum(axis=0)
    shared_weights, shared_pulls = weights[:, members].sum(axis=1), pulls[:, members].sum(axis=1)
    sides = [
        np.where(members, shared_pulls[side].sum() / shared_weights[side].sum(), constant)
        for side in (~is_above, is_above)
    ]
    return sides[0], sides[1]


Self = TypeVar("Self", bound="JointBoostClassifier")


@dataclass(frozen=True, slots=True)
class Round:
    """One round of boosting.

    Parameters
    ----------
    feature : int
    threshold : float
    classes : tuple of labels
        The classes that share the stump.
    loss : float
        The mean exponential loss after the round.
    seconds : float
        Time since the start of boosting.
    n_features : int
        Number of distinct features used so far.
    """

    feature: int
    threshold: float
    classes: tuple[Any, ...]
    loss: float
    seconds: float
    n_features: int


class JointBoostClassifier(ClassScores, ClassifierMixin, BaseEstimator):
    r"""JointBoost: boosted decision stumps, each shared by a set of classes.

    .. math:: H_r(x) = \sum_t h_t(x, r), \qquad
        h_t(x, r) = \begin{cases} a_t [x_{f_t} > \theta_t] + b_t & r \in S_t \\
        k_{t, r} & r \notin S_t \end{cases}

    A round fits :math:`z_{ir}`, 1 for the row's class and -1 for others, by least squares with
    the weights :math:`c_i e^{-z_{ir} H_r(x_i)}` (GentleBoost), over all features, all thresholds
    and the sets of classes in a best-first search: the search adds one class at a time, each time
    the class that gives the best stump.

    Parameters
    ----------
    n_rounds : int, 1 or more, default 100
        Maximum number of stumps. Larger values fit the rows more closely; time is linear in it.
    n_thresholds : int, 1 or more, or None, default 255
        Maximum number of thresholds per feature, at evenly spaced quantiles of its values. Larger
        values give finer thresholds and take more time and memory. None uses all thresholds between
        neighbouring values.

    Attributes
    ----------
    path_ : list of rounds
        All rounds, each with `feature`, `threshold`, `classes`, `loss`, `seconds` and `n_features`,
        the number of distinct features so far.
    features_ : int64 array of shape (n_rounds,)
    thresholds_ : float64 array of shape (n_rounds,)
    below_, above_ : float64 arrays of shape (n_rounds, n_classes)
        The values that a stump adds to each class's score if the feature is at most the threshold,
        and if it is above.
    classes_ : array of shape (n_classes,)
        The labels, sorted.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Raises
    ------
    KeslerError
        If a parameter is out of its range, there is one class only, all weights are 0, or every
        feature is constant. scikit-learn's validation raises ValueError, for example for NaN.

    Notes
    -----
    A round costs O(n_rows n_features n_classes) for sums over rows and O(T n_classes^2) for the
    search, where T is the number of thresholds of all features; memory is 16 bytes per threshold
    and class. Rows must be dense.

    Boosting ends before `n_rounds` if no stump has a gain. Constant features have no thresholds.
    Rows with the same features and label are one row with the sum of their weights, and rows of
    weight 0 are left out. Classes with a single row need no special treatment.

    ShareBoost has a separate weight for each class. Here, all classes that share a stump get the
    same values, and no value changes in later rounds.

    References
    ----------
    Torralba, Murphy and Freeman (2007), "Sharing visual features for multiclass and multiview
    object detection"; Friedman, Hastie and Tibshirani (2000), GentleBoost.

    Examples
    --------
    >>> from kesler import JointBoostClassifier
    >>> X, y = [[0, 0], [0, 1], [1, 0], [1, 1]] * 2, list("abcd") * 2
    >>> model = JointBoostClassifier(n_rounds=4).fit(X, y)
    >>> model.path_[0].classes, [round.n_features for round in model.path_], model.score(X, y)
    (('a', 'b'), [1, 1, 2, 2], 1.0)
    """

    def __init__(self, n_rounds: int = 100, *, n_thresholds: int | None = 255) -> None:
        keep_settings(self, locals())

    def fit(self: Self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the stumps.

        Parameters
        ----------
        X : array of shape (n_rows, n_features)
        y : array of shape (n_rows,)
            Labels.
        sample_weight : array of shape (n_rows,) or None, default None
            The weight of each row, 0 or more; 2 is equivalent to the row twice, and 0 to leaving
            it out.

        Returns
        -------
        The estimator itself.
        """
        self._require_parameters()
        X, y = validate_data(self, X, y, dtype=[np.float64, np.float32])
        rows = DistinctRows.of(X, y, row_weights(X, sample_weight))
        self.classes_, counts = rows.classes, rows.counts(None)
        thresholds = Thresholds.of(rows.of_rows(X), counts, self.n_thresholds)
        if not len(thresholds.values):
            raise KeslerError(
                "every feature is constant over the rows, so there is no threshold: give features "
                "that vary"
            )
        signs = np.where(np.arange(len(self.classes_)) == rows.codes[:, None], 1.0, -1.0)
        stumps = boost(thresholds, signs, counts, int(self.n_rounds))
        with progress("JointBoost", "rounds", int(self.n_rounds)) as task:
            self._keep(list(task.count(stumps)))
        return self

    def _scores(self, X: Any) -> Doubles:
        """Return the score H of each class, in the order of `classes_`."""
        scores = self._above(X) @ (self.above_ - self.below_) + self.below_.sum(axis=0)
        return np.asarray(scores)

    def staged_decision_function(self, X: Any) -> Iterator[Doubles]:
        """Yield the result of `decision_function` after each round."""
        is_above = self._above(X)
        scores = np.zeros((len(is_above), len(self.classes_)))
        for t, column in enumerate(is_above.T):
            scores += np.where(column[:, None], self.above_[t], self.below_[t])
            yield self._shaped(scores)

    def staged_predict(self, X: Any) -> Iterator[npt.NDArray[Any]]:
        """Yield the result of `predict` after each round."""
        for scores in self.staged_decision_function(X):
            yield self._labels(scores)

    def predict_log_proba(self, X: Any) -> Doubles:
        """Return the logarithm of `predict_proba`."""
        scores = self.decision_function(X)
        if scores.ndim == 1:
            return np.column_stack([log_expit(-scores), log_expit(scores)])
        probabilities = log_expit(2 * scores)
        return np.asarray(probabilities - logsumexp(probabilities, axis=1, keepdims=True))

    def predict_proba(self, X: Any, new: bool = False) -> Doubles:
        """Return the probability of each class, in the order of `classes_`.

        The exponential loss estimates the probability of class r against all others as
        :math:`1 / (1 + e^{-2 H_r})`; these estimates are divided by their sum. For two classes,
        :math:`2 H_1` and :math:`-2 H_0` estimate the same log odds, and their mean is used, the
        result of `decision_function`.

        Parameters
        ----------
        X : rows as in `fit`.
        new : False
            The probability of a class to come is not estimated.

        Raises
        ------
        KeslerError
            If `new` is True.
        """
        require_unasked(self, new=new)
        return np.asarray(np.exp(self.predict_log_proba(X)))

    _probabilities = predict_proba
    _takes_sparse = False

    def _above(self, X: Any) -> npt.NDArray[np.bool_]:
        """Return whether each row is above the threshold of each round."""
        return np.asarray(self._rows(X)[:, self.features_] > self.thresholds_)

    def _shaped(self, scores: Doubles) -> Doubles:
        return scores[:, 1] - scores[:, 0] if len(self.classes_) == 2 else scores.copy()

    def _labels(self, scores: Doubles) -> npt.NDArray[Any]:
        best = scores.argmax(axis=1) if scores.ndim == 2 else (scores > 0).astype(np.int64)
        return np.asarray(self.classes_[best])

    def _keep(self, stumps: list[SharedStump]) -> None:
        n_classes = len(self.classes_)
        self.features_ = np.array([stump.feature for stump in stumps], dtype=np.int64)
        self.thresholds_ = np.array([stump.threshold for stump in stumps], dtype=np.float64)
        self.below_ = np.array([stump.below for stump in stumps]).reshape(-1, n_classes)
        self.above_ = np.array([stump.above for stump in stumps]).reshape(-1, n_classes)
        self.path_ = [
            Round(
                stump.feature,
                stump.threshold,
                tuple(self.classes_[stump.members].tolist()),
                stump.loss,
                stump.seconds,
                len(set(self.features_[: t + 1].tolist())),
            )
            for t, stump in enumerate(stumps)
        ]

    def _require_parameters(self) -> None:
        integer_of("n_rounds", self.n_rounds, 1)
        if self.n_thresholds is not None:
            integer_of("n_thresholds", self.n_thresholds, 1)

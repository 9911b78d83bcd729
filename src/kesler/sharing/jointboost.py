"""JointBoostClassifier: boosted stumps that sets of classes share."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from numbers import Integral
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
from scipy.special import log_expit, logsumexp
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from kesler.data.labels import plain
from kesler.errors import KeslerError

Doubles = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int32]
Ints = npt.NDArray[np.int64]

# A round that lowers the squared error by so small a share of the weight is rounding.
LEAST_GAIN = 1e-12


@dataclass(frozen=True, eq=False)
class Thresholds:
    """Where each feature may be cut, and how many of its cuts each row is above.

    Parameters
    ----------
    values : float64 array of shape (n_thresholds,)
        Feature by feature, each in rising order.
    starts : int64 array of shape (n_features + 1,)
        Where each feature's begin and end.
    codes : int32 array of shape (n_features, n_rows)
    """

    values: Doubles
    starts: Ints
    codes: Codes

    @classmethod
    def of(cls, X: npt.NDArray[Any], counts: Doubles, most: int | None) -> Thresholds:
        """Return all thresholds between values of each feature, or `most` at even quantiles."""
        cuts = [_cuts(column, counts, most) for column in X.T]
        codes = [np.searchsorted(cut, column) for cut, column in zip(cuts, X.T, strict=True)]
        starts = np.cumsum([0, *map(len, cuts)])
        return cls(np.concatenate(cuts), starts, np.array(codes, dtype=np.int32))

    def feature_of(self, threshold: int) -> int:
        """Return the feature that a threshold cuts."""
        return int(np.searchsorted(self.starts, threshold, side="right")) - 1

    def above(self, threshold: int) -> npt.NDArray[np.bool_]:
        """Return which rows are above a threshold."""
        feature = self.feature_of(threshold)
        return np.asarray(self.codes[feature] > threshold - self.starts[feature])


def _cuts(column: npt.NDArray[Any], counts: Doubles, most: int | None) -> Doubles:
    """Return numbers halfway between neighbouring values of a feature, or the lower of the two."""
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
    """What a round adds to the score of each class, above and below a threshold of a feature.

    Parameters
    ----------
    feature : int
    threshold : float
    members : bool array of shape (n_classes,)
        The classes that share it: the others have a constant, the same above and below.
    below, above : float64 arrays of shape (n_classes,)
    loss : float
        The mean exponential loss after the round.
    seconds : float
        From the beginning to the end of the round.
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
    r"""Yield the stumps of GentleBoost, classes sharing each by best-first search.

    .. math:: \sum_i c_i \sum_r e^{-z_{ir} H_r(x_i)}

    is lowered by Newton steps: each round fits z by least squares weighted by
    :math:`c_i e^{-z_{ir} H_r(x_i)}`, and adds what it has fitted to H. Ends early where no
    threshold gains anything.

    Parameters
    ----------
    thresholds : Thresholds
    signs : float64 array of shape (n_rows, n_classes)
        z: 1 where the row is of the class, -1 where it is not.
    counts : float64 array of shape (n_rows,)
        What rows count, c, above 0.
    n_rounds : int
    """
    from kesler.compiled.batch.jointboost import best_sharing, sum_above

    begun, scores = time.perf_counter(), np.zeros_like(signs)
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
            time.perf_counter() - begun,
        )


def _weights(signs: Doubles, scores: Doubles, counts: Doubles) -> Doubles:
    """Return the weights of the rows up to a factor, by which nothing changes."""
    exponents = -signs * scores
    return np.asarray(counts[:, None] * np.exp(exponents - exponents.max()))


def _fitted(
    is_above: npt.NDArray[np.bool_],
    weights: Doubles,
    pulls: Doubles,
    members: npt.NDArray[np.bool_],
) -> tuple[Doubles, Doubles]:
    """Return what the classes are given below and above a threshold: weighted means."""
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
        Those that share the stump.
    loss : float
        The mean exponential loss after the round.
    seconds : float
        Since boosting began.
    n_features : int
        Different features used so far.
    """

    feature: int
    threshold: float
    classes: tuple[Any, ...]
    loss: float
    seconds: float
    n_features: int


class JointBoostClassifier(ClassifierMixin, BaseEstimator):
    r"""Boosted decision stumps, each shared by a set of classes that the search finds.

    .. math:: H_r(x) = \sum_t h_t(x, r), \qquad
        h_t(x, r) = \begin{cases} a_t [x_{f_t} > \theta_t] + b_t & r \in S_t \\
        k_{t, r} & r \notin S_t \end{cases}

    A round fits :math:`z_{ir}`, 1 for the row's class and -1 for others, by least squares with
    the weights :math:`c_i e^{-z_{ir} H_r(x_i)}` (GentleBoost), over all features, all thresholds
    and sets of classes seen in a best-first search: classes join one at a time, each time the one
    with which the best stump is best.

    Parameters
    ----------
    n_rounds : int, 1 or more, default 100
        The most stumps. More fit the rows closer and cost as much time each.
    n_thresholds : int, 1 or more, or None, default 255
        The most thresholds of a feature, at even quantiles of its values. Larger values: finer
        cuts, more time and memory. None is for all, between each two neighbouring values.

    Attributes
    ----------
    path_ : list of rounds
        Each with `feature`, `threshold`, `classes`, `loss`, `seconds` and `n_features`, the number
        of different features so far.
    features_ : int64 array of shape (n_rounds,)
    thresholds_ : float64 array of shape (n_rounds,)
    below_, above_ : float64 arrays of shape (n_rounds, n_classes)
        What a stump adds to each class's score where the feature is at most the threshold, and
        where it is above.
    classes_ : array of shape (n_classes,)
        Sorted.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Raises
    ------
    KeslerError
        If a parameter is out of its range, there is one class only, no row weighs anything, or
        every feature is constant. What scikit-learn's validation refuses, NaN for one, is a
        ValueError.

    Notes
    -----
    A round costs O(n_rows n_features n_classes) for sums over rows and O(T n_classes^2) for the
    search, T being the number of all thresholds of all features; memory is 16 bytes for each
    threshold and class. Rows are dense.

    Rounds end before `n_rounds` where no stump gains anything. Constant features are never cut.
    Rows of weight 0 are left out, and a class without other rows is never predicted in favour of
    one that has some. A class of one row is a class as any other.

    Where ShareBoost has a weight of its own for each class, a stump here gives all that share it
    the same, and no weight is ever changed again.

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
        self.n_rounds = n_rounds
        self.n_thresholds = n_thresholds

    def fit(self: Self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Find the stumps.

        Parameters
        ----------
        X : array of shape (n_rows, n_features)
        y : array of shape (n_rows,)
            Labels.
        sample_weight : array of shape (n_rows,) or None, default None
            What each row counts, 0 or more: 2 is the row twice.

        Returns
        -------
        The estimator itself.
        """
        self._require_parameters()
        X, y = validate_data(self, X, y, dtype=[np.float64, np.float32])
        check_classification_targets(y)
        self.classes_, labels = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise KeslerError(
                f"y holds one class only, {plain(self.classes_[0])!r}: give rows of at least two "
                "classes"
            )
        counts = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        stored = np.flatnonzero(counts)
        if not len(stored):
            raise KeslerError("every sample_weight is zero, so there is no row to learn from")
        thresholds = Thresholds.of(X[stored], counts[stored], self.n_thresholds)
        if not len(thresholds.values):
            raise KeslerError("every feature is constant over the rows, so there is none to cut")
        signs = np.where(np.arange(len(self.classes_)) == labels[stored, None], 1.0, -1.0)
        self._keep(list(boost(thresholds, signs, counts[stored], int(self.n_rounds))))
        return self

    def decision_function(self, X: Any) -> Doubles:
        """Return the score H of each class, in the order of `classes_`.

        Of two classes, as scikit-learn has it, of shape (n_rows,): the score of classes_[1] less
        that of classes_[0].
        """
        is_above = self._above(X)
        return self._shaped(is_above @ (self.above_ - self.below_) + self.below_.sum(axis=0))

    def staged_decision_function(self, X: Any) -> Iterator[Doubles]:
        """Yield what `decision_function` would return after each round."""
        is_above = self._above(X)
        scores = np.zeros((len(is_above), len(self.classes_)))
        for t, column in enumerate(is_above.T):
            scores += np.where(column[:, None], self.above_[t], self.below_[t])
            yield self._shaped(scores)

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Return the label of highest score for each row, the first of `classes_` among equals."""
        return self._labels(self.decision_function(X))

    def staged_predict(self, X: Any) -> Iterator[npt.NDArray[Any]]:
        """Yield what `predict` would return after each round."""
        for scores in self.staged_decision_function(X):
            yield self._labels(scores)

    def predict_log_proba(self, X: Any) -> Doubles:
        """Return the logarithm of `predict_proba`."""
        is_above = self._above(X)
        scores = is_above @ (self.above_ - self.below_) + self.below_.sum(axis=0)
        probabilities = log_expit(2 * scores)
        return np.asarray(probabilities - logsumexp(probabilities, axis=1, keepdims=True))

    def predict_proba(self, X: Any) -> Doubles:
        """Return the probability of each class, in the order of `classes_`.

        The exponential loss takes :math:`1 / (1 + e^{-2 H_r})` for the probability of class r
        against all others; these are divided by their sum.
        """
        return np.asarray(np.exp(self.predict_log_proba(X)))

    def _above(self, X: Any) -> npt.NDArray[np.bool_]:
        """Return which rows are above the threshold of each round."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=[np.float64, np.float32], reset=False)
        return np.asarray(X[:, self.features_] > self.thresholds_)

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
        unbounded = self.n_thresholds is None
        for name in ("n_rounds",) if unbounded else ("n_rounds", "n_thresholds"):
            value = getattr(self, name)
            is_whole = isinstance(value, Integral) and not isinstance(value, bool)
            if not (is_whole and value >= 1):
                raise KeslerError(f"{name}={value!r} must be a whole number, 1 or more")

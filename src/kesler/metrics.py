"""Metrics of scores, probabilities and predicted ranks.

Scores are float arrays of shape (n_rows, n_labels); NaN marks a label that was not known, which
ranks last. Rows for which a metric is not defined are ignored; the result is NaN if no row is
left.

Metrics at k are of the k labels of highest score, which are suggested first, and are means over the
rows with a label. Labels of equal scores are in the order of their columns. A relevant label that
was not known is never among the first k, so that it is missed. Where there are fewer than k labels,
the divisor of the precision is k all the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from kesler.errors import KeslerError, integer_of

__all__ = [
    "PlaceCounts",
    "calibration_error",
    "f1_at",
    "hamming_loss",
    "kendall_tau",
    "log_loss",
    "mean_absolute_error",
    "micro_f1",
    "ndcg_at",
    "one_error",
    "precision_at",
    "ranking_loss",
    "recall_at",
]

Floats = npt.NDArray[np.floating[Any]]
Integers = npt.NDArray[np.integer[Any]]


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


def precision_at(scores: Floats, relevant: npt.NDArray[np.bool_], k: int) -> float:
    r"""Return the mean share of relevant labels among the k of highest score.

    .. math:: \frac1T \sum_t \frac1k |\{\pi_{t1} \dots \pi_{tk}\} \cap Y_t|

    where pi_t is the order of the labels by score. At k = 1, it is 1 minus `one_error`.

    Parameters
    ----------
    scores : float array of shape (n_rows, n_labels)
        Scores; NaN where the label was not known. Equal scores rank in the order of columns.
    relevant : bool array of shape (n_rows, n_labels)
        Whether each label is relevant. Rows without a relevant label are ignored.
    k : int of 1 or more
        Number of labels of each row. The divisor is k where there are fewer labels as well.

    Raises
    ------
    KeslerError
        If k is no such number.

    Notes
    -----
    The cost is O(n_rows n_labels): labels below the first k are not sorted.

    Examples
    --------
    >>> precision_at(np.array([[3.0, 2.0, 1.0]]), np.array([[True, False, True]]), 2)
    0.5
    """
    return TopLabels.of(scores, relevant, k).precision(k)


def recall_at(scores: Floats, relevant: npt.NDArray[np.bool_], k: int) -> float:
    r"""Return the mean share of the relevant labels that are among the k of highest score.

    .. math:: \frac1T \sum_t \frac1{|Y_t|} |\{\pi_{t1} \dots \pi_{tk}\} \cap Y_t|

    Parameters, errors and cost are those of :func:`precision_at`. A relevant label that was not
    known is one of Y. Larger k have higher recall; it is below 1 where Y has more than k labels.

    Examples
    --------
    >>> recall_at(np.array([[3.0, 2.0, 1.0]]), np.array([[True, True, True]]), 2)
    0.6666666666666666
    """
    return TopLabels.of(scores, relevant, k).recall(k)


def f1_at(scores: Floats, relevant: npt.NDArray[np.bool_], k: int) -> float:
    r"""Return the mean over rows of the F1 of the k labels of highest score.

    .. math:: \frac1T \sum_t \frac{2 |\{\pi_{t1} \dots \pi_{tk}\} \cap Y_t|}{k + |Y_t|}

    Parameters, errors and cost are those of :func:`precision_at`.

    Examples
    --------
    >>> f1_at(np.array([[3.0, 2.0, 1.0]]), np.array([[True, True, True]]), 2)
    0.8
    """
    return TopLabels.of(scores, relevant, k).f1(k)


def ndcg_at(scores: Floats, relevant: npt.NDArray[np.bool_], k: int) -> float:
    r"""Return the mean normalised discounted cumulative gain of the k labels of highest score.

    .. math:: \frac1T \sum_t \frac{\sum_{i=1}^k 1[\pi_{ti} \in Y_t] / \log_2(i + 1)}
        {\sum_{i=1}^{\min(k, |Y_t|)} 1 / \log_2(i + 1)}

    The gain of a relevant label is 1, as is usual for label sets. The divisor is the sum in the
    best order, so that the value is 1 if the first min(k, |Y|) labels are relevant.

    Parameters, errors and cost are those of :func:`precision_at`.

    References
    ----------
    Järvelin and Kekäläinen, Cumulated gain-based evaluation of IR techniques, 2002, whose discount
    is that of log2(i) from the second label on; the one above is that of Burges et al., 2005.

    Examples
    --------
    >>> round(ndcg_at(np.array([[3.0, 2.0, 1.0]]), np.array([[False, True, True]]), 2), 3)
    0.387
    """
    return TopLabels.of(scores, relevant, k).ndcg(k)


@dataclass(frozen=True, slots=True)
class TopLabels:
    """Which of the labels of highest score are relevant, in the rows with a relevant label.

    The methods are the metrics at any k up to that of `of`, without another search.

    Parameters
    ----------
    hits : bool array of shape (n_rows, min(k, n_labels))
        Whether the label of each place is relevant, the highest score first.
    n_relevant : int array of shape (n_rows,)
        Number of relevant labels.
    """

    hits: npt.NDArray[np.bool_]
    n_relevant: Integers

    @staticmethod
    def of(scores: Floats, relevant: npt.NDArray[np.bool_], k: int) -> TopLabels:
        """Return the first k labels; see :func:`precision_at`."""
        integer_of("k", k, 1, why=": it is the number of labels of each row that count")
        n_relevant = relevant.sum(axis=1)
        some = np.flatnonzero(n_relevant)
        known = with_unknown_last(scores[some])
        hits = np.take_along_axis(relevant[some] & (known > -np.inf), highest(known, k), axis=1)
        return TopLabels(hits, n_relevant[some])

    def precision(self, k: int) -> float:
        """Return `precision_at`."""
        return mean_or_nan(self._n_hits(k) / k)

    def recall(self, k: int) -> float:
        """Return `recall_at`."""
        return mean_or_nan(self._n_hits(k) / self.n_relevant)

    def f1(self, k: int) -> float:
        """Return `f1_at`."""
        return mean_or_nan(2 * self._n_hits(k) / (k + self.n_relevant))

    def ndcg(self, k: int) -> float:
        """Return `ndcg_at`."""
        hits = self.hits[:, :k]
        discounts = 1 / np.log2(np.arange(2, hits.shape[1] + 2))
        best = discounts.cumsum()[np.minimum(self.n_relevant, len(discounts)) - 1]
        return mean_or_nan(hits @ discounts / best)

    def _n_hits(self, k: int) -> Integers:
        counts: Integers = self.hits[:, :k].sum(axis=1)
        return counts


def highest(scores: Floats, k: int) -> npt.NDArray[np.intp]:
    """Return the columns of the k highest scores of each row, the highest first.

    There are fewer if there are fewer columns. Equal scores are in the order of columns, whatever
    the partition does with them. NaN is not allowed.

    Examples
    --------
    >>> highest(np.array([[1.0, 3.0, 1.0, 2.0], [5.0, 5.0, 5.0, 5.0]]), 3).tolist()
    [[1, 3, 0], [0, 1, 2]]
    """
    n_rows, n_columns = scores.shape
    if k >= n_columns:
        return np.argsort(-scores, axis=1, kind="stable")
    least = np.partition(scores, n_columns - k, axis=1)[:, n_columns - k, None]
    above, equal = scores > least, scores == least
    n_free = k - above.sum(axis=1, keepdims=True)
    chosen = above | (equal & (equal.cumsum(axis=1) <= n_free))
    columns = np.nonzero(chosen)[1].reshape(n_rows, k)
    order = np.argsort(-np.take_along_axis(scores, columns, axis=1), axis=1, kind="stable")
    return np.take_along_axis(columns, order, axis=1)


def places(scores: Floats, columns: npt.NDArray[np.integer[Any]]) -> Integers:
    """Return the place by score of one column of each row, 1 for the highest score.

    Equal scores are in the order of columns. NaN is not allowed.

    Examples
    --------
    >>> places(np.array([[1.0, 3.0, 1.0], [1.0, 3.0, 1.0]]), np.array([0, 2])).tolist()
    [2, 3]
    """
    own = np.take_along_axis(scores, columns[:, None], axis=1)
    n_before: Integers = np.count_nonzero(scores > own, axis=1)
    equal = scores == own
    tied = np.flatnonzero(np.count_nonzero(equal, axis=1) > 1)
    equal_before = equal[tied] & (np.arange(scores.shape[1]) < columns[tied, None])
    n_before[tied] += np.count_nonzero(equal_before, axis=1)
    return n_before + 1


@dataclass(frozen=True, slots=True)
class PlaceCounts:
    """How often the class of a row was at each place, by score, among the classes known by then.

    Where rows have one class, the recall at k is the top-k accuracy, of which the precision at k is
    the k-th part. A few counts say as much as the scores of all classes of all rows. The counts of
    several parts of a stream are added with `+`.

    Parameters
    ----------
    counts : int64 array of shape (2 + most,)
        The rows of classes that were not known, those at the places 1, 2 ... most, and those at
        further places.
    """

    counts: npt.NDArray[np.int64]

    @staticmethod
    def of(places: npt.NDArray[np.integer[Any]], most: int) -> PlaceCounts:
        """Return the counts of places, 0 for a class that was not known, of which `most` differ.

        Raises
        ------
        KeslerError
            If `most` is no integer of 1 or more.

        Examples
        --------
        >>> found = PlaceCounts.of(np.array([0, 1, 1, 3, 9]), 3)
        >>> found.counts.tolist(), found.recall(1), found.recall(3), found.ndcg(3)
        ([1, 2, 0, 1, 1], 0.5, 0.75, 0.625)
        """
        integer_of("k", most, 1, why=": it is the number of labels of each row that count")
        counts = np.bincount(np.minimum(places, most + 1), minlength=most + 2)
        return PlaceCounts(counts.astype(np.int64))

    def __add__(self, other: PlaceCounts) -> PlaceCounts:
        return PlaceCounts(self.counts + other.counts)

    def recall(self, k: int) -> float:
        """Return the share of the rows of known classes whose class is among the first k."""
        return self._mean(np.ones(k))

    def ndcg(self, k: int) -> float:
        r"""Return the mean of 1 / log2(1 + place) over these rows, 0 beyond the place k.

        It is `ndcg_at` of rows with one relevant label.
        """
        return self._mean(1 / np.log2(np.arange(2, k + 2)))

    def to_json(self) -> list[dict[str, float]]:
        """Return the recall and NDCG at each k as JSON objects."""
        depths = range(1, len(self.counts) - 1)
        return [{"k": k, "recall": self.recall(k), "ndcg": self.ndcg(k)} for k in depths]

    def _mean(self, gains: npt.NDArray[np.float64]) -> float:
        """Return the mean gain of rows, of which each of the first places has one."""
        n_rows = int(self.counts[1:].sum())
        among = self.counts[1 : 1 + len(gains)]
        return float(among @ gains) / n_rows if n_rows else float("nan")


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


def kendall_tau(
    scores: Floats, levels: npt.NDArray[np.int32], weights: npt.NDArray[np.float64] | None = None
) -> float:
    r"""Return the mean over rows of Kendall's tau, over the pairs that the levels compare.

    .. math:: \tau = \frac{\#\text{pairs in order} - \#\text{pairs out of order}}{\#\text{pairs}}

    Levels below 0 and pairs of equal levels are not compared; a lower level is better. Rows without
    a pair are left out. `weights` are those of rows in the mean, None for 1.

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
    some = n_pairs > 0 if weights is None else (n_pairs > 0) & (weights > 0)
    taus = agreement[some] / n_pairs[some]
    if weights is None or not len(taus):
        return mean_or_nan(taus)
    return float(np.average(taus, weights=weights[some]))


def with_unknown_last(scores: Floats) -> Floats:
    """Return scores with NaN replaced by -inf, which ranks last."""
    known: Floats = np.where(np.isnan(scores), -np.inf, scores)
    return known


def mean_or_nan(values: npt.NDArray[Any]) -> float:
    """Return the mean of values, NaN if there are none."""
    return float(values.mean()) if values.size else float("nan")

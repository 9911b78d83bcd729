"""The parts of a report, each computed from scored rows."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from kesler.data.labels import Label
from kesler.evaluation.reports.coding import Doubles, ScoredRows
from kesler.metrics import PlaceCounts, calibration_error

if TYPE_CHECKING:
    from kesler.trees.tree import Tree

Counts = npt.NDArray[np.int64]

N_EXAMPLES = 5
MOST_WINDOWS = 40
N_BINS = 10
IN_MATRIX = 15
MOST_POINTS = 200
DEPTHS = (1, 3, 5)
AGES = ((1, 5), (6, 10), (11, 20), (21, 50), (51, 100), (101, 500), (501, None))


@dataclass(frozen=True, slots=True)
class ClassFigures:
    """The figures of one class; measures that are not defined are NaN.

    Attributes
    ----------
    label : label
        The class.
    first : int or None
        The number of its first row, counted from 1; None if it was only predicted.
    rows : int
        Number of its rows.
    mistakes : int
        Number of its rows for which another class was predicted.
    predictions : int
        Number of rows for which it was predicted, of classes that had been seen.
    precision : float
        Share of these predictions that are right.
    recall : float
        Share of its rows that were predicted right, of those that could be.
    f1 : float
        The harmonic mean of precision and recall.
    calibration_error : float
        The expected calibration error of its predictions, in 15 bins.
    """

    label: Label
    first: int | None
    rows: int
    mistakes: int
    predictions: int
    precision: float
    recall: float
    f1: float
    calibration_error: float


@dataclass(frozen=True, slots=True)
class Confusion:
    """A pair of classes that were confused.

    Attributes
    ----------
    target : label
        The right class.
    predicted : label or None
        The class predicted; None for no prediction.
    count : int
        Number of rows.
    share : float
        These rows divided by those of the target that could be predicted right.
    rows : tuple of int
        The numbers of the last five of the rows, counted from 1.
    """

    target: Label
    predicted: Label | None
    count: int
    share: float
    rows: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Window:
    """Consecutive rows.

    Attributes
    ----------
    start, stop : int
        The first and the last row, counted from 1.
    rows : int
        Number of rows, or of those of known classes if the method did not learn from them.
    mistakes : int
        Number of mistakes.
    first_seen : int
        Number of rows of classes that had not been seen.
    error : float
        Mistakes divided by `rows`; NaN without rows.
    """

    start: int
    stop: int
    rows: int
    mistakes: int
    first_seen: int
    error: float


@dataclass(frozen=True, slots=True)
class TopAccuracy:
    """How often the class of a row is among the k of highest score.

    Attributes
    ----------
    k : int
        Number of classes.
    accuracy : float
        Share of the rows that could be predicted right, the recall at k; NaN without such rows.
    ndcg : float
        Mean of 1 / log2(1 + place) over these rows, 0 beyond the place k.
    """

    k: int
    accuracy: float
    ndcg: float


@dataclass(frozen=True, slots=True)
class AgeGroup:
    """The rows at some ages of their classes, which are counted in rows of the class.

    Attributes
    ----------
    least : int
        The lowest age: 1 is the first row of a class.
    most : int or None
        The highest age; None means no limit.
    rows : int
        Number of rows that could be predicted right.
    mistakes : int
        Number of mistakes.
    error : float
        Mistakes divided by these rows; NaN without rows.
    """

    least: int
    most: int | None
    rows: int
    mistakes: int
    error: float


@dataclass(frozen=True, slots=True)
class WrongRow:
    """A row with a mistake.

    Attributes
    ----------
    row : int
        Its number, counted from 1.
    target, predicted : label
        The right class, or what the row is labelled, and the class predicted.
    confidence : float
        The confidence in the prediction.
    of_target : float
        The probability of the target; NaN if there is none.
    """

    row: int
    target: Label
    predicted: Label
    confidence: float
    of_target: float


@dataclass(frozen=True, slots=True)
class ReliabilityBin:
    """The rows whose confidence is in a tenth of the range from 0 to 1.

    Attributes
    ----------
    low, high : float
        The bounds of the confidence.
    rows : int
        Number of rows.
    confidence : float
        The mean confidence; NaN without rows.
    accuracy : float
        The share of rows predicted right; NaN without rows.
    """

    low: float
    high: float
    rows: int
    confidence: float
    accuracy: float


@dataclass(frozen=True, slots=True)
class Matrix:
    """The confusion matrix of the classes with the most rows.

    Attributes
    ----------
    labels : tuple
        At most 15 classes, by descending numbers of rows.
    counts : tuple of tuples of int
        For each of them as the target, the rows for which each of them was predicted and, last,
        those for which anything else was; without the rows of classes that had not been seen.
    """

    labels: tuple[Label, ...]
    counts: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class Growth:
    """Cumulative counts at some of the rows, at most 201.

    Attributes
    ----------
    rows : tuple of int
        Numbers of rows, from 1 to the last.
    mistakes : tuple of int
        Mistakes so far.
    classes : tuple of int
        Classes so far.
    """

    rows: tuple[int, ...]
    mistakes: tuple[int, ...]
    classes: tuple[int, ...]


# ---- classes -------------------------------------------------------------------------------------


def class_figures(scored: ScoredRows) -> tuple[ClassFigures, ...]:
    """Return the figures of each class, those with the most rows first."""
    n, seen, right = len(scored.labels), scored.seen, scored.right
    first = np.full(n, -1)
    codes, at = np.unique(scored.answers, return_index=True)
    first[codes] = at + 1
    rows = np.bincount(scored.answers, minlength=n)
    could = np.bincount(scored.answers[seen], minlength=n)
    said = np.bincount(scored.predicted[seen & (scored.predicted >= 0)], minlength=n)
    hits = np.bincount(scored.answers[right], minlength=n)
    precision, recall, f1 = (
        _shares(hits, said),
        _shares(hits, could),
        _shares(2 * hits, said + could),
    )
    calibration = _calibration_by_class(scored)
    return tuple(
        ClassFigures(
            scored.labels[i],
            int(first[i]) if rows[i] else None,
            int(rows[i]),
            int(could[i] - hits[i]),
            int(said[i]),
            float(precision[i]),
            float(recall[i]),
            float(f1[i]),
            calibration[i],
        )
        for i in _busiest(rows).tolist()
        if rows[i] or said[i]
    )


def _busiest(rows: Counts) -> Counts:
    """Return the numbers of classes by descending numbers of rows, ties in their order."""
    return np.argsort(-rows, kind="stable")


def _shares(parts: Counts, wholes: Counts) -> Doubles:
    """Return quotients, NaN where the divisor is 0."""
    found: Doubles = np.full(len(parts), np.nan)
    np.divide(parts, wholes, out=found, where=wholes > 0)
    return found


def share(part: int, whole: int) -> float:
    """Return a quotient, NaN if the divisor is 0."""
    return part / whole if whole else float("nan")


def _calibration_by_class(scored: ScoredRows) -> list[float]:
    """Return the calibration error of the predictions of each class."""
    kept = np.flatnonzero(scored.known & (scored.predicted >= 0))
    kept = kept[np.argsort(scored.predicted[kept], kind="stable")]
    bounds = np.searchsorted(scored.predicted[kept], np.arange(len(scored.labels) + 1))
    right = scored.right
    return [
        calibration_error(scored.confidences[kept[a:b]], right[kept[a:b]])
        for a, b in pairwise(bounds.tolist())
    ]


def top_accuracies(scored: ScoredRows) -> tuple[TopAccuracy, ...]:
    """Return the top-1, top-3 and top-5 accuracy, without those that include all classes."""
    if scored.places is None:
        return ()
    counts = PlaceCounts.of(np.where(scored.seen, scored.places, 0), max(DEPTHS))
    depths = [k for k in DEPTHS if k < len(scored.labels)]
    return tuple(TopAccuracy(k, counts.recall(k), counts.ndcg(k)) for k in depths)


# ---- mistakes ------------------------------------------------------------------------------------


def confusions(scored: ScoredRows, top: int) -> tuple[Confusion, ...]:
    """Return the most frequent pairs of a target and another prediction, at most `top`."""
    wrong = np.flatnonzero(scored.wrong)
    n = len(scored.labels) + 1
    pairs = scored.answers[wrong].astype(np.int64) * n + scored.predicted[wrong] + 1
    found, first, counts = np.unique(pairs, return_index=True, return_counts=True)
    could = np.bincount(scored.answers[scored.seen], minlength=n)
    most = np.lexsort((first, -counts))[:top]
    rows, ends = wrong[np.argsort(pairs, kind="stable")] + 1, np.cumsum(counts)  # pair by pair
    return tuple(
        Confusion(
            scored.labels[pair // n],
            _label(scored, pair % n - 1),
            count,
            count / int(could[pair // n]),
            tuple(rows[max(end - count, end - N_EXAMPLES) : end].tolist()),
        )
        for pair, count, end in zip(
            found[most].tolist(), counts[most].tolist(), ends[most].tolist(), strict=True
        )
    )


def _label(scored: ScoredRows, code: int) -> Label | None:
    return None if code < 0 else scored.labels[code]


def surely_wrong(scored: ScoredRows, top: int) -> tuple[WrongRow, ...]:
    """Return the mistakes of the highest confidence, at most `top`."""
    wrong = np.flatnonzero(scored.wrong & ~np.isnan(scored.confidences))
    order = np.argsort(-scored.confidences[wrong], kind="stable")[:top]
    return tuple(
        WrongRow(
            i + 1,
            scored.labels[scored.answers[i]],
            scored.labels[scored.predicted[i]],
            float(scored.confidences[i]),
            float(scored.of_targets[i]),
        )
        for i in wrong[order].tolist()
    )


def confusion_matrix(scored: ScoredRows) -> Matrix:
    """Return the confusion matrix of the classes with the most rows."""
    n = len(scored.labels)
    rows = np.bincount(scored.answers, minlength=n)
    codes = _busiest(rows)[: min(IN_MATRIX, int((rows > 0).sum()))]
    places = np.full(n + 1, len(codes))  # the last is that of no prediction, -1
    places[codes] = np.arange(len(codes))
    targets, said = (places[each[scored.seen]] for each in (scored.answers, scored.predicted))
    counts = np.zeros((len(codes) + 1, len(codes) + 1), dtype=np.int64)
    np.add.at(counts, (targets, said), 1)
    return Matrix(
        tuple(scored.labels[code] for code in codes.tolist()),
        tuple(tuple(row) for row in counts[:-1].tolist()),
    )


def tree_figures(scored: ScoredRows, tree: Tree) -> tuple[float, tuple[float, ...]]:
    """Return the distance of mistakes in a tree and the errors of its levels, over all rows."""
    from kesler.trees.measures import level_errors, tree_distances

    wrong = scored.wrong & (scored.predicted >= 0)
    targets, said = (
        [scored.labels[code] for code in codes] for codes in (scored.answers, scored.predicted)
    )
    distances = tree_distances(targets, said, tree, wrong)
    errors = level_errors(targets, said, tree, wrong)
    return float(distances.sum()) / len(scored), tuple(errors.tolist())


# ---- time ----------------------------------------------------------------------------------------


def window_length(n_rows: int) -> int:
    """Return the shortest of 10, 20, 50 ... that makes at most 40 windows.

    Fewer rows have no share of errors that says anything.

    Examples
    --------
    >>> window_length(30), window_length(1000), window_length(1_000_000)
    (10, 50, 50000)
    """
    length = 10
    while length * MOST_WINDOWS < n_rows:
        length = length * 5 // 2 if str(length).startswith("2") else length * 2
    return length


def windows(scored: ScoredRows) -> tuple[Window, ...]:
    """Return the error of consecutive rows, in at most 40 windows of one length."""
    starts = np.arange(0, len(scored), window_length(len(scored)))
    stops = np.append(starts[1:], len(scored))
    mistakes = np.add.reduceat(scored.wrong, starts, dtype=np.int64)
    unseen = np.add.reduceat(scored.unseen, starts, dtype=np.int64)
    asked = stops - starts if scored.learns else stops - starts - unseen
    errors = _shares(mistakes, asked)
    columns = (starts + 1, stops, asked, mistakes, unseen, errors)
    return tuple(Window(*row) for row in zip(*(each.tolist() for each in columns), strict=True))


def ages(answers: npt.NDArray[np.int32]) -> Counts:
    """Return for each row how many rows of its class there have been, itself included.

    Examples
    --------
    >>> ages(np.array([0, 1, 0, 0], dtype=np.int32)).tolist()
    [1, 1, 2, 3]
    """
    order = np.argsort(answers, kind="stable")
    grouped = answers[order]
    starts = np.flatnonzero(np.append(True, grouped[1:] != grouped[:-1]))
    lengths = np.diff(np.append(starts, len(answers)))
    found = np.empty(len(answers), dtype=np.int64)
    found[order] = np.arange(1, len(answers) + 1) - np.repeat(starts, lengths)
    return found


def age_groups(scored: ScoredRows) -> tuple[AgeGroup, ...]:
    """Return the error by the age of the class, or nothing if the method did not learn."""
    if not scored.learns:
        return ()
    age, seen, wrong = ages(scored.answers), scored.seen, scored.wrong
    found = []
    for least, most in AGES:
        within = seen & (age >= least) & (True if most is None else age <= most)
        n_rows, n_wrong = int(within.sum()), int((within & wrong).sum())
        found.append(AgeGroup(least, most, n_rows, n_wrong, share(n_wrong, n_rows)))
    return tuple(found)


def growth(scored: ScoredRows) -> Growth:
    """Return the mistakes and the classes so far, at evenly spaced rows."""
    n = len(scored)
    at = np.unique(np.linspace(0, n - 1, min(n, MOST_POINTS)).astype(np.int64))
    first = np.zeros(n, dtype=np.int64)
    first[np.unique(scored.answers, return_index=True)[1]] = 1
    wrong, classes = np.cumsum(scored.wrong)[at], np.cumsum(first)[at]
    return Growth(tuple((at + 1).tolist()), tuple(wrong.tolist()), tuple(classes.tolist()))


# ---- confidence ----------------------------------------------------------------------------------


def reliability(scored: ScoredRows) -> tuple[ReliabilityBin, ...]:
    """Return the share of right predictions by confidence, in ten bins."""
    known = scored.known
    p, right = scored.confidences[known], scored.right[known]
    if not len(p):
        return ()
    at = np.clip((p * N_BINS).astype(np.int64), 0, N_BINS - 1)
    rows = np.bincount(at, minlength=N_BINS)
    means = _shares(np.bincount(at, p, N_BINS), rows)
    accuracies = _shares(np.bincount(at, right, N_BINS), rows)
    return tuple(
        ReliabilityBin(i / N_BINS, (i + 1) / N_BINS, int(rows[i]), *map(float, pair))
        for i, pair in enumerate(zip(means, accuracies, strict=True))
    )

"""The weights of a trained classifier of texts, as entries (feature, class) of which few matter."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from kesler.data.texts import TextLengths
from kesler.errors import KeslerError
from kesler.learner.contributions import contributions_of_blocks
from kesler.learner.learner import Learner
from kesler.learner.top_features import before_scaling, ones_of
from kesler.online.classifier import OnlineClassifier
from kesler.preprocessing import Counts

Doubles = npt.NDArray[np.float64]
Numbers = npt.NDArray[np.int64]

MOST_ENTRIES = 1 << 20  # of a table that is held at a time
NEGLIGIBLE = 1e-3  # of the largest weight
CLASSES_AT_ONCE = 64


@dataclass(frozen=True)
class Entries:
    """By how much features raise the scores of classes above those of most classes.

    Attributes
    ----------
    features, classes : arrays of int
        The pairs, sorted by features.
    weights : array of float
        For a value of 1 of the feature, before rows are scaled to length 1.
    n_rows : array of float
        The number of rows of each feature.
    """

    features: Numbers
    classes: Numbers
    weights: Doubles
    n_rows: Doubles

    @property
    def worth(self) -> Doubles:
        """What each entry has contributed to scores: squared weights, summed over rows."""
        found: Doubles = self.weights**2 * self.n_rows[self.features]
        return found

    def take(self, kept: npt.NDArray[Any]) -> Entries:
        """Return some of the entries, in their order."""
        return Entries(self.features[kept], self.classes[kept], self.weights[kept], self.n_rows)


@dataclass(frozen=True)
class Trained:
    """What a compact classifier is made of.

    Attributes
    ----------
    labels : list
        The labels of the classes, in the order of `classes_`, which breaks ties.
    lengths : TextLengths or None
        Of the texts learnt; None if features are words alone.
    names : list of str
        The names of the features, by their numbers.
    entries : Entries
    inverse : float
        The inverse temperature of scores that are sums of weights over the root of the number of
        features.
    lapse : float
        The share of rows that scores do not explain.
    """

    labels: list[Any]
    lengths: TextLengths | None
    names: list[str]
    entries: Entries
    inverse: float
    lapse: float

    @staticmethod
    def of(model: OnlineClassifier) -> Trained:
        """Return what a classifier has learnt, see `learner_of`."""
        learner, names = learner_of(model), model._input.names
        assert names is not None
        with learner.lock:
            inverse, lapse = _calibration(learner)
            labels = model.classes_.tolist()
            return Trained(
                labels,
                model._input.texts,
                names.names[: learner.n_named_features],
                entries_of(learner, labels),
                inverse / math.sqrt(_squared_value(learner)),
                lapse,
            )


def learner_of(model: OnlineClassifier) -> Learner:
    """Return the learner of a classifier whose scores are sums over the features of a text.

    Raises
    ------
    KeslerError
        If it is another classifier, or has not learnt texts.
    """
    if type(model) is not OnlineClassifier:
        raise KeslerError(
            f"a model of type {type(model).__name__} has no compact form: give an OnlineClassifier "
            "that has learnt texts, each of one class"
        )
    learner: Any = model._fitted()
    if model._input.names is None or model._input.columns.schema is not None:
        raise KeslerError(
            "this classifier has learnt columns of tables or numbers: a compact form exists for "
            "one that has learnt texts as strings"
        )
    if not _is_sum(learner):
        raise KeslerError(
            "the scores of this classifier are not sums of weights of words over the length of the "
            "text: a compact form exists for the default settings, OnlineClassifier()"
        )
    found: Learner = learner
    return found


def _is_sum(learner: Any) -> bool:
    return (
        type(learner) is Learner
        and isinstance(learner.preprocessing, Counts)
        and learner.preprocessing.information
        and learner.preprocessing.damped
        and learner.preprocessing.unit
        and not learner.preprocessing.idf
        and learner.half_life is None
        and learner.expansion is None
        and not learner.constant
        and learner.decision == "score"
        and learner.ranks is None
        and not learner.takes_ratings
        and all(each.zero_at_zero for each in learner._maps)
    )


def entries_of(learner: Learner, labels: list[Any]) -> Entries:
    """Return the entries of all features that have some, of any worth, for labels in an order."""
    n_rows = np.array(_statistics(learner)[:, 0])
    blocks = _blocks_of_table(learner) if learner.comparing is None else _blocks_met(learner)
    pieces = [
        (features[rows], classes[columns], table[rows, columns])
        for features, classes, table in blocks
        for rows, columns in [_of_note(table)]
    ]
    features, codes, weights = map(np.concatenate, zip(*pieces, strict=True))
    place_of = {label: place for place, label in enumerate(labels)}
    classes = np.array([place_of[label] for label in learner.classes.labels])[codes]
    order = np.lexsort((classes, features))
    return Entries(features[order], classes[order], weights[order], n_rows)


def _of_note(table: Doubles) -> tuple[Numbers, Numbers]:
    """Return the rows and columns of all weights but the smallest."""
    sizes = np.abs(table)
    rows, columns = np.nonzero(sizes > NEGLIGIBLE * sizes.max(initial=0.0))
    return rows, columns


def _calibration(learner: Learner) -> tuple[float, float]:
    """Return the inverse temperature and the share of lapses."""
    if not learner.is_calibrated:
        return 1.0, 0.0
    learnt = learner.stored["calibration"][0]
    n_targets = float(learnt["n_targets"])
    return float(learnt["inverse"]), float(learnt["lapses"]) / n_targets if n_targets else 0.0


def _squared_value(learner: Learner) -> float:
    """Return the mean of the squared values of features after preprocessing, before scaling."""
    from kesler.compiled.trial.preprocessing import DOUBTFUL, UNINFORMATIVE

    n_rows, gained = _statistics(learner).T
    squares = UNINFORMATIVE + np.maximum(0.0, gained) / (n_rows + DOUBTFUL)
    total = float(n_rows.sum())
    return float((squares * n_rows).sum()) / total if total else 1.0


def _statistics(learner: Learner) -> Doubles:
    """Return the number of rows of each feature, and the information that it gained."""
    arrays = learner._kernel_arguments.arrays
    found: Doubles = arrays.preprocessing.statistics[: learner.n_named_features]
    return found


Block = tuple[Numbers, Numbers, Doubles]


def _blocks_of_table(learner: Learner) -> Iterator[Block]:
    """Yield features, all classes, and the weights of these pairs above the median of classes."""
    codes = np.arange(len(learner.classes), dtype=np.int64)
    n, step = learner.n_named_features, max(1, MOST_ENTRIES // len(codes))
    for start in range(0, n, step):
        features = np.arange(start, min(n, start + step))
        yield features, codes, _above_median(learner, features, codes)


def _blocks_met(learner: Learner) -> Iterator[Block]:
    """Yield features, classes and weights as above, 0 for pairs that no row had.

    The median is that of the block: most classes have no row with a feature, and equal weights.
    """
    assert learner.comparing is not None
    n, n_classes = learner.n_named_features, len(learner.classes)
    starts, owners, _ = learner.comparing.entries.listed(n)
    met = np.repeat(np.arange(n), np.diff(starts))
    for codes in np.array_split(np.arange(n_classes), -(-n_classes // CLASSES_AT_ONCE)):
        in_block = (owners >= codes[0]) & (owners <= codes[-1])
        features, rows = np.unique(met[in_block], return_inverse=True)
        window = learner.comparing.show(learner, features.astype(np.int32), codes.astype(np.int32))
        numbers = np.arange(len(features)), np.arange(len(codes))
        table, found = _above_median(window, *numbers), np.zeros((len(features), len(codes)))
        columns = owners[in_block] - codes[0]
        found[rows, columns] = table[rows, columns]
        yield features, codes, found


def _above_median(learner: Learner, features: Numbers, codes: Numbers) -> Doubles:
    ones, arguments = ones_of(learner, features.astype(np.int32)), before_scaling(learner)
    table = contributions_of_blocks(learner, ones, codes, arguments.address)[0].sum(axis=2)
    above: Doubles = table - np.median(table, axis=1, keepdims=True)
    return above

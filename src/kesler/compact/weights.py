"""The weights of a trained classifier of texts, as entries (feature, class) of which few matter."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from kesler.compact.names import Terms, Words
from kesler.errors import KeslerError
from kesler.learner.contributions import contributions_of_blocks
from kesler.learner.learner import Learner
from kesler.learner.top_features import before_scaling, ones_of
from kesler.online.classifier import OnlineClassifier
from kesler.online.multilabel import OnlineMultilabelClassifier
from kesler.preprocessing import Counts

Doubles = npt.NDArray[np.float64]
Numbers = npt.NDArray[np.int64]
Model = OnlineClassifier | OnlineMultilabelClassifier

MOST_ENTRIES = 1 << 20  # of a table that is held at a time
NEGLIGIBLE = 1e-3  # of the largest weight
CLASSES_AT_ONCE = 64


@dataclass(frozen=True)
class Entries:
    """By how much features raise the scores of classes above those of most classes.

    Attributes
    ----------
    features, classes : arrays of int
        The pairs, sorted by features. Of label sets, the class after the last stands for all: by
        how much the feature raises the scores of most labels above the threshold.
    weights : array of float
        For a value of 1 of the feature, before rows are scaled to length 1.
    n_rows : array of float
        The number of rows of each feature.
    n_classes : int
    """

    features: Numbers
    classes: Numbers
    weights: Doubles
    n_rows: Doubles
    n_classes: int

    @property
    def n_scores(self) -> Doubles:
        """The number of scores that each entry was part of."""
        n_of_class = np.where(self.classes == self.n_classes, self.n_classes, 1)
        found: Doubles = n_of_class * self.n_rows[self.features]
        return found

    @property
    def worth(self) -> Doubles:
        """What each entry has contributed to scores: squared weights, summed over these."""
        found: Doubles = self.weights**2 * self.n_scores
        return found

    def take(self, kept: npt.NDArray[Any]) -> Entries:
        """Return some of the entries, in their order."""
        features, classes, weights = (
            each[kept] for each in (self.features, self.classes, self.weights)
        )
        return Entries(features, classes, weights, self.n_rows, self.n_classes)


@dataclass(frozen=True)
class Odds:
    """The odds of classes without features, and what label sets are decided by, as logarithms.

    Attributes
    ----------
    offsets : array of float
        The odds of each class in a text without features.
    to_beat : float or None
        The odds above which labels are predicted; None if a text has one class.
    """

    offsets: Doubles
    to_beat: float | None = None


@dataclass(frozen=True)
class Trained:
    """What a compact classifier is made of.

    Attributes
    ----------
    labels : list
        The labels of the classes, in the order of `classes_`, which breaks ties.
    features : Words or Terms
        The features of a text.
    names : list of str
        Their names, by their numbers.
    entries : Entries
    inverse : float
        The inverse temperature of scores that are sums of weights over the root of the number of
        features; of an inverse temperature of 1 before they have one.
    is_tempered : bool
        Whether they have one: a row of a known class beside another has been learnt.
    lapse : float
        The share of rows that scores do not explain.
    odds : Odds or None
        None if a text has one class, and classes no intercepts.
    """

    labels: list[Any]
    features: Words | Terms
    names: list[str]
    entries: Entries
    inverse: float
    is_tempered: bool
    lapse: float
    odds: Odds | None

    @property
    def has_sets(self) -> bool:
        """Whether a text has a set of labels."""
        return self.odds is not None and self.odds.to_beat is not None

    @staticmethod
    def of(model: Model) -> Trained:
        """Return what a classifier has learnt, see `features_of` and `learner_of`."""
        features, learner, names = features_of(model), learner_of(model), model._input.names
        assert names is not None
        with learner.lock:
            labels = model.classes_.tolist()
            calibrated = _odds if learner.has_sets else _calibration
            inverse, lapse, odds = calibrated(learner, labels)
            return Trained(
                labels,
                features,
                names.names[: learner.n_named_features],
                entries_of(learner, labels),
                inverse / math.sqrt(_squared_value(learner)),
                learner.has_sets or _is_tempered(learner),
                lapse,
                odds,
            )


def features_of(model: Model) -> Words | Terms:
    """Return the features of the texts that a classifier has learnt.

    Raises
    ------
    KeslerError
        If it has learnt other rows, or vectors of words.
    """
    if model.vectors is not None:
        raise KeslerError(
            "this classifier learns vectors of words (vectors, pretrainedVectors), which a "
            "compact form does not hold: train one without them"
        )
    model._fitted()
    schema, names = model._input.columns.schema, model._input.names
    if names is not None and schema is None:
        return Words(model._input.texts)
    learnt = [] if schema is None else schema.learnt
    if names is None or [column.kind for column in learnt] != ["text"]:
        raise KeslerError(
            "this classifier has learnt several columns of tables, or numbers or categories: a "
            "compact form exists for one that has learnt texts, as strings or in one column, of "
            "which columns={NAME: 'text'} says that it has texts. For numbers, fit a "
            "kesler.ShareBoostClassifier, which exports C"
        )
    return Terms.of(learnt[0])


def learner_of(model: Model) -> Learner:
    """Return the learner of a classifier whose scores are sums over the features of a text.

    Raises
    ------
    KeslerError
        If its scores are something else.
    """
    learner: Any = model._fitted()
    if not _is_sum(learner):
        raise KeslerError(
            "the scores of this classifier are not sums of weights of words over the length of the "
            f"text: a compact form exists for the default settings, {type(model).__name__}(), with "
            "or without an intercept"
        )
    if learner.has_sets and learner.comparing is not None:
        raise KeslerError(
            f"this classifier compares each text with {learner.candidates.most} candidates of "
            f"{len(model.classes_):,} labels, and knows little of how probable the others are: a "
            "compact form exists for label sets that are all compared, of up to 128 labels or by "
            "OnlineMultilabelClassifier(candidates=None)"
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
        and learner.decision == ("f1" if learner.has_sets else "score")
        and (learner.constant or not learner.has_sets)
        and learner.ranks is None
        and not learner.takes_ratings
        and all(each.zero_at_zero for each in learner._maps)
    )


def entries_of(learner: Learner, labels: list[Any]) -> Entries:
    """Return the entries of all features that have some, of any worth, for labels in an order."""
    n_rows = np.array(_statistics(learner)[:, 0])
    blocks = _blocks_of_table(learner) if learner.comparing is None else _blocks_met(learner)
    pieces = [(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0))]
    pieces += [
        (features[rows], classes[columns], table[rows, columns])
        for features, classes, table in blocks
        for rows, columns in [_of_note(table)]
    ]
    features, codes, weights = map(np.concatenate, zip(*pieces, strict=True))
    classes = _places(learner, labels)[codes]
    order = np.lexsort((classes, features))
    return Entries(features[order], classes[order], weights[order], n_rows, len(labels))


def _places(learner: Learner, labels: list[Any]) -> Numbers:
    """Return the place of each class among labels in an order; the last place is that of all."""
    place_of = {label: place for place, label in enumerate(labels)}
    none = [-1] * learner.classes.n_virtual
    return np.array(none + [place_of[each] for each in learner.classes.labels] + [len(labels)])


def _of_note(table: Doubles) -> tuple[Numbers, Numbers]:
    """Return the rows and columns of all weights but the smallest."""
    sizes = np.abs(table)
    rows, columns = np.nonzero(sizes > NEGLIGIBLE * sizes.max(initial=0.0))
    return rows, columns


Calibration = tuple[float, float, Odds | None]


def _calibration(learner: Learner, labels: list[Any]) -> Calibration:
    """Return the inverse temperature, the share of lapses, and the offsets of classes, if any."""
    inverse, lapse = 1.0, 0.0
    if learner.is_calibrated:
        learnt = learner.stored["calibration"][0]
        inverse, n_targets = float(learnt["inverse"]), float(learnt["n_targets"])
        lapse = float(learnt["lapses"]) / n_targets if n_targets else 0.0
    if not learner.constant:
        return inverse, lapse, None
    found, weights = np.empty(len(labels)), _weights_of_constant(learner)
    found[_places(learner, labels)[:-1]] = inverse * learner.constant * weights
    return inverse, lapse, Odds(found)


def _is_tempered(learner: Learner) -> bool:
    """Return whether scores have a temperature that rows have taught, or that none teaches."""
    return not learner.is_calibrated or learner.stored["calibration"][0]["information"] > 0


def _odds(learner: Learner, labels: list[Any]) -> Calibration:
    """Return the inverse temperature, and what label sets are decided by."""
    learnt, offsets = learner.stored["sets.calibration"][0], learner.stored["sets.offsets"]
    inverse, hits, named = (float(learnt[name]) for name in ("inverse", "hits", "named"))
    first, n_codes = learner.classes.n_virtual, len(learner.classes)
    inverse = inverse or 1.0
    found = np.empty(len(labels))
    weights = _weights_of_constant(learner)
    intercepts = learner.constant * (weights[first:] - weights[0])
    found[_places(learner, labels)[first:n_codes]] = offsets[first:n_codes] + inverse * intercepts
    return inverse, 0.0, Odds(found, math.log(hits / (named - hits)))


def _squared_value(learner: Learner) -> float:
    """Return the mean of the squared values of features after preprocessing, before scaling."""
    from kesler.compiled.trial.preprocessing import DOUBTFUL, UNINFORMATIVE

    n_rows, gained = _statistics(learner).T
    squares = UNINFORMATIVE + np.maximum(0.0, gained) / (n_rows + DOUBTFUL)
    total = float(n_rows.sum())
    return float((squares * n_rows).sum()) / total if total else 1.0


def _statistics(learner: Learner) -> Doubles:
    """Return the number of rows of each feature, and the information that it gained."""
    first = int(bool(learner.constant))  # behind the constant, if there is one
    arrays = learner._kernel_arguments.arrays
    found: Doubles = arrays.preprocessing.statistics[first : first + learner.n_named_features]
    return found


Block = tuple[Numbers, Numbers, Doubles]


def _blocks_of_table(learner: Learner) -> Iterator[Block]:
    """Yield features, all classes, and the weights of these pairs above the median of classes.

    Of label sets, also yield that median above the threshold, as the weights of all labels.
    """
    n_codes, first, n = len(learner.classes), learner.classes.n_virtual, learner.n_named_features
    codes, step = np.arange(n_codes, dtype=np.int64), max(1, MOST_ENTRIES // n_codes)
    for start in range(0, n, step):
        features = np.arange(start, min(n, start + step))
        table = _weights(learner, features, codes)
        middle = np.median(table[:, first:], axis=1, keepdims=True)
        yield features, codes[first:], table[:, first:] - middle
        if first:
            yield features, np.array([n_codes]), middle - table[:, :first]


def _blocks_met(learner: Learner) -> Iterator[Block]:
    """Yield features, classes and weights as above, 0 for pairs that no row had.

    The median is that of the block: most classes have no row with a feature, and equal weights.
    """
    assert learner.comparing is not None
    first, n_classes = int(bool(learner.constant)), len(learner.classes)
    starts, owners, _ = learner.comparing.entries.listed(first + learner.n_named_features)
    met = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    met, owners = met[starts[first] :], owners[starts[first] :]  # without the constant
    for codes in np.array_split(np.arange(n_classes), -(-n_classes // CLASSES_AT_ONCE)):
        in_block = (owners >= codes[0]) & (owners <= codes[-1])
        features, rows = np.unique(met[in_block], return_inverse=True)
        window = learner.comparing.show(learner, features.astype(np.int32), codes.astype(np.int32))
        table = _weights(window, np.arange(len(features)) - first, np.arange(len(codes)))
        table -= np.median(table, axis=1, keepdims=True)
        found, columns = np.zeros((len(features), len(codes))), owners[in_block] - codes[0]
        found[rows, columns] = table[rows, columns]
        yield features - first, codes, found


def _weights(learner: Learner, features: Numbers, codes: Numbers) -> Doubles:
    """Return the weight of each feature for each class, before rows are scaled."""
    ones, arguments = ones_of(learner, features.astype(np.int32)), before_scaling(learner)
    found: Doubles = contributions_of_blocks(learner, ones, codes, arguments.address)[0].sum(axis=2)
    return found


def _weights_of_constant(learner: Learner) -> Doubles:
    """Return the weight of the constant for each class."""
    found, codes = np.empty(len(learner.classes)), np.arange(len(learner.classes))
    step = len(codes) if learner.comparing is None else CLASSES_AT_ONCE
    for start in range(0, len(codes), max(1, step)):
        some, own, numbers = codes[start : start + step], learner, codes
        if learner.comparing is not None:
            own = learner.comparing.show(learner, np.zeros(1, np.int32), some.astype(np.int32))
            numbers = np.arange(len(some))
        row = ones_of(own, np.array([-1], dtype=np.int32))  # it precedes named features
        of_row = contributions_of_blocks(own, row, numbers, own._kernel_arguments.address)
        found[some] = of_row[0].sum(axis=2)[0]
    return found

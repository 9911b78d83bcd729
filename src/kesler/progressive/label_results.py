"""The records of progressive validation where an answer is a label set or a ranking."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from kesler import metrics
from kesler.estimators.inputs import row_weights
from kesler.estimators.label_sets import RELEVANT
from kesler.estimators.multilabel import OnlineMultilabelClassifier
from kesler.estimators.ranking import OnlineLabelRanker
from kesler.progressive.run import Run


@dataclass(frozen=True, slots=True)
class LabelResult:
    """The record of a run in which the labels of each row were scored before it was learnt.

    Attributes
    ----------
    n_mistakes : int
        Rows that were imperfectly predicted, of the labels known by then.
    scores : float32 array of shape (n_trials, n_labels)
        The decision function before the answer was heard, in the order of `classes_`; NaN where the
        label was not known.
    levels : int32 array of shape (n_trials, n_labels)
        The answers: labels of a lower level must outscore those of a higher one; those below 0
        are not compared.
    seconds : float
        Time that the run took.
    run : Run or None
        What the run was made of, for :func:`kesler.mistake_bound`.
    """

    n_mistakes: int
    scores: npt.NDArray[np.float32]
    levels: npt.NDArray[np.int32]
    seconds: float
    run: Run | None = field(default=None, repr=False, compare=False)

    @property
    def n_trials(self) -> int:
        """Rows."""
        return len(self.scores)


@dataclass(frozen=True, slots=True)
class MultilabelResult(LabelResult):
    """The record of a run of :class:`~kesler.OnlineMultilabelClassifier`; see `kesler.metrics`."""

    @property
    def relevant(self) -> npt.NDArray[np.bool_]:
        """The answers as an indicator matrix."""
        indicator: npt.NDArray[np.bool_] = self.levels == RELEVANT
        return indicator

    @property
    def one_error(self) -> float:
        """Share of rows with a label in which the label of highest score is none of theirs."""
        return metrics.one_error(self.scores, self.relevant)

    @property
    def ranking_loss(self) -> float:
        """Mean share of pairs of a relevant and an irrelevant label in the wrong order."""
        return metrics.ranking_loss(self.scores, self.relevant)

    @property
    def hamming_loss(self) -> float:
        """Share of labels wrongly taken for relevant or irrelevant."""
        return metrics.hamming_loss(self.scores, self.relevant)


@dataclass(frozen=True, slots=True)
class RankingResult(LabelResult):
    """The record of a run of :class:`~kesler.OnlineLabelRanker`; see `kesler.metrics`."""

    @property
    def kendall_tau(self) -> float:
        """Mean of Kendall's tau over the pairs that each answer compares."""
        return metrics.kendall_tau(self.scores, self.levels)


def validate_labels(
    estimator: OnlineMultilabelClassifier | OnlineLabelRanker,
    X: Any,
    y: Any,
    sample_weight: Any = None,
    classes: Any = None,
) -> MultilabelResult | RankingResult:
    """Let an estimator score the labels of each row, then learn it; return the record."""
    run = Run.of(estimator, X, y, sample_weight, classes)
    n_before = estimator.n_mistakes_ if estimator.n_known_ else 0
    start = time.perf_counter()
    scores = estimator.run_trials(X, y, sample_weight, classes)
    seconds = time.perf_counter() - start
    levels = estimator.levels_told(y, classes)
    weights = row_weights(sample_weight, len(levels))
    if weights is not None:
        levels = levels[weights > 0]
    multilabel = isinstance(estimator, OnlineMultilabelClassifier)
    result = MultilabelResult if multilabel else RankingResult
    return result(estimator.n_mistakes_ - n_before, scores, levels, seconds, run)

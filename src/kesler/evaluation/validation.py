"""Progressive validation of one learner: predict each row before learning from it."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from kesler.data.inputs import row_weights
from kesler.errors import KeslerError
from kesler.evaluation import metrics
from kesler.evaluation.metrics import calibration_error, log_loss, mean_absolute_error
from kesler.online.base import OnlineLearner
from kesler.online.classifier import OnlineClassifier
from kesler.online.contract import unfitted
from kesler.online.label_sets import RELEVANT, kendall_tau
from kesler.online.multilabel import OnlineMultilabelClassifier
from kesler.online.ordinal import OnlineOrdinalClassifier
from kesler.online.ranking import OnlineLabelRanker


@dataclass(frozen=True, slots=True)
class Run:
    """The arguments of a run, stored by reference.

    Parameters
    ----------
    estimator : OnlineLearner
        An unfitted estimator with the parameters of the one that learnt.
    X, y, sample_weight, classes : the arguments of `progressive_validate`.
    fresh : bool
        Whether the estimator was unfitted before the run.
    """

    estimator: OnlineLearner
    X: Any
    y: Any
    sample_weight: Any
    classes: Any
    fresh: bool

    @staticmethod
    def of(estimator: OnlineLearner, X: Any, y: Any, sample_weight: Any, classes: Any) -> Run:
        """Return the run of an estimator before it starts."""
        fresh = not estimator.__sklearn_is_fitted__()
        return Run(unfitted(estimator), X, y, sample_weight, classes, fresh)


@dataclass(frozen=True, slots=True)
class LabelResult:
    """The result of a run in which the labels of each row were scored before it was learnt.

    Attributes
    ----------
    n_mistakes : int
        Number of rows with an imperfect prediction, among the labels known by then.
    scores : float32 array of shape (n_trials, n_labels)
        The decision function before the target was used, in the order of `classes_`; NaN for labels
        that were not known.
    levels : int32 array of shape (n_trials, n_labels)
        The encoded targets: labels of a lower level must outscore labels of a higher level; labels
        below 0 are not compared.
    seconds : float
        Duration of the run.
    run : Run or None
        The arguments of the run, for :func:`kesler.mistake_bound`.
    """

    n_mistakes: int
    scores: npt.NDArray[np.float32]
    levels: npt.NDArray[np.int32]
    seconds: float
    run: Run | None = field(default=None, repr=False, compare=False)

    @property
    def n_trials(self) -> int:
        """Number of rows."""
        return len(self.scores)


@dataclass(frozen=True, slots=True)
class MultilabelResult(LabelResult):
    """The result of a run of :class:`~kesler.OnlineMultilabelClassifier`; see `kesler.metrics`."""

    @property
    def relevant(self) -> npt.NDArray[np.bool_]:
        """The targets as an indicator matrix."""
        indicator: npt.NDArray[np.bool_] = self.levels == RELEVANT
        return indicator

    @property
    def one_error(self) -> float:
        """Share of rows with a label whose label of highest score is irrelevant."""
        return metrics.one_error(self.scores, self.relevant)

    @property
    def ranking_loss(self) -> float:
        """Mean share of pairs of a relevant and an irrelevant label in the wrong order."""
        return metrics.ranking_loss(self.scores, self.relevant)

    @property
    def hamming_loss(self) -> float:
        """Share of labels wrongly predicted to be relevant or irrelevant."""
        return metrics.hamming_loss(self.scores, self.relevant)


@dataclass(frozen=True, slots=True)
class RankingResult(LabelResult):
    """The result of a run of :class:`~kesler.OnlineLabelRanker`; see `kesler.metrics`."""

    @property
    def kendall_tau(self) -> float:
        """Mean of Kendall's tau over the pairs that each target compares."""
        return kendall_tau(self.scores, self.levels)


def validate_labels(
    estimator: OnlineMultilabelClassifier | OnlineLabelRanker,
    X: Any,
    y: Any,
    sample_weight: Any = None,
    classes: Any = None,
) -> MultilabelResult | RankingResult:
    """Score the labels of each row before learning from it; return the result."""
    run = Run.of(estimator, X, y, sample_weight, classes)
    n_before = estimator.n_mistakes_ if estimator.n_known_ else 0
    start = time.perf_counter()
    scores = estimator.run_trials(X, y, sample_weight, classes)
    seconds = time.perf_counter() - start
    levels = estimator.target_levels(y, classes)
    weights = row_weights(sample_weight, len(levels))
    if weights is not None:
        levels = levels[weights > 0]
    multilabel = isinstance(estimator, OnlineMultilabelClassifier)
    result = MultilabelResult if multilabel else RankingResult
    return result(estimator.n_mistakes_ - n_before, scores, levels, seconds, run)


@dataclass(frozen=True, slots=True)
class ProgressiveResult:
    """The result of a run in which each row was predicted before it was learnt.

    Attributes
    ----------
    n_trials : int
        Number of rows.
    n_mistakes : int
        Number of rows of a known class for which another class was predicted.
    n_first_seen : int
        Number of rows whose class had not been seen before; they are trials, but not mistakes.
    curve : int64 array of shape (n_trials,)
        Cumulative mistakes after each trial.
    predictions : object array of shape (n_trials,)
        The label predicted in each trial, None while no class was known.
    probabilities : float64 array of shape (n_trials, 2)
        The probabilities of the predicted class and of the target before the target was used, NaN
        where the class had not been seen.
    seconds : float
        Duration of the run.
    run : Run or None
        The arguments of the run, for :func:`kesler.mistake_bound`.
    """

    n_trials: int
    n_mistakes: int
    n_first_seen: int
    curve: npt.NDArray[np.int64]
    predictions: npt.NDArray[Any]
    probabilities: npt.NDArray[np.float64]
    seconds: float
    run: Run | None = field(default=None, repr=False, compare=False)

    @property
    def trials(self) -> npt.NDArray[np.int64]:
        """The trial number of each point of `curve`, counted from 1."""
        return np.arange(1, self.n_trials + 1, dtype=np.int64)

    @property
    def error(self) -> float:
        """Mistakes divided by trials (Fink et al. 2006, Section 2); 0 without trials."""
        return self.n_mistakes / max(1, self.n_trials)

    @property
    def log_loss(self) -> float:
        """Mean of -ln of the probability of the target, over rows of classes seen before."""
        return log_loss(self.probabilities[:, 1])

    @property
    def calibration_error(self) -> float:
        """Expected calibration error of the predicted classes over the same rows, in 15 bins."""
        right = np.diff(self.curve, prepend=0) == 0
        return calibration_error(self.probabilities[:, 0], right)


@dataclass(frozen=True, slots=True, kw_only=True)
class OrdinalResult(ProgressiveResult):
    """The result of a run of :class:`~kesler.OnlineOrdinalClassifier`.

    Attributes
    ----------
    mean_absolute_error : float
        Mean absolute difference between predicted and true ranks, over the rows of ranks known by
        then; positions are those in the declared order, or in `classes_` after the run.
    """

    mean_absolute_error: float


@overload
def progressive_validate(
    estimator: OnlineOrdinalClassifier,
    X: Any,
    y: Any,
    sample_weight: Any = ...,
    classes: Any = ...,
) -> OrdinalResult: ...
@overload
def progressive_validate(
    estimator: OnlineClassifier, X: Any, y: Any, sample_weight: Any = ..., classes: Any = ...
) -> ProgressiveResult: ...
@overload
def progressive_validate(
    estimator: OnlineMultilabelClassifier,
    X: Any,
    y: Any,
    sample_weight: Any = ...,
    classes: Any = ...,
) -> MultilabelResult: ...
@overload
def progressive_validate(
    estimator: OnlineLabelRanker, X: Any, y: Any, sample_weight: Any = ..., classes: Any = ...
) -> RankingResult: ...
def progressive_validate(
    estimator: OnlineLearner, X: Any, y: Any, sample_weight: Any = None, classes: Any = None
) -> ProgressiveResult | MultilabelResult | RankingResult:
    r"""Predict each row before learning from it (progressive validation).

    .. math:: \text{error} = \frac1T \sum_t 1[\hat y_t \ne y_t, \; y_t \in \{y_1 \dots y_{t-1}\}]

    Parameters
    ----------
    estimator : OnlineClassifier, OnlineOrdinalClassifier, OnlineMultilabelClassifier or \
OnlineLabelRanker
        It learns in place and continues if it is fitted.
    X, y, sample_weight, classes : as in the `partial_fit` of the estimator
        The stream, in order.

    Returns
    -------
    ProgressiveResult, OrdinalResult, MultilabelResult or RankingResult

    Raises
    ------
    KeslerError
        If the estimator is not an online learner, or raises an error for the rows.

    Notes
    -----
    The cost is that of learning, which predicts anyway. Each row is predicted by a model that has
    not seen it, so one pass is an unbiased test (Blum, Kalai and Langford 1999). Rows of weight 0
    are skipped and not counted.

    Examples
    --------
    >>> from kesler import OnlineClassifier, progressive_validate
    >>> X, y = [[1, 0], [0, 1], [0, 1], [1, 0]], ["a", "b", "b", "a"]
    >>> result = progressive_validate(OnlineClassifier("multi", update="perceptron"), X, y)
    >>> result.n_mistakes, result.n_first_seen, result.error, result.curve.tolist()
    (1, 2, 0.25, [0, 0, 1, 1])
    """
    if isinstance(estimator, (OnlineMultilabelClassifier, OnlineLabelRanker)):
        return validate_labels(estimator, X, y, sample_weight, classes)
    if not isinstance(estimator, OnlineClassifier):
        raise KeslerError(
            f"progressive_validate needs a learner that predicts before it learns, not "
            f"{type(estimator).__name__}: use a kesler.OnlineClassifier"
        )
    run = Run.of(estimator, X, y, sample_weight, classes)
    n_known = estimator.n_known_
    start = time.perf_counter()
    trials = estimator._run_trials(X, y, sample_weight, keep_probabilities=True)
    seconds = time.perf_counter() - start
    predicted, answers = trials.predictions, trials.codes
    wrong = mistakes(predicted, answers, n_known)
    seen = estimator.classes_by_code_.tolist() if estimator.n_known_ else []
    labels = np.array([*seen, None], dtype=object)
    record: dict[str, Any] = {
        "n_trials": len(answers),
        "n_mistakes": int(wrong.sum()),
        "n_first_seen": estimator.n_known_ - n_known,
        "curve": np.cumsum(wrong, dtype=np.int64),
        "predictions": labels[predicted],
        "probabilities": trials.probabilities,
        "seconds": seconds,
        "run": run,
    }
    if not isinstance(estimator, OnlineOrdinalClassifier):
        return ProgressiveResult(**record)
    known = ~first_seen(answers, n_known)
    pair = labels[predicted[known]], labels[answers[known]]
    return OrdinalResult(
        **record, mean_absolute_error=mean_absolute_error(*pair, estimator.all_ranks)
    )


def mistakes(
    predicted: npt.NDArray[np.int32], answers: npt.NDArray[np.int32], n_known: int
) -> npt.NDArray[np.bool_]:
    """Return a mask of the mistakes in a run that started with `n_known` classes.

    The first instance of a class is never a mistake.

    Examples
    --------
    >>> mistakes(np.array([-1, 0, 0, 1]), np.array([0, 1, 1, 1]), 0).tolist()
    [False, False, True, False]
    """
    wrong: npt.NDArray[np.bool_] = predicted != answers
    return wrong & ~first_seen(answers, n_known)


def first_seen(answers: npt.NDArray[np.int32], n_known: int) -> npt.NDArray[np.bool_]:
    """Return a mask of the trials with the first row of a class, except the first `n_known`."""
    is_first = np.zeros(len(answers), dtype=np.bool_)
    first = np.full(answers.max(initial=-1) + 1, -1)
    first[answers[::-1]] = np.arange(len(answers))[::-1]  # the first row is written last
    new = first[n_known:]
    is_first[new[new >= 0]] = True
    return is_first

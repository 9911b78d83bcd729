"""Progressive validation of one learner: predict each row, then learn it, and keep the score."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from kesler.errors import KeslerError
from kesler.estimators.base import OnlineLearner
from kesler.estimators.multilabel import OnlineMultilabelClassifier
from kesler.estimators.online import OnlineClassifier
from kesler.estimators.ordinal import OnlineOrdinalClassifier
from kesler.estimators.ranking import OnlineLabelRanker
from kesler.metrics import calibration_error, log_loss, mean_absolute_error
from kesler.progressive.label_results import MultilabelResult, RankingResult, validate_labels
from kesler.progressive.run import Run


@dataclass(frozen=True, slots=True)
class ProgressiveResult:
    """The record of a run in which each row was predicted before it was learnt.

    Attributes
    ----------
    n_trials : int
        Rows.
    n_mistakes : int
        Rows of a known class for which another one was predicted.
    n_first_seen : int
        Rows whose class had not been met before; they are trials, but no mistakes.
    curve : int64 array of shape (n_trials,)
        Mistakes so far, after each trial.
    predictions : object array of shape (n_trials,)
        The label predicted in each trial, None while no class was known.
    probabilities : float64 array of shape (n_trials, 2)
        Those of the class predicted and of the answer before it was heard, NaN where its class had
        not been met.
    seconds : float
        Time that the run took.
    run : Run or None
        What the run was made of, for :func:`kesler.mistake_bound`.
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
        """The trials of the points of `curve`, counted from 1."""
        return np.arange(1, self.n_trials + 1, dtype=np.int64)

    @property
    def error(self) -> float:
        """Mistakes over trials (Fink et al. 2006, Section 2); 0 if there were none."""
        return self.n_mistakes / max(1, self.n_trials)

    @property
    def log_loss(self) -> float:
        """Mean of -ln of the answer's probability, rows of classes not met left out."""
        return log_loss(self.probabilities[:, 1])

    @property
    def calibration_error(self) -> float:
        """Expected calibration error of the classes predicted over the same rows, in 15 bins."""
        right = np.diff(self.curve, prepend=0) == 0
        return calibration_error(self.probabilities[:, 0], right)


@dataclass(frozen=True, slots=True, kw_only=True)
class OrdinalResult(ProgressiveResult):
    """The record of a run of :class:`~kesler.OnlineOrdinalClassifier`.

    Attributes
    ----------
    mean_absolute_error : float
        How many ranks predictions were away from the answers, on average over the rows of ranks
        known by then, counted in `classes_` as they are after the run or in the declared order.
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
    r"""Let an estimator predict each row, then learn it; return the record.

    .. math:: \text{error} = \frac1T \sum_t 1[\hat y_t \ne y_t, \; y_t \in \{y_1 \dots y_{t-1}\}]

    Parameters
    ----------
    estimator : OnlineClassifier, OnlineOrdinalClassifier, OnlineMultilabelClassifier or \
OnlineLabelRanker
        Learns in place and goes on from what it knows already.
    X, y, sample_weight, classes : as in the `partial_fit` of the estimator
        The stream, in its order.

    Returns
    -------
    ProgressiveResult, OrdinalResult, MultilabelResult or RankingResult

    Raises
    ------
    KeslerError
        If the estimator is no online learner, or refuses the rows.

    Notes
    -----
    Costs no more than learning, which predicts anyway. Each row is judged by a model that has not
    seen it, so one pass is an honest test (Blum, Kalai and Langford 1999). Rows of weight 0 are
    left out and count for nothing.

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
    met = estimator.classes_by_code_.tolist() if estimator.n_known_ else []
    labels = np.array([*met, None], dtype=object)
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
    """Return which trials were mistakes, of a run that began with `n_known` classes.

    The first instance of a class is no mistake, whatever was predicted.

    Examples
    --------
    >>> mistakes(np.array([-1, 0, 0, 1]), np.array([0, 1, 1, 1]), 0).tolist()
    [False, False, True, False]
    """
    wrong: npt.NDArray[np.bool_] = predicted != answers
    return wrong & ~first_seen(answers, n_known)


def first_seen(answers: npt.NDArray[np.int32], n_known: int) -> npt.NDArray[np.bool_]:
    """Return which trials brought a class that was not among the first `n_known`."""
    is_first = np.zeros(len(answers), dtype=np.bool_)
    first = np.full(answers.max(initial=-1) + 1, -1)
    first[answers[::-1]] = np.arange(len(answers))[::-1]  # the last to be written is the first row
    new = first[n_known:]
    is_first[new[new >= 0]] = True
    return is_first

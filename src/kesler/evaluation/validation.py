"""Progressive validation of one method: predict each row before learning from it."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from kesler.data.inputs import row_weights
from kesler.errors import KeslerError
from kesler.evaluation.adapters import Refit, method_of, require_refit
from kesler.evaluation.comparison import Comparison
from kesler.evaluation.methods import ONE_CLASS, first_seen, mistakes, require_delay
from kesler.evaluation.results import (
    CostResult,
    MultilabelResult,
    OrdinalResult,
    ProgressiveResult,
    RankingResult,
    Run,
    labelled,
)
from kesler.evaluation.tables import Piece, Table
from kesler.evaluation.uncertainty import trace_of
from kesler.metrics import mean_absolute_error
from kesler.online.base import OnlineLearner
from kesler.online.classifier import OnlineClassifier
from kesler.online.multilabel import OnlineMultilabelClassifier
from kesler.online.ordinal import OnlineOrdinalClassifier
from kesler.online.ranking import OnlineLabelRanker
from kesler.online.training import Trials

if TYPE_CHECKING:
    from kesler.online.cost_sensitive import CostSensitiveClassifier
    from kesler.queries.query import Query


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
    keeping = {"keep_scores": True, "keep_traces": True}
    trials = estimator._run_trials(X, y, sample_weight, classes, **keeping)
    scores = estimator._in_order(trials.scores)
    seconds = time.perf_counter() - start
    levels = estimator.target_levels(y, classes)
    weights = row_weights(sample_weight, len(levels))
    if weights is not None:
        levels = levels[weights > 0]
    labels = tuple(estimator.classes_.tolist())
    found = estimator.n_mistakes_ - n_before, scores, levels, seconds, run, labels
    if not isinstance(estimator, OnlineMultilabelClassifier):
        return RankingResult(*found)
    return MultilabelResult(*found, uncertainty=trace_of(trials))


@overload
def progressive_validate(
    method: OnlineOrdinalClassifier,
    X: Any,
    y: Any,
    sample_weight: Any = ...,
    classes: Any = ...,
) -> OrdinalResult: ...
@overload
def progressive_validate(
    method: CostSensitiveClassifier,
    X: Any,
    y: Any,
    sample_weight: Any = ...,
    classes: Any = ...,
) -> CostResult: ...
@overload
def progressive_validate(
    method: OnlineMultilabelClassifier,
    X: Any,
    y: Any,
    sample_weight: Any = ...,
    classes: Any = ...,
) -> MultilabelResult: ...
@overload
def progressive_validate(
    method: OnlineLabelRanker, X: Any, y: Any, sample_weight: Any = ..., classes: Any = ...
) -> RankingResult: ...
@overload
def progressive_validate(
    method: object,
    X: Any,
    y: Any,
    sample_weight: Any = ...,
    classes: Any = ...,
    *,
    refit: Refit = ...,
    label_budget: float | Query | None = ...,
    delay: int = ...,
) -> ProgressiveResult: ...
def progressive_validate(
    method: Any,
    X: Any,
    y: Any,
    sample_weight: Any = None,
    classes: Any = None,
    *,
    refit: Refit = None,
    label_budget: float | Query | None = None,
    delay: int = 0,
) -> ProgressiveResult | MultilabelResult | RankingResult:
    r"""Predict each row before learning from it (progressive validation).

    .. math:: \text{error} = \frac1T \sum_t 1[\hat y_t \ne y_t, \; y_t \in \{y_1 \dots y_{t-1}\}]

    Parameters
    ----------
    method : object
        What predicts and learns, in place:

        - an online learner of Kesler, which continues if it is fitted;
        - a classifier with `partial_fit` and `predict`, such as those of scikit-learn, or a
          pipeline that ends with one and whose transformers have `partial_fit` or need no fit. It
          continues if it is fitted. If its first `partial_fit` asks for all classes, it is given
          `classes`, or those that occur in `y`, which the other methods do not know;
        - a classifier with `fit` and `predict`, which is fitted again on all rows so far after 1,
          2, 4, 8 ... rows; see `refit`;
        - an object with `learn_one` and `predict_one`, such as those of river. It is given rows as
          dictionaries {feature: value}, numbered from 0 for arrays, or as texts;
        - a function (X, y, x) of the rows and the labels so far, and of the row to predict, which
          returns a label, or None for no prediction. It is called from the second row on. X has
          the form of the argument `X`; x is an array of shape (n_features,), a sparse matrix of one
          row, a dictionary for a data frame, or an item of a list.
    X : array, sparse matrix, data frame or list
        The rows of the stream, in order: as in the `partial_fit` of an online learner, or a list of
        what the method reads, such as texts.
    y : sequence of targets, one for each row
        As in the `partial_fit` of an online learner; one label for each row for other methods.
    sample_weight : array of shape (n_rows,) or None, default None
        Weights of rows, for methods that take them. Rows of weight 0 are skipped and not counted.
    classes : sequence of labels or None, default None
        All classes, for `partial_fit`.
    refit : "doubling", int of 1 or more, or None, default None
        An integer n fits a classifier again on all rows so far after n, 2n, 4n ... rows, which
        predicts until the next fit, and nothing before the first; "doubling" stands for 1. Larger
        numbers are for classifiers that need some rows. Rows of one class are predicted without a
        fit. None lets a classifier with `partial_fit` learn from each row.
    label_budget : float above 0, at most 1, rule or None, default None
        Which labels are asked for, as in :class:`~kesler.OnlineClassifier`, whose parameter it
        becomes. All rows are predicted and count, and only those asked for are learnt. None stands
        for the parameter of the method; if that is None too, all rows are learnt.
    delay : int of 0 or more, default 0
        How many rows late answers arrive: row t is predicted by a method that has learnt the rows
        up to t - delay, as in river's `progressive_val_score`, so that 0 and 1 are at once. Larger
        values are for labels that arrive later; the error rises, and confidences and the
        probability of a new class, which are estimated for the next row, hold less (`result.late`).
        Answers that would arrive after the last row are not learnt.

    Returns
    -------
    ProgressiveResult; with a label budget :class:`~kesler.evaluation.queries.QueriedResult`, which
    also counts the labels asked for; OrdinalResult, CostResult, MultilabelResult or RankingResult
    for the online learners of such targets.

    Raises
    ------
    KeslerError
        If the method is none of the above, does not take weights or cannot be fitted on so few
        rows, or raises such an error for the rows; or if a label budget is given for a method that
        chooses no rows, or beside weights. If `delay` is no such number, or is above 0 for targets
        other than one class, with a label budget, or for a method that learns all rows at once.

    Notes
    -----
    The cost is that of learning, for online learners of Kesler, which predict anyway; others are
    called for each row in Python, about 1 ms with scikit-learn, or fitted about log2 T times. With
    a delay, each row costs a call that predicts and one that learns, 0.3 ms for a short text and
    2 ms for measurements, and some 400 bytes of memory for its prediction. Each row is predicted by
    a model that has not seen it, so one pass is an unbiased test (Blum, Kalai and Langford 1999).

    Examples
    --------
    >>> from kesler import OnlineClassifier, progressive_validate
    >>> X, y = [[1, 0], [0, 1], [0, 1], [1, 0]], ["a", "b", "b", "a"]
    >>> result = progressive_validate(OnlineClassifier("multi", update="perceptron"), X, y)
    >>> result.n_mistakes, result.n_first_seen, result.error, result.curve.tolist()
    (1, 2, 0.25, [0, 0, 1, 1])

    >>> def nearest(X, y, x):
    ...     return y[((X - x) ** 2).sum(axis=1).argmin()]
    >>> result = progressive_validate(nearest, X, y)
    >>> result.n_mistakes, result.predictions.tolist()
    (0, ['', 'a', 'b', 'a'])
    """
    require_refit(refit)
    if refit is not None and (isinstance(method, OnlineLearner) or not hasattr(method, "fit")):
        raise KeslerError(
            f"refit={refit!r} has no effect on {type(method).__name__}, which learns from each "
            "row: omit it, or give a classifier with fit and predict"
        )
    if label_budget is not None:
        _give_budget(method, label_budget)
    if require_delay(delay):
        if isinstance(method, OnlineLearner):
            from kesler.evaluation.delayed import require_delayable

            require_delayable(method)
        return validate_any(method, Table.of(X, y, sample_weight), classes, refit, delay)
    if isinstance(method, (OnlineMultilabelClassifier, OnlineLabelRanker)):
        if method.label_budget is not None:
            raise KeslerError(
                f"label_budget={method.label_budget!r}: streams of label sets are validated with "
                "all labels: omit it, or learn with query_one and learn_one"
            )
        return validate_labels(method, X, y, sample_weight, classes)
    if isinstance(method, OnlineClassifier) and method.label_budget is not None:
        from kesler.evaluation.queries import validate_queried

        return validate_queried(method, X, y, sample_weight)
    if isinstance(method, OnlineClassifier):
        return validate_online(method, X, y, sample_weight, classes)
    return validate_any(method, Table.of(X, y, sample_weight), classes, refit)


def validate_any(
    method: Any, table: Table, classes: Any = None, refit: Refit = None, delay: int = 0
) -> ProgressiveResult:
    """Predict each row, and learn it when its answer arrives; return the result."""
    wrapped = method_of(method, table, classes, refit, delay)
    comparison = Comparison({"": wrapped}, keep_predictions=True)
    [*_] = comparison.run([Piece(table, 0, len(table))])
    return comparison.validated()[""]


def _give_budget(method: Any, label_budget: Any) -> None:
    """Set the label budget of a method; raise if it is invalid, or the method has none."""
    from kesler.queries import resolve_query

    resolve_query(label_budget)
    if not isinstance(method, OnlineClassifier) or "label_budget" not in method.get_params(False):
        raise KeslerError(
            f"label_budget={label_budget!r} has no effect on {type(method).__name__}, which learns "
            "from each row: omit it, or give an OnlineClassifier, an Ensemble or a LinearMax"
        )
    method.set_params(label_budget=label_budget)


def validate_online(
    estimator: OnlineClassifier, X: Any, y: Any, sample_weight: Any = None, classes: Any = None
) -> ProgressiveResult:
    """Run the trials of an online classifier; return the result."""
    run = Run.of(estimator, X, y, sample_weight, classes)
    n_known = estimator.n_known_
    start = time.perf_counter()
    has_places = estimator.answer.kind in ONE_CLASS
    keeping = {"keep_probabilities": True, "keep_traces": True, "keep_places": has_places}
    trials = estimator._run_trials(X, y, sample_weight, classes, **keeping)
    seconds = time.perf_counter() - start
    predicted, answers = trials.predictions, trials.codes
    priced: dict[str, Any] = {}
    if estimator.answer.kind == "costs":
        wrong, answers, priced = _priced(estimator, y, sample_weight, classes, trials, n_known)
    else:
        wrong = mistakes(predicted, answers, n_known)
    seen = estimator.classes_by_code_.tolist() if estimator.n_known_ else []
    record: dict[str, Any] = {
        "n_trials": len(answers),
        "n_mistakes": int(wrong.sum()),
        "n_first_seen": estimator.n_known_ - n_known,
        "curve": np.cumsum(wrong, dtype=np.int64),
        "probabilities": trials.probabilities,
        "seconds": seconds,
        "run": run,
        "uncertainty": trace_of(trials),
        "tree": estimator.tree_ if seen else None,
        "places": trials.places if has_places else None,
        **labelled(predicted, answers, seen),
        **priced,
    }
    if priced:
        return CostResult(**record)
    if not isinstance(estimator, OnlineOrdinalClassifier):
        return ProgressiveResult(**record)
    known = ~first_seen(answers, n_known)
    error = mean_absolute_error(
        record["predictions"][known], record["targets"][known], estimator.all_ranks
    )
    return OrdinalResult(**record, mean_absolute_error=error)


def _priced(
    estimator: Any, y: Any, sample_weight: Any, classes: Any, trials: Trials, n_known: int
) -> tuple[Any, Any, dict[str, Any]]:
    """Return the mistakes, the cheapest class of each row and the costs of predictions."""
    from kesler.online.cost_vectors import costly, costs_of

    weights = row_weights(sample_weight, len(y))
    targets = estimator.answer.encoded(y, classes, estimator._known_classes())
    if weights is not None:
        targets = targets.take(np.flatnonzero(weights))
    asked = trials.predictions, targets, trials.codes
    wrong, unseen = costly(*asked, n_known)
    priced = {"costs": costs_of(*asked), "n_first_seen": int(unseen.sum())}
    return wrong, trials.codes[targets.indptr[:-1]], priced

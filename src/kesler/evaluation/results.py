"""Results of progressive validation."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from kesler import metrics
from kesler.data.labels import Label
from kesler.errors import KeslerError
from kesler.evaluation.uncertainty import UncertaintyTrace
from kesler.learner.classes import label_array
from kesler.metrics import PlaceCounts, calibration_error, kendall_tau, log_loss
from kesler.online.base import OnlineLearner
from kesler.online.contract import unfitted
from kesler.online.label_sets import RELEVANT

if TYPE_CHECKING:
    from kesler.evaluation.confidence import RiskCoverage, Threshold
    from kesler.evaluation.late import LateFigures
    from kesler.evaluation.reports.label_sets import LabelReport
    from kesler.evaluation.reports.report import Report
    from kesler.trees.tree import Tree


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
    labels : tuple
        The labels of the columns of `scores`.
    """

    n_mistakes: int
    scores: npt.NDArray[np.float32]
    levels: npt.NDArray[np.int32]
    seconds: float
    run: Run | None = field(default=None, repr=False, compare=False)
    labels: tuple[Label, ...] = ()

    @property
    def n_trials(self) -> int:
        """Number of rows."""
        return len(self.scores)


@dataclass(frozen=True, slots=True)
class MultilabelResult(LabelResult):
    """The result of a run of :class:`~kesler.OnlineMultilabelClassifier`; see `kesler.metrics`.

    Attributes
    ----------
    uncertainty : UncertaintyTrace or None
        The sets of surely relevant labels of each row, if the estimator estimates its uncertainty.
    """

    uncertainty: UncertaintyTrace | None = field(default=None, repr=False, compare=False)

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

    @property
    def micro_f1(self) -> float:
        """F1 of all labels predicted for all rows together."""
        return metrics.micro_f1(self.scores, self.relevant)

    def precision_at(self, k: int) -> float:
        """Return the mean share of relevant labels among the k of highest score."""
        return metrics.precision_at(self.scores, self.relevant, k)

    def recall_at(self, k: int) -> float:
        """Return the mean share of the relevant labels that are among the k of highest score."""
        return metrics.recall_at(self.scores, self.relevant, k)

    def f1_at(self, k: int) -> float:
        """Return the mean over rows of the F1 of the k labels of highest score."""
        return metrics.f1_at(self.scores, self.relevant, k)

    def ndcg_at(self, k: int) -> float:
        """Return the mean normalised discounted cumulative gain of the k labels."""
        return metrics.ndcg_at(self.scores, self.relevant, k)

    def report(self) -> LabelReport:
        """Return a report by label: first row, rows, precision, recall and F1.

        Returns
        -------
        LabelReport
            `str` is a text; `to_dict`, `to_json` and `to_frame` give other forms.

        Raises
        ------
        KeslerError
            If there are no trials.

        Examples
        --------
        >>> from kesler import OnlineMultilabelClassifier, progressive_validate
        >>> rows, sets = [{"a": 1}, {"b": 1}] * 20, [{"x"}, {"x", "y"}] * 20
        >>> report = progressive_validate(OnlineMultilabelClassifier(), rows, sets).report()
        >>> [(each.label, each.first, each.rows) for each in report.labels]
        [('x', 1, 40), ('y', 2, 20)]
        """
        from kesler.evaluation.reports.label_sets import LabelReport

        return LabelReport.of_result(self)


@dataclass(frozen=True, slots=True)
class RankingResult(LabelResult):
    """The result of a run of :class:`~kesler.OnlineLabelRanker`; see `kesler.metrics`."""

    @property
    def kendall_tau(self) -> float:
        """Mean of Kendall's tau over the pairs that each target compares."""
        return kendall_tau(self.scores, self.levels)


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
    predictions : array of shape (n_trials,)
        The label predicted in each trial, and `no_prediction` where there was none, as before any
        class is known. It is of the type of the labels, so that scikit-learn's metrics accept it
        beside the targets: ``classification_report(y, result.predictions)``.
    targets : array of shape (n_trials,)
        The label of each trial: `y` without rows of weight 0.
    probabilities : float64 array of shape (n_trials, 2)
        The probabilities of the predicted class and of the target before the target was used, NaN
        where the class had not been seen, and for methods that are not Kesler's.
    seconds : float
        Duration of the run; in a comparison, the processor time without the first trial, which
        loads the compiled code.
    run : Run or None
        The arguments of the run, for :func:`kesler.mistake_bound`.
    no_prediction : label or None
        The value in `predictions` that stands for none: "" for text (or "?", "??" ..., if "" is a
        class), -1 for numbers (or a lower one, if there are labels below 0), else None.
    uncertainty : UncertaintyTrace or None
        The estimates of uncertainty for each row, if the estimator makes them; in a comparison,
        only with a delay.
    tree : Tree or None
        The tree of classes of the estimator, if it has one.
    places : int32 array of shape (n_trials,) or None
        The place by score of each target among the classes known by then, 1 for the highest score,
        0 where the class had not been seen; None for methods that score no classes.
    delay : int
        How many rows late answers arrived. Beyond 1, "had not been seen" in
        `probabilities` and `places` means that no answer had named the class; the first row of
        a class is no mistake, whatever the delay, and further rows are.

    Examples
    --------
    >>> from kesler import OnlineClassifier, progressive_validate
    >>> X, y = [[1, 0], [0, 1], [0, 1], [1, 0]], ["a", "b", "b", "a"]
    >>> result = progressive_validate(OnlineClassifier("multi", update="perceptron"), X, y)
    >>> result.predictions.tolist(), result.targets.tolist()
    (['', 'a', 'a', 'a'], ['a', 'b', 'b', 'a'])
    """

    n_trials: int
    n_mistakes: int
    n_first_seen: int
    curve: npt.NDArray[np.int64]
    predictions: npt.NDArray[Any]
    targets: npt.NDArray[Any]
    probabilities: npt.NDArray[np.float64]
    seconds: float
    run: Run | None = field(default=None, repr=False, compare=False)
    no_prediction: Label | None = None
    uncertainty: UncertaintyTrace | None = field(default=None, repr=False, compare=False)
    tree: Tree | None = field(default=None, repr=False, compare=False)
    places: npt.NDArray[np.int32] | None = field(default=None, repr=False, compare=False)
    delay: int = 0

    @property
    def late(self) -> LateFigures | None:
        """How well confidences, the probability of a new class and prediction sets held.

        Also without a delay, except in a comparison. None if the method does not estimate its
        uncertainty.
        """
        if self.uncertainty is None or not self.n_trials:
            return None
        from kesler.evaluation.late import LateFigures

        right, unknown = self.predictions == self.targets, np.isnan(self.probabilities[:, 1])
        return LateFigures.of(self.uncertainty, right, unknown)

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
        """Expected calibration error of the probabilities of the predicted classes, in 15 bins.

        Rows are those of `log_loss`. That of confidences is in `report`.
        """
        return calibration_error(self.probabilities[:, 0], ~self.wrong)

    def recall_at(self, k: int) -> float:
        """Return the share of rows whose class is among the k of highest score: top-k accuracy.

        Rows of classes that had not been seen do not count.

        Parameters
        ----------
        k : int of 1 or more
            Number of classes of each row. Larger values have a higher recall.

        Raises
        ------
        KeslerError
            If k is no such number, or the method scores no classes: it is no online classifier of
            Kesler, or one with a label budget.

        Examples
        --------
        >>> from kesler import OnlineClassifier, progressive_validate
        >>> from kesler.datasets import load_pendigits
        >>> pens = load_pendigits()
        >>> result = progressive_validate(OnlineClassifier(), pens.X[:900], pens.y[:900])
        >>> [round(result.recall_at(k), 3) for k in (1, 3, 5)]
        [0.942, 0.983, 0.989]
        """
        return self._place_counts(k).recall(k)

    def ndcg_at(self, k: int) -> float:
        """Return the mean normalised discounted cumulative gain of the k classes of highest score.

        It is the mean of 1 / log2(1 + place) over the rows whose class is among these, with 0 for
        the others; rows, parameters and errors are those of `recall_at`.
        """
        return self._place_counts(k).ndcg(k)

    def _place_counts(self, k: int) -> PlaceCounts:
        if self.places is None:
            raise KeslerError(
                "this result has no places of classes, since its method only names one class or "
                "has a label budget: validate an online classifier of Kesler"
            )
        return PlaceCounts.of(self.places, k)

    @property
    def wrong(self) -> npt.NDArray[np.bool_]:
        """A mask of the trials with a mistake."""
        mask: npt.NDArray[np.bool_] = np.diff(self.curve, prepend=0) > 0
        return mask

    @property
    def tree_loss(self) -> float:
        """Distances in the tree of mistakes and their targets, divided by the trials.

        Raises
        ------
        KeslerError
            If there is no tree; `kesler.trees.tree_loss` takes any.
        """
        from kesler.trees.measures import tree_distances

        tree = required(self.tree)
        found = tree_distances(self.targets, self.predictions, tree, self.wrong)
        return float(found.sum()) / max(1, self.n_trials)

    @property
    def level_errors(self) -> npt.NDArray[np.float64]:
        """For each level of the tree from below the root, mistakes divided by the trials.

        At a level, a mistake is a prediction below another node than the target. Raises KeslerError
        as `tree_loss` does.
        """
        from kesler.trees.measures import level_errors

        return level_errors(self.targets, self.predictions, required(self.tree), self.wrong)

    @property
    def rows_per_second(self) -> float | None:
        """Trials divided by `seconds`; None if these are 0."""
        return self.n_trials / self.seconds if self.seconds else None

    @property
    def confidences(self) -> npt.NDArray[np.float64]:
        """The confidence in each prediction, of shape (n_trials,); NaN where there is none.

        It is the estimated probability that the prediction is right, and of estimators that do not
        estimate their uncertainty, the probability of the predicted class.
        """
        if self.uncertainty is None:
            return self.probabilities[:, 0]
        found = self.uncertainty.confidence
        return np.where(found > 0, found, np.nan)

    @property
    def first_seen(self) -> npt.NDArray[np.bool_]:
        """A mask of the trials whose class had not been seen before."""
        from kesler.evaluation.reports.coding import first_seen_in

        return first_seen_in(self)

    def risk_coverage(self) -> RiskCoverage:
        """Return the error among the rows of highest confidence, for every number of rows.

        Rows without a confidence (NaN) are left out; `n_left_out` is their number. First rows of a
        class are wrong, since no answer could have got them right; without estimates of uncertainty
        they are left out. The cost is that of sorting the trials.

        Returns
        -------
        RiskCoverage
            With the arrays `coverage` and `risk`, and `area`, the area under the curve.

        Raises
        ------
        KeslerError
            If no trial has a confidence, as for methods that are not Kesler's.

        Examples
        --------
        >>> from kesler import OnlineClassifier, progressive_validate
        >>> from kesler.datasets import load_pendigits
        >>> pens = load_pendigits()
        >>> result = progressive_validate(OnlineClassifier(), pens.X[:900], pens.y[:900])
        >>> found = result.risk_coverage()
        >>> found.n_left_out, bool(found.area < result.error / 2)
        (1, True)
        >>> threshold = result.threshold_for(error=0.01)
        >>> bool(threshold.error <= 0.01), bool(threshold.coverage > 0.5)
        (True, True)
        """
        from kesler.evaluation.confidence import RiskCoverage

        first, estimates = self.first_seen, self.uncertainty is not None
        return RiskCoverage.of(self.confidences, self.wrong | first, None if estimates else ~first)

    def threshold_for(self, error: float = 0.05) -> Threshold:
        """Return the lowest confidence such that the rows answered have at most this error.

        Parameters
        ----------
        error : float in [0, 1), default 0.05
            The largest share of mistakes among the rows answered. Smaller values answer fewer rows.

        Returns
        -------
        Threshold
            The `confidence`, the `coverage` (share of rows answered), the error with its upper
            limit, and an interval of the threshold; see
            :meth:`kesler.evaluation.confidence.RiskCoverage.threshold_for`.

        Raises
        ------
        KeslerError
            If no trial has a confidence, or no confidence reaches the error.
        """
        return self.risk_coverage().threshold_for(error)

    def report(self, top: int = 10) -> Report:
        r"""Return a report on the trials: by class, over time, by age of classes and confidence.

        Parameters
        ----------
        top : int of 1 or more, default 10
            The number of confused pairs and of rows most surely wrong that are listed.

        Returns
        -------
        Report
            `str` is a text; `to_dict`, `to_json`, `to_frame` and `to_html` give other forms.

        Raises
        ------
        KeslerError
            If there are no trials, or `top` is no such number.

        Examples
        --------
        >>> from kesler import OnlineClassifier, progressive_validate
        >>> X, y = [[1, 0], [0, 1], [0, 1], [1, 0]], ["a", "b", "b", "a"]
        >>> result = progressive_validate(OnlineClassifier("multi", update="perceptron"), X, y)
        >>> report = result.report()
        >>> print(str(report).partition("\n")[0])
        4 rows of 2 classes: 1 mistake, an error of 25.00 %
        >>> [(each.target, each.predicted, each.rows) for each in report.confusions]
        [('b', 'a', (3,))]
        """
        from kesler.evaluation.reports.report import Report

        return Report.of_result(self, top)

    def to_frame(self) -> Any:
        """Return the trials as a pandas data frame.

        Returns
        -------
        pandas.DataFrame with the columns trial (counted from 1), target, prediction and mistake.

        Raises
        ------
        KeslerError
            If pandas is not installed.
        """
        columns = {
            "trial": self.trials,
            "target": self.targets,
            "prediction": self.predictions,
            "mistake": self.wrong,
        }
        from kesler.evaluation.tables import data_frame

        return data_frame(columns)


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


@dataclass(frozen=True, slots=True, kw_only=True)
class CostResult(ProgressiveResult):
    """The result of a run of :class:`~kesler.CostSensitiveClassifier`.

    Targets are the first of the cheapest classes of each row. A prediction is a mistake if it is
    none of the cheapest, and one of them and another class that the row names had been seen.

    Attributes
    ----------
    costs : float64 array of shape (n_trials,)
        The cost of each prediction, NaN where there was none; a class that the row does not name
        costs as much as the costliest that it names.
    """

    costs: npt.NDArray[np.float64]

    @property
    def total_cost(self) -> float:
        """The sum of the costs of the predictions."""
        return float(np.nansum(self.costs))

    @property
    def mean_cost(self) -> float:
        """The total cost divided by the rows with a prediction; 0 without any."""
        return self.total_cost / max(1, int((~np.isnan(self.costs)).sum()))


def required(tree: Tree | None) -> Tree:
    """Return a tree; raise if there is none."""
    if tree is None:
        raise KeslerError(
            "this result has no tree of classes: validate a learner with tree=, or use the "
            "functions of kesler.trees on its targets and predictions"
        )
    return tree


def no_label(labels: Sequence[Label]) -> Label | None:
    """Return a value of the type of some labels that is none of them, None for other types.

    Examples
    --------
    >>> no_label(["spam", "work"]), no_label([0, 1]), no_label([-1, 2]), no_label([("a", 1)])
    ('', -1, -2, None)
    """
    if labels and all(isinstance(label, str) for label in labels):
        return next("?" * n for n in count() if "?" * n not in labels)
    numbers = [label for label in labels if isinstance(label, (bool, int, float))]
    if numbers and len(numbers) == len(labels):
        return min(-1, math.floor(min(numbers)) - 1)
    return None


def labelled(
    codes: npt.NDArray[np.int32], answers: npt.NDArray[np.int32], labels: Sequence[Label]
) -> dict[str, Any]:
    """Return predictions and targets as labels of one type, given their numbers.

    Parameters
    ----------
    codes : the number of the label predicted in each trial, -1 for none.
    answers : the number of the target of each trial.
    labels : the labels by number.

    Returns
    -------
    dict with the fields `predictions`, `targets` and `no_prediction` of `ProgressiveResult`.

    Examples
    --------
    >>> found = labelled(np.array([-1, 0]), np.array([0, 1]), ["spam", "work"])
    >>> found["predictions"].tolist(), found["targets"].tolist(), found["no_prediction"]
    (['', 'spam'], ['spam', 'work'], '')
    """
    none = no_label(labels)
    by_code = label_array([*labels, none])
    return {
        "predictions": by_code[codes],
        "targets": label_array(labels)[answers] if len(labels) else by_code[:0],
        "no_prediction": none,
    }

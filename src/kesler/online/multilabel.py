"""OnlineMultilabelClassifier: each row may have any number of the labels seen so far."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeVar

import numpy as np
import numpy.typing as npt

from kesler.data.inputs import parts_of
from kesler.data.rows import Rows
from kesler.errors import keep_settings
from kesler.hypotheses import Part
from kesler.kernels.mercer import MercerKernel
from kesler.learner.classes import ClassTable, OnNewClass
from kesler.learner.support_vectors import Limit
from kesler.learner.targets import Kind, Targets
from kesler.learner.uncertainty import Use
from kesler.links.link import Link
from kesler.maps.feature_map import FeatureMap
from kesler.online.answers import NO_PATH, ClassAnswer, LabelsAnswer, Scores
from kesler.online.base import OnlineLearner
from kesler.online.contract import between_trials, exclusive, tags_of_classifier
from kesler.online.label_sets import is_table, require_contrast, targets_of_sets
from kesler.online.making import Maker
from kesler.online.uncertain import confident, require_no_new
from kesler.preconditioners import Preconditioner
from kesler.preprocessing import Preprocessing
from kesler.updates.rule import UpdateRule

if TYPE_CHECKING:
    from kesler.candidates import Candidates
    from kesler.queries.query import Query
    from kesler.trees.tree import Given

Self = TypeVar("Self", bound="OnlineMultilabelClassifier")


class SetAnswer(LabelsAnswer):
    """Each row has any number of labels, which outscore a threshold."""

    kind: Kind = "sets"
    n_virtual = 1

    def encoded(self, y: Any, classes: Any, known: ClassTable) -> Targets:
        """Return the encoded label sets of rows, of a table of indicators or of lists of labels."""
        return targets_of_sets(y, classes, known)

    def decoded(self, known: ClassTable, highest: int, scores: Scores) -> set[Any]:
        """Return the labels that outscore the threshold."""
        relevant = np.flatnonzero(scores[self.n_virtual :] > scores[: self.n_virtual])
        return {known.labels[i] for i in relevant}


class OnlineMultilabelClassifier(OnlineLearner):
    r"""A multilabel classifier that learns online and adds labels as they appear.

    Labels are scored as in :class:`~kesler.OnlineClassifier`, and so is a virtual label 0, the
    threshold. A row with the relevant labels Y has the constraints

    .. math:: h(x, r) \ge h(x, 0) + 1, \quad h(x, 0) \ge h(x, s) + 1, \quad h(x, r) \ge h(x, s) + 1
        \qquad \forall r \in Y, s \notin Y

    over the labels seen so far. The threshold is learnt like any label, so it depends on x. One-vs-
    rest rules, such as that of the default, demand :math:`h(x, r) \ge 1` and
    :math:`h(x, s) \le -1` instead. The prediction is

    .. math:: \hat Y = \{r : p(r \mid x) > F / 2\} \quad \text{or} \quad
        \hat Y = \{r : h(x, r) > h(x, 0)\}

    with probabilities that are learnt online and the micro-averaged F1 of the predictions so far
    (parameter `decision`).

    Parameters
    ----------
    hypotheses : "auto", "multi", "single", "hybrid" or list of parts, default "auto"
        How labels share weights, as in :class:`~kesler.OnlineClassifier`: "auto" is a vector for
        each label and one over a feature map that all share, or "multi" with a named rule or a
        kernel. The statistics of a label in a feature map are those of the rows for which it was
        relevant; the threshold has none.
        In :class:`~kesler.hypotheses.Grouped` hypotheses the threshold is in no group.
    feature_map : "auto", "product", "product-mean", "frequency", "contrast", "distance", \
"difference", "gaussian-ratio" or map, default "auto"
        The feature map of the shared vector; not used by "multi".
    update : "auto", "perceptron", "margin-perceptron", "pa", "pa1", "pa2", "simperc", \
"conproj", "simproj", "mira", "hinge", "softmax", "logistic", "ovr-squared", \
"ovr-logistic", "ovr-hinge", "least-squares", "arow", "scw1", "scw2" or rule, default "auto"
        The update rule. "auto" compares each label with the rest: by the logistic loss where
        rows list every feature, which become z-scores, and by the hinge loss where they list only
        non-zeros, which become counts (:mod:`kesler.online.defaults`). With a named rule, the other
        defaults are those of its source, without preprocessing. Of these, "simproj" updates with
        every violated constraint and has the lowest ranking loss and the best label sets. "simperc"
        and "conproj" update with every mistaken constraint and reach a low one-error sooner if
        there are many words and few rows. Rules with one constraint ("pa1") learn more slowly.
    intercept : float, default "auto"
        1 unless given. The value of a constant feature added to every row, whose weights are the
        intercepts of the labels. With larger values intercepts are learnt faster; 0 means no
        intercepts, and then no label of a row without features outscores the threshold.
    link : "linear", "exponential", "positive", "p-norm" or link, default "linear"
        The link function of the updates: additive updates, multiplicative updates (with weights of
        either sign, or positive weights only), p-norm updates between the two, or any link of
        :mod:`kesler.links`. "exponential" makes fewer mistakes if few of many features are
        relevant.
    averaged : bool, default False
        Whether to predict with the mean of the weights after each row, which is more robust to
        noise than the last weights. Learning does not depend on it. A prediction costs up to twice
        as much, as the means of the weights that it reads are computed first.
    kernel, sigma, budget, preprocessing, half_life
        As in :class:`~kesler.OnlineClassifier`. With a named rule, preprocessing is None.
    memory_limit, shuffle, random_state
        As in :class:`~kesler.OnlineClassifier`.
    decision : "auto", "f1" or "score", default "auto"
        Which labels are predicted: those whose probability is above half of the micro-averaged F1
        of the predictions so far, a threshold that maximises this F1 online; or those that outscore
        the threshold h(x, 0). What is learnt does not depend on it. "auto" is "f1", or "score"
        with a named rule.
    preconditioner, on_new_class
        As in :class:`~kesler.OnlineClassifier`. With a named rule, "auto" and "register".
    candidates : "auto", int of 2 or more, Candidates or None, default "auto"
        The number of labels that each row is compared with where there are more: those of the rows
        that had its features, see :class:`~kesler.candidates.Candidates`. Larger values find the
        right labels more often, and cost time in proportion. "auto" compares all of up to 128
        labels, and 64 of more; None compares all. For the default learner of texts and other rows
        that list non-zeros.
    costs : mapping {(right, wrong): cost}, callable (right, wrong) -> cost, or None, default None
        The cost of an irrelevant label that outscores a relevant one: their margin is proportional
        to it, see :class:`~kesler.costs.Costs`. Larger costs separate two labels more. Margins to
        the threshold stay. For rules that compare labels with each other and have a margin; with
        costs, "auto" is "simproj".
    tree : Tree, mapping {child: parent} or str, or None, default None
        Labels below one node share a vector, as in :class:`~kesler.OnlineClassifier`, under any
        rule; margins do not depend on it. The threshold is below no node.
    label_budget
        As in :class:`~kesler.OnlineClassifier`. `query_one` asks for label sets, in doubt about the
        label whose probability is nearest to 1/2 (:class:`~kesler.queries.RowEstimates`).
    C, eta, delta, r
        As in :class:`~kesler.OnlineClassifier`.
    columns, on_mismatch, uncertainty
        As in :class:`~kesler.OnlineClassifier`.

    Attributes
    ----------
    classes_ : array of shape (n_labels,)
        The labels seen so far, sorted: the columns of predictions.
    n_trials_, n_mistakes_ : int
        Number of rows learnt from, and number of rows with an imperfect prediction: the scores
        order any pair of labels seen before, including the threshold, wrongly (Amit et al. 2006,
        Section 2).
    n_imperfect_ : int
        The same with ties as wrong orders, as in the theorem of the source.
    candidate_recall_ : float
        The share of the known labels of rows that were candidates.
    feature_map_, n_features_in_, feature_names_in_
        As in :class:`~kesler.OnlineClassifier`.

    Raises
    ------
    KeslerError
        If an argument is unknown, an indicator is neither 0 nor 1, a known label has no column, a
        row names a label twice, or for the reasons given in :class:`~kesler.OnlineClassifier`. The
        model is then unchanged.

    Notes
    -----
    Targets y are an indicator matrix, dense or sparse, of shape (n_rows, n_labels), or one set or
    list of labels for each row. The columns of a matrix are the labels 0 to n_labels - 1, or the
    column names of a data frame, unless `classes` is passed to `partial_fit`; all of them are known
    from the first row. A label in lists is known from its first row, which has no constraints for
    it.

    A row may name no label or all labels: then every label must score below or above the threshold.

    Of more than 128 labels, the default for words compares each row with 64 candidates. Its texts
    of more than 200 characters on average have the counts of their words as features, and of the
    words of their beginning.

    A row costs O(nnz k) to score for k labels or candidates, and at most O(\|Y\| k) for the
    constraints of an update; the probabilities cost O(k) exponentials more. Learning in batches of
    any size gives the same weights bit for bit.

    References
    ----------
    Amit, Shalev-Shwartz and Singer (2006), Section 3; Crammer and Singer (2003), "A family of
    additive online algorithms for category ranking"; Fürnkranz, Hüllermeier, Loza Mencía and
    Brinker (2008), whose calibrated ranking has the threshold as a label; Busa-Fekete, Szörényi,
    Dembczyński and Hüllermeier (2015), the online threshold of F1; Platt (1999), probabilities from
    scores.

    Examples
    --------
    >>> from kesler import OnlineMultilabelClassifier
    >>> mail = OnlineMultilabelClassifier()
    >>> for _ in range(3):
    ...     mail = mail.learn_one({"cash": 1, "lunch": 1}, {"bills", "food"})
    ...     mail = mail.learn_one({"cash": 1}, {"bills"}).learn_one({"news": 1}, [])
    >>> mail.predict_one({"cash": 1}), mail.predict_one({"news": 1})
    ({'bills'}, set())
    >>> p = mail.predict_proba_one({"cash": 1})
    >>> p["bills"] > p["food"]
    True
    >>> mail.predict([{"lunch": 1, "cash": 1}]).tolist(), mail.classes_.tolist()
    ([[1, 1]], ['bills', 'food'])
    """

    answer: ClassVar[ClassAnswer] = SetAnswer()
    _absent: ClassVar[Mapping[str, str]] = NO_PATH
    _maker: ClassVar[Maker] = Maker(answer)

    def __init__(
        self,
        hypotheses: str | Part | list[Part] = "auto",
        feature_map: str | FeatureMap = "auto",
        update: str | UpdateRule = "auto",
        intercept: float | str = "auto",
        link: str | Link = "linear",
        averaged: bool = False,
        kernel: str | MercerKernel | None = None,
        sigma: float | Literal["auto"] = "auto",
        budget: Limit = None,
        preconditioner: str | Preconditioner = "auto",
        on_new_class: OnNewClass | str = "auto",
        preprocessing: str | Preprocessing | None = "auto",
        half_life: float | None = None,
        memory_limit: int | str | None = None,
        shuffle: bool | str = "auto",
        random_state: int = 0,
        decision: str = "auto",
        C: float | None = None,
        eta: float | None = None,
        delta: float | None = None,
        r: float | None = None,
        columns: Mapping[str, Any] | str | None = "auto",
        on_mismatch: str = "missing",
        uncertainty: Use = "auto",
        candidates: int | str | Candidates | None = "auto",
        costs: Mapping[Any, float] | Callable[[Any, Any], float] | None = None,
        tree: Given | None = None,
        label_budget: float | Query | None = None,
    ) -> None:
        keep_settings(self, locals())

    @exclusive
    def fit(self: Self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Reset the model, then learn from the rows once, in a random order as `shuffle` says.

        Parameters
        ----------
        X, y, sample_weight : as in :meth:`partial_fit`.

        Raises
        ------
        KeslerError
            If every row names every label, or no row names any, unless there is a single row.
        """
        super().fit(X, y, sample_weight)
        require_contrast(self.answer.encoded(y, None, self._known_classes()))
        return self

    def predict(self, X: Any, min_confidence: float | None = None) -> npt.NDArray[Any]:
        """Return the indicator matrix of the labels predicted to be relevant to each row.

        These need not be the labels of a probability above 1/2: see the parameter `decision`.

        Parameters
        ----------
        X : rows as in `fit`; features not seen before have the initial weights.
        min_confidence : None
            A set of labels has no confidence of its own: `predict_proba` has that of each label,
            and `predict_set` those that are surely relevant.

        Returns
        -------
        Array of shape (n_rows, n_labels) of 0 and 1, in the order of `classes_`.

        Raises
        ------
        KeslerError
            If `min_confidence` is given.
        """
        if min_confidence is not None:
            return confident(self, X, min_confidence)
        return (self.decision_function(X) > 0).astype(np.int64)

    @between_trials
    def predict_label_sets(self, X: Any) -> list[set[Any]]:
        """Return the predicted label set of each row."""
        learner = self._fitted()
        parts = (
            p
            for rows in self._input.rows_to_score(self, X)
            for p in parts_of(rows, learner.n_known)
        )
        return [found for rows in parts for found in self._label_sets(rows)]

    def _label_sets(self, rows: Rows) -> list[set[Any]]:
        """Return the predicted label set of each of a few rows."""
        learner = self._fitted()
        return [self.answer.decoded(learner.classes, -1, scores) for scores in learner.scores(rows)]

    @property
    def candidate_recall_(self) -> float:
        """The share of the known labels of rows that were candidates; 1 before any.

        It counts the rows since there are more labels than each row is compared with.
        """
        comparing = self._fitted().comparing
        return 1.0 if comparing is None else comparing.recall

    @between_trials
    def decision_function(self, X: Any) -> npt.NDArray[np.float32]:
        """Return the score of each label minus that of the threshold.

        With decision="f1" the scores are moved by what the probabilities add to them, so that the
        predicted labels are those above 0 in any case.

        Returns
        -------
        Array of shape (n_rows, n_labels), in the order of `classes_`.
        """
        return above_threshold(self._scores(X), self._known_classes().order)

    @between_trials
    def predict_proba(self, X: Any, new: bool = False) -> npt.NDArray[np.float64]:
        """Return the probability that each label is relevant, in the order of `classes_`.

        The probabilities are sigmoids of the scores above the threshold, at a temperature and with
        offsets that are learnt online; see :mod:`kesler.learner.calibration`. Those of
        different labels are estimated separately, so a row need not sum to 1.

        Parameters
        ----------
        X : rows as in `predict`.
        new : False
            Labels that have not been seen have no probability.

        Returns
        -------
        Array of shape (n_rows, n_labels).

        Raises
        ------
        KeslerError
            If `new` is true.
        """
        require_no_new(self, new)
        learner = self._fitted()
        rows_to_score = self._input.few_rows_to_score(self, X)
        found = np.concatenate([learner.probabilities(rows) for rows in rows_to_score])
        probabilities: npt.NDArray[np.float64] = found[:, learner.classes.order]
        return probabilities

    def predict_proba_one(self, x: Any, new: bool = False) -> dict[Any, float]:
        """Return the probability that each label is relevant to one row, as in `learn_one`."""
        require_no_new(self, new)
        learner = self._fitted()
        with learner.lock:
            found = learner.probabilities(self._input.row_to_score(self, x, learner))[0].tolist()
            labels = learner.classes.labels
            return dict(zip(labels, found[self.answer.n_virtual :], strict=True))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the subset accuracy: the share of rows whose label set is predicted exactly.

        Parameters
        ----------
        X : rows as in `fit`.
        y : label sets as in `fit`; a matrix has one column for each of `classes_`, in their order,
            or names its columns.
        sample_weight : array of shape (n_rows,) or None, default None
            Weight of each row in the mean.
        """
        classes = self.classes_ if is_table(y) and not hasattr(y, "columns") else None
        targets = self.answer.encoded(y, classes, self._known_classes())
        bounds = pairwise(targets.indptr.tolist())
        own = [set(targets.labels[start:end]) for start, end in bounds]
        right = [a == b for a, b in zip(self.predict_label_sets(X), own, strict=True)]
        return float(np.average(right, weights=sample_weight))

    def _in_order(self, scores: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        """Return the scores of trials above the threshold, in the order of `classes_`."""
        return above_threshold(scores, self._known_classes().order)

    def __sklearn_tags__(self) -> Any:
        tags = tags_of_classifier(super().__sklearn_tags__())
        tags.classifier_tags.multi_class = False
        tags.classifier_tags.multi_label = True
        tags.target_tags.multi_output = True
        tags.target_tags.single_output = False
        return tags


def above_threshold(scores: npt.NDArray[np.float32], order: list[int]) -> npt.NDArray[np.float32]:
    """Return the scores of the labels, in this order, minus that of the threshold, code 0."""
    above: npt.NDArray[np.float32] = scores[:, order] - scores[:, :1]
    return above

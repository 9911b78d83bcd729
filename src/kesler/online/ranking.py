"""OnlineLabelRanker: an online learner that ranks labels for each row."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from kesler.data.inputs import row_weights
from kesler.errors import keep_settings
from kesler.hypotheses import Part
from kesler.kernels.mercer import MercerKernel
from kesler.learner.classes import ClassTable, OnNewClass
from kesler.learner.support_vectors import Limit
from kesler.learner.targets import Kind, Targets
from kesler.links.link import Link
from kesler.maps.feature_map import FeatureMap
from kesler.online.answers import NO_PATH, ClassAnswer, LabelsAnswer, Scores
from kesler.online.base import OnlineLearner
from kesler.online.contract import between_trials
from kesler.online.label_sets import is_table, ranks_by_score, targets_of_rankings
from kesler.online.making import Maker
from kesler.online.uncertain import confident
from kesler.preconditioners import Preconditioner
from kesler.preprocessing import Preprocessing
from kesler.updates.rule import UpdateRule

NO_PROBABILITY = dict.fromkeys(
    ("predict_proba", "predict_proba_one"),
    "rankings have no probability: use decision_function for the scores of labels, or a classifier",
)
"""Why rankers have none of the methods that return probabilities."""


class RankingAnswer(LabelsAnswer):
    """Each row has a ranking of labels."""

    kind: Kind = "levels"

    def encoded(self, y: Any, classes: Any, known: ClassTable) -> Targets:
        """Return the encoded rankings of rows, of a table of ranks or of lists of labels."""
        return targets_of_rankings(y, classes, known)

    def decoded(self, known: ClassTable, highest: int, scores: Scores) -> list[Any]:
        """Return the labels in the order of their scores."""
        return [known.labels[i] for i in np.argsort(-scores, kind="stable")]


class OnlineLabelRanker(OnlineLearner):
    r"""A label ranker that learns online and adds labels as they appear.

    Labels are scored as in :class:`~kesler.OnlineClassifier`. A row that ranks r before s has the
    constraints

    .. math:: h(x, r) \ge h(x, s) + 1 \qquad \forall r \succ s

    over the labels seen so far. The prediction ranks the labels by score. Targets may be partial
    rankings: labels of equal rank are not compared, and labels that are not ranked are ignored.

    Parameters
    ----------
    hypotheses : "auto", "multi", "single", "hybrid" or list of parts, default "auto"
        How labels share weights, as in :class:`~kesler.OnlineClassifier`; "auto" is "hybrid", or
        "multi" with a kernel. The statistics of a label in a feature map are those of the rows in
        which it was ranked first.
    feature_map : "auto", "product", "product-mean", "frequency", "contrast", "distance", \
"difference", "gaussian-ratio" or map, default "auto"
        The feature map of the shared vector; not used by "multi".
    update : "auto", "perceptron", "margin-perceptron", "pa", "pa1", "pa2", "simperc", \
"conproj", "simproj", "mira", "hinge", "softmax", "logistic", "ovr-squared", \
"ovr-logistic", "ovr-hinge", "least-squares", "arow", "scw1", "scw2" or rule, default "auto"
        The update rule. "auto" is the logistic loss of each pair with adaptive step sizes, on
        rows that are prepared by their kind: z-scores where rows list every feature, counts where
        they list only non-zeros (:mod:`kesler.online.defaults`). With a named rule, the other
        defaults are those of its source, without preprocessing. Of these, "simproj" updates with
        every violated constraint and ranks best by far; smaller C (0.01 to 0.1) is more robust to
        noise and to repeated passes.
    intercept : float, default "auto"
        1 unless given. The value of a constant feature added to every row, whose weights are the
        intercepts of the labels. With larger values intercepts are learnt faster; 0 means no
        intercepts.
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
    preconditioner, on_new_class
        As in :class:`~kesler.OnlineClassifier`. With a named rule, "auto" and "register".
    memory_limit, shuffle, random_state
        As in :class:`~kesler.OnlineClassifier`.
    C, eta, delta, r
        As in :class:`~kesler.OnlineClassifier`.
    columns, on_mismatch
        As in :class:`~kesler.OnlineClassifier`.

    Attributes
    ----------
    classes_ : array of shape (n_labels,)
        The labels seen so far, sorted: the columns of predictions.
    n_trials_, n_mistakes_ : int
        Number of rows learnt from, and number of rows in which the scores order any pair of labels
        seen before wrongly (Amit et al. 2006, Section 2).
    n_imperfect_ : int
        The same with ties as wrong orders, as in the theorem of the source.
    feature_map_, n_features_in_, feature_names_in_
        As in :class:`~kesler.OnlineClassifier`.

    Raises
    ------
    KeslerError
        If an argument is unknown, a rank is negative or infinite, a known label has no column, a
        list names a label twice, or for the reasons given in :class:`~kesler.OnlineClassifier`. The
        model is then unchanged.

    Notes
    -----
    Targets y are a matrix of ranks of shape (n_rows, n_labels), with 1 for the best label, equal
    ranks for ties, and 0 or NaN for labels that are not ranked; or one list of labels for each row,
    best first. The columns of a matrix are the labels 0 to n_labels - 1, or the column names of a
    data frame, unless `classes` is passed to `partial_fit`; all of them are known from the first
    row. A label in lists is known from its first row, which has no constraints for it.

    A row costs O(nnz k) to score for k labels, and at most O(k^2) for the constraints of an update.
    Learning in batches of any size gives the same weights bit for bit.

    References
    ----------
    Amit, Shalev-Shwartz and Singer (2006), Section 3; Har-Peled, Roth and Zimak (2002), constraint
    classification; Hüllermeier, Fürnkranz, Cheng and Brinker (2008), label ranking by learning
    pairwise preferences.

    Examples
    --------
    >>> from kesler import OnlineLabelRanker
    >>> X, ranks = [[1, 0], [0, 1]] * 3, np.array([[1, 2, 3], [3, 2, 1]] * 3)
    >>> OnlineLabelRanker("multi").fit(X, ranks).predict([[2, 0], [0, 2]]).tolist()
    [[1, 2, 3], [3, 2, 1]]
    >>> taste = OnlineLabelRanker("multi").learn_one({"hot": 1}, ["tea", "juice"])
    >>> taste.learn_one({"hot": 1}, ["tea", "juice"]).predict_one({"hot": 1})
    ['tea', 'juice']
    """

    answer: ClassVar[ClassAnswer] = RankingAnswer()
    _absent: ClassVar[Mapping[str, str]] = NO_PATH | NO_PROBABILITY
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
        C: float | None = None,
        eta: float | None = None,
        delta: float | None = None,
        r: float | None = None,
        columns: Mapping[str, Any] | str | None = "auto",
        on_mismatch: str = "missing",
    ) -> None:
        keep_settings(self, locals())

    @between_trials
    def predict(self, X: Any, min_confidence: float | None = None) -> npt.NDArray[Any]:
        """Return the rank of each label, 1 for the best; ties go to the label seen first.

        Parameters
        ----------
        X : rows as in `fit`; features not seen before have the initial weights.
        min_confidence : None
            A ranking has no confidence.

        Returns
        -------
        Array of shape (n_rows, n_labels), in the order of `classes_`.

        Raises
        ------
        KeslerError
            If `min_confidence` is given.
        """
        if min_confidence is not None:
            return confident(self, X, min_confidence)
        ranks: npt.NDArray[np.int64] = ranks_by_score(self._scores(X))
        return ranks[:, self._known_classes().order]

    @between_trials
    def decision_function(self, X: Any) -> npt.NDArray[np.float32]:
        """Return the score of each label.

        Returns
        -------
        Array of shape (n_rows, n_labels), in the order of `classes_`.
        """
        return self._scores(X)[:, self._known_classes().order]

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the mean of Kendall's tau between `y` and the predicted rankings.

        Parameters
        ----------
        X : rows as in `fit`.
        y : rankings as in `fit`; a matrix has one column for each of `classes_`, in their order,
            or names its columns.
        sample_weight : array of shape (n_rows,) or None, default None
            Weight of each row in the mean.
        """
        from kesler.metrics import kendall_tau

        classes = self.classes_ if is_table(y) and not hasattr(y, "columns") else None
        scores, levels = self.decision_function(X), self.target_levels(y, classes)
        return kendall_tau(scores, levels, row_weights(sample_weight, len(scores)))

    def _in_order(self, scores: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        """Return the scores of trials in the order of `classes_`."""
        return scores[:, self._known_classes().order]

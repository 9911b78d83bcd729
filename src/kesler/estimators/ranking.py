"""OnlineLabelRanker: each row ranks the labels met so far."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from kesler.classes import Newcomers
from kesler.conditioning import Conditioning
from kesler.estimators.base import OnlineLearner
from kesler.estimators.rankings import ranks_by_score, told_of_rankings
from kesler.estimators.tables import is_table
from kesler.estimators.told import Told
from kesler.geometry import Metric
from kesler.hypotheses import Part
from kesler.kernels import MercerKernel
from kesler.links import Link
from kesler.maps import FeatureMap
from kesler.metrics import kendall_tau
from kesler.updates import UpdateRule


class OnlineLabelRanker(OnlineLearner):
    r"""A ranker of the labels that it meets as it learns: an order of them for each row.

    Labels are scored as by :class:`~kesler.OnlineClassifier`. Of a row that ranks r before s it
    demands

    .. math:: h(x, r) \ge h(x, s) + 1 \qquad \forall r \succ s

    over the labels met so far, and it ranks by score. Rankings may be partial: labels of equal rank
    are not compared, nor is a label that is not ranked with any other.

    Parameters
    ----------
    hypotheses : "multi", "single", "hybrid" or list of parts, default "hybrid"
        Which labels share which weights, as in :class:`~kesler.OnlineClassifier`. Of each label,
        a map sees the rows in which it was ranked first.
    feature_map : "auto", "product", "product-mean", "frequency", "contrast", "distance", \
"difference", "gaussian-ratio" or map, default "auto"
        The view of an instance that the shared vector has; not used by "multi".
    update : "perceptron", "margin-perceptron", "pa", "pa1", "pa2", "simperc", "conproj", \
"simproj", "mira", "hinge", "softmax", "logistic", "ovr-squared", \
"ovr-logistic", "ovr-hinge", "arow", "scw1", "scw2" or rule, default "simproj"
        How far to move. "simproj" moves along every violated constraint and ranks best by far;
        smaller C (0.01 to 0.1) bears noise and further passes better.
    intercept : float, default 1.0
        The value of a feature that every row is given, whose weights are the labels' intercepts.
        Larger values let these learn faster; 0 is for none.
    link : "linear", "exponential", "positive", "p-norm" or link, default "linear"
        The geometry in which the rule moves: additive updates, multiplicative ones (with weights of
        either sign, or positive ones alone), what lies between, or any link of
        :mod:`kesler.links`. Where few of many features matter, "exponential" makes fewer mistakes.
    averaged : bool, default False
        Whether to predict by the mean of the weights after each row, which bears noise better than
        the last ones. Learning itself is the same; the mean is computed anew when a prediction
        follows learning, O(weights). Linear link only.
    kernel, sigma, budget, conditioning, half_life
        As in :class:`~kesler.OnlineClassifier`.
    metric, newcomers
        As in :class:`~kesler.OnlineClassifier`; "auto" and "wait" by default.

    Attributes
    ----------
    classes_ : array of shape (n_labels,)
        The labels met so far, sorted: the columns of what is predicted.
    n_trials_, n_mistakes_ : int
        Rows learnt from, and rows in which the scores put any pair of labels met before the wrong
        way (Amit et al. 2006, Section 2).
    feature_map_, n_features_in_, feature_names_in_
        As in :class:`~kesler.OnlineClassifier`.

    Raises
    ------
    KeslerError
        If an argument is not known, a rank is negative or infinite, the columns do not stand for
        every label known, a list names a label twice, or for what :class:`~kesler.OnlineClassifier`
        refuses. The model is then as it was before.

    Notes
    -----
    Answers y come as a matrix of ranks of shape (n_rows, n_labels), 1 the best, equal ranks for a
    tie, 0 or NaN for a label that is not ranked; or as one list of labels a row, best first. The
    columns of a matrix are the labels 0 to n_labels - 1, those of a data frame its columns, unless
    `partial_fit` is told `classes`; all of them are met with the first row. A label in lists is met
    with its first row, in which nothing is demanded of it.

    A row costs O(nnz k) to score for k labels, and no more than O(k^2) an update for its
    constraints. Learning in batches of any size gives the same weights bit for bit.

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

    def __init__(
        self,
        hypotheses: str | Part | list[Part] = "hybrid",
        feature_map: str | FeatureMap = "auto",
        update: str | UpdateRule = "simproj",
        intercept: float = 1.0,
        link: str | Link = "linear",
        averaged: bool = False,
        kernel: str | MercerKernel | None = None,
        sigma: float | Literal["auto"] = "auto",
        budget: int | None = None,
        metric: str | Metric = "auto",
        newcomers: Newcomers = "wait",
        conditioning: str | Conditioning | None = None,
        half_life: float | None = None,
    ) -> None:
        self.hypotheses = hypotheses
        self.feature_map = feature_map
        self.update = update
        self.intercept = intercept
        self.link = link
        self.averaged = averaged
        self.kernel = kernel
        self.sigma = sigma
        self.budget = budget
        self.metric = metric
        self.newcomers = newcomers
        self.conditioning = conditioning
        self.half_life = half_life

    def predict(self, X: Any) -> npt.NDArray[np.int64]:
        """Return the rank of each label, 1 for the best; of equals, the one met first is ahead.

        Parameters
        ----------
        X : rows as in `fit`; features never met have the weights that all begin with.

        Returns
        -------
        Array of shape (n_rows, n_labels), in the order of `classes_`.
        """
        ranks: npt.NDArray[np.int64] = ranks_by_score(self._scores(X))
        return ranks[:, self._known_classes().order]

    def _said(self, highest: int, scores: npt.NDArray[np.float32]) -> list[Any]:
        return [self._machine.classes.labels[i] for i in np.argsort(-scores, kind="stable")]

    def decision_function(self, X: Any) -> npt.NDArray[np.float32]:
        """Return the score of each label.

        Returns
        -------
        Array of shape (n_rows, n_labels), in the order of `classes_`.
        """
        return self._scores(X)[:, self._known_classes().order]

    def score(self, X: Any, y: Any) -> float:
        """Return the mean of Kendall's tau between the rankings y and those predicted.

        Parameters
        ----------
        X : rows as in `fit`.
        y : rankings as in `fit`; a matrix has one column for each of `classes_`, in their order,
            or names its columns.
        """
        classes = self.classes_ if is_table(y) and not hasattr(y, "columns") else None
        return kendall_tau(self.decision_function(X), self.levels_told(y, classes))

    def run_trials(
        self, X: Any, y: Any, sample_weight: Any = None, classes: Any = None
    ) -> npt.NDArray[np.float32]:
        """Learn rows and return the scores of each before its answer was heard.

        NaN stands for labels not known by then. Rows of weight 0 are left out.
        `progressive_validate` is the friendlier face.
        """
        trials = self._run_trials(X, y, sample_weight, classes, keep_scores=True)
        return trials.scores[:, self._known_classes().order]

    def _tell(self, y: Any, classes: Any = None) -> Told:
        return told_of_rankings(y, classes, self._known_classes())

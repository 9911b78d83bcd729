"""OnlineMultilabelClassifier: each row may have any number of the labels met so far."""

from __future__ import annotations

from typing import Any, ClassVar, Literal, TypeVar

import numpy as np
import numpy.typing as npt

from kesler.classes import Newcomers
from kesler.conditioning import Conditioning
from kesler.estimators.base import OnlineLearner, unchanged_on_error
from kesler.estimators.contract import Classifier
from kesler.estimators.label_sets import RELEVANT, require_contrast, told_of_sets
from kesler.estimators.tables import is_table
from kesler.estimators.told import Told
from kesler.geometry import Metric
from kesler.hypotheses import Part
from kesler.kernels import MercerKernel
from kesler.links import Link
from kesler.maps import FeatureMap
from kesler.updates import UpdateRule

Self = TypeVar("Self", bound="OnlineMultilabelClassifier")


class OnlineMultilabelClassifier(Classifier, OnlineLearner):
    r"""A classifier of rows with several labels, which it meets as it learns.

    Labels are scored as by :class:`~kesler.OnlineClassifier`, and so is a virtual label 0, the
    threshold. Of a row with the relevant labels Y it demands

    .. math:: h(x, r) \ge h(x, 0) + 1, \quad h(x, 0) \ge h(x, s) + 1, \quad h(x, r) \ge h(x, s) + 1
        \qquad \forall r \in Y, s \notin Y

    over the labels met so far, and predicts :math:`\hat Y = \{r : h(x, r) > h(x, 0)\}`. The
    threshold learns like any label, so that it depends on x.

    Parameters
    ----------
    hypotheses : "multi", "single", "hybrid" or list of parts, default "multi"
        Which labels share which weights, as in :class:`~kesler.OnlineClassifier`. Of each label,
        a map sees the rows for which it was relevant; of the threshold none. In
        :class:`~kesler.hypotheses.Grouped` hypotheses the threshold is in no group.
    feature_map : "auto", "product", "product-mean", "frequency", "contrast", "distance", \
"difference", "gaussian-ratio" or map, default "auto"
        The view of an instance that the shared vector has; not used by "multi".
    update : "perceptron", "margin-perceptron", "pa", "pa1", "pa2", "simperc", "conproj", \
"simproj", "mira", "hinge", "softmax", "logistic", "ovr-squared", \
"ovr-logistic", "ovr-hinge", "arow", "scw1", "scw2" or rule, default "simproj"
        How far to move. "simproj" moves along every violated constraint: best in ranking loss and
        label sets. "simperc" and "conproj", along every mistaken one, put the right label on top
        sooner where words are many and rows few. Those of one constraint ("pa1") lag behind.
    intercept : float, default 1.0
        The value of a feature that every row is given, whose weights are the labels' intercepts.
        Larger values let these learn faster; 0 is for none, and then a row without features has
        no label.
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
        Rows learnt from, and rows whose prediction was imperfect: the scores put any pair of
        labels met before, the threshold among them, the wrong way (Amit et al. 2006, Section 2).
    feature_map_, n_features_in_, feature_names_in_
        As in :class:`~kesler.OnlineClassifier`.

    Raises
    ------
    KeslerError
        If an argument is not known, an indicator holds anything but 0 and 1, the columns do not
        stand for every label known, a row names a label twice, or for what
        :class:`~kesler.OnlineClassifier` refuses. The model is then as it was before.

    Notes
    -----
    Answers y come as an indicator matrix, dense or sparse, of shape (n_rows, n_labels), or as one
    set or list of labels a row. The columns of a matrix are the labels 0 to n_labels - 1, those of
    a data frame its columns, unless `partial_fit` is told `classes`; all of them are met with the
    first row. A label in lists is met with its first row, in which nothing is demanded of it.

    A row may name no label, or all: then every label belongs below the threshold, or above.

    A row costs O(nnz k) to score for k labels, and no more than O(\|Y\| k) an update for its
    constraints. Learning in batches of any size gives the same weights bit for bit.

    References
    ----------
    Amit, Shalev-Shwartz and Singer (2006), Section 3; Crammer and Singer (2003), "A family of
    additive online algorithms for category ranking"; Fürnkranz, Hüllermeier, Loza Mencía and
    Brinker (2008), whose calibrated ranking has the threshold as a label.

    Examples
    --------
    >>> from kesler import OnlineMultilabelClassifier
    >>> mail = OnlineMultilabelClassifier()
    >>> for _ in range(3):
    ...     mail = mail.learn_one({"cash": 1, "lunch": 1}, {"bills", "food"})
    ...     mail = mail.learn_one({"cash": 1}, {"bills"}).learn_one({"news": 1}, [])
    >>> mail.predict_one({"cash": 1}), mail.predict_one({"news": 1})
    ({'bills'}, set())
    >>> mail.predict([{"lunch": 1, "cash": 1}]).tolist(), mail.classes_.tolist()
    ([[1, 1]], ['bills', 'food'])
    """

    n_virtual: ClassVar[int] = 1

    def __init__(
        self,
        hypotheses: str | Part | list[Part] = "multi",
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

    @unchanged_on_error
    def fit(self: Self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Forget everything, then learn the rows once, in order.

        Parameters
        ----------
        X, y, sample_weight : as in :meth:`partial_fit`.

        Raises
        ------
        KeslerError
            If every row names every label, or none names any: then there is nothing to tell them
            by. A single row may.
        """
        super().fit(X, y, sample_weight)
        require_contrast(self._tell(y))
        return self

    def predict(self, X: Any) -> npt.NDArray[np.int64]:
        """Return which labels are relevant to each row: an indicator matrix.

        Parameters
        ----------
        X : rows as in `fit`; features never met have the weights that all begin with.

        Returns
        -------
        Array of shape (n_rows, n_labels) of 0 and 1, in the order of `classes_`.
        """
        return (self.decision_function(X) > 0).astype(np.int64)

    def predict_sets(self, X: Any) -> list[set[Any]]:
        """Return the set of relevant labels of each row."""
        labels: list[Any] = self.classes_.tolist()
        return [{labels[i] for i in np.flatnonzero(row)} for row in self.predict(X)]

    def _said(self, highest: int, scores: npt.NDArray[np.float32]) -> set[Any]:
        relevant = np.flatnonzero(scores[self.n_virtual :] > scores[: self.n_virtual])
        return {self._machine.classes.labels[i] for i in relevant}

    def decision_function(self, X: Any) -> npt.NDArray[np.float32]:
        """Return by how much each label's score exceeds the threshold's.

        Returns
        -------
        Array of shape (n_rows, n_labels), in the order of `classes_`.
        """
        return above_threshold(self._scores(X), self._known_classes().order)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the share of rows whose label set is predicted as a whole.

        Parameters
        ----------
        X : rows as in `fit`.
        y : label sets as in `fit`; a matrix has one column for each of `classes_`, in their order,
            or names its columns.
        sample_weight : array of shape (n_rows,) or None, default None
            What each row counts.
        """
        classes = self.classes_ if is_table(y) and not hasattr(y, "columns") else None
        told = self._tell(y, classes)
        known = (told.table(self.classes_.tolist()) == RELEVANT) == (self.predict(X) == 1)
        met = self._known_classes()
        strange = np.array([label not in met for label in told.labels], dtype=np.bool_)
        rows = np.repeat(np.arange(len(told)), np.diff(told.indptr))
        right = known.all(axis=1)
        right[rows[strange]] = False
        return float(np.average(right, weights=sample_weight))

    def run_trials(
        self, X: Any, y: Any, sample_weight: Any = None, classes: Any = None
    ) -> npt.NDArray[np.float32]:
        """Learn rows and return what `decision_function` said of each before its answer was heard.

        NaN stands for labels not known by then. Rows of weight 0 are left out.
        `progressive_validate` is the friendlier face.
        """
        trials = self._run_trials(X, y, sample_weight, classes, keep_scores=True)
        return above_threshold(trials.scores, self._known_classes().order)

    def _tell(self, y: Any, classes: Any = None) -> Told:
        return told_of_sets(y, classes, self._known_classes())

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.classifier_tags.multi_label = True
        tags.target_tags.multi_output = True
        tags.target_tags.single_output = False
        return tags


def above_threshold(scores: npt.NDArray[np.float32], order: list[int]) -> npt.NDArray[np.float32]:
    """Return the scores of the labels, in this order, less that of the threshold, number 0."""
    above: npt.NDArray[np.float32] = scores[:, order] - scores[:, :1]
    return above

"""OnlineOrdinalClassifier: an online classifier for ordered classes."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence, Set
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from kesler.data.labels import NEW, Label, class_of
from kesler.errors import KeslerError, keep_settings
from kesler.hypotheses import Ordered, Part, Shared
from kesler.kernels.mercer import MercerKernel
from kesler.learner.classes import ClassTable, OnNewClass
from kesler.learner.support_vectors import Limit
from kesler.learner.targets import Kind, Targets
from kesler.learner.uncertainty import Use
from kesler.links.link import Link
from kesler.maps import resolve_map
from kesler.maps.feature_map import FeatureMap
from kesler.online.answers import ClassAnswer
from kesler.online.classifier import OnlineClassifier
from kesler.online.contract import between_trials
from kesler.online.making import Maker, Settings
from kesler.preconditioners import Preconditioner
from kesler.preprocessing import Preprocessing
from kesler.settings.table import given_of
from kesler.updates.rule import UpdateRule

if TYPE_CHECKING:
    from kesler.queries.query import Query
    from kesler.trees.tree import Given


class RankAnswer(ClassAnswer):
    """Each row has one of several classes that are ordered."""

    kind: Kind = "rank"

    def encoded(self, y: Any, classes: Any, known: ClassTable) -> Targets:
        """Return the encoded targets of rows; the order of a Categorical must be declared."""
        if known.declared is None and getattr(getattr(y, "dtype", None), "ordered", None):
            raise KeslerError(
                "y is an ordered Categorical, but this classifier has no declared order: set "
                "order=list(y.cat.categories)"
            )
        return super().encoded(y, classes, known)


class _RankMaker(Maker):
    """Makes learners of ranks, whose order may be declared by the parameter `order`."""

    def parts(self, given: Settings, *, dense: bool) -> list[Part]:
        parts = super().parts(given, dense=dense)
        is_listed = not isinstance(self.chosen(given, dense=dense)["hypotheses"], str)
        if is_listed or Ordered() not in parts or "feature_map" not in given_of(given):
            return parts
        with_kernel = given.get("kernel") is not None
        view = resolve_map(given["feature_map"], dense=dense, kernel=with_kernel)
        return [*parts, Shared(view)]

    def shared_part(self, given: Settings, *, dense: bool) -> Part:
        return Ordered()

    def classes(self, given: Settings, declared: Iterable[Label] = ()) -> ClassTable:
        return ClassTable(declared=declared_order(given["order"]))


class OnlineOrdinalClassifier(OnlineClassifier):
    r"""A classifier of ranks, such as grades, that learns online and adds ranks as they appear.

    Ranks are scored as classes are in :class:`~kesler.OnlineClassifier`, but a target y compares
    neighbours only: of any two adjacent ranks among those seen so far, the one nearer to y must
    outscore the other,

    .. math:: h(x, r + 1) \ge h(x, r) + 1 \;\; \forall r < y, \quad
        h(x, r) \ge h(x, r + 1) + 1 \;\; \forall r \ge y

    so the number of violated constraints grows with the distance of a prediction from y. With one
    direction and thresholds, :class:`~kesler.hypotheses.Ordered`, these are
    :math:`\langle w, x \rangle \ge b_r + 1` for the thresholds below y and
    :math:`\langle w, x \rangle \le b_r - 1` for the others.

    Parameters
    ----------
    hypotheses : "auto", "single", "multi", "hybrid" or list of parts, default "auto"
        One direction and thresholds between the ranks, :class:`~kesler.hypotheses.Ordered`
        ("single"); one vector for each rank ("multi"); or both, whose scores are summed ("hybrid"):
        the first learns from few rows, the second fits any class shape with many rows. Or any list
        of parts. "auto" is the hybrid, with a vector over a feature map that all ranks share
        unless `update` is named.
    update : "auto", "perceptron", "margin-perceptron", "pa", "pa1", "pa2", "simperc", \
"conproj", "simproj", "mira", "hinge", "softmax", "logistic", "arow", \
"scw1", "scw2" or rule, default "auto"
        The update rule. "auto" is the all-threshold logistic loss with adaptive step sizes, on
        rows that are prepared by their kind: z-scores where rows list every feature, counts where
        they list only non-zeros (:mod:`kesler.online.defaults`). With a named rule, the other
        defaults are those of its source, without preprocessing. Of these, "simproj" updates with
        every violated constraint and is best by far with many ranks; smaller C (0.01 to 0.1) is
        more robust to noise and to repeated passes.
    order : sequence of labels or None, default None
        All possible ranks, from the lowest to the highest; any other label is an error. None allows
        any labels in their sort order: numbers by size, text alphabetically.
    intercept : float, default "auto"
        1 unless given. The value of a constant feature added to every row, whose weights are the
        thresholds and the intercepts of the ranks. With larger values these are learnt faster; 0
        means none.
    link : "linear", "exponential", "positive", "p-norm" or link, default "linear"
        The link function of the updates, as in :class:`~kesler.OnlineClassifier`. With ordered
        hypotheses it applies to the direction and to minus the thresholds, so that a link of
        positive weights has thresholds below 0; with a negative intercept they are above 0.
    averaged : bool, default False
        Whether to predict with the mean of the weights after each row, as in
        :class:`~kesler.OnlineClassifier`: best for noisy rows, such as grades, and for several
        passes.
    preconditioner, on_new_class
        As in :class:`~kesler.OnlineClassifier`. With a named rule, "auto" and "register".
    preprocessing, half_life
        As in :class:`~kesler.OnlineClassifier`. With a named rule, preprocessing is None.
    memory_limit, shuffle, random_state, class_weight
        As in :class:`~kesler.OnlineClassifier`.
    decision : "auto", "median" or "score", default "auto"
        How a rank is predicted: the median of the probabilities of `predict_proba`, which minimises
        the expected absolute error, or the rank of the highest score. What is learnt does not
        depend on it. "auto" is "median", or "score" with a named rule. scikit-learn expects the
        highest score of `decision_function`.
    feature_map : "auto", "product", "product-mean", "frequency", "contrast", "distance", \
"difference", "gaussian-ratio" or map, default "auto"
        The feature map of a vector that all ranks share. "auto" is that of the default settings,
        and none where `update` is named. If it is named, "single" and "hybrid" have such a vector
        beside the direction; not used by "multi".
    costs : mapping {(right, wrong): cost}, callable (right, wrong) -> cost, or None, default None
        The cost of predicting one rank where another is right. Two neighbours must keep a margin
        in proportion to the difference of their costs, see :class:`~kesler.costs.Costs`, so that
        larger costs separate ranks more; costs must not fall with the distance from the right
        rank. None costs 1 for each rank between, the absolute error. For rules with a margin; with
        costs, "auto" is "simproj". Batches cost as much as their rows one by one.
    tree : Tree, mapping {child: parent} or str, or None, default None
        Ranks below one node share a vector in place of those that "multi" and "hybrid" have for
        each rank, as in :class:`~kesler.OnlineClassifier`. Margins do not depend on it, since
        ranks have an order instead.
    label_budget
        As in :class:`~kesler.OnlineClassifier`.
    kernel, sigma, budget
        As in :class:`~kesler.OnlineClassifier`. With ordered hypotheses, the direction is a sum
        over stored rows without their constant feature, :math:`\langle w, x \rangle = \sum_j
        \beta_j K(x_j, x)`, and the thresholds are multiples of `intercept`.
    C, eta, delta, r
        As in :class:`~kesler.OnlineClassifier`.
    columns, on_mismatch, uncertainty
        As in :class:`~kesler.OnlineClassifier`.

    Attributes
    ----------
    classes_ : array of shape (n_ranks,)
        The ranks seen so far, from the lowest to the highest.
    thresholds_ : float32 array of shape (n_ranks - 1,)
        The thresholds of ordered hypotheses: the values of <w, x> between adjacent ranks.
    n_trials_, n_mistakes_ : int
        Number of rows learnt from, and number of rows in which the scores order any two adjacent
        ranks seen before wrongly (Amit et al. 2006, Section 3). This counts at least the rows of a
        known rank for which another rank has the highest score, and exactly these if there is
        one direction with sorted thresholds.
    n_features_in_, feature_names_in_
        As in :class:`~kesler.OnlineClassifier`.

    Raises
    ------
    KeslerError
        If an argument is unknown, a label is not in the declared order, ordered hypotheses have no
        intercept, or for the reasons given in :class:`~kesler.OnlineClassifier`. The model is then
        unchanged.

    Notes
    -----
    New ranks may appear at any time. The first row of a rank adds it, without an update, and is not
    a mistake. The new threshold of a rank between two others is initialized with the threshold
    between them, so that no other prediction changes. The new threshold of a rank below or above
    all others is initialized beyond the outermost threshold by the mean distance between
    thresholds. The first threshold is initialized with 0. Under a link these are the sums from
    which thresholds are computed.

    A row costs O(nnz k) to score for k ranks, O(nnz + k) with ordered hypotheses alone, and at most
    O(nnz k) for an update. Learning in batches of any size gives the same weights bit for bit.

    References
    ----------
    Amit, Shalev-Shwartz and Singer (2006), Sections 3 and 7; Crammer and Singer (2001), "Pranking
    with ranking"; Chu and Keerthi (2005), support vector ordinal regression; Rennie and Srebro
    (2005), the all-threshold loss; Pedregosa, Bach and Gramfort (2017), its consistency for
    absolute errors.

    Examples
    --------
    >>> from kesler import OnlineOrdinalClassifier
    >>> grades = OnlineOrdinalClassifier(order=["low", "mid", "high"])
    >>> grades = grades.fit([[9.0], [1.0], [5.0]] * 30, ["high", "low", "mid"] * 30)
    >>> grades.predict([[0.0], [5.0], [12.0]]).tolist(), grades.classes_.tolist()
    (['low', 'mid', 'high'], ['low', 'mid', 'high'])
    >>> bool(grades.thresholds_[0] < grades.thresholds_[1])
    True
    """

    answer: ClassVar[ClassAnswer] = RankAnswer()
    _maker: ClassVar[Maker] = _RankMaker(answer)
    order: Sequence[Label] | None

    def __init__(
        self,
        hypotheses: str | Part | list[Part] = "auto",
        update: str | UpdateRule = "auto",
        order: Sequence[Label] | None = None,
        intercept: float | str = "auto",
        link: str | Link = "linear",
        averaged: bool = False,
        preconditioner: str | Preconditioner = "auto",
        on_new_class: OnNewClass | str = "auto",
        preprocessing: str | Preprocessing | None = "auto",
        half_life: float | None = None,
        memory_limit: int | str | None = None,
        shuffle: bool | str = "auto",
        random_state: int = 0,
        class_weight: Mapping[Any, float] | str | None = None,
        decision: str = "auto",
        C: float | None = None,
        eta: float | None = None,
        delta: float | None = None,
        r: float | None = None,
        columns: Mapping[str, Any] | str | None = "auto",
        on_mismatch: str = "missing",
        uncertainty: Use = "auto",
        feature_map: str | FeatureMap = "auto",
        costs: Mapping[Any, float] | Callable[[Any, Any], float] | None = None,
        tree: Given | None = None,
        label_budget: float | Query | None = None,
        kernel: str | MercerKernel | None = None,
        sigma: float | Literal["auto"] = "auto",
        budget: Limit = None,
    ) -> None:
        keep_settings(self, locals())

    @between_trials
    def predict_proba(self, X: Any, new: bool = False) -> npt.NDArray[np.float64]:
        """Return the probability of each rank, in the order of `classes_`.

        The probabilities are the softmax of the scores at a temperature that is learnt online, as
        in :class:`~kesler.OnlineClassifier`. With decision="median", `predict` returns the lowest
        rank for which the probabilities of the ranks up to it sum to 1/2 or more; with "score", the
        rank of the highest probability.

        Parameters
        ----------
        X : rows as in `predict`.
        new : bool, default False
            Whether a last column holds the probability of a rank that has not been seen.

        Returns
        -------
        Array of shape (n_rows, n_ranks), or of one column more; each row sums to 1.
        """
        return super().predict_proba(X, new)

    @property
    def thresholds_(self) -> npt.NDArray[np.float32]:
        """The values of <w, x> between adjacent ranks, in the order of `classes_`."""
        from kesler.online.linear_weights import single

        thresholds = single(self._fitted()).thresholds
        if thresholds is None:
            raise AttributeError("only Ordered hypotheses have thresholds, and there are none")
        return thresholds

    @property
    def all_ranks(self) -> list[Label]:
        """All ranks in order: the declared ones, or those seen so far if none are declared."""
        return declared_order(self.order) or self._known_classes().in_order.tolist()

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True  # its checks have classes without an order
        return tags


def declared_order(order: Any) -> list[Label] | None:
    """Return the labels of a declared order, or None; raise if a label appears twice."""
    if order is None:
        return None
    if isinstance(order, (str, bytes, Set)) or not isinstance(order, Iterable):
        raise KeslerError(
            f"order={order!r}: give a list of all labels, from the lowest to the highest, or None"
        )
    labels = [class_of(label) for label in order]
    if any(label is NEW for label in labels):
        raise KeslerError(
            f"order={order!r} names kesler.NEW, which stands for a class that has not been seen: "
            "name labels of rows only"
        )
    odd = [label for label in labels if not isinstance(label, Hashable) or labels.count(label) > 1]
    if odd or not labels:
        what = f"names {odd[0]!r} twice, or it is not hashable" if odd else "names no label"
        raise KeslerError(f"order={order!r} {what}: name each label once, the lowest first")
    return labels

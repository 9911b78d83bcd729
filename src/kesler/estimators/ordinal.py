"""OnlineOrdinalClassifier: classes that have an order."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence, Set
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from kesler.answers import Kind
from kesler.classes import ClassTable, Label, Newcomers, plain
from kesler.conditioning import Conditioning
from kesler.errors import KeslerError
from kesler.estimators.online import OnlineClassifier
from kesler.estimators.told import Told
from kesler.geometry import Metric
from kesler.hypotheses import Ordered, Part
from kesler.links import Link
from kesler.updates import UpdateRule


class OnlineOrdinalClassifier(OnlineClassifier):
    r"""A classifier of ranks, such as grades, that it meets as it learns.

    Ranks are scored as classes are by :class:`~kesler.OnlineClassifier`, but an answer y compares
    neighbours only: of any two ranks next to each other, among those met so far, the one nearer to
    y must outscore the other,

    .. math:: h(x, r + 1) \ge h(x, r) + 1 \;\; \forall r < y, \quad
        h(x, r) \ge h(x, r + 1) + 1 \;\; \forall r \ge y

    so that a prediction costs the more constraints the farther it is off. With one direction and
    thresholds, :class:`~kesler.hypotheses.Ordered`, this is
    :math:`\langle w, x \rangle \ge b_r + 1` for the thresholds under y and
    :math:`\langle w, x \rangle \le b_r - 1` for the others.

    Parameters
    ----------
    hypotheses : "single", "multi", "hybrid" or list of parts, default "hybrid"
        One direction and thresholds between the ranks, :class:`~kesler.hypotheses.Ordered`; one
        vector for each rank; or both, whose scores add up: ranks in order where rows are few, and
        of any shape where they are many. Or any list of parts.
    update : "perceptron", "margin-perceptron", "pa", "pa1", "pa2", "simperc", "conproj", \
"simproj", "mira", "hinge", "softmax", "logistic", "arow", \
"scw1", "scw2" or rule, default "simproj"
        How far to move. "simproj" moves along every violated constraint and is best by far where
        ranks are many; smaller C (0.01 to 0.1) bears noise and further passes better.
    order : sequence of labels or None, default None
        All ranks that there can be, from the lowest to the highest; another label is refused. None
        is for any labels, as they sort: numbers by size, text by the alphabet.
    intercept : float, default 1.0
        The value of a feature that every row is given, whose weights are the thresholds and the
        intercepts of the ranks. Larger values let these learn faster; 0 is for none.
    link : "linear", "exponential", "positive", "p-norm" or link, default "linear"
        The geometry in which the rule moves, as in :class:`~kesler.OnlineClassifier`; ordered
        hypotheses have the linear one alone.
    averaged : bool, default False
        Whether to predict by the mean of the weights after each row: best where rows are noisy, as
        grades are, and in several passes. As in :class:`~kesler.OnlineClassifier`.
    metric, newcomers
        As in :class:`~kesler.OnlineClassifier`; "auto" and "wait" by default.
    conditioning, half_life
        As in :class:`~kesler.OnlineClassifier`.

    Attributes
    ----------
    classes_ : array of shape (n_ranks,)
        The ranks met so far, from the lowest to the highest.
    thresholds_ : float32 array of shape (n_ranks - 1,)
        The thresholds of ordered hypotheses: where <w, x> passes from a rank to the next.
    n_trials_, n_mistakes_ : int
        Rows learnt from, and rows in which the scores put any two neighbours met before the wrong
        way (Amit et al. 2006, Section 3): at least those of a known rank for which another was
        predicted, and no more where one direction has its thresholds in order.
    n_features_in_, feature_names_in_
        As in :class:`~kesler.OnlineClassifier`.

    Raises
    ------
    KeslerError
        If an argument is not known, a label is outside the declared order, ordered hypotheses have
        no intercept, or for what :class:`~kesler.OnlineClassifier` refuses. The model is then as it
        was before.

    Notes
    -----
    A rank may be met at any time. Its first row makes it known, moves nothing and is no mistake.
    Its threshold begins between two ranks at the one that is there, so that no other prediction
    changes; below or above all others as far beyond the last threshold as they lie apart on
    average, so that the rank that was there keeps what is near. The first threshold begins at 0.

    A row costs O(nnz k) to score for k ranks, O(nnz + k) with ordered hypotheses alone, and no more
    than O(nnz k) an update. Learning in batches of any size gives the same weights bit for bit.

    References
    ----------
    Amit, Shalev-Shwartz and Singer (2006), Section 3; Crammer and Singer (2001), "Pranking with
    ranking"; Chu and Keerthi (2005), support vector ordinal regression.

    Examples
    --------
    >>> from kesler import OnlineOrdinalClassifier
    >>> grades = OnlineOrdinalClassifier("single", order=["low", "mid", "high"])
    >>> for _ in range(30):
    ...     for x, y in [(9.0, "high"), (1.0, "low"), (5.0, "mid")]:
    ...         grades = grades.learn_one({"x": x}, y)
    >>> [grades.predict_one({"x": x}) for x in (0, 5, 12)], grades.classes_.tolist()
    (['low', 'mid', 'high'], ['low', 'mid', 'high'])
    >>> bool(grades.thresholds_[0] < grades.thresholds_[1])
    True
    """

    answer: ClassVar[Kind] = "rank"

    def __init__(
        self,
        hypotheses: str | Part | list[Part] = "hybrid",
        update: str | UpdateRule = "simproj",
        order: Sequence[Label] | None = None,
        intercept: float = 1.0,
        link: str | Link = "linear",
        averaged: bool = False,
        metric: str | Metric = "auto",
        newcomers: Newcomers = "wait",
        conditioning: str | Conditioning | None = None,
        half_life: float | None = None,
    ) -> None:
        self.hypotheses = hypotheses
        self.update = update
        self.order = order
        self.intercept = intercept
        self.link = link
        self.averaged = averaged
        self.metric = metric
        self.newcomers = newcomers
        self.conditioning = conditioning
        self.half_life = half_life

    def _tell(self, y: Any, classes: Any = None) -> Told:
        values = getattr(y, "dtype", None)
        if self.order is None and getattr(values, "ordered", None):
            raise KeslerError(
                "y is an ordered Categorical, whose order this classifier was not told: give "
                "order=list(y.cat.categories)"
            )
        return super()._tell(y, classes)

    @property
    def thresholds_(self) -> npt.NDArray[np.float32]:
        """Where <w, x> passes from one rank to the next, in the order of `classes_`."""
        thresholds = self._single().thresholds
        if thresholds is None:
            raise AttributeError("only Ordered hypotheses have thresholds, and there are none")
        return thresholds

    @property
    def all_ranks(self) -> list[Label]:
        """Every rank there can be, in order: those declared, else those met so far."""
        return declared_order(self.order) or self._known_classes().in_order.tolist()

    def _shared_part(self, *, dense: bool) -> Part:
        return Ordered()

    def _no_classes(self) -> ClassTable:
        return ClassTable(declared=declared_order(self.order))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True  # where classes lie in no order, as in its checks
        return tags


def declared_order(order: Any) -> list[Label] | None:
    """Return the labels of an order, each once, or None if none was declared."""
    if order is None:
        return None
    if isinstance(order, (str, bytes, Set)) or not isinstance(order, Iterable):
        raise KeslerError(
            f"order={order!r}: give a list of all labels, from the lowest to the highest, or None"
        )
    labels = [plain(label) for label in order]
    odd = [label for label in labels if not isinstance(label, Hashable) or labels.count(label) > 1]
    if odd or not labels:
        what = f"names {odd[0]!r} twice, or it is not hashable" if odd else "names no label"
        raise KeslerError(f"order={order!r} {what}: name each label once, the lowest first")
    return labels

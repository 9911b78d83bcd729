"""KeslerReduction: Kesler's construction with any linear binary learner."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from inspect import signature
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score
from sklearn.utils.validation import _check_sample_weight

from kesler.data import inputs
from kesler.data.labels import Label, TopLabel, top_labels
from kesler.data.matrices import validate_data
from kesler.decompositions.binary import copy_of, if_learner_has, require_learner
from kesler.errors import (
    OF_BATCHES,
    KeslerError,
    absent,
    integer_of,
    keep_settings,
    require_unasked,
    set_state,
    state_of,
)
from kesler.learner.classes import ClassTable
from kesler.learner.targets import Targets
from kesler.metrics import kendall_tau
from kesler.online.contract import unchanged_on_error
from kesler.online.label_sets import (
    IRRELEVANT,
    RELEVANT,
    THRESHOLD,
    as_matrix,
    is_table,
    ranks_by_score,
    targets_of_rankings,
    targets_of_sets,
)
from kesler.progress import progress

BLOCK_ENTRIES = 1 << 20  # about 12 MB of the construction per block


@dataclass(frozen=True, slots=True)
class Demands:
    """Pairs of classes of which the first must outscore the second, ordered by row.

    Parameters
    ----------
    rows, higher, lower : int64 arrays of shape (n_demands,)
        The row of each demand, the class that must have the higher score, and the other class.

    Examples
    --------
    >>> demands = Demands.of_levels(np.array([[1, 0, 1], [0, -1, 1]], dtype=np.int32))
    >>> demands.rows.tolist(), demands.higher.tolist(), demands.lower.tolist()
    ([0, 0, 1], [1, 1, 0], [0, 2, 2])
    """

    rows: npt.NDArray[np.int64]
    higher: npt.NDArray[np.int64]
    lower: npt.NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.rows)

    @staticmethod
    def of_levels(levels: npt.NDArray[np.int32]) -> Demands:
        """Return, for each row, every pair of classes with different levels of 0 or more."""
        above = (levels >= 0) & (levels < levels.max(axis=1, initial=0, keepdims=True))
        rows, higher = np.nonzero(above)
        which, lower = np.nonzero(levels[rows] > levels[rows, higher][:, None])
        return Demands(rows[which], higher[which], lower)


def count_demands(levels: npt.NDArray[np.int32]) -> npt.NDArray[np.int64]:
    """Return the number of pairs of classes that the levels of each row order.

    Examples
    --------
    >>> count_demands(np.array([[1, 0, 1], [0, -1, 1], [0, 1, 2]], dtype=np.int32)).tolist()
    [2, 1, 3]
    """
    found = np.zeros(len(levels), dtype=np.int64)
    lower = np.zeros(len(levels), dtype=np.int64)
    for level in range(int(levels.max(initial=-1)) + 1):
        here = (levels == level).sum(axis=1)
        found += here * lower
        lower += here
    return found


def count_bytes(X: sparse.csr_array, levels: npt.NDArray[np.int32]) -> int:
    """Return the size of the whole construction in bytes: two copies of a row per demand."""
    demands = count_demands(levels)
    n_entries = 2 * int(demands @ np.diff(X.indptr))
    index = _index_type(n_entries, X.shape[1] * levels.shape[1]).itemsize
    return n_entries * (X.dtype.itemsize + index) + (int(demands.sum()) + 1) * index


def blocks(X: sparse.csr_array, levels: npt.NDArray[np.int32]) -> Iterator[slice]:
    """Yield slices of one row or more whose construction has about `BLOCK_ENTRIES` entries."""
    entries = np.cumsum(2 * count_demands(levels) * np.diff(X.indptr))
    start = 0
    while start < len(levels):
        before = entries[start - 1] if start else 0
        stop = int(np.searchsorted(entries, before + BLOCK_ENTRIES, side="right"))
        yield slice(start, start := max(start + 1, stop))


def differences(
    X: sparse.csr_array, demands: Demands, n_classes: int, first: int
) -> tuple[sparse.csr_array, npt.NDArray[np.int64]]:
    r"""Return the examples :math:`\pm (\phi(x, r) - \phi(x, s))` and their signs.

    :math:`\phi(x, r)` has x in the block of class r and zeros elsewhere. Signs alternate: without
    an intercept, an example and its negation impose the same constraint on the weights, so one of
    the two is enough, and both labels are equally frequent.

    Parameters
    ----------
    X : CSR array of shape (n_rows, n_features), indices sorted.
    demands : the demands of these rows.
    n_classes : the number of blocks.
    first : the number of the first demand; demands with even numbers are positive.

    Returns
    -------
    Matrix of shape (n_demands, n_classes * n_features), and 1 or -1 for each demand.

    Examples
    --------
    >>> X = sparse.csr_array([[5.0, 7.0]])
    >>> examples, signs = differences(X, Demands.of_levels(np.array([[1, 0, 1]])), 3, 0)
    >>> examples.toarray().tolist(), signs.tolist()
    ([[-5.0, -7.0, 5.0, 7.0, 0.0, 0.0], [0.0, 0.0, -5.0, -7.0, 5.0, 7.0]], [1, -1])
    """
    signs = 1 - 2 * ((first + np.arange(len(demands))) % 2)
    copies = X[demands.rows]
    lengths, begins = np.diff(copies.indptr), copies.indptr
    left = np.repeat(np.minimum(demands.higher, demands.lower), lengths)
    right = np.repeat(np.maximum(demands.higher, demands.lower), lengths)
    values = copies.data * np.repeat(
        np.where(demands.higher < demands.lower, signs, -signs), lengths
    )
    # Entry e of a row that begins at b and ends at f is written to e + b and to e + f.
    entries = np.arange(len(values))
    places = entries + np.repeat(begins[:-1], lengths), entries + np.repeat(begins[1:], lengths)
    width = n_classes * X.shape[1]
    kind = _index_type(2 * len(values), width)
    indices, data = np.empty(2 * len(values), dtype=kind), np.empty(2 * len(values), X.dtype)
    for place, block, sign in zip(places, (left, right), (1, -1), strict=True):
        indices[place] = copies.indices + block * X.shape[1]
        data[place] = sign * values
    made = sparse.csr_array((data, indices, (2 * begins).astype(kind)), (len(demands), width))
    return made, signs


def _index_type(n_entries: int, width: int) -> np.dtype[np.signedinteger]:
    return np.dtype(np.int32 if max(n_entries, width) < 1 << 31 else np.int64)


Self = TypeVar("Self", bound="KeslerReduction")
Floats = npt.NDArray[np.float64]
Levels = npt.NDArray[np.int32]
AnswerKind = Literal["class", "label set", "ranking"]

SIGNS = np.array([-1, 1])


class KeslerReduction(MetaEstimatorMixin, ClassifierMixin, BaseEstimator):
    r"""Constraint classification: reduce multiclass problems to one linear binary problem.

    The label of a row x demands that some classes r outscore others s. With :math:`\phi(x, r)`,
    which has x in the block of class r and zeros elsewhere, each demand is an example of one
    binary problem without an intercept,

    .. math:: \langle w, \phi(x, r) - \phi(x, s) \rangle > 0, \qquad w = (w_1, \dots, w_K),

    and a linear learner that separates its examples gives scores :math:`h(x, r) = \langle w_r, x
    \rangle` whose maximum over r is the right class. Unlike one-vs-rest, this does not require
    that each class is linearly separable from all others.

    Parameters
    ----------
    estimator : linear binary classifier or None, default None
        A learner without an intercept (``fit_intercept=False``) that accepts sparse rows and has
        `coef_` after fitting; None is logistic regression. A learner with `partial_fit` receives
        the examples in blocks, any other receives all of them at once.
    intercept : float, default 1.0
        The value of a constant feature added to every row, whose weights become `intercept_`.
        Larger values regularise the intercepts less; 0 adds no intercept.
    n_passes : int, 1 or more, default 5
        Number of passes that `fit` makes over the rows, in their order, if the learner has
        `partial_fit`; ignored otherwise. Larger values come closer to the learner's limit and take
        longer.
    max_memory : int, default 2**30
        Maximum size of the examples in bytes for learners without `partial_fit`. Building them
        needs about twice as much.

    Attributes
    ----------
    answer_ : "class", "label set" or "ranking"
        The kind of the labels y.
    classes_ : array of shape (n_classes,)
        The labels, sorted.
    coef_ : float64 array of shape (n_classes, n_features)
        The block of weights of each class; for label sets, minus the block of the threshold.
    intercept_ : float64 array of shape (n_classes,)
    estimator_ : the fitted binary learner.
    n_constraints_ : int
        Number of examples that the learner received in all passes.
    n_evaluations_ : int
        Binary evaluations per prediction: n_classes inner products.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Raises
    ------
    KeslerError
        If the learner is not linear or has an intercept, the labels demand too little, the examples
        would take more than `max_memory`, or a call of `partial_fit` brings labels that are new or
        of another kind.

    Notes
    -----
    The labels y have one of three forms. One label per row demands K - 1 pairs. Label sets, in the
    form that :class:`~kesler.OnlineMultilabelClassifier` accepts (an indicator matrix, which may be
    a list of its rows, or one list or set of labels per row), demand each relevant label above each
    irrelevant one, and between them a threshold, which is a class of its own as in calibrated
    ranking. A matrix of ranks, in the form that :class:`~kesler.OnlineLabelRanker` accepts, demands
    each label above all that are ranked below it; ties and labels of rank 0 or NaN are not
    compared. A matrix that contains only 0 and 1 is an indicator matrix.

    Without an intercept, an example and its negation impose the same constraint on the weights.
    Only one of the two is built, with alternating sign, so that the binary problem has as many
    positive as negative examples and each demand counts once:

    .. math:: \min_w R(w) + \sum_{x} \sum_{(r, s)} \ell(h(x, r) - h(x, s))

    for a learner with regulariser R and loss :math:`\ell`. An example has 2 nnz(x) entries of 12
    bytes in a vector of K n_features: n rows with one label each take 24 n (K - 1) nnz bytes, and
    the learner's own work is proportional to that. `sample_weight` is passed to the learner with
    each of a row's examples.

    References
    ----------
    Har-Peled, Roth and Zimak (2002), "Constraint classification: a new approach to multiclass
    classification"; Nilsson (1965), "Learning Machines", for Kesler's construction; Chang (2017),
    the lecture; Fürnkranz, Hüllermeier, Loza Mencía and Brinker (2008) for the threshold.

    Examples
    --------
    >>> from sklearn.linear_model import Perceptron
    >>> from kesler import KeslerReduction
    >>> X = [[-2.0], [-1.5], [-0.2], [0.3], [1.6], [2.0]]
    >>> y = ["low"] * 2 + ["mid"] * 2 + ["top"] * 2
    >>> line = KeslerReduction(Perceptron(fit_intercept=False), n_passes=50).fit(X, y)
    >>> line.predict([[-3.0], [0.0], [3.0]]).tolist(), line.coef_.shape
    (['low', 'mid', 'top'], (3, 1))
    """

    _absent = OF_BATCHES
    __getstate__, __setstate__ = state_of, set_state

    if not TYPE_CHECKING:  # which would then take any name for an attribute
        __getattr__ = absent

    def __init__(
        self,
        estimator: Any = None,
        intercept: float = 1.0,
        n_passes: int = 5,
        max_memory: int = 1 << 30,
    ) -> None:
        keep_settings(self, locals())

    # ---- learning ---------------------------------------------------------------------------

    @unchanged_on_error
    def fit(self: Self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the binary learner, discarding any previous fit.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_rows, n_features)
        y : labels, label sets or rankings, one per row (see Notes).
        sample_weight : array of shape (n_rows,) or None, default None
            Passed to the binary learner, which must accept it.

        Returns
        -------
        The estimator itself.
        """
        for name in ("n_passes", "max_memory"):
            integer_of(name, getattr(self, name), 1)
        rows, levels, weights = self._begin(X, as_given(y), sample_weight)
        self._require_contrast(levels)
        self.estimator_ = clone(self._learner())
        if not hasattr(self.estimator_, "partial_fit"):
            self._learn_at_once(rows, levels, weights)
            return self
        with progress("Kesler's construction", "passes", self.n_passes) as task:
            for _ in task.count(range(self.n_passes)):
                self._stream(rows, levels, weights)
        return self

    @if_learner_has("partial_fit")
    @unchanged_on_error
    def partial_fit(
        self: Self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None
    ) -> Self:
        """Make one pass over further rows.

        Available if the binary learner has `partial_fit`.

        Parameters
        ----------
        X, y, sample_weight : as in `fit`.
        classes : sequence of labels or None, default None
            All labels that will occur, required in the first call: the learner's weight vector has
            one block for each. If y is a matrix, they name its columns and are optional.

        Returns
        -------
        The estimator itself.
        """
        y = as_given(y)
        if self.__sklearn_is_fitted__():
            rows, levels, weights = self._continue(X, y, classes, sample_weight)
            self.estimator_ = copy_of(self.estimator_)
        else:
            if classes is None and not is_table(y):
                raise KeslerError(
                    "the first call of partial_fit needs classes=[...], all labels that will "
                    "occur: the binary learner's weights have a block for each"
                )
            rows, levels, weights = self._begin(X, y, sample_weight, classes)
            self.estimator_ = clone(self._learner())
        self._stream(rows, levels, weights)
        return self

    def _begin(
        self, X: Any, y: Any, sample_weight: Any, classes: Any = None
    ) -> tuple[sparse.csr_array, Levels, Floats | None]:
        self.answer_ = kind_of(y)
        self.n_constraints_ = 0
        targets = self._targets(y, ClassTable(), classes)
        rows, weights = self._rows(X, reset=True), sample_weight
        inputs.require_lengths(rows.shape[0], targets)
        table = ClassTable()
        table.encode([*_listed(classes), *targets.names])
        self.classes_ = table.in_order
        if len(self.classes_) < 2:
            raise KeslerError(
                f"y has one class or none, {self.classes_.tolist()!r}: give rows of two classes "
                "or more"
            )
        if weights is not None:
            weights = _check_sample_weight(sample_weight, rows)
        return rows, self._levels(targets), weights

    def _continue(
        self, X: Any, y: Any, classes: Any, sample_weight: Any
    ) -> tuple[sparse.csr_array, Levels, Floats | None]:
        targets = self._targets(y, ClassTable(self.classes_.tolist()), classes)
        known = set(self.classes_.tolist())
        unknown = next((label for label in targets.names if label not in known), None)
        if unknown is not None:
            raise KeslerError(
                f"the label {unknown!r} is not among those of the first call, "
                f"{self.classes_.tolist()!r}, and the binary learner's weights have no block for "
                "it: list all labels in the first call with classes=[...]"
            )
        rows, weights = self._rows(X, reset=False), sample_weight
        inputs.require_lengths(rows.shape[0], targets)
        if weights is not None:
            weights = _check_sample_weight(sample_weight, rows)
        return rows, self._levels(targets), weights

    def _learn_at_once(self, X: sparse.csr_array, levels: Levels, weights: Floats | None) -> None:
        needed = count_bytes(X, levels)
        if needed > self.max_memory:
            raise KeslerError(
                f"{type(self.estimator_).__name__} has no partial_fit, and all examples at once "
                f"take {needed:,} bytes, more than max_memory={self.max_memory:,}: choose a "
                "learner with partial_fit, give fewer rows, or raise max_memory"
            )
        self._train(self.estimator_.fit, X, levels, weights)

    def _stream(self, X: sparse.csr_array, levels: Levels, weights: Floats | None) -> None:
        for part in blocks(X, levels):
            some = None if weights is None else weights[part]
            self._train(self.estimator_.partial_fit, X[part], levels[part], some)

    def _train(
        self, learn: Any, X: sparse.csr_array, levels: Levels, weights: Floats | None
    ) -> None:
        """Train the learner on the examples of some rows, if they demand any pair."""
        demands = Demands.of_levels(levels)
        if not len(demands):
            return
        examples, signs = differences(X, demands, levels.shape[1], self.n_constraints_)
        parameters, arguments = signature(learn).parameters, {}
        if learn.__name__ == "partial_fit" and "classes" in parameters:
            arguments["classes"] = SIGNS
        if weights is not None:
            if "sample_weight" not in parameters:
                raise KeslerError(
                    f"{type(self.estimator_).__name__} takes no sample_weight: leave it out, or "
                    "choose a binary learner that accepts it"
                )
            arguments["sample_weight"] = weights[demands.rows]
        learn(examples, signs, **arguments)
        self.n_constraints_ += len(demands)
        self._require_linear()

    # ---- predictions ------------------------------------------------------------------------

    def decision_function(self, X: Any) -> Floats:
        """Return the score of each class; for label sets, minus the threshold's score.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_rows, n_features)

        Returns
        -------
        float64 array of shape (n_rows, n_classes), in the order of `classes_`. For two classes and
        one label per row, shape (n_rows,): the score of the second class minus that of the first.
        """
        scores = self._scores(X)
        if self.answer_ == "class" and scores.shape[1] == 2:
            return scores[:, 1] - scores[:, 0]
        return scores

    def predict_top(self, X: Any, n: int = 5) -> list[list[TopLabel]]:
        """Return the n labels of highest score of each row as triples (label, score, None).

        The highest comes first; among equal scores, the first of `classes_`. n is 1 or more.
        """
        return top_labels(self.classes_.tolist(), self._scores(X), None, n)

    def predict(self, X: Any, min_confidence: float | None = None) -> npt.NDArray[Any]:
        """Predict the label, label set or ranking of each row.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_rows, n_features)
        min_confidence : None
            Reductions have no estimate of their uncertainty.

        Returns
        -------
        Labels of shape (n_rows,), where the first of equal scores wins; or an indicator matrix of
        the labels above the threshold; or the rank of each label, 1 for the best. Columns are in
        the order of `classes_`.

        Raises
        ------
        KeslerError
            If `min_confidence` is given.
        """
        require_unasked(self, min_confidence=min_confidence)
        scores = self._scores(X)
        if self.answer_ == "label set":
            return (scores > 0).astype(np.int64)
        if self.answer_ == "ranking":
            return ranks_by_score(scores)
        labels: npt.NDArray[Any] = self.classes_[scores.argmax(axis=1)]
        return labels

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the accuracy of labels or of whole label sets, or the mean Kendall's tau.

        Parameters
        ----------
        X, y : as in `fit`; all labels are in `classes_`.
        sample_weight : array of shape (n_rows,) or None, default None
            The weight of each row in the mean.
        """
        self._known()
        if self.answer_ == "class":
            return float(accuracy_score(y, self.predict(X), sample_weight=sample_weight))
        table = ClassTable(self.classes_.tolist())
        levels = self._targets(as_given(y), table, None).table(self.classes_.tolist())
        if self.answer_ == "ranking":
            scores = self._scores(X)
            return kendall_tau(scores, levels, inputs.row_weights(sample_weight, len(scores)))
        right = ((levels == RELEVANT) == (self.predict(X) == 1)).all(axis=1)
        return inputs.weighted_mean(right, sample_weight)

    @property
    def coef_(self) -> Floats:
        """The block of weights of each class."""
        return self._blocks()[:, : self.n_features_in_]

    @property
    def intercept_(self) -> Floats:
        """The intercept of each class."""
        blocks = self._blocks()
        constant: Floats = blocks[:, self.n_features_in_ :].sum(axis=1)
        return constant * float(self.intercept)

    @property
    def n_evaluations_(self) -> int:
        """Number of inner products per prediction."""
        return len(self._known().classes_)

    # ---- implementation ---------------------------------------------------------------------

    def _scores(self, X: Any) -> Floats:
        self._known()
        rows = validate_data(self, X, accept_sparse="csr", dtype=np.float64, reset=False)
        scores: Floats = np.asarray(rows @ self.coef_.T) + self.intercept_
        return scores

    def _blocks(self) -> Floats:
        """Return the weights as (n_classes, n_features), those of the constant feature last."""
        weights = np.asarray(self._known().estimator_.coef_, dtype=np.float64)
        made = weights.reshape(self._n_blocks, -1)
        return made[1:] - made[0] if self.answer_ == "label set" else made

    @property
    def _n_blocks(self) -> int:
        return len(self.classes_) + (self.answer_ == "label set")

    def _targets(self, y: Any, known: ClassTable, classes: Any) -> Targets:
        if self.__dict__["answer_"] != kind_of(y) and not (
            self.answer_ == "ranking" and is_table(y)
        ):
            raise KeslerError(
                f"y is of the kind {kind_of(y)!r}, but this model was fitted to the kind "
                f"{self.answer_!r}: give labels of that kind"
            )
        if self.answer_ == "label set":
            return targets_of_sets(y, classes if is_table(y) else None, known)
        if self.answer_ == "ranking":
            return targets_of_rankings(y, classes, known)
        return Targets.of_classes(inputs.label_list(y))

    def _levels(self, targets: Targets) -> Levels:
        """Return the level of each block in each row; the threshold comes first."""
        levels = targets.table(self.classes_.tolist())
        if self.answer_ != "label set":
            return levels
        return np.insert(levels, 0, THRESHOLD, axis=1)

    def _rows(self, X: Any, *, reset: bool) -> sparse.csr_array:
        """Return validated rows as CSR, with the constant feature as the last column."""
        checked = validate_data(self, X, accept_sparse="csr", dtype=np.float64, reset=reset)
        constant = inputs.intercept_value(self.intercept)
        rows = sparse.csr_array(checked)
        if constant:
            column = sparse.csr_array(np.full((rows.shape[0], 1), constant))
            rows = sparse.csr_array(sparse.hstack([rows, column], format="csr"))
        rows.sort_indices()
        return rows

    def _learner(self) -> Any:
        learner = self.estimator
        if learner is None:
            learner = LogisticRegression(fit_intercept=False, max_iter=1000)
        require_learner(learner)
        if vars(learner).get("fit_intercept"):
            raise KeslerError(
                f"estimator={learner!r} has an intercept, which Kesler's construction does not "
                "allow: set its fit_intercept=False; intercept=1.0 of this class gives one per "
                "class"
            )
        return learner

    def _require_linear(self) -> None:
        learner = self.estimator_
        size = self._n_blocks * (self.n_features_in_ + bool(self.intercept))
        if np.size(getattr(learner, "coef_", ())) != size:
            raise KeslerError(
                f"{type(learner).__name__} has no coef_ of {size:,} weights after fitting: "
                "Kesler's construction needs a linear binary learner"
            )
        if np.any(getattr(learner, "intercept_", 0.0)):
            raise KeslerError(
                f"{type(learner).__name__} has an intercept, {learner.intercept_!r}, which "
                "Kesler's construction does not allow: choose a learner that can be fitted without"
            )

    def _require_contrast(self, levels: Levels) -> None:
        if self.answer_ == "label set":
            targets = levels[:, 1:]
            if (targets == RELEVANT).all() or (targets == IRRELEVANT).all():
                raise KeslerError(
                    "every row of y contains all labels, or none contains any, so the labels "
                    "cannot be distinguished: check that y is an indicator matrix of the right "
                    "labels"
                )
        elif len(Demands.of_levels(levels)) < 2:
            raise KeslerError(
                "the labels demand fewer than two pairs of classes, but a binary learner needs an "
                "example of each sign: give more rows"
            )

    def _known(self: Self) -> Self:
        if not self.__sklearn_is_fitted__():
            raise NotFittedError(
                f"This {type(self).__name__} instance is not fitted yet: call fit or partial_fit"
            )
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return "estimator_" in self.__dict__

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.classifier_tags.multi_label = True
        return tags


def as_given(y: Any) -> Any:
    """Return lists of equally many 0 and 1, of which one repeats, as the indicator matrix they are.

    A list of labels contains no label twice.

    Examples
    --------
    >>> as_given([[0, 1, 1], [1, 0, 0]]).shape, as_given([[0, 1], [1]])
    ((2, 3), [[0, 1], [1]])
    """
    if not (isinstance(y, (list, tuple)) and all(map(_is_list, y))):
        return y
    if len({len(row) for row in y}) != 1 or not all(cell in (0, 1) for row in y for cell in row):
        return y
    repeats = any(len(set(row)) < len(row) for row in y)
    return np.array(y, dtype=np.int64) if repeats else y


def _is_list(row: Any) -> bool:
    return isinstance(row, (list, tuple)) or (isinstance(row, np.ndarray) and row.ndim == 1)


def kind_of(y: Any) -> AnswerKind:
    """Return the kind of labels y, by their type and values.

    Examples
    --------
    >>> kind_of(["a", "b"]), kind_of([{"a"}, set()]), kind_of(np.array([[1, 2], [2, 1]]))
    ('class', 'label set', 'ranking')
    """
    if is_table(y):
        if y.shape[1] == 1:
            return "class"  # a column of labels, which is raveled with a warning
        return "label set" if (as_matrix(y).data == 1).all() else "ranking"
    first = y[0] if isinstance(y, (list, tuple)) and len(y) else None
    return "label set" if isinstance(first, (list, tuple, set, frozenset)) else "class"


def _listed(classes: Any) -> list[Label]:
    return [] if classes is None else inputs.label_list(classes)

"""Binary problems, binary learners, and the base classes of all decompositions."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from copy import deepcopy
from dataclasses import dataclass
from inspect import signature
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.dummy import DummyClassifier
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import _check_sample_weight

from kesler.data import inputs
from kesler.data.labels import TopLabel, top_labels
from kesler.data.matrices import validate_data
from kesler.errors import OF_BATCHES, KeslerError, absent, require_unasked, set_state, state_of
from kesler.learner.classes import ClassTable
from kesler.online.contract import Method, unchanged_on_error
from kesler.progress import progress

Self = TypeVar("Self", bound="Decomposition")
Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int32]
Mask = npt.NDArray[np.bool_]

BOTH = np.array([0, 1])

# ---- binary problems ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class BinaryProblem:
    """Rows with binary labels.

    Parameters
    ----------
    X : array or CSR matrix of shape (n_rows, n_features)
    positive : bool array of shape (n_rows,)
    weights : float64 array of shape (n_rows,), or None if all are 1.
    """

    X: Any
    positive: Mask
    weights: Floats | None = None


@dataclass(frozen=True, slots=True)
class Examples:
    """Rows with their classes.

    Parameters
    ----------
    X : array or CSR matrix of shape (n_rows, n_features)
    codes : int32 array of shape (n_rows,)
        Classes, numbered in the order in which they are seen.
    weights : float64 array of shape (n_rows,), or None if all are 1.
    """

    X: Any
    codes: Codes
    weights: Floats | None = None

    def __getitem__(self, rows: Any) -> Examples:
        weights = None if self.weights is None else self.weights[rows]
        return Examples(self.X[rows], self.codes[rows], weights)

    def problem(self, positive: Mask) -> BinaryProblem:
        """Return the binary problem in which these rows are positive and the others negative."""
        return BinaryProblem(self.X, positive, self.weights)


# ---- binary learners ----------------------------------------------------------------------------


def learner_of(estimator: Any) -> Any:
    """Return the estimator, or scikit-learn's logistic regression if it is None."""
    return LogisticRegression(max_iter=1000) if estimator is None else estimator


def require_learner(learner: Any) -> None:
    """Raise unless this is a scikit-learn-compatible classifier."""
    if not (is_estimator(learner) and hasattr(learner, "fit") and hasattr(learner, "predict")):
        raise KeslerError(
            f"estimator={learner!r} is not a binary learner: give an instance of a scikit-learn "
            "estimator with fit and predict"
        )


def is_estimator(learner: Any) -> bool:
    """Return whether this has scikit-learn's estimator interface, whatever its base class."""
    is_made = not isinstance(learner, type)
    return is_made and hasattr(learner, "get_params") and hasattr(learner, "__sklearn_tags__")


def fit_binary(estimator: Any, problem: BinaryProblem) -> Any:
    """Return a fitted clone of the estimator, or a constant classifier for rows of one label."""
    one_sided = problem.positive.all() or not problem.positive.any()
    learner = DummyClassifier() if one_sided else clone(estimator)
    arguments = _weights_for(learner.fit, learner, problem)
    return learner.fit(problem.X, problem.positive.astype(np.int64), **arguments)


def teach_binary(learner: Any, problem: BinaryProblem) -> Any:
    """Call `partial_fit` of a learner on the rows, if there are any, and return the learner."""
    if not len(problem.positive):
        return learner
    arguments = _weights_for(learner.partial_fit, learner, problem)
    if "classes" in signature(learner.partial_fit).parameters:
        arguments["classes"] = BOTH
    return learner.partial_fit(problem.X, problem.positive.astype(np.int64), **arguments)


def fit_all(
    estimator: Any, problems: Iterable[BinaryProblem], n_problems: int, n_jobs: int | None
) -> list[Any]:
    """Return a fitted clone of the estimator for each problem."""
    jobs = (delayed(fit_binary)(estimator, problem) for problem in problems)
    return run_all(jobs, n_problems, n_jobs)


def teach_all(
    learners: Sequence[Any], problems: Iterable[BinaryProblem], n_jobs: int | None
) -> list[Any]:
    """Call `partial_fit` of each learner on the rows of its problem."""
    pairs = zip(learners, problems, strict=True)
    jobs = (delayed(teach_binary)(learner, problem) for learner, problem in pairs)
    return run_all(jobs, len(learners), n_jobs)


def run_all(jobs: Iterable[Any], n_jobs_to_do: int, n_jobs: int | None) -> list[Any]:
    """Return the results of joblib's jobs, `n_jobs` of which run in parallel."""
    with progress("binary problems", "begun", n_jobs_to_do) as task:
        return list(Parallel(n_jobs=n_jobs)(task.count(jobs)))


def margins(learner: Any, X: Any) -> Floats:
    """Return the margin of each row: above 0 if a fitted learner predicts the positive label.

    The margin is the learner's `decision_function`; without one, the probability of the positive
    label minus that of the negative; without either, its prediction as -1 or 1. A learner that has
    seen one label only always predicts that label.

    Returns
    -------
    float64 array of shape (n_rows,)
    """
    labels = np.asarray(getattr(learner, "classes_", BOTH))
    if len(labels) == 1:
        return np.full(X.shape[0], 1.0 if labels[0] else -1.0)
    if hasattr(learner, "decision_function"):
        return np.asarray(learner.decision_function(X), dtype=np.float64).reshape(X.shape[0])
    if hasattr(learner, "predict_proba"):
        probabilities = np.asarray(learner.predict_proba(X), dtype=np.float64)
        return probabilities[:, 1] - probabilities[:, 0]
    return np.where(np.asarray(learner.predict(X)) == 1, 1.0, -1.0)


def all_margins(learners: Sequence[Any], X: Any, n_jobs: int | None) -> Floats:
    """Return the margins of each learner, shape (n_rows, n_learners)."""
    found = np.empty((X.shape[0], len(learners)))
    jobs = (delayed(margins)(learner, X) for learner in learners)
    for column, values in enumerate(Parallel(n_jobs=n_jobs)(jobs)):
        found[:, column] = values
    return found


def copy_of(learner: Any) -> Any:
    """Return an independent copy of a fitted learner."""
    return deepcopy(learner)


def _weights_for(method: Callable[..., Any], learner: Any, problem: BinaryProblem) -> Any:
    """Return the keyword argument that passes the weights to the method."""
    if problem.weights is None:
        return {}
    if "sample_weight" not in signature(method).parameters:
        raise KeslerError(
            f"{type(learner).__name__}.{method.__name__} takes no sample_weight: leave it out, or "
            "choose a binary learner that accepts it"
        )
    return {"sample_weight": problem.weights}


def if_learner_has(name: str) -> Callable[[Method], Method]:
    """Make a method available only if the binary learner has the method `name`."""

    def check(decomposition: Any) -> bool:
        getattr(learner_of(decomposition.estimator), name)  # its error names the missing method
        return True

    available: Callable[[Method], Method] = available_if(check)
    return available


# ---- base classes -------------------------------------------------------------------------------


def _has_scores(decomposition: Any) -> bool:
    why = decomposition._why_unscored()
    if why is not None:
        name = type(decomposition).__name__
        raise AttributeError(f"{name} has no score for each class, since {why}: use predict")
    return True


class Decomposition(MetaEstimatorMixin, ClassifierMixin, BaseEstimator):
    """Base class of multiclass classifiers that are composed of binary learners.

    A subclass defines the binary problems (`_fit` and `_teach`) and how their predictions are
    combined (`_scores`, or `_winners` if it has no score for each class). Classes are numbered in
    the order in which they were seen; among equal scores, the class seen first wins. `fit` sees the
    classes in the order of `classes_`.
    """

    estimator: Any
    n_jobs: int | None
    _table: ClassTable

    _absent = OF_BATCHES
    __getstate__, __setstate__ = state_of, set_state

    if not TYPE_CHECKING:  # which would then take any name for an attribute
        __getattr__ = absent

    def _why_unscored(self) -> str | None:
        """Return why there is no score for each class; None if there is."""
        return None

    @abstractmethod
    def _fit(self, examples: Examples) -> None:
        """Fit to rows of two classes or more."""

    @abstractmethod
    def _teach(self, examples: Examples, n_before: int) -> None:
        """Update with further rows; classes from number `n_before` on are new."""

    def _declare(self, labels: list[Any]) -> None:
        """Declare the classes that will occur; does nothing by default."""

    def _scores(self, X: Any) -> Floats:
        """Return the score of each class, by class number, shape (n_rows, n_classes)."""
        raise NotImplementedError

    @property
    @abstractmethod
    def n_evaluations_(self) -> int:
        """Maximum number of binary learners evaluated per prediction."""

    @unchanged_on_error
    def fit(self: Self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the binary learners, discarding any previous fit.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_rows, n_features)
        y : labels, one per row
            Numbers, text or any type that is hashable and can be ordered.
        sample_weight : array of shape (n_rows,) or None, default None
            Passed to the binary learners, which must accept it.

        Returns
        -------
        The estimator itself.
        """
        self.__dict__.pop("_table", None)
        examples = self._examples(X, y, sample_weight, at_once=True)
        if len(self._table) < 2:
            raise KeslerError(
                f"there is one class only, {self._table.labels[0]!r}: give rows of two or more "
                "classes, with weights above 0"
            )
        self._fit(examples)
        return self

    @if_learner_has("partial_fit")
    @unchanged_on_error
    def partial_fit(
        self: Self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None
    ) -> Self:
        """Update with further rows, which may have new classes.

        Available if the binary learner has `partial_fit`.

        Parameters
        ----------
        X, y, sample_weight : as in `fit`.
        classes : sequence of labels or None, default None
            Classes that will occur; only fixed codes of :class:`~kesler.ErrorCorrectingCode` need
            them. A class can be predicted from its first row on.

        Returns
        -------
        The estimator itself.
        """
        if classes is not None:
            self._declare(inputs.label_list(classes))
        n_before = len(self._table) if self.__sklearn_is_fitted__() else 0
        self._teach(self._examples(X, y, sample_weight), n_before)
        return self

    def predict(self, X: Any, min_confidence: float | None = None) -> npt.NDArray[Any]:
        """Predict the label of each row; among equal scores, the class seen first wins.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_rows, n_features)
        min_confidence : None
            Decompositions have no estimate of their uncertainty.

        Returns
        -------
        Array of shape (n_rows,)

        Raises
        ------
        KeslerError
            If `min_confidence` is given.
        """
        require_unasked(self, min_confidence=min_confidence)
        table = self._known()
        labels: npt.NDArray[Any] = table.by_code[self._winners(self._checked(X))]
        return labels

    @available_if(_has_scores)
    def decision_function(self, X: Any) -> Floats:
        """Return the score of each class.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_rows, n_features)

        Returns
        -------
        float64 array of shape (n_rows, n_classes), in the order of `classes_`. For two classes,
        shape (n_rows,): the score of the second class minus that of the first.
        """
        order = self._known().order
        scores = self._scores(self._checked(X))[:, order]
        return scores[:, 1] - scores[:, 0] if len(order) == 2 else scores

    @available_if(_has_scores)
    def predict_top(self, X: Any, n: int = 5) -> list[list[TopLabel]]:
        """Return the n labels of highest score of each row as triples (label, score, None).

        The highest comes first; among equal scores, the class seen first. n is 1 or more.
        """
        labels = self._known().by_code.tolist()
        return top_labels(labels, self._scores(self._checked(X)), None, n)

    @property
    def classes_(self) -> npt.NDArray[Any]:
        """The labels seen so far, sorted."""
        return self._known().in_order

    @property
    def classes_by_code_(self) -> npt.NDArray[Any]:
        """The labels seen so far, in the order in which they were seen."""
        return self._known().by_code

    # ---- implementation ---------------------------------------------------------------------

    def _winners(self, X: Any) -> npt.NDArray[np.intp]:
        """Return the number of the predicted class of each row."""
        return self._scores(X).argmax(axis=1)

    def _examples(self, X: Any, y: Any, sample_weight: Any, *, at_once: bool = False) -> Examples:
        """Validate rows and labels, and add new labels. Rows of weight 0 are left out."""
        require_learner(self._learner())
        labels = inputs.label_list(y)
        reset = not self.__sklearn_is_fitted__()
        X = self._checked(X, reset=reset)
        inputs.require_lengths(X.shape[0], labels)
        weights = None if sample_weight is None else _check_sample_weight(sample_weight, X)
        if weights is not None and not weights.all():
            X, labels, weights = _without_weightless(X, labels, weights)
        table = ClassTable([] if reset else self._table.labels)
        codes = table.encode(labels)
        if at_once:
            table = ClassTable(table.in_order.tolist())
            codes = table.encode(labels)
        self._table = table
        return Examples(X, codes, weights)

    def _checked(self, X: Any, *, reset: bool = False) -> Any:
        nan = get_tags(self._learner()).input_tags.allow_nan
        finite: bool | str = "allow-nan" if nan else True
        return validate_data(self, X, accept_sparse="csr", ensure_all_finite=finite, reset=reset)

    def _learner(self) -> Any:
        return learner_of(self.estimator)

    def _known(self) -> ClassTable:
        if not self.__sklearn_is_fitted__():
            raise NotFittedError(
                f"This {type(self).__name__} instance is not fitted yet: call fit or partial_fit"
            )
        return self._table

    def __sklearn_is_fitted__(self) -> bool:
        return "_table" in self.__dict__

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        learner = self._learner()
        if is_estimator(learner):  # otherwise, fitting raises
            tags.input_tags.sparse = get_tags(learner).input_tags.sparse
            tags.input_tags.allow_nan = get_tags(learner).input_tags.allow_nan
        return tags


def _without_weightless(
    X: Any, labels: list[Any], weights: Floats
) -> tuple[Any, list[Any], Floats]:
    stored = np.flatnonzero(weights)
    if not len(stored):
        raise KeslerError("every sample_weight is zero, so there is no row to learn from")
    return X[stored], [labels[row] for row in stored], weights[stored]

"""Adapters: estimators of other libraries, and functions, under progressive validation."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from inspect import signature
from numbers import Integral
from typing import Any, Literal

import numpy as np

from kesler.data.labels import Label
from kesler.data.sparse_rows import is_sparse
from kesler.errors import KeslerError, is_integer
from kesler.evaluation.comparison import method_of_learner
from kesler.evaluation.methods import LabelMethod, Method
from kesler.evaluation.tables import Piece, Table
from kesler.learner.classes import label_array
from kesler.online.base import OnlineLearner
from kesler.online.classifier import OnlineClassifier

Refit = Literal["doubling"] | int | None
"""When classifiers are refitted: after n, 2n, 4n ... rows for an integer n, which is 1 for
"doubling"; None lets a classifier with `partial_fit` learn from each row."""


def method_of(
    method: Any, table: Table, classes: Any = None, refit: Refit = None, delay: int = 0
) -> Method:
    """Return a method of any kind under the interface of progressive validation.

    Parameters
    ----------
    method : object
        See :func:`kesler.progressive_validate`.
    table : Table
        The rows of the run, of which the labels are known to classifiers that need all of them.
    classes, refit, delay : as in :func:`kesler.progressive_validate`.

    Raises
    ------
    KeslerError
        If the method is of no kind that is known, or answers cannot arrive late for it.
    """
    if isinstance(method, OnlineClassifier):
        return method_of_learner(method, classes, delay=delay)
    found = method if isinstance(method, Method) else _adapted(method, table, classes, refit)
    if delay:
        found.set_delay(delay)
    return found


def _adapted(method: Any, table: Table, classes: Any, refit: Refit) -> Method:
    """Return a method of another library, or a function, under the interface."""
    if isinstance(method, (type, OnlineLearner)):
        raise _unknown(method)
    if hasattr(method, "learn_one") and hasattr(method, "predict_one"):
        return EventMethod(method, table)
    if hasattr(method, "predict") and hasattr(method, "fit"):
        return _of_classifier(method, table, classes, refit)
    if not callable(method):
        raise _unknown(method)
    return FunctionMethod(method, table)


def _of_classifier(method: Any, table: Table, classes: Any, refit: Refit) -> Method:
    """Return a classifier that learns row by row, if it can, or is refitted."""
    transformers, last = steps_of(method)
    if refit is None and last is not None:
        declared = table.labels if classes is None else list(classes)
        return PartialFitMethod(transformers, last, table, declared)
    return RefitMethod(method, table, int(refit) if isinstance(refit, Integral) else 1)


def _unknown(method: Any) -> KeslerError:
    what = method.__name__ + ", a class" if isinstance(method, type) else type(method).__name__
    return KeslerError(
        f"progressive validation needs a learner that predicts before it learns, not {what}: give "
        "a kesler.OnlineClassifier, an object with partial_fit or fit and predict, one with "
        "learn_one and predict_one, or a function"
    )


def require_refit(refit: Any) -> None:
    """Raise unless `refit` is None, "doubling" or an integer of 1 or more."""
    if refit is not None and refit != "doubling" and not is_integer(refit, 1):
        raise KeslerError(
            f"refit={refit!r}: give 'doubling', or the number of rows before the first fit, such "
            "as 10, or None"
        )


def _require_weightless(table: Table, what: str) -> None:
    if table.weights is not None and (table.weights != 1).any():
        raise KeslerError(f"{what} takes no weights of rows: omit sample_weight")


def takes(function: Callable[..., Any], argument: str) -> bool:
    """Return whether a function has a parameter of this name."""
    return argument in signature(function).parameters


# ---- one row after the other ---------------------------------------------------------------------


class RowMethod(LabelMethod):
    """A method that predicts and learns one row at a time.

    Parameters
    ----------
    table : Table
        The rows of the run.
    """

    def __init__(self, table: Table) -> None:
        super().__init__()
        self._table = table

    @abstractmethod
    def _predict(self, t: int, row: Any) -> Label | None:
        """Return the prediction for row t of the table."""

    @abstractmethod
    def _learn(self, t: int, row: Any) -> None:
        """Learn from row t of the table."""

    def _run(self, piece: Piece, labels: list[Label]) -> Sequence[Label | None]:
        return [self._trial(t, row) for t, row in enumerate(self._rows(piece), start=piece.start)]

    def _trial(self, t: int, row: Any) -> Label | None:
        predicted = self._predict(t, row)
        for answered in self._answered((t, row)):
            self._learn(*answered)
        return predicted

    def _rows(self, piece: Piece) -> Iterable[Any]:
        """Return rows one by one, in the form in which the method is given them."""
        return self._table.each(piece.start, piece.stop)


class EventMethod(RowMethod):
    """An object with `learn_one` and `predict_one`, such as those of river.

    Parameters
    ----------
    model : object
        It learns in place, from dictionaries {feature: value} or texts.
    table : Table
        The rows of the run.
    """

    def __init__(self, model: Any, table: Table) -> None:
        super().__init__(table)
        _require_weightless(table, f"learn_one of {type(model).__name__}")
        self._model = model

    def _predict(self, t: int, row: Any) -> Label | None:
        predicted: Label | None = self._model.predict_one(as_mapping(row))
        return predicted

    def _learn(self, t: int, row: Any) -> None:
        self._model.learn_one(as_mapping(row), self._table.labels[t])


def as_mapping(row: Any) -> Any:
    """Return a row as a dictionary; features of arrays and sparse rows are numbered from 0.

    Examples
    --------
    >>> as_mapping(np.array([0.5, 0.0])), as_mapping("a text")
    ({0: 0.5, 1: 0.0}, 'a text')
    """
    if isinstance(row, (Mapping, str)):
        return row
    if is_sparse(row):
        return dict(zip(row.indices.tolist(), row.data.tolist(), strict=True))
    return dict(enumerate(np.asarray(row).tolist()))


class FunctionMethod(RowMethod):
    """A function of the rows and labels before a row, and of the row.

    Parameters
    ----------
    function : callable (X, y, x) -> label or None
        It is called from the second row on.
    table : Table
        The rows of the run.
    """

    def __init__(self, function: Callable[[Any, Any, Any], Label | None], table: Table) -> None:
        super().__init__(table)
        _require_weightless(table, "a function")
        self._function = function
        self._n_learnt = 0

    def _predict(self, t: int, row: Any) -> Label | None:
        n = self._n_learnt
        return self._function(self._table.rows(0, n), self._table.labels[:n], row) if n else None

    def _learn(self, t: int, row: Any) -> None:
        self._n_learnt = t + 1


class PartialFitMethod(RowMethod):
    """A classifier with `partial_fit`, and the transformers before it in a pipeline.

    Parameters
    ----------
    transformers : list of objects
        Each has `partial_fit`, or needs no fit.
    classifier : object
        It learns in place and continues if it is fitted.
    table : Table
        The rows of the run.
    labels : list
        Labels that include all classes, which the first `partial_fit` is given if it takes them.
    """

    def __init__(
        self, transformers: Sequence[Any], classifier: Any, table: Table, labels: list[Label]
    ) -> None:
        super().__init__(table)
        self._transformers = transformers
        self._classifier = classifier
        self._is_fitted = is_fitted(classifier)
        if not takes(classifier.partial_fit, "sample_weight"):
            _require_weightless(table, f"partial_fit of {type(classifier).__name__}")
        self._first = dict[str, Any]()
        if not self._is_fitted and takes(classifier.partial_fit, "classes"):
            self._first["classes"] = np.unique(label_array(labels))

    def _rows(self, piece: Piece) -> Iterable[Any]:
        return (self._table.rows(t, t + 1) for t in range(piece.start, piece.stop))

    def _predict(self, t: int, row: Any) -> Label | None:
        if not self._is_fitted:
            return None
        X = row
        for transformer in self._transformers:
            X = transformer.transform(X)
        return predictions(self._classifier, X)[0]

    def _learn(self, t: int, row: Any) -> None:
        X, label = row, self._table.labels[t : t + 1]
        for transformer in self._transformers:
            if hasattr(transformer, "partial_fit"):
                transformer.partial_fit(X, label)
            X = transformer.transform(X)
        weights = self._table.weights
        given = {} if weights is None else {"sample_weight": weights[t : t + 1]}
        self._classifier.partial_fit(X, label_array(label), **given, **self._first)
        self._is_fitted, self._first = True, {}


def predictions(model: Any, X: Any) -> list[Label]:
    """Return the labels that a classifier predicts."""
    found: list[Label] = np.asarray(model.predict(X)).reshape(-1).tolist()
    return found


def is_fitted(estimator: Any) -> bool:
    """Return whether an estimator has been fitted, as scikit-learn finds out."""
    from sklearn.utils.validation import check_is_fitted

    try:
        check_is_fitted(estimator)
    except (AttributeError, TypeError):  # not fitted, or not derived from scikit-learn's classes
        return False
    return True


def steps_of(method: Any) -> tuple[list[Any], Any]:
    """Return the transformers of a pipeline and its classifier, if all learn row by row.

    The classifier is None if the pipeline, or a classifier alone, has to be refitted.
    """
    if hasattr(method, "partial_fit"):
        return [], method
    if not isinstance(getattr(method, "steps", None), list):
        return [], None
    *before, last = [step for _, step in method.steps]
    transformers = [step for step in before if step not in (None, "passthrough")]
    if hasattr(last, "partial_fit") and all(map(_learns_by_row, transformers)):
        return transformers, last
    return [], None


def _learns_by_row(transformer: Any) -> bool:
    from sklearn.utils import get_tags

    return hasattr(transformer, "partial_fit") or not get_tags(transformer).requires_fit


# ---- refitted ------------------------------------------------------------------------------------


class RefitMethod(LabelMethod):
    """A classifier that is fitted again on all rows so far, at doublings of their number.

    Parameters
    ----------
    classifier : object
        It has `fit` and `predict`.
    table : Table
        The rows of the run.
    first : int
        Number of rows before the first fit.
    """

    def __init__(self, classifier: Any, table: Table, first: int) -> None:
        super().__init__()
        self._classifier = classifier
        self._table = table
        self._next_fit = first
        self._predict: Callable[[Any, int], Sequence[Label | None]] = _nothing
        if not takes(classifier.fit, "sample_weight"):
            _require_weightless(table, f"fit of {type(classifier).__name__}")

    def _run(self, piece: Piece, labels: list[Label]) -> Sequence[Label | None]:
        predicted, start = list[Label | None](), piece.start
        lag = max(0, self.delay - 1)
        while start < piece.stop:
            if start == self._next_fit + lag:
                self._fit(self._next_fit)
            stop = min(piece.stop, self._next_fit + lag)
            predicted += self._predict(self._table.rows(start, stop), stop - start)
            start = stop
        return predicted

    def _fit(self, n_rows: int) -> None:
        """Fit the classifier on the first rows; many refuse rows of one class."""
        self._next_fit = 2 * n_rows
        labels = self._table.labels[:n_rows]
        if len(set(labels)) == 1:
            self._predict = lambda X, n: labels[:1] * n
            return
        weights = self._table.weights
        given = {} if weights is None else {"sample_weight": weights[:n_rows]}
        try:
            self._classifier.fit(self._table.rows(0, n_rows), label_array(labels), **given)
        except ValueError as error:
            raise KeslerError(
                f"{type(self._classifier).__name__} cannot be fitted on the first {n_rows} rows "
                f"({error}): start with more rows, such as refit={4 * n_rows}"
            ) from error
        self._predict = lambda X, n: predictions(self._classifier, X)


def _nothing(X: Any, n: int) -> Sequence[Label | None]:
    return [None] * n

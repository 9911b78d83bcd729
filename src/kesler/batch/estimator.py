"""Common parts of batch estimators: class scores, sample weights and initial learners."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.utils import compute_class_weight
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from kesler.data.labels import TopLabel, plain, top_labels
from kesler.data.matrices import validate_data
from kesler.errors import OF_BATCHES, KeslerError, absent, require_unasked, set_state, state_of

Floats = npt.NDArray[Any]


class ClassScores:
    """Mixin for classifiers that score all classes by `_scores`."""

    classes_: npt.NDArray[Any]

    _absent = OF_BATCHES
    _takes_sparse = True
    __getstate__, __setstate__ = state_of, set_state

    if not TYPE_CHECKING:  # which would then take any name for an attribute
        __getattr__ = absent

    def decision_function(self, X: Any) -> Floats:
        """Return the score of each class, in the order of `classes_`.

        For two classes, as in scikit-learn, the shape is (n_rows,): the score of classes_[1] minus
        that of classes_[0].
        """
        scores = self._scores(X)
        return scores[:, 1] - scores[:, 0] if len(self.classes_) == 2 else scores

    def predict(self, X: Any, min_confidence: float | None = None) -> npt.NDArray[Any]:
        """Predict the label with the highest score; among equals, the first of `classes_`.

        Parameters
        ----------
        X : rows as in `fit`.
        min_confidence : None
            Batch estimators have no estimate of their uncertainty.

        Raises
        ------
        KeslerError
            If `min_confidence` is given.
        """
        require_unasked(self, min_confidence=min_confidence)
        best = self._scores(X).argmax(axis=1)
        return np.asarray(self.classes_[best])

    def predict_top(self, X: Any, n: int = 5) -> list[list[TopLabel]]:
        """Return the n labels of highest score of each row, with their scores and probabilities.

        They are triples (label, score, probability), the highest score first; among equals, the
        first of `classes_`. Probabilities are None where the estimator has no `predict_proba`.
        """
        return top_labels(self.classes_.tolist(), self._scores(X), self._probabilities(X), n)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the share of rows whose predicted label is right, of labels of any type."""
        right = self.predict(X) == np.asarray(y)
        return float(np.average(right, weights=sample_weight))

    def _rows(self, X: Any) -> Any:
        """Return validated rows for a fitted estimator."""
        check_is_fitted(self)
        sparse_as = "csr" if self._takes_sparse else False
        kinds = [np.float64, np.float32]
        return validate_data(self, X, accept_sparse=sparse_as, dtype=kinds, reset=False)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.input_tags.sparse = self._takes_sparse
        return tags

    def _scores(self, X: Any) -> Floats:
        raise NotImplementedError

    def _probabilities(self, X: Any) -> Floats | None:
        return None


Doubles = npt.NDArray[np.float64]

# Tolerance between the learner's scores and those of its weights, as a share of the largest score.
ALIKE = 1e-3
# Number of rows on which they are compared.
N_COMPARED = 100


def scores_of(start: Any, X: Any, classes: npt.NDArray[Any]) -> Doubles:
    """Return a fitted classifier's scores of rows, with one column for each of these classes.

    Raises
    ------
    KeslerError
        If the classifier has no `decision_function`, or has not seen one of the classes.
    """
    if not hasattr(start, "decision_function"):
        raise KeslerError(
            f"start={type(start).__name__} has no decision_function: give a fitted classifier that "
            "scores classes, such as an OnlineClassifier"
        )
    check_is_fitted(start)
    known = {label: column for column, label in enumerate(start.classes_.tolist())}
    unknown = [label for label in classes.tolist() if label not in known]
    if unknown:
        raise KeslerError(
            f"start has not seen the class {plain(unknown[0])!r}: fit it to rows of each class"
        )
    scores = np.asarray(start.decision_function(X), dtype=np.float64)
    if scores.ndim == 1:
        scores = np.column_stack([np.zeros_like(scores), scores])
    return np.ascontiguousarray(scores[:, [known[label] for label in classes.tolist()]])


def linear_weights_of(start: Any, X: Any, classes: npt.NDArray[Any]) -> tuple[Doubles, Doubles]:
    """Return the weights (n_features, n_classes) and intercepts of a linear classifier.

    They are computed from its scores of the zero vector and of each unit vector.

    Raises
    ------
    KeslerError
        If its scores of the first rows differ from those of these weights.
    """
    n_features = X.shape[1]
    units: Any = sparse.vstack(
        [sparse.csr_array((1, n_features)), sparse.eye_array(n_features)], format="csr"
    ).astype(X.dtype)
    scores = scores_of(start, units if sparse.issparse(X) else units.toarray(), classes)
    constants, weights = scores[0], scores[1:] - scores[0]
    expected = scores_of(start, X[:N_COMPARED], classes)
    linear = X[:N_COMPARED] @ weights + constants
    if np.abs(linear - expected).max() > ALIKE * max(np.abs(expected).max(), np.finfo(float).tiny):
        raise KeslerError(
            "the scores of start are not linear in the rows: give a linear learner without "
            'preprocessing, such as OnlineClassifier("multi", preprocessing=None)'
        )
    return weights, constants


def row_weights(X: Any, sample_weight: Any) -> Doubles:
    """Return the weight of each row, 0 or more, as float64.

    Raises
    ------
    KeslerError
        If a weight is below 0, or all are 0. scikit-learn's validation raises ValueError.
    """
    weights: Doubles = _check_sample_weight(sample_weight, X, dtype=np.float64)
    if (weights < 0).any():
        row = int(np.flatnonzero(weights < 0)[0])
        raise KeslerError(
            f"row {row} has weight {weights[row]:g}: negative weights cannot be learnt from, give "
            "0 or more"
        )
    if not weights.any():
        raise KeslerError("every sample_weight is zero, so there is no row to learn from")
    return weights


def class_weights(
    classes: npt.NDArray[Any], n_rows: npt.NDArray[Any], class_weight: Any
) -> Doubles:
    """Return the weight of the rows of each class, given the number or total weight of them.

    Raises
    ------
    KeslerError
        If there is one class only, a weight is below 0, or all are 0.
    """
    _require_two(classes)
    if isinstance(class_weight, str) and class_weight == "balanced":
        return np.asarray(n_rows.sum() / (len(classes) * n_rows))
    weights = np.asarray(compute_class_weight(class_weight, classes=classes, y=classes))
    if (weights < 0).any():
        odd = int(np.argmin(weights))
        raise KeslerError(
            f"class_weight of {plain(classes[odd])!r} is {weights[odd]:g}: it must be 0 or more"
        )
    if not weights.any():
        raise KeslerError("class_weight is zero for every class, so there is no row to learn from")
    return weights


def _require_two(classes: npt.NDArray[Any]) -> None:
    if len(classes) < 2:
        raise KeslerError(
            f"y has one class only, {plain(classes[0])!r}: give rows of at least two classes, of "
            "weight above 0"
        )

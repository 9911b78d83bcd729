"""The base class of classifiers that choose few candidates: predictions and feature selection."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import log_softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.feature_selection import SelectorMixin
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted

from kesler.batch.estimator import ClassScores
from kesler.dictionaries.dictionary import Columns, Dictionary
from kesler.errors import KeslerError, require_unasked
from kesler.sharing.exports.export import export
from kesler.sharing.exports.predictor import CompactPredictor

Floats = npt.NDArray[Any]


class FewFeatures(ClassScores, SelectorMixin, ClassifierMixin, BaseEstimator):
    """A linear classifier over the columns of chosen candidates.

    Attributes
    ----------
    support_ : int array of shape (n_chosen,)
        The chosen candidates.
    coef_, intercept_ : arrays of shape (n_classes, n_columns) and (n_classes,)
        Weights of their columns, in that order, and intercepts.
    dictionary_ : Dictionary
        The fitted dictionary.
    classes_ : array of shape (n_classes,)
    dtype_ : dtype
        The precision of the rows of `fit`, float64 or float32.
    """

    support_: npt.NDArray[np.int64]
    coef_: Floats
    intercept_: Floats
    dictionary_: Dictionary
    classes_: npt.NDArray[Any]
    dtype_: np.dtype[Any] = np.dtype(np.float64)  # of models pickled before there was any

    @property
    def cost_(self) -> int:
        """Maximum number of multiply-accumulates per prediction."""
        return CompactPredictor.of(self).cost

    def export(self, path: str | os.PathLike[str], **options: Any) -> None:
        """Write a predictor that runs without Kesler: see :func:`kesler.export`."""
        export(self, path, **options)

    # ---- predictions ----------------------------------------------------------------------------

    def predict_log_proba(self, X: Any) -> Floats:
        """Return the logarithm of `predict_proba`."""
        return np.asarray(log_softmax(self._scores(X), axis=1))

    def predict_proba(self, X: Any, new: bool = False) -> Floats:
        """Return the probability of each class, softmax(h(x)), in the order of `classes_`.

        The formula is the same for both losses. With a margin, scores differ by more than with the
        logistic loss, so probabilities tend to be overconfident.

        Parameters
        ----------
        X : rows as in `fit`.
        new : False
            The probability of a class to come is not estimated.

        Raises
        ------
        KeslerError
            If `new` is True.
        """
        require_unasked(self, new=new)
        return np.asarray(np.exp(self.predict_log_proba(X)))

    _probabilities = predict_proba

    def _scores(self, X: Any) -> Floats:
        X = self._rows(X)
        columns = self.dictionary_.columns(X, self.support_)
        return np.asarray(columns @ self.coef_.T + self.intercept_)

    # ---- the selector ---------------------------------------------------------------------------

    def _get_support_mask(self) -> npt.NDArray[np.bool_]:
        """Return whether each candidate is chosen; the candidates of "columns" are features."""
        check_is_fitted(self)
        mask = np.zeros(self.dictionary_.n_candidates_, dtype=bool)
        mask[self.support_] = True
        return mask

    def _transform(self, X: Any) -> Any:
        check_is_fitted(self)
        if isinstance(self.dictionary_, Columns):
            return super()._transform(X)
        return self.dictionary_.columns(self._rows(X), np.sort(self.support_))

    def inverse_transform(self, X: Any) -> Any:
        """Return rows with the chosen features in their original columns, and zeros elsewhere.

        Raises
        ------
        KeslerError
            If the candidates are not features.
        """
        check_is_fitted(self)
        if not isinstance(self.dictionary_, Columns):
            raise KeslerError(
                f"the candidates of {type(self.dictionary_).__name__} cannot be transformed back "
                'to features: use inverse_transform with dictionary="columns" only'
            )
        return super().inverse_transform(X)

    def get_feature_names_out(self, input_features: Any = None) -> npt.NDArray[np.object_]:
        """Return the names of the chosen columns, in the order of `transform`.

        Raises
        ------
        KeslerError
            If the dictionary does not define steps.
        """
        check_is_fitted(self)
        features = _check_feature_names_in(self, input_features)
        names: list[str] = []
        for candidate in np.sort(self.support_):
            step = self.dictionary_.step(int(candidate))
            name, width = step.name(features), step.width
            names += [name] if width == 1 else [f"{name}[{i}]" for i in range(width)]
        return np.asarray(names, dtype=object)

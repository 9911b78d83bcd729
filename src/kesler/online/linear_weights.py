"""Weights of linear classifiers, as scikit-learn names them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from kesler.data.rows import Rows
from kesler.hypotheses import PerClass
from kesler.learner.ensemble import EnsembleLearner
from kesler.learner.kernel_learner import KernelLearner

if TYPE_CHECKING:
    from kesler.learner.ensemble import AnyLearner
    from kesler.learner.learner import Learner


class LinearWeights:
    """The part of a classifier that returns its weights, where scores are weighted sums."""

    _fitted: Callable[[], AnyLearner]
    _single: Callable[[], Learner]
    _in_columns: Callable[..., npt.NDArray[Any]]
    score_rows: Callable[[Any], npt.NDArray[np.float32]]

    @property
    def coef_(self) -> npt.NDArray[np.float32]:
        """The weights of the features, of shape (n_classes, n_features), ordered as `classes_`.

        For two classes they have one row, the weights of classes_[1] minus those of classes_[0], as
        in scikit-learn. Up to rounding, ``decision_function(X) == X @ coef_.T + intercept_``.
        They exist where scores are such sums: for "multi" hypotheses, without kernel, preprocessing
        and ensemble. Each access computes them, in the time of scoring `n_features` rows.
        """
        self._require_linear("coef_")
        n = self._single().n_named_features
        none = self.score_rows(Rows.empty(1))
        ones = Rows(
            np.arange(n + 1, dtype=np.int64),
            np.arange(n, dtype=np.int32),
            np.ones(n, dtype=np.float32),
            n,
            dense=False,
        )
        # The scores of a row with a single 1 are a row of weights and the intercepts.
        weights = self._in_columns(self.score_rows(ones) - none, 0.0)
        return (weights[:, 1:] - weights[:, :1]).T if weights.shape[1] == 2 else weights.T

    @property
    def intercept_(self) -> npt.NDArray[np.float32]:
        """The scores of a row of zeros, of shape (n_classes,), or (1,) for two classes.

        They exist where `coef_` does. That of a declared class is -inf before its first row.
        """
        self._require_linear("intercept_")
        scores = self._in_columns(self.score_rows(Rows.empty(1)), -np.inf)[0]
        return scores[1:] - scores[:1] if len(scores) == 2 else scores

    def _require_linear(self, name: str) -> None:
        """Raise AttributeError unless the score of a class is a weighted sum of features."""
        learner = self._fitted()
        if isinstance(learner, EnsembleLearner):
            why = "an ensemble has several learners"
        elif isinstance(learner, KernelLearner):
            why = "a learner with a kernel has support vectors"
        elif learner.preprocessing is not None:
            why = f"rows are preprocessed by {learner.preprocessing!r} before they are weighed"
        elif learner.parts != [PerClass()]:
            why = "classes share hypotheses over feature maps"
        else:
            return
        raise AttributeError(
            f"{name} does not exist, since {why}: it does for OnlineClassifier('multi') with a "
            "named update, such as 'pa1', or with preprocessing=None"
        )

"""Scores of classes as scikit-learn wants them, and the class that has the highest."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[Any]


class ClassScores:
    """What a classifier has that scores all classes by `_scores`."""

    classes_: npt.NDArray[Any]

    def decision_function(self, X: Any) -> Floats:
        """Return the score of each class, in the order of `classes_`.

        Of two classes, as scikit-learn has it, of shape (n_rows,): the score of classes_[1] less
        that of classes_[0].
        """
        scores = self._scores(X)
        return scores[:, 1] - scores[:, 0] if len(self.classes_) == 2 else scores

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Return the label of highest score for each row, the first of `classes_` among equals."""
        best = self._scores(X).argmax(axis=1)
        return np.asarray(self.classes_[best])

    def _scores(self, X: Any) -> Floats:
        raise NotImplementedError

"""CompactPredictor: what remains of a fitted ShareBoostClassifier when it only predicts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from kesler.compact.tables import Table, arranged
from kesler.dictionaries.steps import Step
from kesler.errors import KeslerError

Floats = npt.NDArray[np.float64]
Label = str | int | float


@dataclass(frozen=True, eq=False)
class CompactPredictor:
    """Chosen features as tables, their weights, and the classes.

    Parameters
    ----------
    tables : sequence of Table
        How the features are computed, by kind.
    weights : array of shape (n_columns, n_classes)
        In the order of the tables' columns.
    intercept : array of shape (n_classes,)
    classes : list of labels
        Of equal scores the first one wins.
    n_features : int
        Of an instance.
    names : list of str
        The chosen features, in the order of choice.

    Attributes
    ----------
    cost : int
        Multiply-accumulates per instance, at most: those of the features, where what two of them
        share (one patch under two masks, one centre with two radii) counts once, and one for each
        weight.
    reads : list of int
        The features that it reads.

    Examples
    --------
    >>> from kesler import ShareBoostClassifier
    >>> from kesler.compact import CompactPredictor
    >>> from kesler.datasets import load_pendigits
    >>> pens = load_pendigits()
    >>> X = pens.X[:500] / 50 - 1
    >>> model = ShareBoostClassifier(6).fit(X, pens.y[:500])
    >>> predictor = CompactPredictor.of(model)
    >>> predictor.cost  # 6 features, 10 classes
    60
    >>> bool((predictor.predict(X) == model.predict(X)).all())
    True
    """

    tables: Sequence[Table]
    weights: Floats = field(repr=False)
    intercept: Floats = field(repr=False)
    classes: list[Label]
    n_features: int
    names: list[str]

    @classmethod
    def of(cls, model: Any) -> CompactPredictor:
        """Return the predictor of a fitted ShareBoostClassifier.

        Raises
        ------
        NotFittedError
            If it is not fitted.
        KeslerError
            If its dictionary does not say how its candidates are computed, or a label is neither
            text nor a number.
        """
        steps, names = chosen_steps(model)
        tables, order = arranged(steps)
        weights = np.asarray(model.coef_, dtype=np.float64).T
        return cls(
            tables,
            np.ascontiguousarray(weights[order]),
            np.asarray(model.intercept_, dtype=np.float64),
            _plain_labels(model.classes_),
            int(model.n_features_in_),
            names,
        )

    @property
    def cost(self) -> int:
        """Multiply-accumulates per instance, at most."""
        return sum(table.cost for table in self.tables) + self.weights.size

    @property
    def reads(self) -> list[int]:
        """The features that are read, by number; of the others nothing need be known."""
        numbers: list[int] = np.unique(
            np.concatenate([each.reads for each in self.tables])
        ).tolist()
        return numbers

    def scores(self, X: npt.ArrayLike) -> Floats:
        """Return the score of each class, of two classes both, for each row."""
        rows = np.asarray(X, dtype=np.float64)
        if rows.ndim != 2 or rows.shape[1] != self.n_features:
            raise KeslerError(f"X is of shape {rows.shape}, not (n_rows, {self.n_features})")
        scores = np.tile(self.intercept, (len(rows), 1))
        first = 0
        for table in self.tables:
            scores += table.values(rows) @ self.weights[first : first + table.width]
            first += table.width
        return scores

    def predict(self, X: npt.ArrayLike) -> npt.NDArray[Any]:
        """Return the label of highest score for each row."""
        return np.asarray(np.array(self.classes)[self.scores(X).argmax(axis=1)])


def chosen_steps(model: Any) -> tuple[list[Step], list[str]]:
    """Return how the chosen features of a fitted model are computed, and what they are called."""
    check_is_fitted(model, "support_")
    steps = [model.dictionary_.step(int(candidate)) for candidate in model.support_]
    named = getattr(model, "feature_names_in_", None)
    features = [f"x{i}" for i in range(model.n_features_in_)] if named is None else named
    return steps, [step.name(list(map(str, features))) for step in steps]


def _plain_labels(classes: npt.NDArray[Any]) -> list[Label]:
    labels: list[Label] = classes.tolist()
    for label in labels:
        if not isinstance(label, (str, int, float)):
            raise KeslerError(
                f"the label {label!r} is of type {type(label).__name__}, which an export cannot "
                "hold: name classes by text or numbers"
            )
    return labels

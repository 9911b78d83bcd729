"""Answers: how the targets of an estimator are encoded, and its predictions decoded."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from kesler.data import inputs
from kesler.data.labels import Label, plain
from kesler.errors import KeslerError
from kesler.learner.classes import ClassTable
from kesler.learner.targets import Answers, Kind, Targets
from kesler.online.cost_vectors import targets_of_costs
from kesler.online.label_sets import targets_of_rankings, targets_of_sets

Encoding = tuple[Sequence[Label], Callable[[npt.NDArray[np.int32]], Answers]]
Scores = npt.NDArray[np.float32]


class ClassAnswer:
    """Each row has one class.

    Attributes
    ----------
    kind : the kind of target; see :data:`kesler.learner.targets.Kind`.
    n_virtual : number of classes that exist before the first row; they have no label and are never
        returned.
    by_scores : whether predictions need the scores of all classes, not only the best class.
    """

    kind: Kind = "class"
    n_virtual: int = 0
    by_scores: bool = False

    def encoded(self, y: Any, classes: Any, known: ClassTable) -> Targets:
        """Return the encoded targets of rows, in any form that the estimator accepts."""
        return Targets.of_classes(inputs.label_list(y))

    def encoded_labels(self, labels: list[Any], known: ClassTable) -> Targets:
        """Return the encoded targets of rows of a reader."""
        return Targets.of_classes(labels)

    def encoded_one(self, y: Any, known: ClassTable) -> Encoding:
        """Return the labels of one target, and the function that encodes their codes as answers."""
        return (y,), Answers.of_classes

    def decoded(self, known: ClassTable, highest: int, scores: Scores) -> Any:
        """Return a prediction from the code of the best class, or from scores if `by_scores`.

        Scores are those of the known classes by number, including virtual classes. Before any
        class is known the arguments are -1 and an empty array.
        """
        return None if highest < 0 else known.labels[highest]

    def declared(self, classes: Any) -> list[Label]:
        """Return the classes that have columns in predictions before their first rows."""
        return list(map(plain, [] if classes is None else classes))


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


class _ManyLabels(ClassAnswer):
    """Each row names several labels, and the scores of all of them are a prediction."""

    by_scores = True

    def encoded_labels(self, labels: list[Any], known: ClassTable) -> Targets:
        """Return the encoded targets of rows of a reader."""
        return self.encoded(labels, None, known)

    def encoded_one(self, y: Any, known: ClassTable) -> Encoding:
        """Return the labels of one target, and the function that encodes their codes as answers."""
        targets = self.encoded([y], None, known)
        return targets.names, targets.answers

    def declared(self, classes: Any) -> list[Label]:
        """Return no classes: those of a table are known from its first row."""
        return []


class SetAnswer(_ManyLabels):
    """Each row has any number of labels, which outscore a threshold."""

    kind: Kind = "sets"
    n_virtual = 1

    def encoded(self, y: Any, classes: Any, known: ClassTable) -> Targets:
        """Return the encoded label sets of rows, of a table of indicators or of lists of labels."""
        return targets_of_sets(y, classes, known)

    def decoded(self, known: ClassTable, highest: int, scores: Scores) -> set[Any]:
        """Return the labels that outscore the threshold."""
        relevant = np.flatnonzero(scores[self.n_virtual :] > scores[: self.n_virtual])
        return {known.labels[i] for i in relevant}


class RankingAnswer(_ManyLabels):
    """Each row has a ranking of labels."""

    kind: Kind = "levels"

    def encoded(self, y: Any, classes: Any, known: ClassTable) -> Targets:
        """Return the encoded rankings of rows, of a table of ranks or of lists of labels."""
        return targets_of_rankings(y, classes, known)

    def decoded(self, known: ClassTable, highest: int, scores: Scores) -> list[Any]:
        """Return the labels in the order of their scores."""
        return [known.labels[i] for i in np.argsort(-scores, kind="stable")]


class CostAnswer(_ManyLabels):
    """Each row has the costs of classes, of which one is predicted."""

    kind: Kind = "costs"
    by_scores = False

    def encoded(self, y: Any, classes: Any, known: ClassTable) -> Targets:
        """Return the encoded costs of rows."""
        return targets_of_costs(y, classes)

"""Answers: how the targets of an estimator are encoded, and its predictions decoded."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from kesler.data import inputs
from kesler.data.labels import Label, class_of
from kesler.learner.classes import ClassTable
from kesler.learner.targets import Answers, Kind, Targets

Encoding = tuple[Sequence[Label], Callable[[npt.NDArray[np.int32]], Answers]]
Scores = npt.NDArray[np.float32]
Codes = npt.NDArray[np.int32]


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
        return (class_of(y),), Answers.of_classes

    def decoded(self, known: ClassTable, highest: int, scores: Scores) -> Any:
        """Return a prediction from the code of the best class, or from scores if `by_scores`.

        Scores are those of the known classes by number, including virtual classes. Before any
        class is known the arguments are -1 and an empty array.
        """
        return None if highest < 0 else known.labels[highest]

    def codes_of(self, trials: Any, labels: list[Any], weights: Any) -> Codes:
        """Return the code of the class of each row of a block that was learnt."""
        return trials.codes

    def declared(self, classes: Any) -> list[Label]:
        """Return the classes that have columns in predictions before their first rows."""
        return list(map(class_of, [] if classes is None else classes))


class LabelsAnswer(ClassAnswer):
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

"""Answers: how the targets of an estimator are encoded, and its predictions decoded."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from kesler.data import inputs
from kesler.data.inputs import parts_of
from kesler.data.labels import Label, TopLabel, class_of, top_labels
from kesler.learner.classes import ClassTable
from kesler.learner.targets import Answers, Kind, Targets
from kesler.online.contract import between_trials

if TYPE_CHECKING:
    from kesler.data.rows import Rows
    from kesler.learner.events import Event
    from kesler.online.model import Model

Encoding = tuple[Sequence[Label], Callable[[npt.NDArray[np.int32]], Answers]]
Scores = npt.NDArray[np.float32]
Codes = npt.NDArray[np.int32]


NO_PATH = dict.fromkeys(
    ("predict_path", "predict_path_one"),
    "several labels of a row are not one path: use a classifier of single classes",
)
"""Why estimators of several labels have none of the methods that return a path."""


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


@between_trials
def predict_top(self: Model, X: Any, n: int = 5) -> list[list[TopLabel]]:
    """Return the labels of highest score of each row, with their scores and probabilities.

    Parameters
    ----------
    X : rows as in `predict`.
    n : int of 1 or more, default 5
        How many labels a row has, all of them if there are fewer. Larger values cost memory for n
        labels of each row; the scores of all labels are kept for one block of rows at a time.

    Returns
    -------
    A list for each row of triples (label, score, probability), the highest score first; among equal
    scores, the label seen first. Scores are those of `decision_function`: for label sets, above 0
    where a label is predicted to be relevant, and probabilities are each label's own; of classes,
    they are those among the classes seen so far. How probable it is that a prediction is right, is
    its `confidence`. Rankings have no probabilities, which are None.

    Raises
    ------
    KeslerError
        If nothing has been learnt yet, or `n` is no such number.

    Notes
    -----
    A row costs what its scores cost, and O(k + n log n) for k labels.

    Examples
    --------
    >>> from kesler import OnlineClassifier
    >>> model = OnlineClassifier().fit(["win cash", "team lunch", "cash now"], [1, 2, 1])
    >>> model.predict_top(["cash"], 1)
    [[TopLabel(label=1, score=1.04..., probability=0.87...)]]
    """
    return [
        found for rows in self._input.rows_to_score(self, X) for found in top_of_rows(self, rows, n)
    ]


def predict_top_one(self: Model, x: Any, n: int = 5) -> list[TopLabel]:
    """Return the labels of highest score of one row, given as in `learn_one`; see `predict_top`."""
    learner = self._fitted()
    with learner.lock:
        return top_of_rows(self, self._input.row_to_score(self, x, learner), n)[0]


def top_of_rows(model: Model, rows: Rows | Event, n: int) -> list[list[TopLabel]]:
    """Return what `predict_top` does of rows that have been read."""
    n_known = model._fitted().n_known
    return [found for part in parts_of(rows, n_known) for found in _top_of_part(model, part, n)]


def _top_of_part(model: Model, rows: Rows | Event, n: int) -> list[list[TopLabel]]:
    learner, answer = model._fitted(), model.answer
    if learner.comparing is not None:
        from kesler.learner.compared import top_candidates

        found = top_candidates(learner, rows, n)
        if found is not None:
            return found
    scores, first = learner.scores(rows), answer.n_virtual
    if first:
        scores = scores[:, first:] - scores[:, :first]
    has_probabilities = answer.kind != "levels"
    probabilities = learner.probabilities(rows)[:, first:] if has_probabilities else None
    return top_labels(learner.classes.labels, scores, probabilities, n)

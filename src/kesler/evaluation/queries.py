"""Progressive validation of learners that learn only the rows whose label they ask for."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from kesler.data import inputs
from kesler.data.inputs import texts_of
from kesler.data.labels import Label, class_of
from kesler.data.ratings import Ratings
from kesler.data.rows import Rows
from kesler.errors import KeslerError
from kesler.evaluation.methods import Method, Outcome
from kesler.evaluation.results import ProgressiveResult, Run, labelled
from kesler.evaluation.tables import Piece, Table, data_frame
from kesler.online.classifier import OnlineClassifier
from kesler.online.contract import unfitted
from kesler.online.querying import Asked, ask_in_windows, ask_one_by_one, blocks_of_rows, rule_of
from kesler.readers.stream import Block

# The points of the curve in `to_dict`.
MOST_POINTS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class QueriedResult(ProgressiveResult):
    """The result of a run in which only rows whose label was asked for were learnt.

    All rows are predicted, and all count as trials and mistakes. A row whose class has not been in
    the stream before is no mistake, whether its label is asked for or not.

    Attributes
    ----------
    asked : bool array of shape (n_trials,)
        Whether the label of each row was asked for.
    known : bool array of shape (n_trials,)
        Whether the learner knew the class of each row when it predicted it.

    Examples
    --------
    >>> from kesler import OnlineClassifier, progressive_validate
    >>> X, y = [[1, 0], [0, 1], [0, 1], [1, 0]] * 50, ["a", "b", "b", "a"] * 50
    >>> result = progressive_validate(OnlineClassifier(), X, y, label_budget=0.1)
    >>> result.n_trials, result.n_asked, result.n_mistakes
    (200, 27, 0)
    >>> result.by_labels[-1].tolist() == [result.n_asked, result.n_mistakes]
    True
    """

    asked: npt.NDArray[np.bool_]
    known: npt.NDArray[np.bool_] = field(repr=False)

    @property
    def n_asked(self) -> int:
        """Number of rows whose label was asked for."""
        return int(self.asked.sum())

    @property
    def by_labels(self) -> npt.NDArray[np.int64]:
        """Labels asked for and mistakes made after each trial, of shape (n_trials, 2)."""
        return np.column_stack([np.cumsum(self.asked, dtype=np.int64), self.curve])

    @property
    def n_mistakes_of_known(self) -> int:
        """Number of mistakes on rows whose class the learner knew."""
        return int((self.wrong & self.known).sum())

    def to_dict(self) -> dict[str, Any]:
        """Return the result as an object for JSON: totals, and at most 200 points of the curve."""
        n_points = min(self.n_trials, MOST_POINTS)
        shown = np.unique(np.linspace(0, self.n_trials - 1, n_points).astype(np.int64))
        points = np.column_stack([self.trials, self.by_labels])[shown]
        return {
            "n_trials": self.n_trials,
            "n_asked": self.n_asked,
            "n_mistakes": self.n_mistakes,
            "n_first_seen": self.n_first_seen,
            "error": self.error,
            "curve": [
                dict(zip(("trial", "asked", "mistakes"), p, strict=True)) for p in points.tolist()
            ],
        }

    def to_json(self) -> str:
        """Return `to_dict` as JSON.

        Examples
        --------
        >>> from kesler import OnlineClassifier, progressive_validate
        >>> rows = [[0.0], [1.0]] * 3
        >>> model = OnlineClassifier("multi", update="pa1")
        >>> result = progressive_validate(model, rows, [0, 1] * 3, label_budget=1)
        >>> result.to_json()[:60]
        '{"n_trials": 6, "n_asked": 6, "n_mistakes": 1, "n_first_seen'
        """
        return json.dumps(self.to_dict())

    def to_frame(self) -> Any:
        """Return the trials as a pandas data frame, with a column `asked`; see the base class."""
        columns = {
            "trial": self.trials,
            "target": self.targets,
            "prediction": self.predictions,
            "mistake": self.wrong,
            "asked": self.asked,
        }
        return data_frame(columns)


class QueriedMethod(Method):
    """An online classifier that predicts all rows, and learns those that it asks for.

    Parameters
    ----------
    learner : OnlineClassifier
        It has a label budget, learns in place, and continues if it is fitted.
    """

    def __init__(self, learner: OnlineClassifier) -> None:
        rule_of(learner)
        self.learner = learner
        known = learner.classes_by_code_.tolist() if learner.n_known_ else []
        self._seen = dict.fromkeys(known)
        self.n_asked = 0

    def learn(self, piece: Block | Piece) -> Outcome:
        """Predict each row of a piece, and learn from those asked for."""
        labels = [class_of(label) for label in piece.labels]
        asked, first = self.ask(piece, labels)
        wrong = _wrong(asked.predicted, labels, first)
        return Outcome(wrong, int(first.sum()), lambda: asked.predicted, asked.probabilities)

    def ask(self, piece: Block | Piece, labels: list[Label]) -> tuple[Asked, npt.NDArray[np.bool_]]:
        """Run the trials of a piece; return them, and the mask of first rows of classes."""
        if piece.weights is not None and (piece.weights != 1).any():
            raise KeslerError(
                "rows have weights, but with a label budget a label is asked for or not: omit "
                "sample_weight"
            )
        self.learner._known_classes().require_admissible(labels)
        found = _asked(self.learner, piece, labels)
        self.n_asked += int(found.asked.sum())
        first = np.array([self._is_first(label) for label in labels], dtype=np.bool_)
        return found, first

    def _is_first(self, label: Label) -> bool:
        n_before = len(self._seen)
        self._seen[label] = None
        return len(self._seen) > n_before

    @property
    def n_known(self) -> int:
        """Number of classes that have been in the stream."""
        return len(self._seen)

    @property
    def labels(self) -> list[Label]:
        """These classes, in the order of their first rows."""
        return list(self._seen)

    @property
    def seconds_in_threads(self) -> float:
        """Processor time of the threads that an ensemble starts for large blocks, in seconds."""
        return self.learner.seconds_in_threads_


def _wrong(
    predicted: Sequence[Label | None], labels: Sequence[Label], first: npt.NDArray[np.bool_]
) -> npt.NDArray[np.bool_]:
    """Return the mask of mistakes; the first row of a class is none."""
    differ = [p != y for p, y in zip(predicted, labels, strict=True)]
    return np.array(differ, dtype=np.bool_) & ~first


def _asked(learner: OnlineClassifier, piece: Block | Piece, labels: list[Label]) -> Asked:
    """Run the trials of a piece, by blocks of rows if these are numbers without names."""
    X: Any = piece.rows if isinstance(piece, Block) else piece.X
    if isinstance(X, Ratings):
        raise KeslerError(
            "Ratings cannot be validated with a label budget: call query_one for each row"
        )
    if isinstance(piece, Block) and isinstance(X, Rows):
        return ask_in_windows(learner, X, labels)
    if isinstance(piece, Block):
        return ask_one_by_one(learner, X.mappings(), labels)
    table = learner._input.columns.table_of(learner, X)
    if table is not None or texts_of(X) is not None or inputs.holds_names(X):
        return ask_one_by_one(learner, piece.table.each(piece.start, piece.stop), labels)
    blocks = blocks_of_rows(learner, X, labels)
    return Asked.concatenate([ask_in_windows(learner, *block) for block in blocks])


def validate_queried(
    estimator: OnlineClassifier, X: Any, y: Any, sample_weight: Any = None
) -> QueriedResult:
    """Predict each row, and learn from those that the estimator asks for; return the result."""
    fresh = not estimator.__sklearn_is_fitted__()
    run = Run(unfitted(estimator), X, y, sample_weight, None, fresh)
    method, table = QueriedMethod(estimator), Table.of(X, y, sample_weight)
    start = time.perf_counter()
    asked, first = method.ask(Piece(table, 0, len(table)), table.labels)
    seconds = time.perf_counter() - start
    numbers = {label: i for i, label in enumerate(method.labels)}
    said = [-1 if each is None else numbers[each] for each in asked.predicted]
    predicted = np.array(said, dtype=np.int32)
    answers = np.array([numbers[label] for label in table.labels], dtype=np.int32)
    wrong = (predicted != answers) & ~first
    return QueriedResult(
        n_trials=len(answers),
        n_mistakes=int(wrong.sum()),
        n_first_seen=int(first.sum()),
        curve=np.cumsum(wrong, dtype=np.int64),
        probabilities=asked.probabilities,
        seconds=seconds,
        run=run,
        asked=asked.asked,
        known=asked.known,
        **labelled(predicted, answers, method.labels),
    )

"""Late answers: an online classifier that predicts each row long before it learns it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from kesler.data.labels import Label
from kesler.errors import KeslerError
from kesler.evaluation.late import LateFigures
from kesler.evaluation.methods import LabelMethod, Outcome
from kesler.evaluation.tables import Piece
from kesler.evaluation.uncertainty import UncertaintyTrace
from kesler.learner.uncertainty import Assessment, SetRequest
from kesler.metrics import places
from kesler.online.base import OnlineLearner
from kesler.online.blocks import assess_rows, learn_rows, readable_rows
from kesler.online.classifier import OnlineClassifier
from kesler.readers.stream import Block
from kesler.state.uncertainty import (
    BY_CLASS,
    CONFIDENCE,
    COVERAGES,
    COVERED,
    N_TRACED,
    NEW,
    PREDICTED,
    SIZE,
)

Doubles = npt.NDArray[np.float64]


def require_delayable(learner: OnlineLearner) -> None:
    """Raise unless the answers of a learner may come late."""
    if learner.answer.kind != "class":
        raise KeslerError(
            f"delay applies to classifiers whose rows have one class, not to "
            f"{type(learner).__name__}: omit it"
        )
    if isinstance(learner, OnlineClassifier) and learner.label_budget is not None:
        raise KeslerError(
            f"label_budget={learner.label_budget!r} chooses rows as they come, and delay holds "
            "their answers back: omit one of them"
        )


@dataclass(frozen=True, slots=True)
class Said:
    """What was said of one row before its answer came.

    Parameters
    ----------
    label : the predicted label; None before the first answer.
    probabilities : those of the predicted class and of the target, NaN where this is unknown.
    right : whether the predicted label is that of the row.
    place : the place of the target by score, 0 where it is unknown.
    traced : array of shape (n_traced,), as :class:`UncertaintyTrace` has it; NaN for nothing.
    """

    label: Label | None
    right: bool
    probabilities: tuple[float, float]
    place: int
    traced: Doubles


def nothing() -> Said:
    """Return what is said before the first answer: only that the class must be new."""
    traced = np.full(N_TRACED, np.nan)
    traced[[NEW, CONFIDENCE, PREDICTED]] = 1.0, 0.0, 0.0
    return Said(None, False, (np.nan, np.nan), 0, traced)


class DelayedMethod(LabelMethod):
    """An online classifier of Kesler whose answers come late.

    Parameters
    ----------
    learner : OnlineClassifier
        It learns in place and continues if it is fitted.
    delay : int of 0 or more
        How many rows later the answer of a row comes.
    classes : sequence of labels or None, default None
        As in its `partial_fit`.
    """

    def __init__(self, learner: OnlineClassifier, delay: int, classes: Any = None) -> None:
        super().__init__()
        require_delayable(learner)
        self.learner, self.delay, self._classes = learner, delay, classes
        self._seen.update(learner.classes_by_code_.tolist() if learner.n_known_ else ())
        self._said: list[Said] = []

    def learn(self, piece: Block | Piece) -> Outcome:
        """Predict each row of a piece, and learn those whose answers have come."""
        start = len(self._said)
        found, said = super().learn(piece), self._said[start:]
        return replace(
            found,
            probabilities=np.array([each.probabilities for each in said]).reshape(-1, 2),
            places=np.array([each.place for each in said], dtype=np.int32),
        )

    def _run(self, piece: Block | Piece, labels: list[Label]) -> Sequence[Label | None]:
        predicted = list[Label | None]()
        for row, label in zip(self._rows(piece), labels, strict=True):
            self._said.append(self._say(row, label))
            predicted.append(self._said[-1].label)
            for answered in self._answered(row):
                self._take(answered)
        return predicted

    def _rows(self, piece: Block | Piece) -> Iterator[Block | Piece]:
        """Yield the rows of weight above 0 one by one."""
        weights = piece.weights
        kept = range(len(piece)) if weights is None else np.flatnonzero(weights).tolist()
        return (piece[i : i + 1] for i in kept)

    def _take(self, row: Block | Piece) -> None:
        if isinstance(row, Block):
            learn_rows(self.learner, row.rows, row.labels, row.weights)
        else:
            self.learner._run_trials(row.X, row.labels, row.weights, self._classes)

    def _say(self, row: Block | Piece, label: Label) -> Said:
        """Return what the learner says of a row."""
        model = self.learner
        if not model.n_known_:
            return nothing()
        own = model._fitted()
        if isinstance(row, Block):
            rows = readable_rows(model, row.rows)
        else:
            (rows,) = model._input.rows_to_score(model, row.X)
        code = own.classes.code(label)
        if own.uncertainty is None:
            predicted, found = int(own.predict(rows)[0]), own.probabilities(rows)
            traced = np.full(N_TRACED, np.nan)
        else:
            told = assess_rows(model, rows)
            predicted, found = int(told.predictions[0]), told.probabilities[:, 2:]
            traced = _traced(own.uncertainty, told, code)
        named = own.classes.labels[predicted]
        if code is None:
            return Said(named, False, (np.nan, np.nan), 0, traced)
        place = int(places(found, np.array([code]))[0])
        probabilities = float(found[0, predicted]), float(found[0, code])
        return Said(named, predicted == code, probabilities, place, traced)

    @property
    def uncertainty(self) -> UncertaintyTrace | None:
        """What was said of the uncertainty of each row; None if nothing is estimated."""
        learner = self.learner
        if not learner.n_known_ or learner._fitted().uncertainty is None:
            return None
        return UncertaintyTrace(np.array([each.traced for each in self._said]))

    @property
    def late(self) -> LateFigures | None:
        """How well the estimates of the run held; None if nothing is estimated."""
        trace, said = self.uncertainty, self._said
        if trace is None:
            return None
        unknown = np.isnan([each.probabilities[1] for each in said])
        return LateFigures.of(trace, np.array([each.right for each in said]), unknown)


def _traced(own: Any, told: Assessment, code: int | None) -> Doubles:
    """Return the trace of a row: what is said of it, and whether sets hold its class."""
    found = np.empty(N_TRACED)
    found[[NEW, CONFIDENCE]] = told.new[0], told.confidence[0]
    found[PREDICTED] = told.probabilities[0, 2 + told.predictions[0]]
    target = -1 if code is None else code  # the last is a class that no answer has named
    for j, coverage in enumerate(COVERAGES):
        for by_class, first in ((False, 0), (True, BY_CLASS)):
            chosen = own.classes_in_sets(told, SetRequest(coverage, by_class))[0]
            found[[COVERED + first + j, SIZE + first + j]] = chosen[target], chosen.sum()
    return found

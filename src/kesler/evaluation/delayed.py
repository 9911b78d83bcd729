"""Late answers: an online classifier that predicts rows whose answers arrive some rows late."""

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
    """Raise unless the answers of a learner may arrive late."""
    if learner.answer.kind != "class":
        raise KeslerError(
            f"delay applies to classifiers whose rows have one class, not to "
            f"{type(learner).__name__}: omit it"
        )
    if isinstance(learner, OnlineClassifier) and learner.label_budget is not None:
        raise KeslerError(
            f"label_budget={learner.label_budget!r} asks for answers at once, and with a delay "
            "they arrive late: omit one of them"
        )


@dataclass(frozen=True, slots=True)
class Prediction:
    """The prediction for a row, made before its answer arrived.

    Parameters
    ----------
    label : the predicted label; None before the first answer.
    right : whether it is the label of the row.
    probabilities : those of the predicted class and of the target; NaN if no answer has named it.
    place : the place of the target by score; 0 if no answer has named it.
    traced : array of shape (n_traced,), a row of :class:`UncertaintyTrace`; NaN for no estimate.
    """

    label: Label | None
    right: bool
    probabilities: tuple[float, float]
    place: int
    traced: Doubles


def first_prediction() -> Prediction:
    """Return the prediction before the first answer: no label, and the class is surely new."""
    traced = np.full(N_TRACED, np.nan)
    traced[[NEW, CONFIDENCE, PREDICTED]] = 1.0, 0.0, 0.0
    return Prediction(None, False, (np.nan, np.nan), 0, traced)


class DelayedMethod(LabelMethod):
    """An online classifier of Kesler whose answers arrive late.

    Parameters
    ----------
    learner : OnlineClassifier
        It learns in place and continues if it is fitted.
    delay : int of 0 or more
        How many rows late they arrive.
    classes : sequence of labels or None, default None
        As in its `partial_fit`.

    Notes
    -----
    The prediction for each row is kept, in some 400 bytes.
    """

    def __init__(self, learner: OnlineClassifier, delay: int, classes: Any = None) -> None:
        super().__init__()
        require_delayable(learner)
        self.learner, self.delay, self._classes = learner, delay, classes
        self._seen.update(learner.classes_by_code_.tolist() if learner.n_known_ else ())
        self._predictions: list[Prediction] = []

    def learn(self, piece: Block | Piece) -> Outcome:
        """Predict each row of a piece, and learn those whose answers have arrived."""
        start = len(self._predictions)
        found, predictions = super().learn(piece), self._predictions[start:]
        return replace(
            found,
            probabilities=np.array([each.probabilities for each in predictions]).reshape(-1, 2),
            places=np.array([each.place for each in predictions], dtype=np.int32),
        )

    def _run(self, piece: Block | Piece, labels: list[Label]) -> Sequence[Label | None]:
        predicted = list[Label | None]()
        for row, label in zip(self._rows(piece), labels, strict=True):
            self._predictions.append(self._predict(row, label))
            predicted.append(self._predictions[-1].label)
            for answered in self._answered(row):
                self._learn(answered)
        return predicted

    def _rows(self, piece: Block | Piece) -> Iterator[Block | Piece]:
        """Yield the rows of weight above 0 one by one."""
        weights = piece.weights
        kept = range(len(piece)) if weights is None else np.flatnonzero(weights).tolist()
        return (piece[i : i + 1] for i in kept)

    def _learn(self, row: Block | Piece) -> None:
        if isinstance(row, Block):
            learn_rows(self.learner, row.rows, row.labels, row.weights)
        else:
            self.learner._run_trials(row.X, row.labels, row.weights, self._classes)

    def _predict(self, row: Block | Piece, label: Label) -> Prediction:
        """Return the prediction for a row, given its label."""
        model = self.learner
        if not model.n_known_:
            return first_prediction()
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
            assessed = assess_rows(model, rows)
            predicted, found = int(assessed.predictions[0]), assessed.probabilities[:, 2:]
            traced = _traced(own.uncertainty, assessed, code)
        named = own.classes.labels[predicted]
        if code is None:
            return Prediction(named, False, (np.nan, np.nan), 0, traced)
        place = int(places(found, np.array([code]))[0])
        probabilities = float(found[0, predicted]), float(found[0, code])
        return Prediction(named, predicted == code, probabilities, place, traced)

    @property
    def uncertainty(self) -> UncertaintyTrace | None:
        """The estimates of uncertainty for each row; None if the learner has none."""
        learner = self.learner
        if not learner.n_known_ or learner._fitted().uncertainty is None:
            return None
        return UncertaintyTrace(np.array([each.traced for each in self._predictions]))

    @property
    def late(self) -> LateFigures | None:
        """How well these estimates held; None without any."""
        trace, predictions = self.uncertainty, self._predictions
        if trace is None:
            return None
        unknown = np.isnan([each.probabilities[1] for each in predictions])
        return LateFigures.of(trace, np.array([each.right for each in predictions]), unknown)


def _traced(own: Any, assessed: Assessment, code: int | None) -> Doubles:
    """Return the estimates for a row, and whether prediction sets contain its class."""
    found = np.empty(N_TRACED)
    found[[NEW, CONFIDENCE]] = assessed.new[0], assessed.confidence[0]
    found[PREDICTED] = assessed.probabilities[0, 2 + assessed.predictions[0]]
    target = -1 if code is None else code  # the last is a class that no answer has named
    for j, coverage in enumerate(COVERAGES):
        for by_class, first in ((False, 0), (True, BY_CLASS)):
            chosen = own.classes_in_sets(assessed, SetRequest(coverage, by_class))[0]
            found[[COVERED + first + j, SIZE + first + j]] = chosen[target], chosen.sum()
    return found

"""Methods under progressive validation: whatever predicts rows before it learns them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from kesler.data.labels import Label, class_of
from kesler.errors import KeslerError, integer_of
from kesler.evaluation.tables import Piece
from kesler.online.blocks import learn_rows
from kesler.online.classifier import OnlineClassifier
from kesler.readers.stream import Block

if TYPE_CHECKING:
    from kesler.evaluation.late import LateFigures
    from kesler.evaluation.uncertainty import UncertaintyTrace

ONE_CLASS = ("class", "rank")
"""The kinds of targets that name one class, which has a place among all."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The trials of a piece.

    Parameters
    ----------
    wrong : bool array of shape (n_trials,)
        A mask of the mistakes; the first row of a class is none.
    n_first_seen : int
        Number of rows whose class had not been seen before.
    predicted : callable () -> list
        Returns the label predicted in each trial, None for no prediction.
    probabilities : float64 array of shape (n_trials, 2) or None
        As in :class:`~kesler.evaluation.results.ProgressiveResult`; None if there are none.
    places : int32 array of shape (n_trials,) or None
        As there.
    """

    wrong: npt.NDArray[np.bool_]
    n_first_seen: int
    predicted: Callable[[], list[Label | None]]
    probabilities: npt.NDArray[np.float64] | None = None
    places: npt.NDArray[np.int32] | None = None


class Method(ABC):
    """A method that predicts the rows of a piece, each before it learns from it.

    Attributes
    ----------
    delay : int
        How many rows late answers arrive, set before the first row: row t is learnt before row
        t + delay is predicted, and 0 and 1 are at once.
    """

    delay = 0

    def set_delay(self, delay: int) -> None:
        """Let answers arrive `delay` rows late; raise if the method learns all rows at once."""
        if delay > 1:
            raise KeslerError(
                f"delay={delay} does not apply to a {type(self).__name__}, which learns each row "
                "before it predicts the next: omit it, or give the learner itself"
            )

    @abstractmethod
    def learn(self, piece: Block | Piece) -> Outcome:
        """Predict each row of a piece, then learn from it; rows of weight 0 are skipped."""

    @property
    @abstractmethod
    def n_known(self) -> int:
        """Number of classes seen so far."""

    @property
    def seconds_in_threads(self) -> float:
        """Processor time of the threads that the method has started, in seconds."""
        return 0.0

    @property
    def uncertainty(self) -> UncertaintyTrace | None:
        """The estimates of uncertainty for each row, if answers arrive late; None without any."""
        return None

    @property
    def late(self) -> LateFigures | None:
        """How well these estimates held; None without any."""
        return None


class KeslerMethod(Method):
    """An online classifier of Kesler.

    Parameters
    ----------
    learner : OnlineClassifier
        It learns in place and continues if it is fitted.
    classes : sequence of labels or None, default None
        As in its `partial_fit`.
    keep_places : bool, default False
        Whether the places of targets are found for blocks of a reader as well.
    """

    def __init__(
        self, learner: OnlineClassifier, classes: Any = None, *, keep_places: bool = False
    ) -> None:
        self.learner = learner
        self._classes = classes
        self._has_classes = learner.answer.kind in ONE_CLASS
        self._keeps_places = keep_places and self._has_classes

    def learn(self, piece: Block | Piece) -> Outcome:
        """Run the trials of a piece."""
        learner, n_known, found = self.learner, self.learner.n_known_, None
        if isinstance(piece, Block):
            rows = piece.rows, piece.labels, piece.weights
            trials = learn_rows(learner, *rows, keep_places=self._keeps_places)
            answers = learner.answer.codes_of(trials, piece.labels, piece.weights)
        else:
            given = piece.X, piece.labels, piece.weights, self._classes
            keeping = {"keep_probabilities": True, "keep_places": self._has_classes}
            trials = learner._run_trials(*given, **keeping)
            answers, found = trials.codes, trials.probabilities
        codes, wrong = trials.predictions, mistakes(trials.predictions, answers, n_known)
        n_new, places = self.n_known - n_known, trials.places if len(trials.places) else None
        return Outcome(wrong, n_new, lambda: self._labels(codes), found, places)

    def _labels(self, codes: npt.NDArray[np.int32]) -> list[Label | None]:
        seen = self.learner.classes_by_code_.tolist() if self.n_known else []
        return [None if code < 0 else seen[code] for code in codes.tolist()]

    @property
    def n_known(self) -> int:
        """Number of classes seen so far."""
        return self.learner.n_known_

    @property
    def seconds_in_threads(self) -> float:
        """Processor time of the threads that an ensemble starts for large blocks, in seconds."""
        return self.learner.seconds_in_threads_


class LabelMethod(Method):
    """A method that predicts labels, not numbers of classes; answers may arrive late."""

    def __init__(self) -> None:
        self._seen = set[Label]()
        self._waiting = deque[Any]()

    def set_delay(self, delay: int) -> None:
        """Let answers arrive `delay` rows late."""
        self.delay = delay

    @abstractmethod
    def _run(self, piece: Any, labels: list[Label]) -> Sequence[Label | None]:
        """Return the prediction for each row of weight above 0, then learn from the row."""

    def learn(self, piece: Block | Piece) -> Outcome:
        """Predict each row of a piece, then learn from it."""
        weights = piece.weights
        labels = [
            class_of(label)
            for i, label in enumerate(piece.labels)
            if weights is None or weights[i] > 0
        ]
        predicted = [class_of(label) for label in self._run(piece, labels)]
        wrong = np.array([p != y for p, y in zip(predicted, labels, strict=True)], dtype=np.bool_)
        first = [i for i, label in enumerate(labels) if self._is_first(label)]
        wrong[first] = False
        return Outcome(wrong, len(first), lambda: predicted)

    def _answered(self, row: Any) -> list[Any]:
        """Append a row to those without an answer; return that whose answer arrives, if any."""
        self._waiting.append(row)
        return [self._waiting.popleft()] if len(self._waiting) >= max(1, self.delay) else []

    def _is_first(self, label: Label) -> bool:
        """Note a label; return whether it had not been seen."""
        n_before = len(self._seen)
        self._seen.add(label)
        return len(self._seen) > n_before

    @property
    def n_known(self) -> int:
        """Number of classes seen so far."""
        return len(self._seen)


# ---- baselines ----------------------------------------------------------------------------------


class Baseline(LabelMethod):
    """A method that does not look at the rows.

    Attributes
    ----------
    said : label or None
        What it predicts next.
    """

    def __init__(self) -> None:
        super().__init__()
        self.said: Label | None = None

    @abstractmethod
    def _count(self, label: Label) -> None:
        """Learn the label of a row."""

    def _run(self, piece: Any, labels: list[Label]) -> Sequence[Label | None]:
        return [self._predict_then_count(label) for label in labels]

    def _predict_then_count(self, label: Label) -> Label | None:
        predicted = self.said
        for answered in self._answered(label):
            self._count(answered)
        return predicted


class MostFrequentClass(Baseline):
    """Always the most frequent class so far; of several, the one that was it first.

    Examples
    --------
    >>> piece = Block(None, ["a", "b", "b", "b"])  # the rows are not read
    >>> MostFrequentClass().learn(piece).predicted()
    [None, 'a', 'a', 'b']
    """

    def __init__(self) -> None:
        super().__init__()
        self._counts = Counter[Label]()

    def _count(self, label: Label) -> None:
        self._counts[label] += 1
        if self.said is None or self._counts[label] > self._counts[self.said]:
            self.said = label


class LastAnswer(Baseline):
    """The class of the row before.

    Examples
    --------
    >>> LastAnswer().learn(Block(None, ["a", "b", "b"])).predicted()
    [None, 'a', 'b']
    """

    def _count(self, label: Label) -> None:
        self.said = label


BASELINES: dict[str, type[LabelMethod]] = {
    "most frequent class": MostFrequentClass,
    "last answer again": LastAnswer,
}
"""Methods that do not look at the rows, for a sense of scale."""


# ---- delays ------------------------------------------------------------------------------------


def require_delay(delay: Any) -> int:
    """Return a number of rows; raise unless it is an integer of 0 or more."""
    return integer_of("delay", delay, 0, why=": answers arrive so many rows late")


# ---- mistakes -----------------------------------------------------------------------------------


def mistakes(
    predicted: npt.NDArray[np.int32], answers: npt.NDArray[np.int32], n_known: int
) -> npt.NDArray[np.bool_]:
    """Return a mask of the mistakes in a run that started with `n_known` classes.

    The first instance of a class is never a mistake.

    Examples
    --------
    >>> mistakes(np.array([-1, 0, 0, 1]), np.array([0, 1, 1, 1]), 0).tolist()
    [False, False, True, False]
    """
    wrong: npt.NDArray[np.bool_] = predicted != answers
    return wrong & ~first_seen(answers, n_known)


def first_seen(answers: npt.NDArray[np.int32], n_known: int) -> npt.NDArray[np.bool_]:
    """Return a mask of the trials with the first row of a class, except the first `n_known`."""
    is_first = np.zeros(len(answers), dtype=np.bool_)
    first = np.full(answers.max(initial=-1) + 1, -1)
    first[answers[::-1]] = np.arange(len(answers))[::-1]  # the first row is written last
    new = first[n_known:]
    is_first[new[new >= 0]] = True
    return is_first

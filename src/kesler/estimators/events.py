"""EventLearner: what the faces of the online learners do with rows that come one at a time."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import numpy as np
import numpy.typing as npt

from kesler.answers import Answers
from kesler.estimators.features import FeatureReader
from kesler.events import NO_SCORES

if TYPE_CHECKING:
    from kesler.bank_machine import BankMachine
    from kesler.estimators.told import Told
    from kesler.machine import Machine

Self = TypeVar("Self", bound="EventLearner")


class EventLearner(FeatureReader):
    """A learner of events: one row, and in time its answer.

    Once there is a machine, an event takes a short way to it, through arrays that the one before
    had: no validation of scikit-learn's, and no step of Python for each feature. What that way
    cannot read goes the way of a batch, which knows what to say of it.

    Attributes
    ----------
    by_scores : whether predictions follow from the scores of all classes, not from the highest.
    """

    by_scores: ClassVar[bool] = True

    @abstractmethod
    def _said(self, highest: int, scores: npt.NDArray[np.float32]) -> Any:
        """Return a prediction, given the class of highest score, or the scores `by_scores`.

        They are of the classes known by number, virtual ones included, before there are any -1 and
        an empty array.
        """

    @abstractmethod
    def _tell(self, y: Any, classes: Any = None) -> Told:
        """Return what answers in any form that a user may give them say."""

    @abstractmethod
    def _fitted(self) -> Machine | BankMachine:
        """Return the machine; raise if no class is known."""

    @abstractmethod
    def _first_trial(
        self, x: Any, y: Any, *, keep_scores: bool
    ) -> tuple[int, npt.NDArray[np.float32]]:
        """Run the trial of one row as that of a batch."""

    def learn_one(self: Self, x: Any, y: Any) -> Self:
        """Learn one row, without scikit-learn's validation.

        Parameters
        ----------
        x : dict of feature names to values, str, array of shape (n_features,), (indices, values) \
or sparse row
            A text stands for its tokens (:func:`kesler.readers.tokens.presence`), a feature of
            value 1 each, as readers take texts. A pair of arrays lists the features that are not
            zero by position, each once. Of learners with sub-experts a mapping {label: ratings},
            or :class:`~kesler.Ratings` of one row.
        y : its answer.

        Returns
        -------
        The estimator itself.

        Notes
        -----
        A dict with text for names and Python's or NumPy's numbers for values, an array of float64
        or float32 and a pair of such arrays, its indices rising, are read fastest.
        """
        self._trial(x, y, keep_scores=False)
        return self

    def predict_one(self, x: Any) -> Any:
        """Return what is predicted of one row, as in `learn_one`."""
        machine = self._fitted()
        with machine.lock:
            event = machine.event
            row = event if self._read(x, machine, learn=False) else self._row(x, learn=False)
            if self.by_scores:
                return self._said(-1, machine.scores(row)[0])
            return self._said(int(machine.predict(row)[0]), NO_SCORES)

    def learn_predict_one(self, x: Any, y: Any) -> Any:
        """Learn one row; return what was predicted of it before the answer was heard.

        One trial: less work than `predict_one` and then `learn_one`, and the same but for averaged
        learners, whose trials are judged by the last weights and not by their mean, as
        :func:`~kesler.progressive_validate` judges them.

        Parameters
        ----------
        x, y : as in `learn_one`.

        Returns
        -------
        As `predict_one`; for the first row None, or no labels.
        """
        return self._said(*self._trial(x, y, keep_scores=self.by_scores))

    def _trial(self, x: Any, y: Any, *, keep_scores: bool) -> tuple[int, npt.NDArray[np.float32]]:
        """Learn one row; return the class that had the highest score, and scores if asked for."""
        machine = self.__dict__.get("_machine")
        if machine is not None:
            with machine.lock:
                names = self.__dict__.get("_names")
                n_names = 0 if names is None else len(names.indices)
                try:
                    if self._read(x, machine, learn=True):
                        return _trial_of_event(machine, *self._told_one(y), keep_scores=keep_scores)
                except BaseException:
                    self._forget_names(max(n_names, machine.n_named_features))
                    raise
                self._forget_names(n_names)
        return self._first_trial(x, y, keep_scores=keep_scores)

    def _told_one(self, y: Any) -> tuple[Sequence[Any], Callable[[npt.NDArray[np.int32]], Answers]]:
        """Return the labels that one answer names, and what makes answers of their numbers."""
        told = self._tell([y])
        return told.names, told.answers

    def _forget_names(self, n_names: int) -> None:
        if self._vocabulary is not None and len(self._vocabulary) > n_names:
            self._vocabulary.forget_from(n_names)


def _trial_of_event(
    machine: Machine | BankMachine,
    labels: Sequence[Any],
    answers: Callable[[npt.NDArray[np.int32]], Answers],
    *,
    keep_scores: bool,
) -> tuple[int, npt.NDArray[np.float32]]:
    if keep_scores:
        n_known = machine.n_known
        scores = np.empty((1, machine.classes.count_with(labels)), dtype=np.float32)
        predictions, _ = machine.learn(machine.event, labels, None, answers, scores)
        return int(predictions[0]), scores[0, :n_known]
    predicted = machine.learn_event(labels[0]) if answers is Answers.of_classes else None
    if predicted is None:
        predictions, _ = machine.learn(machine.event, labels, None, answers)
        predicted = int(predictions[0])
    return predicted, NO_SCORES

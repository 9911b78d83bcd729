"""Learners whose trials are observed by estimates of uncertainty."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from kesler.data.labels import Label
from kesler.data.rows import Rows
from kesler.interrupts import Postponed
from kesler.learner.classes import ClassTable
from kesler.learner.events import NO_PLACES, NO_PROBABILITIES, NO_SCORES, Counted, Event
from kesler.learner.targets import Answers, Kind
from kesler.learner.uncertainty import NO_TRACES, Assessment, Doubles, Uncertainty
from kesler.state.fields import Arrays
from kesler.state.uncertainty import N_TRACED

if TYPE_CHECKING:
    from kesler.candidates import Candidates
    from kesler.learner.comparing import Comparing
    from kesler.learner.memory import Memory
    from kesler.learner.ranks import Ranks

MOST_SCORES = 1 << 20  # of a member, in memory at once

Codes = npt.NDArray[np.int32]
Scores = npt.NDArray[np.float32]
Learnt = tuple[Codes, Codes]


class Observing(Counted):
    """Base class of learners, whose uncertainty is estimated if `uncertainty` is set.

    Attributes
    ----------
    uncertainty : the estimates, or None. They are set before the first row.
    candidates : how rows are compared with a part of the classes, None for all classes.
    comparing : the entries of these, since there are more classes than each row is compared with.
    ranks : the learners of the ranks of labels that are paths, or None. They are set before the
        first row.
    memory : the limit on its memory, or None. It is set before the first row.
    is_ordered : whether rows follow each other, or are a set; only ensembles heed this.
    observes : whether the estimates learn from rows; rows that come again tell nothing of new ones.
    """

    answer: Kind
    classes: ClassTable
    uncertainty: Uncertainty | None = None
    candidates: Candidates | None = None
    comparing: Comparing | None = None
    ranks: Ranks | None = None
    memory: Memory | None = None
    is_ordered = True
    observes = True
    seconds_in_threads = 0.0

    @abstractmethod
    def learn(
        self,
        rows: Rows | Event,
        labels: Sequence[Label],
        weights: npt.NDArray[np.float64] | None = None,
        answers: Callable[[Codes], Answers] = Answers.of_classes,
        scores: Scores = NO_SCORES,
        probabilities: Doubles = NO_PROBABILITIES,
    ) -> Learnt:
        """Run one trial per row."""

    @property
    def repeats(self) -> bool:
        """Whether the rows of a set come again, from which ensembles learn their steps alone."""
        return not (self.observes or self.is_ordered)

    @property
    def n_scored(self) -> int:
        """Number of learners that score each row."""
        return 1

    def end_sequence(self) -> None:
        """Say that the next row does not follow the last one; only ensembles heed the order."""

    def end_set(self) -> None:
        """Say that all rows of a set have been learnt; only trees heed that."""

    @abstractmethod
    def _learn_scored(self, stack: Scores, scores: Scores, *learning: Any) -> Learnt:
        """Run trials as `learn` does, and write the scores of each member to `stack`.

        The errors of rows that were learnt or ended the trials are left to `_require_finite_steps`.
        """

    def _is_to_compare(self, labels: Sequence[Label]) -> bool:
        """Return whether rows with these labels have candidates, or the last of them have."""
        return False

    def _learn_in_parts(self, *learning: Any) -> Learnt:
        """Learn rows of which the last have candidates; arguments are as for `learn_observed`."""
        raise NotImplementedError

    @abstractmethod
    def _require_finite_steps(self) -> None:
        """Raise if a step was skipped, or a user-defined function failed."""

    @abstractmethod
    def _evidence(self, rows: Rows | Event) -> tuple[Codes, Scores, Doubles]:
        """Return the predictions of rows, the scores of members, and probabilities."""

    def learn_observed(
        self,
        rows: Rows | Event,
        labels: Sequence[Label],
        weights: npt.NDArray[np.float64] | None = None,
        answers: Callable[[Codes], Answers] = Answers.of_classes,
        scores: Scores = NO_SCORES,
        probabilities: Doubles = NO_PROBABILITIES,
        traces: Doubles = NO_TRACES,
        places: Codes = NO_PLACES,
    ) -> Learnt:
        """Run trials as `learn` does; estimates of uncertainty and ranks learn from them.

        Parameters
        ----------
        rows, labels, weights, answers, scores, probabilities : as for `learn`.
        traces : array of shape (n_rows, n_traced) or (0, 0) that receives what is said of each row.
        places : array of shape (n_rows,) or (0,) that receives the place of each target among the
            known classes, 0 where it was not known; for single classes and ranks.
        """
        learning = rows, labels, weights, answers, scores, probabilities, traces, places
        if self.ranks is None:
            return self.observe(*learning)
        with self.lock, Postponed():  # otherwise some ranks would have learnt a row, others not
            return self.ranks.learn(self, *learning)

    def observe(
        self,
        rows: Rows | Event,
        labels: Sequence[Label],
        weights: npt.NDArray[np.float64] | None,
        answers: Callable[[Codes], Answers],
        *results: Any,
    ) -> Learnt:
        """Run trials as `learn_observed` does, without those of ranks.

        results : scores, probabilities, traces and places.
        """
        scores, probabilities, traces, places = results
        own = self.uncertainty if self.observes else None
        learning = weights, answers, scores, probabilities
        if own is None and not len(places):
            return self.learn(rows, labels, *learning)
        with self.lock, Postponed():
            if self._is_to_compare(labels):
                return self._learn_in_parts(rows, labels, *learning, traces, places)
            n_known = self.n_known
            if len(places) and not len(scores):
                scores = np.empty((len(rows), self.classes.count_with(labels)), dtype=np.float32)
                learning = weights, answers, scores, probabilities
            if own is None:
                predictions, codes = self.learn(rows, labels, *learning)
            else:
                predictions, codes = self._learn_estimated(own, rows, labels, *learning, traces)
            if len(places):
                from kesler.learner.places import places_of_targets

                places[:] = places_of_targets(scores, codes, n_known)
        return predictions, codes

    def _learn_estimated(
        self,
        own: Uncertainty,
        rows: Rows | Event,
        labels: Sequence[Label],
        weights: npt.NDArray[np.float64] | None,
        answers: Callable[[Codes], Answers],
        scores: Scores,
        probabilities: Doubles,
        traces: Doubles,
    ) -> Learnt:
        """Run trials as `learn_observed` does, of rows that are compared with all classes."""
        n_known, n_classes, n_rows = self.n_known, self.classes.count_with(labels), len(rows)
        n_members, first = own.n_members, 0 if self.answer == "sets" else 2
        stack = np.empty((n_members, n_rows, n_classes), dtype=np.float32)
        stack.fill(np.nan)
        found, inputs = np.empty((n_rows, first + n_classes)), own.inputs_of(rows)
        n_before = self.n_trials
        given = rows, labels, weights, answers, found
        predictions, codes = self._learn_scored(stack, scores, *given)
        n = self.n_trials - n_before  # fewer than all if a user-defined function failed
        if len(probabilities):
            probabilities[:] = found[:, : probabilities.shape[1]]
        if self.answer == "sets":
            own.observe_labels(n_known, found, answers(codes).first(n), traces)
        else:
            learnt = found, predictions[:n], codes[:n]
            own.observe(n_known, stack, *learnt, inputs, traces)
        if self.answer == "rank":
            order = np.array(self.classes.order, dtype=np.int64)
            own.observe_ranks(n_known, *learnt, order, traces)
        self._require_finite_steps()
        return predictions, codes

    def load_estimates(self) -> None:
        """Load the compiled loop of estimates, so that none waits for it after rows are learnt."""
        if self.uncertainty is not None:
            _ = self.uncertainty.loop

    def most_observed(self, labels: Sequence[Label], *, placed: bool = False) -> int | None:
        """Return how many rows with these labels are observed at once; None for any number.

        placed : whether the places of targets are asked for.
        """
        if self.uncertainty is None and not placed:
            return None
        n_classes = self.classes.count_with(labels)
        if self.candidates is not None:
            n_classes = min(n_classes, self.candidates.beyond)
        return max(1, MOST_SCORES // max(1, n_classes))

    def untraced(self, n_rows: int) -> Doubles:
        """Return the array that receives what is said of rows, of no rows without estimates."""
        own = self.uncertainty
        return NO_TRACES if own is None else np.full((n_rows, N_TRACED), np.nan)

    def assess(self, rows: Rows | Event) -> Assessment:
        """Return what is said of rows; the learner must have estimates of uncertainty."""
        own = self.uncertainty
        assert own is not None
        with self.lock:
            predictions, stack, probabilities = self._evidence(rows)
            if self.answer != "sets":
                return own.assess(stack, probabilities, predictions, own.inputs_of(rows))
        none = np.empty(0)
        return Assessment(predictions, probabilities, none, none)

    def _uncertainty_arrays(self) -> Arrays:
        """Return the arrays of the estimates, which a model file stores."""
        own = self.uncertainty
        if own is None:
            return {}
        own.reserve(len(self.classes))
        return own.arrays()

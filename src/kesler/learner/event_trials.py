"""Event trials: the arrays and tasks with which all members of an ensemble learn one row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from kesler.learner.events import Event, encoded_targets_of, no_ratings, task_of
from kesler.learner.learner import Learner
from kesler.learner.targets import Answers


class EventTrials:
    """One trial of a row of a known class for each member, whose arrays serve every row.

    They have the shapes of those that the ensemble would allocate for a block of one row.

    Parameters
    ----------
    members : sequence of Learner
        The members.
    n_classes : int
        The number of classes.

    Attributes
    ----------
    codes : int32 array of shape (1,)
        The class of the row.
    scores : float32 array of shape (n_members, 1, n_classes)
        NaN for classes without a score.
    by_member : float64 array of shape (n_members, 1, 2 + n_classes)
        The probabilities.
    winners : int64 array of shape (n_members, 1)
        The predicted classes.
    """

    def __init__(self, members: Sequence[Learner], n_classes: int) -> None:
        n_members = len(members)
        self.n_classes = n_classes
        self.codes = np.zeros(1, dtype=np.int32)
        self.scores = np.full((n_members, 1, n_classes), np.nan, dtype=np.float32)
        self.by_member = np.empty((n_members, 1, 2 + n_classes))
        self.winners = np.empty((n_members, 1), dtype=np.int64)
        self._trials = [
            MemberTrial(member, self.codes, self.scores[i], self.by_member[i])
            for i, member in enumerate(members)
        ]

    def prepare(self, event: Event) -> bool:
        """Prepare an event for every member; return whether all can learn it so."""
        for trial in self._trials:  # a generator would be entered once for each
            if not trial.prepare(event, self.n_classes):
                return False
        return True

    def run(self, event: Event, code: int) -> None:
        """Let every member learn the prepared event, of the class of this number."""
        self.codes[0] = code
        for i, trial in enumerate(self._trials):
            self.winners[i] = trial.run(event)


class MemberTrial:
    """The trial of one member.

    Parameters
    ----------
    member : Learner
        The member.
    codes, scores, probabilities : arrays
        Its parts of the arrays of :class:`EventTrials`.
    """

    def __init__(
        self,
        member: Learner,
        codes: npt.NDArray[np.int32],
        scores: npt.NDArray[np.float32],
        probabilities: npt.NDArray[np.float64],
    ) -> None:
        self._member, self._codes, self._results = member, codes, (scores, probabilities)
        self._task: Any = None
        self._rows: Any = None  # of the task
        self._width = 0
        self._expanded: Any = None

    def prepare(self, event: Event, n_classes: int) -> bool:
        """Prepare an event; return whether the member has the capacity to learn it."""
        member = self._member
        if member.expansion is None:
            if member._looks_at_zeros is not None and not event.dense:
                return False
            row_buffer = member._lay_out(event)
            rows, width = row_buffer.rows, row_buffer.n_features
        else:
            if not (event.dense and event.n_features == member.n_inputs):
                return False
            rows, width = self._expanded_rows(), self._width
        if not member._has_capacity(n_classes, width):
            return False
        member._count(width, 0)
        if rows is not self._rows:
            self._make_task(rows)
        return True

    def _expanded_rows(self) -> Any:
        """Return the rows of the task, whose entries `run` fills."""
        if self._expanded is None:
            member = self._member
            self._width = member.width_of(member.n_inputs)
            n_entries = member.n_entries_of(lists_zeros=member._reads_zeros)
            indices, values = np.empty(n_entries, np.int32), np.empty(n_entries, np.float32)
            indptr = np.array([0, n_entries], dtype=np.int64)
            self._expanded = member._kernels.Blocks(indptr, indices, values, no_ratings())
        return self._expanded

    def _make_task(self, rows: Any) -> None:
        targets, capacity = Answers.of_classes(self._codes), self._member._class_capacity
        encoded = encoded_targets_of(targets, None, capacity)
        self._task, self._rows = task_of(rows, encoded, 1, *self._results), rows

    def run(self, event: Event) -> int:
        """Learn the prepared event; return the number of the predicted class."""
        member = self._member
        if member.expansion is not None:
            table = event.values.reshape(1, member.n_inputs)
            entries = self._rows.indices, self._rows.values
            member.expand_into(table, *entries, self._codes, lists_zeros=member._reads_zeros)
        member._run(self._task)
        return int(self._task.arrays.predictions[0])

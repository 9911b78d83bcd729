"""The ensemble: several learners over the same rows, whose predictions are combined."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from kesler import codes
from kesler.codes import code_of
from kesler.data.labels import Label
from kesler.data.rows import Rows
from kesler.errors import KeslerError, number_of
from kesler.hypotheses import Grouped, Part
from kesler.interrupts import Postponed
from kesler.learner.calibration import probabilities
from kesler.learner.events import NO_PROBABILITIES, NO_SCORES, Event, RowBuffer
from kesler.learner.learner import Learner
from kesler.learner.locks import learner_lock
from kesler.learner.observing import Learnt, Observing
from kesler.learner.targets import Answers
from kesler.learner.uncertainty import NO_INPUTS
from kesler.state.fields import (
    Arrays,
    Field,
    allocated,
    array_of,
    bind,
    checked,
    converted,
    damaged,
    fields_of,
    put,
)
from kesler.state.records import EnsembleRecord

if TYPE_CHECKING:
    from kesler.learner.event_trials import EventTrials

Combination = Literal["majority", "best", "mixture", "fixed-share"]
COMBINATIONS = get_args(Combination)

# The default factors of past losses, applied at each row.
DISCOUNTS = {"majority": 1.0, "best": 0.995, "mixture": 0.98, "fixed-share": 1.0}

# Members process this many rows before they are combined; their predictions are buffered.
ROWS_AT_ONCE = 1024
POOLED = 2  # experts beside several members: their pool, and the pool that knows the last class
NO_STACK = np.empty((0, 0, 0), dtype=np.float32)
# From this number of rows on, members run in threads.
WORTH_THREADS = 512

_OF_THIS_PROCESS = ("lock", "event", "trials_run", "_event_trials")


class EnsembleLearner(Observing):
    """Several learners over the same rows, with the methods of a `Learner` of single classes.

    Members are independent of each other and of their combination: each learns a block of rows,
    and then the predictions of all for this block are combined row by row.

    Parameters
    ----------
    members : learners of single classes, which have not seen a class yet.
    estimators : the name of the estimator of each.
    combine, discount, demotion, share : as in :class:`~kesler.Ensemble`.

    Raises
    ------
    KeslerError
        If a parameter is out of its range.

    Notes
    -----
    For larger blocks of rows, members run in threads, one per core. The results are equal bit for
    bit, in whatever order the members finish.
    """

    answer = "class"
    decision = "score"
    n_columns: int | None = None  # inputs beside features that are not those of vectors
    _event_trials: EventTrials | None = None

    def __init__(
        self,
        members: Sequence[Learner],
        estimators: Sequence[str],
        combine: Combination = "fixed-share",
        discount: float | None = None,
        demotion: float = 0.9,
        share: float = 0.003,
    ) -> None:
        require_combination(combine, discount, demotion, share)
        if any(member.on_new_class == "unseen" for member in members):
            raise KeslerError(
                'on_new_class="unseen" changes the ratings of some rows, which all learners of an '
                'ensemble share: choose on_new_class="learn" or "register"'
            )
        used = DISCOUNTS[combine] if discount is None else float(discount)
        self.members, self.estimators = list(members), list(estimators)
        self.classes = self.members[0].classes  # with the same numbers in all members
        for member in self.members:
            member.ends_at_faults = False
            member.candidates = None
        self.combine, self.discount = combine, used
        self._rule = code_of(codes.Combination, combine)
        self.demotion, self.share = float(demotion), float(share)
        self.stored = allocated(fields_of(EnsembleRecord), self, self._lengths)
        self.stored["weights"][:] = 1.0 / len(self.stored["weights"])
        self.stored["paths"][:] = math.log(len(self.stored["weights"]))
        self.stored["exponents"][:], self.stored["slopes"][:] = 1.0 / len(self.members), 1.0
        self.seconds_in_threads = 0.0
        self.lock = learner_lock(self)

    # ---- properties -------------------------------------------------------------------------

    @property
    def parts(self) -> list[Part]:
        """The hypotheses of all members."""
        return [part for member in self.members for part in member.parts]

    @cached_property
    def takes_ratings(self) -> bool:
        """Whether a member reads ratings by sub-experts."""
        return any(member.takes_ratings for member in self.members)

    @cached_property
    def takes_missing(self) -> bool:
        """Whether values of rows that list every feature may be missing (NaN)."""
        return all(member.takes_missing for member in self.members)

    @cached_property
    def counts_words(self) -> bool:
        """Whether all members read counts of the words of texts."""
        return all(member.counts_words for member in self.members)

    @property
    def n_named_features(self) -> int:
        """Number of features seen, without constant ones."""
        return max(member.n_named_features for member in self._of_features)

    @cached_property
    def _of_features(self) -> list[Learner]:
        """The members that read the features of rows, not the inputs beside them."""
        return [m for m in self.members if not m.lists_all] or self.members

    @property
    def n_sub_experts(self) -> int:
        """Number of sub-experts seen."""
        return max(member.n_sub_experts for member in self.members)

    @property
    def n_scored(self) -> int:
        """Number of members, which score each row."""
        return len(self.members)

    @property
    def shares(self) -> bool:
        """Whether weights are shared among experts: the members, and two that pool them."""
        return self.combine == "fixed-share"

    @property
    def _lengths(self) -> dict[str, int]:
        """The number of members, and of experts that have weights."""
        n = len(self.members)
        return {"member": n, "expert": n + (POOLED if self.shares and n > 1 else 0)}

    @property
    def _fields(self) -> dict[str, Field]:
        """The stored fields by name."""
        fields = fields_of(EnsembleRecord)
        return {name: field for name, field in fields.items() if field.exists(self)}

    @property
    def mistakes_of_members(self) -> list[int]:
        """Number of mistakes of each member."""
        return [member.n_mistakes for member in self.members]

    @property
    def mistake_bound(self) -> float | None:
        """Upper bound on the mistakes of weighted majority and fixed share; None for others."""
        if self.shares:
            return float(self.stored["paths"].min()) / math.log(2.0)
        if self.combine != "majority":
            return None
        most = min(self.mistakes_of_members) * -math.log(self.demotion)
        return (most + math.log(len(self.members))) / math.log(2.0 / (1.0 + self.demotion))

    @property
    def _followed(self) -> Learner:
        """The member of least loss, which "best" follows."""
        return self.members[int(self.stored["losses"].argmin())]

    # ---- trials -----------------------------------------------------------------------------

    def learn(
        self,
        rows: Rows | Event,
        labels: Sequence[Label],
        weights: npt.NDArray[np.float64] | None = None,
        answers: Callable[[npt.NDArray[np.int32]], Answers] = Answers.of_classes,
        scores: npt.NDArray[np.float32] = NO_SCORES,
        probabilities: npt.NDArray[np.float64] = NO_PROBABILITIES,
    ) -> Learnt:
        """Run one trial per row, as :meth:`~kesler.learner.learner.Learner.learn` does.

        If a row or a label is refused, no member learns any row.
        """
        if self.repeats and isinstance(rows, Rows):  # an event is a row of its own
            return self._take_steps(rows, labels, weights)
        with self.lock, Postponed():  # otherwise some members would have learnt a row, others not
            learning = labels, weights, answers, probabilities
            found = self._learn_scored(NO_STACK, scores, rows, *learning)
            self._require_finite_steps()
        return found

    def _take_steps(
        self, rows: Rows, labels: Sequence[Label], weights: npt.NDArray[np.float64] | None
    ) -> Learnt:
        """Learn rows again with the members that step along gradients.

        The scores of rows that were learnt say nothing of how well the members predict, so that
        their combination and their probabilities stay those of the first time. The predictions are
        those of the last of these members.
        """
        codes = self.classes.encode(labels)
        predictions = np.full(len(rows), -1, dtype=np.int32)
        for start in range(0, len(rows), ROWS_AT_ONCE):
            part = slice(start, start + ROWS_AT_ONCE)
            some = None if weights is None else weights[part]
            for member in self.members:
                if member.gains_from_repetition:
                    own = self._rows_for(member, rows[part])
                    predictions[part], _ = member.take_steps(own, labels[part], some)
        return predictions, codes

    def _learn_scored(
        self,
        stack: npt.NDArray[np.float32],
        scores: npt.NDArray[np.float32],
        rows: Rows | Event,
        labels: Sequence[Label],
        weights: npt.NDArray[np.float64] | None,
        answers: Callable[[npt.NDArray[np.int32]], Answers],
        probabilities: npt.NDArray[np.float64],
    ) -> Learnt:
        self.require_admissible(labels)
        prepared = [member._admitted(self._rows_for(member, rows)) for member in self.members]
        self._provide(prepared, labels)
        for member in self.members if weights is not None else ():
            member._require_weighable(weights)
        n_rows = len(rows)
        predictions = np.empty(n_rows, dtype=np.int32)
        with self._threads_for(n_rows) as threads:
            map_members = map if threads is None else threads.map
            for start in range(0, n_rows, ROWS_AT_ONCE):
                block = slice(start, start + ROWS_AT_ONCE)
                self._learn_block(
                    [each if isinstance(each, RowBuffer) else each[block] for each in prepared],
                    labels[block],
                    None if weights is None else weights[block],
                    map_members,
                    predictions[block],
                    scores[block],
                    probabilities[block],
                    stack[:, block],
                )
        return predictions, self.classes.encode(labels)

    def _provide(self, prepared: list[Rows | RowBuffer], labels: Sequence[Label]) -> None:
        """Provide the capacity for rows in all members, or refuse them before any has learnt."""
        n_classes = self.classes.count_with(labels)
        for member, rows in zip(self.members, prepared, strict=True):
            n_features = member.n_features_of(rows)
            if not member._has_capacity(n_classes, n_features) or rows.ratings is not None:
                member.reserve(n_classes, n_features, rows.n_sub_experts, ahead=True)

    def _require_finite_steps(self) -> None:
        """Raise the first of the errors of the members, and reset those of all."""
        errors = []
        for member in self.members:
            try:
                member._require_finite_steps()
            except KeslerError as error:
                errors.append(error)
        if errors:
            raise errors[0]

    def end_sequence(self) -> None:
        """Forget the last class."""
        with self.lock:
            self.stored["last"]["target"] = -1

    def end_set(self) -> None:
        """Say that all rows of a set have been learnt."""
        for member in self.members:
            member.end_set()

    def learn_event(self, label: Label) -> int | None:
        """Learn the event from a known class, as `Learner.learn_event` does; the lock is held."""
        from kesler.compiled.trial.ensemble import combine

        trials = self._trials_of_event()
        code = self.classes.code(label)
        if trials is None or code is None or not trials.prepare(self.event):
            return None
        own = self.uncertainty if self.observes else None
        n_known, inputs = self.n_known, NO_INPUTS if own is None else own.inputs_of(self.event)
        said = np.empty(1, dtype=np.int32), NO_SCORES, np.empty((1, 2 + trials.n_classes))
        with Postponed():
            trials.run(self.event, code)
            combine(self._ensemble(), trials.winners, trials.by_member, trials.codes, *said)
            predictions, _, probabilities = said
            if own is not None:
                own.observe(
                    n_known, trials.scores, probabilities, predictions, trials.codes, inputs
                )
            self._require_finite_steps()
        return int(predictions[0])

    def _trials_of_event(self) -> EventTrials | None:
        """Return the trials of one row; None if an event has to be learnt as a block of rows."""
        n_classes = len(self.classes)
        if self._event_trials is None or self._event_trials.n_classes != n_classes:
            if self.ranks is not None:
                return None
            for member in self.members:
                if not member.learns_events or (member.replay is not None and member._replays):
                    return None
            from kesler.learner.event_trials import EventTrials

            self._event_trials = EventTrials(self.members, n_classes)
        return self._event_trials

    def _threads_for(self, n_rows: int) -> AbstractContextManager[Any]:
        """Return threads for the members if there are many rows, and None if not."""
        n_threads = 1 if n_rows < WORTH_THREADS else min(len(self.members), os.cpu_count() or 1)
        return nullcontext() if n_threads == 1 else ThreadPoolExecutor(n_threads)

    def _learn_block(
        self,
        prepared: list[Rows | RowBuffer],
        labels: Sequence[Label],
        weights: npt.NDArray[np.float64] | None,
        map_members: Callable[..., Any],
        predictions: npt.NDArray[np.int32],
        scores: npt.NDArray[np.float32],
        probabilities: npt.NDArray[np.float64],
        stack: npt.NDArray[np.float32],
    ) -> None:
        """Learn a block of rows with every member, then combine their predictions."""
        from kesler.compiled.trial.ensemble import combine

        n_classes = self.classes.count_with(labels)
        by_member = np.empty((len(self.members), len(labels), 2 + n_classes))
        in_threads = map_members is not map

        def learn(i: int) -> Any:
            # The clock of a thread takes longer than a row.
            start = time.thread_time() if in_threads else 0.0
            member, answers = self.members[i], Answers.of_classes
            rows = member._ready(prepared[i], labels, weights)
            own = stack[i] if stack.size else NO_SCORES
            found = member._learn(rows, labels, weights, answers, own, by_member[i])
            return found, time.thread_time() - start if in_threads else 0.0

        learnt, seconds = zip(*map_members(learn, range(len(self.members))), strict=True)
        if in_threads:
            self.seconds_in_threads += sum(seconds)
        winners = np.array([predicted for predicted, _ in learnt], dtype=np.int64)
        combine(
            self._ensemble(), winners, by_member, learnt[0][1], predictions, scores, probabilities
        )

    def _ensemble(self) -> Any:
        """Return the record that compiled code takes."""
        settings = {
            "rule": self._rule,
            "discount": self.discount,
            "demotion": self.demotion,
            "share": self.share,
            "is_ordered": self.is_ordered,
        }
        return bind(EnsembleRecord, self.stored | converted(EnsembleRecord, settings))

    def _rows_for(self, member: Learner, rows: Rows | Event) -> Rows | Event:
        """Return the rows for a member: their inputs if it lists all features, and it alone.

        Only members without an expansion of inputs read those of vectors, which are many. Rows have
        no ratings if only other members read them.
        """
        if isinstance(rows, Event):
            return rows
        if rows.measured is not None:
            if not member.lists_all:
                return replace(rows, measured=None)
            return rows.measured if member.has_z_scores else rows.measured.first(self.n_columns)
        if rows.ratings is None or member.takes_ratings or not self.takes_ratings:
            return rows
        return replace(rows, ratings=None)

    def _of_members(self, rows: Rows | Event, ask: Callable[..., Any]) -> list[Any]:
        return [ask(member, self._rows_for(member, rows)) for member in self.members]

    def predict(self, rows: Rows | Event) -> npt.NDArray[np.int32]:
        """Return the class number that the ensemble predicts for each row."""
        with self.lock:
            if self.combine == "best":
                return self._followed.predict(self._rows_for(self._followed, rows))
            winners: npt.NDArray[np.int32] = self._blended(rows).argmax(axis=1).astype(np.int32)
            return winners

    def scores(self, rows: Rows | Event) -> npt.NDArray[np.float32]:
        """Return the votes or probabilities of the known classes, shape (n_rows, n_classes)."""
        with self.lock:
            return self._blended(rows).astype(np.float32)

    def probabilities(self, rows: Rows | Event) -> npt.NDArray[np.float64]:
        """Return the probabilities of the known classes, shape (n_rows, n_classes)."""
        with self.lock:
            blended = self._blended(rows)
            if self.combine != "majority":
                return blended
            return probabilities(blended.astype(np.float32), self.stored["calibration"])

    def _blended(self, rows: Rows | Event) -> npt.NDArray[np.float64]:
        """Return the scores of the known classes, shape (n_rows, n_classes)."""
        if self.combine == "best":
            return self._followed.probabilities(self._rows_for(self._followed, rows))
        from kesler.compiled.trial.ensemble import combine_all

        blended = np.empty((len(rows), self.n_known))
        n_members = len(self.members)
        winners = np.zeros((n_members, len(rows)), dtype=np.int64)
        by_member = np.empty((n_members, len(rows), 2 + self.n_known))
        if self.combine == "majority":
            winners[:] = self._of_members(rows, Learner.predict)
        else:
            by_member[:, :, 2:] = self._of_members(rows, Learner.probabilities)
        combine_all(self._ensemble(), winners, by_member, blended)
        return blended

    def _evidence(
        self, rows: Rows | Event
    ) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.float32], npt.NDArray[np.float64]]:
        stack = np.stack(self._of_members(rows, Learner.scores))
        found = np.empty((len(rows), 2 + self.n_known))
        found[:, 2:] = self.probabilities(rows)
        return self.predict(rows), stack, found

    # ---- capacity and groups ----------------------------------------------------------------

    def require_admissible(self, labels: Sequence[Label]) -> None:
        """Raise the errors that learning these labels would raise."""
        for member in self.members if self.classes.unknown(labels) else ():
            member.require_admissible(labels)

    def expect(self, labels: Sequence[Label], n_features: int, n_sub_experts: int = 0) -> None:
        """Provide capacity in every member, and the compiled loops of all."""
        from kesler.compiled.trial.ensemble import combine  # noqa: F401

        with self.lock:
            self.require_admissible(labels)
            self.reserve(self.classes.count_with(labels), n_features, n_sub_experts, ahead=True)
            for member in self.members:
                _ = member._trials
            self.load_estimates()

    def reserve(
        self, n_classes: int, n_features: int, n_sub_experts: int = 0, *, ahead: bool = False
    ) -> None:
        """Provide capacity in every member; inputs beside features are not counted among these."""
        for member in self.members:
            n = n_features if member in self._of_features else 0
            member.reserve(n_classes, n, n_sub_experts, ahead=ahead)

    def count(self, n_named_features: int, n_sub_experts: int = 0) -> None:
        """Count at least so many named features in the members that read them."""
        for member in self._of_features:
            member.count(n_named_features, n_sub_experts)

    def uncount(self, n_named_features: int) -> None:
        """Count no more named features than these in the members that read them."""
        for member in self._of_features:
            member.uncount(n_named_features)

    @property
    def tree(self) -> None:
        """None, since each member has its own."""
        return None

    def hang(self, label: Label, under: Hashable) -> None:
        """Place a class in the tree of each member."""
        in_tree = [m for m in self.members if m.tree is not None]
        for member in in_tree or self.members:
            member.hang(label, under)

    def join_group(self, label: Label, group: Hashable) -> None:
        """Add a class to one more group of every member that has groups."""
        grouped = [m for m in self.members if any(isinstance(p, Grouped) for p in m.parts)]
        for member in grouped or self.members:
            member.join_group(label, group)

    # ---- saving -----------------------------------------------------------------------------

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return copies of the arrays of the ensemble, and of each member under its number."""
        with self.lock:
            stored = {
                f"{i}.{name}": array
                for i, member in enumerate(self.members)
                for name, array in member.arrays().items()
            }
            own = {f"ensemble.{n}": np.array(array_of(self.stored[n])) for n in self._fields}
            return stored | own | self._uncertainty_arrays()

    def restore(self, arrays: Arrays) -> None:
        """Restore what `arrays` returned of the ensemble; its members must be restored already.

        Raises
        ------
        KeslerError
            If an array is missing, has another dtype or shape, or holds invalid values.
        """
        stored = checked(self._fields, self, self._lengths, arrays, "ensemble.")
        for name, array in stored.items():
            put(array, self.stored[name])
        known = self.members[0].n_known
        if self.n_known != known:
            raise damaged(f"ensemble.counts name {self.n_known} classes, its members {known}")

    def __getstate__(self) -> dict[str, Any]:
        """Return the attributes without those that are valid in this process only."""
        return {name: value for name, value in vars(self).items() if name not in _OF_THIS_PROCESS}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Copy the arrays, which may be a read-only memory map."""
        vars(self).update(state, lock=learner_lock(self))
        self.stored = {name: array.copy() for name, array in self.stored.items()}


def require_combination(combine: Any, discount: Any, demotion: Any, share: Any) -> None:
    """Raise unless the parameters of a combination are valid."""
    if combine not in COMBINATIONS:
        ways = ", ".join(map(repr, COMBINATIONS))
        raise KeslerError(f"combine={combine!r} is unknown: choose {ways}")
    if discount is not None:
        why = ", or None: past losses are multiplied by it at each row"
        number_of("discount", discount, why, above=0, most=1)
    why = ": the vote of a learner is multiplied by it at each mistake"
    number_of("demotion", demotion, why, above=0, below=1)
    why = ": this part of the weights is shared among all experts at each row"
    number_of("share", share, why, above=0, below=1)


AnyLearner = Learner | EnsembleLearner

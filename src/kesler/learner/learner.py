"""The learner: hypotheses, maps, update rule and classes, combined in one compiled trial."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby
from typing import Any

import numpy as np
import numpy.typing as npt

from kesler.data.labels import Label
from kesler.data.rows import MAX_FEATURES, Rows
from kesler.errors import KeslerError, require_width
from kesler.hypotheses import Ordered
from kesler.interrupts import Postponed
from kesler.learner.binding import BoundLearner
from kesler.learner.calibration import probabilities
from kesler.learner.combinations import AFTER, BEFORE
from kesler.learner.events import (
    NO_PROBABILITIES,
    NO_SCORES,
    NONE_AGAIN,
    Event,
    RowBuffer,
    encoded_targets_of,
    no_ratings,
    no_targets,
    task_of,
    task_of_rows,
)
from kesler.learner.expanding import NO_CODES
from kesler.learner.observing import Learnt, Scores
from kesler.learner.replaying import Interleaved
from kesler.learner.targets import Answers
from kesler.learner.uncertainty import NO_INPUTS, Assessment
from kesler.links import require_compatible
from kesler.links.link import Linear
from kesler.parts.constraints import requirement_code, selection_code
from kesler.preprocessing import Ranges
from kesler.state.fields import bind, converted
from kesler.state.records import LearnerRecord


@dataclass(eq=False, repr=False)
class Learner(BoundLearner):
    """A learner: its trials and the state that they update.

    Parameters
    ----------
    parts, rule, classes, constant, answer, link, averaged, costs, preconditioner, \
on_new_class, preprocessing, half_life, replay, decision : as in
        :class:`~kesler.learner.state.LearnerState`.

    Raises
    ------
    KeslerError
        If the rule, link, preconditioner, average, costs, `on_new_class` and hypotheses are
        incompatible; the message says why.

    Notes
    -----
    Threads: compiled code runs without Python's lock. A lock of the learner admits one call at a
    time, so that one thread may predict while another learns.
    """

    def __post_init__(self) -> None:
        require_compatible(self.link, self.rule)
        for require in BEFORE:
            require(self)
        super().__post_init__()
        for require in AFTER:
            require(self)

    # ---- trials -----------------------------------------------------------------------------

    def learn(
        self,
        rows: Rows | Event,
        labels: Sequence[Label],
        weights: npt.NDArray[np.float64] | None = None,
        answers: Callable[[npt.NDArray[np.int32]], Answers] = Answers.of_classes,
        scores: npt.NDArray[np.float32] = NO_SCORES,
        probabilities: npt.NDArray[np.float64] = NO_PROBABILITIES,
    ) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
        """Run one trial per row; return the predicted class numbers, and those of the labels.

        If a row or a label is refused, no row is learnt.

        Parameters
        ----------
        rows : the instances; an event must be the one of this learner.
        labels : the labels of the targets, one target after the other.
        weights : sample weights above 0; None for 1.
        answers : function that makes the targets from the numbers of these labels.
        scores : array of shape (n_rows, n_classes) or (0, 0) that receives the scores of the
            classes known before each trial.
        probabilities : array of shape (n_rows, 2), (n_rows, 2 + n_classes) or (0, 2) that receives
            the probabilities before each trial: of the predicted class, of the target (NaN if it
            was not known) and of each known class. For label sets, of shape (n_rows, n_classes):
            the probability of each label.

        Returns
        -------
        Class numbers of shape (n_rows,), -1 if no class was known, and of shape (n_labels,).
        """
        with self.lock, Postponed():
            learning = weights, answers, scores, probabilities
            if self._is_to_compare(labels):
                return self._learn_in_parts(rows, labels, *learning)
            found = self._learn_all(rows, labels, *learning)
            self._require_finite_steps()
        return found

    @property
    def gains_from_repetition(self) -> bool:
        """Whether rows can be learnt again: a matrix of second moments weighs all rows alike."""
        return not self.preconditioner.is_full

    def take_steps(
        self,
        rows: Rows | Event,
        labels: Sequence[Label],
        weights: npt.NDArray[np.float64] | None = None,
    ) -> Learnt:
        """Learn rows of known classes again: the weights move, all else stays as it is.

        They are neither counted nor added to statistics, probabilities or a reservoir.
        """
        with self.lock, Postponed():
            given = self._admitted_with(rows, labels)
            again = np.ones(len(given), dtype=np.bool_)
            ready = self._expanded_if_asked(given, weights, again=again)
            codes, blocks = self._encode(ready, labels)
            targets = Answers.of_classes(codes)
            encoded = encoded_targets_of(targets, weights, self._class_capacity, again)
            task = task_of(blocks, encoded, len(ready))
            self._run(task)
            self._require_finite_steps()
        return task.arrays.predictions, codes

    @property
    def members(self) -> list[Learner]:
        """The learners that are combined: itself alone."""
        return [self]

    def _learn_all(
        self,
        rows: Rows | Event,
        labels: Sequence[Label],
        weights: npt.NDArray[np.float64] | None,
        *learning: Any,
    ) -> Learnt:
        """Run trials as `learn` does, without the errors of rows that were learnt or ended them."""
        self._require_weighable(weights)
        given, kept = self._admitted_with(rows, labels), self._kept_for_faults()
        ready = self._ready(given, labels, weights)
        runs = self._runs(ready, labels)
        if runs is None:
            found = self._learn(ready, labels, weights, *learning)
        else:
            found = self._learn_in_runs(runs, labels, weights, *learning)
        if kept is not None:
            self._undo_expansion(kept, given, labels, weights)
        return found

    def _learn_scored(self, stack: Scores, scores: Scores, *learning: Any) -> Learnt:
        *of_rows, probabilities = learning
        found = self._learn_all(*of_rows, stack[0], probabilities)
        if len(scores):
            scores[:, : stack.shape[2]] = stack[0]  # other columns are of classes of later rows
        return found

    def _evidence(
        self, rows: Rows | Event
    ) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.float32], npt.NDArray[np.float64]]:
        with self.lock:
            stack = np.empty((1, len(rows), self.n_known), dtype=np.float32)
            first = 0 if self.has_sets else 2
            found = np.empty((len(rows), first + self.n_known))
            if self.has_sets:
                predictions = self._predict(rows, stack[0], found)
            elif self.comparing is not None:
                chances = np.empty((len(rows), self.n_known))
                predictions = self._predict(rows, stack[0], chances)
                found[:, 2:] = chances
            else:
                predictions = self._predict(rows, stack[0])
                found[:, 2:] = probabilities(stack[0], self.stored["calibration"])
        _require_finite(stack[0])
        return predictions, stack, found

    def _admitted(self, rows: Rows | Event) -> Rows | RowBuffer:
        """Return rows as far as they can be prepared without learning from them.

        Rows to be expanded are returned as they are, since their expansion learns statistics.
        """
        copies = self.expansion is not None or self.replay is not None
        given = rows.rows if copies and isinstance(rows, Event) else rows
        if self.expansion is None:
            return self._prepare(given)
        assert isinstance(given, Rows)
        self._require_ratings(given)
        self._require_dense(given)
        self._provide_inputs(given.n_features)
        return given

    def _admitted_with(self, rows: Rows | Event, labels: Sequence[Label]) -> Rows | RowBuffer:
        """Return admitted rows, with the capacity for them and for these labels."""
        given = self._admitted(rows)
        self.require_admissible(labels)
        n_classes, n_features = self.classes.count_with(labels), self.n_features_of(given)
        if given.ratings is not None or not self._has_capacity(n_classes, n_features):
            self.reserve(n_classes, n_features, given.n_sub_experts, ahead=True)
        return given

    def n_features_of(self, rows: Rows | RowBuffer) -> int:
        """Return the number of features of admitted rows in trials."""
        return rows.n_features if self.expansion is None else self.width_of(rows.n_features)

    def _ready(
        self,
        rows: Rows | RowBuffer,
        labels: Sequence[Label],
        weights: npt.NDArray[np.float64] | None,
    ) -> Rows | RowBuffer | Interleaved:
        """Return admitted rows as trials learn them, among earlier rows if these are replayed."""
        if isinstance(rows, RowBuffer):
            return rows
        if self.replay is not None and self._replays:
            return self._among_earlier(rows, labels, weights)
        return self._expanded_if_asked(rows, weights, self._telling(labels))

    def _among_earlier(
        self, rows: Rows, labels: Sequence[Label], weights: npt.NDArray[np.float64] | None
    ) -> Interleaved:
        """Return rows as trials learn them, each with those that are learnt again after it."""
        order, _ = self._arranged(len(rows))
        mixed, all_weights = self._interleaved(order, rows, weights)
        codes = NO_CODES
        if self.is_informed:
            codes = order.of(self.stored["replay.codes"], self._telling(labels))
        expanded = self._expanded_if_asked(mixed, all_weights, codes, order.again)
        assert isinstance(expanded, Rows)
        return Interleaved(expanded, rows, order, all_weights)

    def _expanded_if_asked(
        self,
        rows: Rows | RowBuffer,
        weights: npt.NDArray[np.float64] | None,
        codes: npt.NDArray[np.int32] = NO_CODES,
        again: npt.NDArray[np.bool_] = NONE_AGAIN,
    ) -> Rows | RowBuffer:
        """Return rows, expanded if they are to be, and learn the statistics of their inputs."""
        if self.expansion is None or isinstance(rows, RowBuffer):
            return rows
        return self._in_blocks(rows, learns=True, codes=codes, weights=weights, again=again)

    def _telling(self, labels: Sequence[Label]) -> npt.NDArray[np.int32]:
        """Return the numbers of the classes of rows if the expansion learns from them."""
        return self.classes.numbers_with(labels) if self.is_informed else NO_CODES

    def _in_blocks(self, rows: Rows, **learning: Any) -> Rows:
        """Return expanded rows with the ratings of the rows."""
        expanded = self._expanded(rows, lists_zeros=self._reads_zeros, **learning)
        return expanded if rows.ratings is None else replace(expanded, ratings=rows.ratings)

    @cached_property
    def _reads_zeros(self) -> bool:
        """Whether features of value 0 of expanded rows have an effect."""
        return self.preconditioner.is_full or not all(m.zero_at_zero for m in self._maps)

    def _kept_for_faults(self) -> Any:
        """Return the statistics of inputs if trials may end early, for they run ahead of these."""
        expands = self.expansion is not None and self._has_functions
        return (self._kept_statistics(), self.n_trials) if expands else None

    def _undo_expansion(
        self,
        kept: Any,
        rows: Any,
        labels: Sequence[Label],
        weights: npt.NDArray[np.float64] | None,
    ) -> None:
        """Restore the statistics of inputs to those of the rows that were learnt."""
        statistics, n_before = kept
        n_learnt = self.n_trials - n_before
        if n_learnt < len(rows):
            self._put_statistics(statistics)
            some = None if weights is None else weights[:n_learnt]
            codes = self._telling(labels)[:n_learnt]
            self._in_blocks(rows[:n_learnt], learns=True, codes=codes, weights=some)

    def expect(self, labels: Sequence[Label], n_features: int, n_sub_experts: int = 0) -> None:
        """Provide capacity for rows, and the compiled loops, without learning or counting any.

        Raises
        ------
        KeslerError
            If a label would be refused.
        """
        with self.lock:
            self.require_admissible(labels)
            self.reserve(self.classes.count_with(labels), n_features, n_sub_experts, ahead=True)
            _ = self._trials
            self.load_estimates()

    def _learn_in_runs(
        self,
        runs: Iterable[tuple[slice, Any]],
        labels: Sequence[Label],
        weights: npt.NDArray[np.float64] | None,
        answers: Callable[[npt.NDArray[np.int32]], Answers],
        *results: Any,
    ) -> Learnt:
        """Learn runs of rows, given as pairs of a slice and its rows; each is taken in its turn."""
        found = []
        for run, piece in runs:
            some = None if weights is None else weights[run]
            own = (each[run] for each in results)
            found.append(self._learn(piece, labels[run], some, answers, *own))
        predictions, codes = zip(*found, strict=True)
        return np.concatenate(predictions), np.concatenate(codes)

    def _runs(self, rows: Any, labels: Sequence[Label]) -> Iterator[tuple[slice, Any]] | None:
        """Return the runs of rows before which something of them is written, None if there is none.

        Yield, in turn, the slice of each and its rows.
        """
        if self.prices_targets:
            return self._runs_of_targets(rows, labels)
        return self._runs_of_unseen(rows, labels) if self.on_new_class == "unseen" else None

    def _runs_of_targets(self, rows: Any, labels: Sequence[Label]) -> Iterator[tuple[slice, Any]]:
        """Yield runs of one target each, whose margins are written before the run."""
        end = 0
        for _, same in groupby(labels):
            start, end = end, end + len([*same])
            run = slice(start, end)
            yield run, rows if end - start == len(labels) else rows[run]

    def _runs_of_unseen(self, rows: Any, labels: Sequence[Label]) -> Iterator[tuple[slice, Any]]:
        """Yield runs in which the first row of a class has the ratings of an unseen class."""
        from kesler.learner.unseen import rated_as_unseen, runs_of

        self.require_admissible([*labels, *rows.ratings.labels])
        self.reserve(self.classes.count_with(labels), rows.n_features, rows.n_sub_experts)
        unseen = self.parts[0].feature_map.unseen  # type: ignore[union-attr]
        for run, is_first in runs_of(self.classes, labels):
            piece = rows[run]
            if is_first and len(self.classes):
                weights = self.weights[: rows.n_sub_experts, 0].astype(np.float64)
                if unseen is not None:  # ours depends on the ratios of weights alone
                    weights *= self.scale
                label = labels[run.start]
                ratings = rated_as_unseen(piece.ratings, label, self.classes, weights, unseen)
                piece = replace(piece, ratings=ratings)
            yield run, piece

    def _learn(
        self,
        rows: Rows | RowBuffer | Interleaved,
        labels: Sequence[Label],
        weights: npt.NDArray[np.float64] | None,
        answers: Callable[[npt.NDArray[np.int32]], Answers],
        scores: npt.NDArray[np.float32],
        probabilities: npt.NDArray[np.float64],
    ) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
        if isinstance(rows, Interleaved):
            return self._learn_again(rows, labels, scores, probabilities)
        codes, blocks = self._encode(rows, labels)
        if self.prices_targets:
            self._price_target(int(codes[0]))
        encoded = encoded_targets_of(answers(codes), weights, self._class_capacity)
        task = task_of(blocks, encoded, len(rows), scores, probabilities)
        self._run(task)
        return task.arrays.predictions, codes

    def _learn_again(
        self,
        rows: Interleaved,
        labels: Sequence[Label],
        scores: npt.NDArray[np.float32],
        probabilities: npt.NDArray[np.float64],
    ) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
        """Learn new rows and replayed ones in their order, and return what was said of new rows."""
        order, n_before = rows.order, self.n_trials
        codes, blocks = self._encode(rows.rows, labels)
        all_answers = Answers.of_classes(order.of(self.stored["replay.codes"], codes))
        encoded = encoded_targets_of(all_answers, rows.weights, self._class_capacity, order.again)
        results = order.room_for(scores), order.room_for(probabilities)
        task = task_of(blocks, encoded, len(order), *results)
        self._run(task)
        self._keep(rows, codes, self.n_trials - n_before)
        is_new = ~order.again
        scores[:], probabilities[:] = (each[is_new[: len(each)]] for each in results)
        return task.arrays.predictions[is_new], codes

    def learn_event(self, label: Label) -> int | None:
        """Learn the event of this learner from a known class; the lock must be held.

        This does what `learn` does, without the steps in Python that only new classes, and features
        beyond the capacity, require.

        Returns
        -------
        The predicted class number, or None if nothing was learnt because these steps are required.
        """
        if self.expansion is not None or self.replay is not None:
            return None
        if self.comparing is not None or self.ranks is not None or self.prices_targets:
            return None
        code, row_buffer = self.classes.code(label), self._lay_out(self.event)
        if code is None or not self._has_capacity(len(self.classes), row_buffer.n_features):
            return None
        self._count(row_buffer.n_features, 0)
        observed = self.uncertainty if self.observes else None
        if observed is None:
            task = row_buffer.trial(code, self._class_capacity)
            self._run(task)
        else:
            task, scores = row_buffer.scored_trial(code, self._class_capacity)
            inputs = observed.inputs_of(self.event) if observed.remembers else NO_INPUTS
            n_before = self.n_trials
            with Postponed():
                self._run(task)
                if self.n_trials > n_before:  # otherwise a user-defined function failed
                    observed.observe_event(self.classes, task.arrays, scores, inputs)
        self._require_finite_steps()
        return int(task.arrays.predictions[0])

    @cached_property
    def learns_events(self) -> bool:
        """Whether an ensemble can let it learn rows with the same arrays, if it replays none."""
        asks_more = self.ranks is not None or self.prices_targets or self.on_new_class == "unseen"
        has_more = self.takes_ratings or self.comparing is not None
        return not (asks_more or has_more or self._has_functions)

    def _run(self, task: Any) -> None:
        """Run trials; the capacity suffices for their classes, groups and features."""
        self._trials.learn(self._kernel_arguments.address, task.address)
        # Trials stop when the capacity for entries is exhausted, or a user-defined function fails.
        while (
            self.sparse is not None
            and self.sparse.n_done < len(task.arrays.predictions)
            and not self._has_fault
        ):
            task = task_of_rows(task, slice(self.sparse.n_done, None))
            with Postponed():
                self.sparse.reserve_as_asked()
                self._bind()
            self._trials.learn(self._kernel_arguments.address, task.address)

    def _is_to_compare(self, labels: Sequence[Label]) -> bool:
        if self.comparing is not None or self.candidates is None:
            return self.comparing is not None
        return self.classes.count_with(labels) - self.classes.n_virtual > self.candidates.beyond

    def _learn_in_parts(self, *learning: Any) -> Learnt:
        from kesler.learner.compared import learn_in_parts

        return learn_in_parts(self, *learning)

    def _encode(
        self, rows: Rows | RowBuffer, labels: Sequence[Label]
    ) -> tuple[npt.NDArray[np.int32], Any]:
        """Provide capacity; return the numbers of the labels, and the rows for compiled code.

        If the labels or the ratings of the rows are refused, the labels are not stored.
        """
        n_before = len(self.classes)
        codes = self.classes.known(labels)
        if (
            codes is not None
            and rows.ratings is None
            and self._has_capacity(n_before, rows.n_features)
        ):
            self._count(rows.n_features, 0)
            return codes, self._blocks(rows)
        try:
            codes = self.classes.encode(labels)
            blocks = self._blocks(rows)
            joined = self._groups_of_new(n_before)
            self.reserve(len(self.classes), rows.n_features, rows.n_sub_experts)
            self._price(n_before)
            self._join(joined, n_before)
        except BaseException:
            self.classes.forget_from(n_before)
            raise
        if len(self.classes) > n_before:
            self._place_ranks()
        return codes, blocks

    def _blocks(self, rows: Rows | RowBuffer) -> Any:
        """Return rows as compiled code takes them, with ratings of the classes seen so far."""
        if isinstance(rows, RowBuffer):
            return rows.rows
        ratings = rows.ratings
        if ratings is None:
            return self._kernels.Blocks(rows.indptr, rows.indices, rows.values, no_ratings())
        self.classes.require_admissible(ratings.labels)
        vectors = ratings.vectors
        given = self._kernels.Ratings(
            ratings.starts,
            ratings.numbers_of_rated(self.classes.code),
            vectors.indptr,
            vectors.indices,
            vectors.values,
        )
        return self._kernels.Blocks(rows.indptr, rows.indices, rows.values, given)

    def assess(self, rows: Rows | Event) -> Assessment:
        """Return what is said of rows; the learner must have estimates of uncertainty."""
        if self.comparing is None or self.has_sets:
            return super().assess(rows)
        from kesler.learner.compared import assess

        return assess(self, rows)

    def measure(
        self,
        rows: Rows,
        labels: Sequence[Label],
        answers: Callable[[npt.NDArray[np.int32]], Answers],
        squared_lengths: npt.NDArray[np.float64],
        exponent: float = 2.0,
    ) -> npt.NDArray[np.float64]:
        """Run trials of known classes without updates; return their margins.

        Parameters
        ----------
        rows, labels, answers : as in `learn`.
        squared_lengths : array of shape (2,) that receives the largest squared length of a view,
            and of the difference of two views that a target compares, if larger than its values.
        exponent : exponent of the norm of these differences.

        Returns
        -------
        The smallest difference of scores that a target of each row demands, infinite if it compares
        no classes; shape (n_rows,).
        """
        from kesler.compiled.trial.measures import measure

        margins = np.empty(len(rows))
        settings = {
            "rule.selection": selection_code("all"),
            "rule.requires": requirement_code("norms"),
            "link.exponent": exponent,
            "link.factor": 1.0,
            "link.is_exact": 0,
            "preconditioner.kind": 0,
            "preconditioner.unit": 0,
            "preconditioner.is_paced": 0,
        }
        learner = bind(LearnerRecord, self._values | converted(LearnerRecord, settings))
        given = self._admitted_with(rows, labels)
        blocks = self._blocks(self._expanded_if_asked(given, None, self._telling(labels)))
        encoded = encoded_targets_of(
            answers(self.classes.encode(labels)), None, self._class_capacity
        )
        measure(learner, blocks, encoded, margins, squared_lengths)
        self._require_no_faults()
        return margins

    def recompute(self) -> None:
        """Recompute the values that maps read from statistics, after these were mixed."""
        if self.n_pooled:
            from kesler.compiled.trial.recompute import recompute

            recompute(self._record)

    def rewind(self) -> None:
        """Reset the counts and statistics of rows, but not what was learnt from them."""
        reset = ("counts", "statistics.", "preprocessing.", "expansion.", "relevance.")
        for name, array in self.stored.items():
            saved = name == "counts" or self._fields[name].saved
            if saved and name.startswith(reset):
                array[:] = np.zeros(1, array.dtype)[0]
        self._fill({n: f for n, f in self._fields.items() if n.startswith("relevance.")})

    def predict(self, rows: Rows | Event) -> npt.NDArray[np.int32]:
        """Return the number of the class of highest score of each row."""
        return self._predict(rows, NO_SCORES)

    def scores(self, rows: Rows | Event) -> npt.NDArray[np.float32]:
        """Return the scores of the known classes, shape (n_rows, n_classes).

        Raises
        ------
        KeslerError
            If a score is not a number that float32 can hold: values of the row are too large.
        """
        with self.lock:
            scores = np.empty((len(rows), self.n_known), dtype=np.float32)
            self._predict(rows, scores)
        _require_finite(scores)
        return scores

    def probabilities(self, rows: Rows | Event) -> npt.NDArray[np.float64]:
        """Return the probabilities of the known classes, shape (n_rows, n_classes)."""
        with self.lock:
            if not self.has_sets and self.comparing is None:
                return probabilities(self.scores(rows), self.stored["calibration"])
            scores = np.empty((len(rows), self.n_known), dtype=np.float32)
            found = np.empty(scores.shape)
            self._predict(rows, scores, found)
        _require_finite(scores)
        return found

    def _predict(
        self,
        rows: Rows | Event,
        scores: npt.NDArray[np.float32],
        probabilities: npt.NDArray[np.float64] = NO_PROBABILITIES,
    ) -> npt.NDArray[np.int32]:
        with self.lock:
            task = self._scoring_task(rows, scores, probabilities)
            if self.comparing is not None:
                from kesler.learner.compared import predict

                predict(self, task)
            else:
                self._trials.predict(self._kernel_arguments.address, task.address)
            if self._faults:
                self._require_no_faults()
            found: npt.NDArray[np.int32] = task.arrays.predictions
        return found

    def _scoring_task(
        self,
        rows: Rows | Event,
        scores: npt.NDArray[np.float32] = NO_SCORES,
        probabilities: npt.NDArray[np.float64] = NO_PROBABILITIES,
    ) -> Any:
        """Return the task of scoring rows, whose new features are replaced by an unseen one."""
        known = self._prepare(rows, unseen=self.n_features)
        if isinstance(known, RowBuffer):
            return known.scoring(scores, probabilities)
        return task_of(self._blocks(known), no_targets(), len(rows), scores, probabilities)

    @cached_property
    def _row_buffer(self) -> RowBuffer:
        return RowBuffer(self.constant, keeps_zeros=self._looks_at_zeros is not None)

    @cached_property
    def _looks_at_zeros(self) -> tuple[str, str] | None:
        return self._why_dense()

    def _prepare(self, rows: Rows | Event, *, unseen: int = MAX_FEATURES) -> Rows | RowBuffer:
        """Return rows with the constant feature; zeros are listed only if something reads them.

        Features from number `unseen` on are replaced by it, and unseen sub-experts likewise.
        """
        if isinstance(rows, Event):
            if self.expansion is None:
                return self._lay_out(rows, unseen)
            rows = rows.rows
        self._require_ratings(rows)
        self._require_dense(rows)
        if not self.counts_words:
            rows = rows.with_presence()
        if self.expansion is not None:
            rows = self._in_blocks(rows)
        elif self.constant:
            rows = rows.with_constant(self.constant)
        rows = rows.with_unseen_as(unseen)
        if rows.ratings is not None:
            ratings = rows.ratings.without_zeros()
            if unseen < MAX_FEATURES:
                ratings = ratings.with_unseen_as(self.n_sub_experts)
            rows = replace(rows, ratings=ratings)
        return rows.without_zeros() if self._looks_at_zeros is None else rows

    def _lay_out(self, event: Event, unseen: int = MAX_FEATURES) -> RowBuffer:
        """Return the row buffer with an event, prepared as `_prepare` does for rows."""
        self._require_ratings(event)
        self._require_dense(event)
        self._row_buffer.put(event, unseen, counts=self.counts_words or not event.of_words)
        return self._row_buffer

    @property
    def _weighing(self) -> Any:
        """The part that has a weight for each feature, None without any."""
        part = self.preprocessing
        return part if isinstance(part, Ranges) and part.weights is not None else None

    def _require_dense(self, rows: Rows | Event) -> None:
        """Raise if rows do not list zeros and something reads them, or lack a weighed feature."""
        if self._weighing is not None:
            require_width(self._weighing, rows.n_features)
        if self._looks_at_zeros is not None and not rows.dense:
            looking, other = self._looks_at_zeros
            raise KeslerError(
                f"{looking}, so it cannot be used with sparse rows, whose zeros are not listed: "
                f"pass dense rows or choose another, for example {other}"
            )

    def _require_weighable(self, weights: npt.NDArray[np.float64] | None) -> None:
        """Raise if rows have sample weights that the rule would ignore."""
        if self.rule.update is not None and weights is not None and not (weights == 1).all():
            raise KeslerError(
                f"{self.rule!r} computes its own updates and ignores sample weights: leave "
                "sample_weight out, or choose a quasi-additive algorithm"
            )

    def _require_ratings(self, rows: Rows | Event) -> None:
        """Raise unless rows have ratings exactly if a part reads them."""
        if rows.ratings is None and self.takes_ratings:
            raise KeslerError(
                "this learner has sub-experts, but the rows have no ratings: pass "
                "kesler.Ratings, or mappings {label: ratings}, or choose other hypotheses"
            )
        if rows.ratings is not None and not self.takes_ratings:
            raise KeslerError(
                "the rows have ratings by sub-experts, but no part of this learner reads them: "
                "choose hypotheses='sub-experts', or add Shared(SubExperts()) to the list"
            )

    def _why_dense(self) -> tuple[str, str] | None:
        """Return what reads zeros, and an alternative that does not; None if nothing does."""
        looking = next((m for m in self._maps if not m.zero_at_zero), None)
        if looking is not None:
            return f"the feature map {looking!r} is not zero at zero", "'frequency'"
        if self.preconditioner.is_full:
            return f"the preconditioner {self.preconditioner!r} is not zero at zero", "'adagrad'"
        if self.preprocessing is not None and not self.preprocessing.zero_at_zero:
            return f"the preprocessing {self.preprocessing!r} is not zero at zero", "'counts'"
        return None

    # ---- ranks ------------------------------------------------------------------------------

    @property
    def thresholds(self) -> npt.NDArray[np.float32] | None:
        """The thresholds between the known ranks, in order; None without ordered parts."""
        if not any(isinstance(part, Ordered) for part in self.parts):
            return None
        with self.lock:
            total = self._sums_of_thresholds()[self.stored["ranks.order"][1 : self.n_known]]
            factor = np.float32(self.constant)
        thresholds: npt.NDArray[np.float32] = -factor * total
        return thresholds

    def _sums_of_thresholds(self) -> npt.NDArray[np.floating[Any]]:
        """Return minus the thresholds in units of the constant, by class, summed over parts."""
        weights = self._mean_weights(0) if self.averaged else self.weights[0] * self.scale
        starts = [self._offsets[i] + 1 for i, p in enumerate(self.parts) if isinstance(p, Ordered)]
        return np.asarray(sum(weights[start : start + self.n_known] for start in starts))

    def _mean_weights(self, feature: int) -> npt.NDArray[np.float64]:
        """Return the means of the weights of a feature after each trial."""
        weights, states = self.weights[feature], self.stored["weights.states"][:, feature]
        n_trials = max(1, self.n_trials)
        if isinstance(self.link, Linear):
            return np.asarray(weights - states[0] / n_trials)
        scaled = self.has_scaled_means
        passed = float(self.stored["link.means"]["passed"][0]) if scaled else float(self.n_trials)
        return np.asarray((states[1] + weights * (passed - states[2])) / n_trials)


def _require_finite(scores: npt.NDArray[np.float32]) -> None:
    """Raise unless all scores are finite."""
    finite = np.isfinite(scores)
    if not finite.all():
        row = int(np.flatnonzero(~finite.all(axis=1))[0])
        raise KeslerError(
            f"row {row} has values so large that a score of it is not a number that float32 can "
            "hold: rescale the features"
        )

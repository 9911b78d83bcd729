"""The machine: where hypotheses, maps, rule and classes meet in one compiled trial."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, get_args

import numpy as np
import numpy.typing as npt

from kesler.answers import Answers, Kind
from kesler.calibration import probabilities
from kesler.classes import ClassTable, Label, Newcomers
from kesler.combinations import (
    require_conceivable,
    require_measurable,
    require_priceable,
    require_rest,
)
from kesler.conditioning import Conditioning
from kesler.constraints import selection_code, sight_code
from kesler.costs import Costs
from kesler.errors import KeslerError
from kesler.events import (
    NO_PROBABILITIES,
    NO_SCORES,
    Desk,
    Event,
    heard_of,
    no_ratings,
    nothing_heard,
    task_of,
    task_of_rows,
)
from kesler.forgetting import require_forgettable
from kesler.geometry import EUCLIDEAN, Metric
from kesler.hypotheses import (
    Grouped,
    Ordered,
    Part,
    PerClass,
    Shared,
)
from kesler.links import CustomLink, Linear, Link, require_compatible
from kesler.maps import FeatureMap
from kesler.memory import STATISTICS, Memory, layers_of
from kesler.room import aligned_zeros
from kesler.rows import MAX_FEATURES, Rows
from kesler.updates import UpdateRule

if TYPE_CHECKING:
    from types import ModuleType

LINEAR = Linear()


class Machine(Memory):
    """One learner: its trials, and the memory that they move.

    Parameters
    ----------
    parts : the hypotheses, whose scores add up.
    rule : how far to move.
    classes : the classes known from the start.
    constant : the value of a feature that every row is given before its own, 0 for none; its
        weights are the intercepts.
    answer : what an answer is, and so what it compares.
    link : the geometry in which the rule moves.
    averaged : whether predictions are made by the mean of the weights after each trial.
    costs : what confusions cost, None for 1 each.
    metric : one step size for each weight.
    newcomers : what the first instance of a class does; see :data:`kesler.classes.Newcomers`.
    conditioning : what is done to rows before their trials, None for nothing.
    half_life : after how many rows what was learnt counts half, None for never.

    Raises
    ------
    KeslerError
        If rule, link, metric, average, costs, newcomers and ordered hypotheses do not go together;
        the sentence says why.

    Notes
    -----
    Threads: kernels run without Python's lock, and each learns or predicts alone, so that one
    thread may predict while another learns.
    """

    def __init__(
        self,
        parts: Sequence[Part],
        rule: UpdateRule,
        classes: ClassTable,
        constant: float = 0.0,
        *,
        answer: Kind = "class",
        link: Link = LINEAR,
        averaged: bool = False,
        costs: Costs | None = None,
        metric: Metric = EUCLIDEAN,
        newcomers: Newcomers = "wait",
        conditioning: Conditioning | None = None,
        half_life: float | None = None,
    ) -> None:
        require_compatible(link, rule, averaged=averaged)
        require_measurable(metric, rule, link, parts)
        require_priceable(costs, rule)
        require_rest(rule, link, answer)
        require_conceivable(newcomers, rule, link, costs, answer)
        require_forgettable(half_life, rule, link, averaged=averaged)
        super().__init__(
            parts,
            rule,
            classes,
            constant,
            answer=answer,
            link=link,
            averaged=averaged,
            costs=costs,
            metric=metric,
            newcomers=newcomers,
            conditioning=conditioning,
            half_life=half_life,
        )
        self._require_thresholds()

    # ---- trials -----------------------------------------------------------------------------

    def learn(
        self,
        rows: Rows | Event,
        labels: Sequence[Label],
        weights: npt.NDArray[np.float64] | None = None,
        answers: Callable[[npt.NDArray[np.int32]], Answers] = Answers.of_classes,
        scores: npt.NDArray[np.float32] = NO_SCORES,
        chances: npt.NDArray[np.float64] = NO_PROBABILITIES,
    ) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
        """Run one trial a row; return the class number predicted in each, and those of the labels.

        Either every row is learnt or, if a row or a label is refused, none.

        Parameters
        ----------
        rows : the instances; of an event, the one, that of this machine.
        labels : the labels that the answers name, one answer after the other.
        weights : of the rows, above 0; None for 1.
        answers : makes the answers of the numbers of these labels.
        scores : of shape (n_rows, n_classes) or (0, 0); is filled with the scores that each row
            was given before its answer was heard, of the classes known by then.
        chances : of shape (n_rows, 2), (n_rows, 2 + n_classes) or (0, 2); is filled with the
            probabilities, before the answer was heard, of the class predicted and of the answer,
            NaN if it was not known, and of each class known by then.

        Returns
        -------
        Class numbers of shape (n_rows,), -1 where no class was known, and of shape (n_labels,).
        """
        self._require_weighable(weights)
        with self.lock:
            found = self._learn(self._prepare(rows), labels, weights, answers, scores, chances)
            self._require_finite_steps()
        return found

    def _learn(
        self,
        rows: Rows | Desk,
        labels: Sequence[Label],
        weights: npt.NDArray[np.float64] | None,
        answers: Callable[[npt.NDArray[np.int32]], Answers],
        scores: npt.NDArray[np.float32],
        chances: npt.NDArray[np.float64],
    ) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
        codes, blocks = self._meet(rows, labels)
        if self.averaged:
            self._forget_mean()
        heard = heard_of(answers(codes), weights, self._class_room)
        task = task_of(blocks, heard, len(rows), scores, chances)
        self._run(task)
        return task.arrays.predictions, codes

    def learn_event(self, label: Label) -> int | None:
        """Learn this machine's event, under its lock, if that asks for nothing new.

        The short way of an answer that names one class: what `learn` does, without the steps of
        Python that only classes not met, and features for which there is no room, ask for.

        Returns
        -------
        The class number predicted, or None if nothing was learnt, since they do.
        """
        code, desk = self.classes.code(label), self._lay_out(self.event)
        if code is None or not self._has_room(len(self.classes), desk.n_features):
            return None
        self._count(desk.n_features, 0)
        if self.averaged:
            self._forget_mean()
        task = desk.trial(code, self._class_room)
        self._run(task)
        self._require_finite_steps()
        return int(task.arrays.predictions[0])

    def _run(self, task: Any) -> None:
        """Run the trials, for whose classes, groups and features there is room."""
        self._kernels.learn(self._lent.address, task.address)
        # Trials stop where there is no room for entries.
        while self.sparse is not None and self.sparse.n_done < len(task.arrays.predictions):
            task = task_of_rows(task, slice(self.sparse.n_done, None))
            self.sparse.make_room_asked_for()
            self._bind()
            self._kernels.learn(self._lent.address, task.address)

    def _meet(
        self, rows: Rows | Desk, labels: Sequence[Label]
    ) -> tuple[npt.NDArray[np.int32], Any]:
        """Make room for rows and labels; return the labels' numbers, and rows as kernels take them.

        Labels are not kept if they, or what the rows say of classes, are refused.
        """
        n_before = len(self.classes)
        codes = self.classes.known(labels)
        if codes is not None and rows.ratings is None and self._has_room(n_before, rows.n_features):
            self._count(rows.n_features, 0)
            return codes, self._blocks(rows)
        try:
            codes = self.classes.encode(labels)
            blocks = self._blocks(rows)
            joined = self._groups_of_new(n_before)
            self.make_room(len(self.classes), rows.n_features, rows.n_sub_experts)
            self._price(n_before)
            self._join(joined)
        except BaseException:
            self.classes.forget_from(n_before)
            raise
        if len(self.classes) > n_before:
            self._place_ranks()
        return codes, blocks

    def _blocks(self, rows: Rows | Desk) -> Any:
        """Return rows as the kernels take them, with ratings for the classes met by now."""
        if isinstance(rows, Desk):
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

    def measure(
        self,
        rows: Rows,
        labels: Sequence[Label],
        answers: Callable[[npt.NDArray[np.int32]], Answers],
        squared_lengths: npt.NDArray[np.float64],
        exponent: float = 2.0,
    ) -> npt.NDArray[np.float64]:
        """Go through trials of classes that have been met without moving; return their margins.

        Parameters
        ----------
        rows, labels, answers : as in `learn`.
        squared_lengths : of shape (2,); is raised to the largest squared length of a view, and of
            the difference of two views that an answer compares.
        exponent : of the norm in which such differences are measured.

        Returns
        -------
        How far the scores of the worst pair of classes in each row are apart the right way,
        infinite where the answer compares none; shape (n_rows,).
        """
        from kesler.compiled.measures import measure

        margins = np.empty(len(rows))
        every_pair = [0, selection_code("all"), sight_code("norms"), 0]
        learner = self._learner._replace(
            rule=np.array(every_pair, dtype=np.int64),
            geometry=np.array([exponent, 1.0]),
            metric=np.array(EUCLIDEAN.codes),
        )
        blocks = self._blocks(self._prepare(rows))
        heard = heard_of(answers(self.classes.encode(labels)), None, self._class_room)
        measure(learner, blocks, heard, margins, squared_lengths)
        return margins

    def restate(self) -> None:
        """Compute anew what maps read of statistics that were put together from parts."""
        if self._pooled.shape[1]:
            from kesler.compiled.restated import restate

            restate(self._learner)

    def rewind(self) -> None:
        """Forget what was seen, but not what was learnt: the same rows are then new once more."""
        self._sums[:] = 0
        self._totals[:] = 0
        for kept in (self._pooled, self._moments, self._amounts, self._divisors):
            kept[:] = 0
        self._past[:] = 0
        self._past_rows[:] = 0
        self.counters[:] = 0

    def predict(self, rows: Rows | Event) -> npt.NDArray[np.int32]:
        """Return the class number of highest score of each row, changing nothing."""
        return self._predict(rows, NO_SCORES)

    def scores(self, rows: Rows | Event) -> npt.NDArray[np.float32]:
        """Return the score of each known class, by number, shape (n_rows, n_classes)."""
        with self.lock:
            scores = np.empty((len(rows), self.n_known), dtype=np.float32)
            self._predict(rows, scores)
        return scores

    def probabilities(self, rows: Rows | Event) -> npt.NDArray[np.float64]:
        """Return the probability of each known class, by number, shape (n_rows, n_classes)."""
        with self.lock:
            return probabilities(self.scores(rows), self._calibration)

    def _predict(
        self, rows: Rows | Event, scores: npt.NDArray[np.float32]
    ) -> npt.NDArray[np.int32]:
        with self.lock:
            known = self._prepare(rows, unseen=self.n_features)
            if isinstance(known, Desk):
                task = known.scoring(scores)
            else:
                task = task_of(self._blocks(known), nothing_heard(), len(rows), scores)
            self._kernels.predict(self._lent_reader.address, task.address)
            found: npt.NDArray[np.int32] = task.arrays.predictions
        return found

    @cached_property
    def _desk(self) -> Desk:
        return Desk(self.constant, keeps_zeros=self._looks_at_zeros is not None)

    @cached_property
    def _looks_at_zeros(self) -> tuple[str, str] | None:
        return self._why_dense()

    def _prepare(self, rows: Rows | Event, *, unseen: int = MAX_FEATURES) -> Rows | Desk:
        """Return the rows as the kernels read them: zeros listed only where a map looks at them.

        Features from number `unseen` on become that one, and sub-experts not met likewise.
        """
        if isinstance(rows, Event):
            return self._lay_out(rows, unseen)
        self._require_ratings(rows)
        self._require_dense(rows)
        if self.constant:
            rows = rows.with_constant(self.constant)
        rows = rows.with_unseen_as(unseen)
        if rows.ratings is not None:
            ratings = rows.ratings.without_zeros()
            if unseen < MAX_FEATURES:
                ratings = ratings.with_unseen_as(self.n_sub_experts)
            rows = replace(rows, ratings=ratings)
        return rows.without_zeros() if self._looks_at_zeros is None else rows

    def _lay_out(self, event: Event, unseen: int = MAX_FEATURES) -> Desk:
        """Return an event as the kernels read it, as `_prepare` returns rows."""
        self._require_ratings(event)
        self._require_dense(event)
        self._desk.put(event, unseen)
        return self._desk

    def _require_dense(self, rows: Rows | Event) -> None:
        """Raise if rows leave out zeros, and something looks at them."""
        if self._looks_at_zeros is not None and not rows.dense:
            looking, other = self._looks_at_zeros
            raise KeslerError(
                f"{looking}, so it cannot be used with sparse rows, whose zeros are not listed: "
                f"give dense rows or choose another, {other} for instance"
            )

    def _require_weighable(self, weights: npt.NDArray[np.float64] | None) -> None:
        """Raise if rows have weights that the rule would not notice."""
        if self.rule.update is not None and weights is not None and not (weights == 1).all():
            raise KeslerError(
                f"{self.rule!r} moves weights by itself and knows no weights of rows: leave "
                "sample_weight out, or choose a quasi-additive algorithm"
            )

    def _require_ratings(self, rows: Rows | Event) -> None:
        """Raise unless rows bring ratings if, and only if, a part looks at them."""
        if rows.ratings is None and self.takes_ratings:
            raise KeslerError(
                "this learner has sub-experts, but the rows bring no ratings: give "
                "kesler.Ratings, or mappings {label: ratings}, or choose other hypotheses"
            )
        if rows.ratings is not None and not self.takes_ratings:
            raise KeslerError(
                "the rows bring ratings by sub-experts, but no part of this learner looks at them: "
                "choose hypotheses='sub-experts', or add Shared(SubExperts()) to the list"
            )

    def _why_dense(self) -> tuple[str, str] | None:
        """Return what looks at zeros, and what would not; None if nothing does."""
        looking = next((m for m in self._maps if not m.zero_at_zero), None)
        if looking is not None:
            return f"the feature map {looking!r} is not zero at zero", "'frequency'"
        if self.conditioning is not None and not self.conditioning.zero_at_zero:
            return f"the conditioning {self.conditioning!r} is not zero at zero", "'counts'"
        return None

    def _require_finite_steps(self) -> None:
        if self.counters[3]:
            self.counters[3] = 0
            raise KeslerError(
                f"a step of the rule {self.rule!r}, a score, or what a feature map made of a row "
                "was no number that float32 can hold; such steps were not taken: use a capped rule "
                "such as pa1, rescale the features, or mend the map"
            )

    # ---- ranks ------------------------------------------------------------------------------

    @property
    def thresholds(self) -> npt.NDArray[np.float32] | None:
        """Where one known rank ends and the next begins, in order; None without ordered parts."""
        ordered = [i for i, part in enumerate(self.parts) if isinstance(part, Ordered)]
        if not ordered:
            return None
        with self.lock:
            above_first = 1 + self._ranks[1, 1 : self.n_known]
            weights = self._reader.weights[0]
            total = np.sum([weights[self._offsets[i] + above_first] for i in ordered], axis=0)
        factor = np.float32(self.constant * self.scale)
        thresholds: npt.NDArray[np.float32] = -factor * total
        return thresholds

    def _require_thresholds(self) -> None:
        if not any(isinstance(part, Ordered) for part in self.parts):
            return
        if self.answer != "rank":
            raise KeslerError(
                "Ordered hypotheses need classes that have an order: use OnlineOrdinalClassifier, "
                "or PerClass, Shared and Grouped hypotheses"
            )
        if not isinstance(self.link, Linear):
            raise KeslerError(
                f"Ordered hypotheses have no {self.link!r}: use the linear link, or PerClass, "
                "Shared and Grouped hypotheses"
            )
        if not self.constant:
            raise KeslerError(
                "intercept=0 leaves Ordered hypotheses without thresholds, which are the weights "
                "of the constant feature: give an intercept above 0"
            )

    # ---- binding to the kernels -------------------------------------------------------------

    @cached_property
    def _kernels(self) -> ModuleType:
        # Imported on first use: Numba takes longer to import than the rest of Kesler.
        if self.sparse is not None:
            from kesler.compiled import sparse_trial

            return sparse_trial
        from kesler.compiled import weight_trial

        return weight_trial

    @cached_property
    def _learner(self) -> Any:
        from kesler.compiled.algorithms import algorithm_address

        if self.sparse is not None:
            return self._kernels.SparseLearner(
                algorithm=np.zeros(1, dtype=np.int64),
                **self.sparse.fields(),
                **self._common_fields(),
            )
        update = self.rule.update
        return self._kernels.Learner(
            weights=self.weights,
            states=self._states,
            link=np.array([self._link_address(), self._scale_code]),
            link_parameters=np.array(self.link.parameters, dtype=np.float64),
            numbers=self._numbers,
            is_met=self._is_met,
            met=self._met,
            algorithm=np.array([0 if update is None else algorithm_address(update)]),
            flat_weights=self.weights.reshape(-1),
            flat_states=self._states.reshape(len(self._states), self.weights.size),
            sums=np.zeros(self._feature_room if self.takes_ratings else 0),
            metric=np.array(self.metric.codes),
            metric_numbers=self._metric_numbers,
            metric_parameters=np.array([self.metric.parameter]),
            evidence=self._evidence,
            scales=self._scales,
            listed=self._listed,
            is_listed=self._is_listed,
            beginnings=np.array([getattr(part, "begins_at", 0.0) for part in self.parts]),
            **self._common_fields(),
        )

    def _common_fields(self) -> dict[str, Any]:
        """Return what trials read and move beside the hypotheses, by name."""
        from kesler.compiled.rules import gradient_address, rule_address

        one_per_class = self.answer == "class" and self.parts == [PerClass()]
        rule = self.rule.for_hypotheses(one_per_class=one_per_class)
        selection, sight = selection_code(rule.constraints), sight_code(rule.sees)
        starts, members = self._member_lists()
        return {
            "statistics": self._sums,
            "totals": self._totals,
            "kinds": np.array([STATISTICS.index(s) for s in self.statistics], dtype=np.int64),
            "parts": np.array([self._describe_part(i) for i in range(len(self.parts))]),
            "map_parameters": np.array([_map_parameters(p) for p in self.parts], dtype=np.float32),
            "member_starts": starts,
            "members": members,
            "ranks": self._ranks,
            "rule": np.array(
                [rule_address(rule.steps), selection, sight, gradient_address(rule.gradient)]
            ),
            "rule_parameters": np.array(rule.parameters, dtype=np.float64),
            "margins": self._margins,
            "counters": self.counters,
            "geometry": np.array([self.link.exponent or 2.0, self.link.factor]),
            "newcomers": np.array([get_args(Newcomers).index(self.newcomers)]),
            "pooled": self._pooled,
            "moments": self._moments,
            "amounts": self._amounts,
            "divisors": self._divisors,
            "smoothing": np.array([*self._smoothing, self.constant]),
            "calibration": self._calibration,
            **self._conditioning_fields(),
        }

    def _conditioning_fields(self) -> dict[str, Any]:
        part = self.conditioning
        method, parameters = (part.method, part.parameters) if part is not None else (0, ())
        return {
            "conditioning": np.array([method, bool(self.constant)]),
            "conditioning_parameters": np.array(parameters, dtype=np.float64),
            "past": self._past,
            "past_rows": self._past_rows,
            "forgetting": self._forgetting,
        }

    @cached_property
    def _reader(self) -> Any:
        """What predicts: the learner itself or, with an average, the mean of its weights."""
        if not self.averaged:
            return self._learner
        weights = aligned_zeros(*self.weights.shape)
        weights[:] = self.weights - self._states[0] / max(1, self.n_trials)
        return self._learner._replace(weights=weights)

    @cached_property
    def _lent(self) -> Any:
        return self._lend(self._learner)

    @cached_property
    def _lent_reader(self) -> Any:
        return self._lend(self._reader) if self.averaged else self._lent

    def _lend(self, learner: Any) -> Any:
        from kesler.compiled.borrowed import Lent

        return Lent(self._kernels.lend, learner)

    def _link_address(self) -> int:
        from kesler.compiled.links import link_address

        if isinstance(self.link, Linear):
            return 0
        if isinstance(self.link, CustomLink):
            return link_address(self.link.function, custom=True)
        return link_address(self.link.geometry, custom=False)

    def _describe_part(self, i: int) -> list[int]:
        """Return kind, map (its address or what stands for none), statistic, column and columns."""
        from kesler.compiled.learner import GIVEN, ITSELF
        from kesler.compiled.maps import map_address

        part, columns = self.parts[i], [self._offsets[i], self._width(i)]
        kind = [PerClass, Shared, Grouped, Ordered].index(type(part))
        if isinstance(part.feature_map, FeatureMap):
            view = part.feature_map
            layer = self.statistics.index(layers_of(view.statistic)[0])
            return [kind, map_address(view.g, view.looks_at), layer, *columns]
        return [kind, ITSELF if part.feature_map is None else GIVEN, 0, *columns]

    def _member_lists(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Return where each class's groups begin in one list, for each part, and that list."""
        starts = np.zeros((len(self.parts), self._class_room + 1), dtype=np.int64)
        members: list[int] = []
        for i, classes in enumerate(self.memberships):
            starts[i, 0] = len(members)
            for code, columns in enumerate(classes):
                members.extend(columns)
                starts[i, code + 1] = len(members)
            starts[i, len(classes) + 1 :] = len(members)
        return starts, np.array(members, dtype=np.int64)


def _map_parameters(part: Part) -> list[float]:
    parameters = part.feature_map.parameters if part.feature_map is not None else ()
    return [*parameters, 0.0, 0.0, 0.0, 0.0][:4]

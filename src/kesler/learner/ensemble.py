"""The ensemble: several learners over the same rows, and how they are combined."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Hashable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from numbers import Real
from threading import RLock
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from kesler.data.labels import Label
from kesler.data.rows import Rows
from kesler.errors import KeslerError
from kesler.learner.calibration import probabilities
from kesler.learner.classes import ClassTable
from kesler.learner.events import NO_PROBABILITIES, NO_SCORES, Counted, Event, RowBuffer
from kesler.learner.learner import Learner
from kesler.learner.targets import Answers
from kesler.parts.hypotheses import Grouped, Part
from kesler.state.fields import (
    Arrays,
    allocated,
    array_of,
    bind,
    checked,
    converted,
    fields_of,
    put,
)
from kesler.state.records import EnsembleRecord

Combination = Literal["majority", "best", "mixture"]

# What the past counts after each row, unless told.
DISCOUNTS = {"majority": 1.0, "best": 0.995, "mixture": 0.98}

# Members go through so many rows before they are combined: what they say of each class is kept.
ROWS_AT_ONCE = 1024
# So many rows are worth starting threads for.
WORTH_THREADS = 512


class EnsembleLearner(Counted):
    """Several learners in one pass over the rows; has the methods of a `Learner` of single classes.

    Members know nothing of each other, nor of how they are combined: each learns some rows in its
    turn, and what they said of these is then combined row by row.

    Parameters
    ----------
    members : learners of single classes, which have seen no class.
    estimators : the name of the estimator of each.
    combine, discount, demotion : as in :class:`~kesler.Ensemble`.

    Raises
    ------
    KeslerError
        If there is no member, or a parameter is out of its range.

    Notes
    -----
    Members of a larger block of rows run in threads, one a core; which of them is done first
    changes no bit.
    """

    answer = "class"

    def __init__(
        self,
        members: Sequence[Learner],
        estimators: Sequence[str],
        combine: Combination = "mixture",
        discount: float | None = None,
        demotion: float = 0.9,
    ) -> None:
        require_combination(combine, discount, demotion)
        used = DISCOUNTS[combine] if discount is None else float(discount)
        self.members, self.estimators = list(members), list(estimators)
        self.combine, self.discount, self.demotion = combine, used, float(demotion)
        self.stored = allocated(fields_of(EnsembleRecord), self, {"member": len(self.members)})
        self.stored["weights"][:] = 1.0 / len(self.members)
        self.seconds_in_threads = 0.0
        self.lock = RLock()

    # ---- what has been seen -----------------------------------------------------------------

    @property
    def classes(self) -> ClassTable:
        """The classes seen, which all members number alike."""
        return self.members[0].classes

    @property
    def parts(self) -> list[Part]:
        """The hypotheses of all members."""
        return [part for member in self.members for part in member.parts]

    @property
    def takes_ratings(self) -> bool:
        """Whether a member looks at what sub-experts say."""
        return any(member.takes_ratings for member in self.members)

    @property
    def n_named_features(self) -> int:
        """Features seen, but constant ones."""
        return max(member.n_named_features for member in self.members)

    @property
    def n_sub_experts(self) -> int:
        """Sub-experts seen."""
        return max(member.n_sub_experts for member in self.members)

    @property
    def mistakes_of_members(self) -> list[int]:
        """The mistakes that each member made."""
        return [member.n_mistakes for member in self.members]

    @property
    def mistake_bound(self) -> float | None:
        """The most mistakes that weighted majority can have made; None of other combinations."""
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
    ) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
        """Run one trial a row, as :meth:`~kesler.learner.learner.Learner.learn` does.

        Either every member learns every row or, if a row or a label is refused, none any.
        """
        with self.lock:
            seen = [member._prepare(self._seen_by(member, rows)) for member in self.members]
            self.require_admissible(labels)
            for member in self.members:
                member._require_weighable(weights)
            predictions = np.empty(len(rows), dtype=np.int32)
            with self._going_through(len(rows)) as each:
                for start in range(0, len(rows), ROWS_AT_ONCE):
                    some = slice(start, start + ROWS_AT_ONCE)
                    self._learn_some(
                        [part if isinstance(part, RowBuffer) else part[some] for part in seen],
                        labels[some],
                        None if weights is None else weights[some],
                        each,
                        predictions[some],
                        scores[some],
                        probabilities[some],
                    )
            for member in self.members:
                member._require_finite_steps()
        codes = np.array([self.classes.code(label) for label in labels], dtype=np.int32)
        return predictions, codes

    def learn_event(self, label: Label) -> int | None:
        """Return None: of many members' scores there is no short way."""
        return None

    @contextmanager
    def _going_through(self, n_rows: int) -> Iterator[Callable[..., Any]]:
        """Yield what calls a function for every member: in threads if there are many rows."""
        n_threads = min(len(self.members), os.cpu_count() or 1)
        if n_threads == 1 or n_rows < WORTH_THREADS:
            yield map
            return
        with ThreadPoolExecutor(n_threads) as pool:
            yield pool.map

    def _learn_some(
        self,
        seen: list[Rows | RowBuffer],
        labels: Sequence[Label],
        weights: npt.NDArray[np.float64] | None,
        each: Callable[..., Any],
        predictions: npt.NDArray[np.int32],
        scores: npt.NDArray[np.float32],
        probabilities: npt.NDArray[np.float64],
    ) -> None:
        """Let every member learn some rows, then combine what they said of them."""
        from kesler.compiled.trial.ensemble import combine

        n_classes = self.classes.count_with(labels)
        said = np.empty((len(self.members), len(labels), 2 + n_classes))

        def learn(i: int) -> Any:
            member, answers, start = self.members[i], Answers.of_classes, time.thread_time()
            found = member._learn(seen[i], labels, weights, answers, NO_SCORES, said[i])
            return found, time.thread_time() - start

        learnt, seconds = zip(*each(learn, range(len(self.members))), strict=True)
        if each is not map:
            self.seconds_in_threads += sum(seconds)
        winners = np.array([predicted for predicted, _ in learnt], dtype=np.int64)
        combine(self._ensemble(), winners, said, learnt[0][1], predictions, scores, probabilities)

    def _ensemble(self) -> Any:
        """Return what the kernels move."""
        rule = get_args(Combination).index(self.combine)
        settings = {"rule": rule, "discount": self.discount, "demotion": self.demotion}
        return bind(EnsembleRecord, self.stored | converted(EnsembleRecord, settings))

    def _seen_by(self, member: Learner, rows: Rows | Event) -> Rows | Event:
        """Return rows with ratings if, and only if, a member looks at them."""
        if (
            isinstance(rows, Event)
            or rows.ratings is None
            or member.takes_ratings
            or not self.takes_ratings
        ):
            return rows
        return replace(rows, ratings=None)

    def _of_members(self, rows: Rows | Event, ask: Callable[..., Any]) -> list[Any]:
        return [ask(member, self._seen_by(member, rows)) for member in self.members]

    def predict(self, rows: Rows | Event) -> npt.NDArray[np.int32]:
        """Return the class number that the ensemble predicts for each row, changing nothing."""
        with self.lock:
            if self.combine == "best":
                return self._followed.predict(self._seen_by(self._followed, rows))
            winners: npt.NDArray[np.int32] = self._blended(rows).argmax(axis=1).astype(np.int32)
            return winners

    def scores(self, rows: Rows | Event) -> npt.NDArray[np.float32]:
        """Return votes or probabilities of each known class, by number."""
        with self.lock:
            return self._blended(rows).astype(np.float32)

    def probabilities(self, rows: Rows | Event) -> npt.NDArray[np.float64]:
        """Return the probability of each known class, by number."""
        with self.lock:
            blended = self._blended(rows)
            if self.combine != "majority":
                return blended
            return probabilities(blended.astype(np.float32), self.stored["calibration"])

    def _blended(self, rows: Rows | Event) -> npt.NDArray[np.float64]:
        """Return what `kesler.compiled.trial.ensemble.blend` makes of rows, bit for bit."""
        if self.combine == "best":
            return self._followed.probabilities(self._seen_by(self._followed, rows))
        total = np.zeros((len(rows), self.n_known))
        if self.combine == "mixture":
            targets = self._of_members(rows, Learner.probabilities)
            for weight, probabilities in zip(self.stored["weights"], targets, strict=True):
                total += weight * probabilities
        else:
            winners = self._of_members(rows, Learner.predict)
            for weight, winner in zip(self.stored["weights"], winners, strict=True):
                total[np.arange(len(rows)), winner] += weight
        return total

    # ---- room and groups --------------------------------------------------------------------

    def require_admissible(self, labels: Sequence[Label]) -> None:
        """Raise what learning these labels would raise."""
        for member in self.members:
            member.require_admissible(labels)

    def reserve(self, n_classes: int, n_features: int, n_sub_experts: int = 0) -> None:
        """Make room in every member."""
        for member in self.members:
            member.reserve(n_classes, n_features, n_sub_experts)

    def join_group(self, label: Label, group: Hashable) -> None:
        """Let a class take part in one more group of every member that has groups."""
        grouped = [m for m in self.members if any(isinstance(p, Grouped) for p in m.parts)]
        for member in grouped or self.members:
            member.join_group(label, group)

    # ---- saving -----------------------------------------------------------------------------

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return the arrays of all members, each after its number, and those of the ensemble."""
        stored = {
            f"{i}.{name}": array
            for i, member in enumerate(self.members)
            for name, array in member.arrays().items()
        }
        return stored | {f"ensemble.{name}": array_of(array) for name, array in self.stored.items()}

    def restore(self, arrays: Arrays) -> None:
        """Take over what `arrays` returned of the ensemble, whose members are restored already.

        Raises
        ------
        KeslerError
            If an array is missing, of another type or shape, or holds what it must not.
        """
        fields, lengths = fields_of(EnsembleRecord), {"member": len(self.members)}
        for name, array in checked(fields, self, lengths, arrays, "ensemble.").items():
            put(array, self.stored[name])

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the lock, which holds only in this process."""
        return {name: value for name, value in vars(self).items() if name not in ("lock", "event")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take the arrays as our own: they may come as a read-only memory map."""
        vars(self).update(state, lock=RLock())
        self.stored = {name: array.copy() for name, array in self.stored.items()}


def require_combination(combine: Any, discount: Any, demotion: Any) -> None:
    """Raise unless members can be combined this way."""
    if combine not in get_args(Combination):
        ways = ", ".join(map(repr, get_args(Combination)))
        raise KeslerError(f"combine={combine!r} is no way to combine learners: choose {ways}")
    if discount is not None and not (isinstance(discount, Real) and 0 < float(discount) <= 1):
        raise KeslerError(
            f"discount={discount!r} must be above 0 and at most 1, or None: it is what the past "
            "counts after each row"
        )
    if not (isinstance(demotion, Real) and 0 < float(demotion) < 1):
        raise KeslerError(
            f"demotion={demotion!r} must be between 0 and 1: it is what the vote of a learner that "
            "is wrong is multiplied by"
        )


AnyLearner = Learner | EnsembleLearner

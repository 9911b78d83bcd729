"""Learners that compare candidates: which classes of thousands a trial scores and updates."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from kesler.hypotheses import PerClass, Shared
from kesler.learner.classes import ClassTable
from kesler.learner.entries import PREFIX, Entries
from kesler.learner.events import encoded_targets_of, no_ratings, task_of, task_of_rows
from kesler.learner.targets import Answers
from kesler.links.link import Linear
from kesler.parts.constraints import VS_REST
from kesler.state.candidates import CandidateRecord, Choice, Compared
from kesler.state.capacity import enlarged, whole_lines
from kesler.state.fields import Arrays, allocated, array_of, bind, fields_of, put

if TYPE_CHECKING:
    from kesler.candidates import Candidates

ROWS_AT_ONCE = 1024
# The levels of relevant and of irrelevant labels.
RELEVANT, IRRELEVANT = 0, 2
# The records that a window does not share with the learner.
OF_WINDOW = ("counts", "weights.lists")
_OF_THIS_PROCESS = ("window", "_local", "_bound", "_choice", "_compared")

Doubles = npt.NDArray[np.float64]
Scores = npt.NDArray[np.float32]


class Comparing:
    """Entries and candidates of a learner, and its trials on windows.

    A trial copies the features of the row and its candidates to a small learner with a dense
    table, the window, runs there, and copies back what has changed.

    Parameters
    ----------
    rule : how candidates are chosen.
    n_features, n_numbers : as for :class:`~kesler.learner.entries.Entries`.
    n_virtual : the number of classes without rows, which each row is compared with: the threshold
        of label sets.
    """

    def __init__(self, rule: Candidates, n_features: int, n_numbers: int, n_virtual: int) -> None:
        self.rule, self.most, self.n_virtual = rule, rule.most, n_virtual
        self.entries = Entries(n_features, n_numbers)
        owned = {n: f for n, f in fields_of(CandidateRecord).items() if n in ("recall", "missing")}
        self.stored = allocated(owned, self, {})
        self._n_classes, self._n_places, self._n_own = 0, 64, 1

    def __getstate__(self) -> dict[str, Any]:
        """Return the attributes without those that are valid in this process only."""
        return {name: value for name, value in vars(self).items() if name not in _OF_THIS_PROCESS}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Copy the arrays, which may be a read-only memory map."""
        vars(self).update(state)
        self.stored = {name: array.copy() for name, array in self.stored.items()}

    @property
    def recall(self) -> float:
        """The share of the known classes of rows that were candidates; 1 before any."""
        recall = self.stored["recall"][0]
        return int(recall["n_found"]) / int(recall["n_rows"]) if recall["n_rows"] else 1.0

    # ---- capacity ---------------------------------------------------------------------------

    def reserve(self, n_features: int, n_classes: int) -> None:
        """Provide capacity for this many features and classes."""
        self.entries.reserve(n_features)
        self._n_classes = max(self._n_classes, n_classes)
        self.unbind()

    def unbind(self) -> None:
        """Discard what refers to arrays that have changed."""
        for name in _OF_THIS_PROCESS:
            self.__dict__.pop(name, None)

    @cached_property
    def _choice(self) -> Arrays:
        lengths = {
            "class": self._n_classes,
            "candidate": self._width,
            "place": self._n_places,
            "copied": self._n_places * self._width,
            "own": self._n_places * self._n_own,
        }
        return allocated(fields_of(Choice), self, lengths)

    @property
    def _width(self) -> int:
        """The number of columns of a window."""
        return self.n_virtual + self.most + self._n_own + 1

    @cached_property
    def _bound(self) -> Any:
        """The record of entries and candidates, at an address for compiled code."""
        from kesler.compiled.candidates.trial import write_candidates
        from kesler.compiled.jit.pointers import KernelArguments

        values = {
            **{f"entries.{name}": array for name, array in self.entries.stored.items()},
            **{f"choice.{name}": array for name, array in self._choice.items()},
            **self.stored,
            "most": np.int64(self.most),
            "budget": np.int64(self.rule.budget),
            "n_virtual": np.int64(self.n_virtual),
            "exponentials": np.zeros(whole_lines(self._width), dtype=np.float32),
        }
        return KernelArguments(write_candidates, bind(CandidateRecord, values))

    def _provide(self, learner: Any, longest: int, most_own: int = 0) -> None:
        """Provide a window for rows of this many features, and this many classes of their own."""
        if longest > self._n_places or most_own > self._n_own:
            self._n_places = enlarged(self._n_places, longest)
            self._n_own = enlarged(self._n_own, most_own, 1.25)
            self.unbind()
        if "window" not in vars(self):
            self.window = self._window(learner, self._n_places)
            self._local = self._task_of_one_row(self._n_places)

    def _window(self, learner: Any, n_features: int) -> Any:
        """Return a learner of the same parts that shares the records of this one."""
        given = {f.name: getattr(learner, f.name) for f in fields(learner) if f.init}
        n_labels = self.most + self._n_own
        table = ClassTable(range(n_labels), n_virtual=self.n_virtual)
        window = type(learner)(**given | {"classes": table})
        window.reserve(len(table), n_features)
        for name, field in window._fields.items():
            if not field.axes and name not in OF_WINDOW:
                window.stored[name] = learner.stored[name]
        # A target that joins finds the weights of the virtual class, which have been copied.
        window.stored["weights.is_listed"][:] = True
        window._bind()
        return window

    def _task_of_one_row(self, longest: int) -> Any:
        from kesler.compiled.trial.records import Blocks

        rows = Blocks(
            np.zeros(2, dtype=np.int64),
            np.arange(longest, dtype=np.int32),
            np.zeros(longest, dtype=np.float32),
            no_ratings(),
        )
        answers = self._answers_of_one_row()
        encoded = encoded_targets_of(answers, np.ones(1), self.window._class_capacity)
        scores = np.zeros((1, self._width), dtype=np.float32)
        return task_of(rows, encoded, 1, scores, np.zeros((1, 2 + self._width)))

    def _answers_of_one_row(self) -> Answers:
        """Return a target of as many classes as a row has; of label sets it names the threshold."""
        codes = np.zeros(self.n_virtual + self._n_own, dtype=np.int32)
        if not self.n_virtual:
            return Answers.of_classes(codes)
        levels = np.full_like(codes, IRRELEVANT)
        return Answers(np.array([0, len(codes)]), codes, levels, rest=IRRELEVANT)

    @cached_property
    def _compared(self) -> Any:
        """The results of a block, at an address for compiled code."""
        from kesler.compiled.candidates.trial import write_compared
        from kesler.compiled.jit.pointers import KernelArguments

        lengths = {
            "trial": ROWS_AT_ONCE,
            "candidate": self._width,
            "two and candidate": 2 + self._width,
        }
        arrays = allocated(fields_of(Compared), self, lengths)
        return KernelArguments(write_compared, bind(Compared, arrays))

    # ---- trials -----------------------------------------------------------------------------

    def learn(self, learner: Any, task: Any) -> Iterator[tuple[slice, Any]]:
        """Run one trial per row; yield what was said of blocks of rows, before the next block."""
        from kesler.compiled.candidates.trial import begin, learn_end

        for rows in _blocks(task):
            part = task_of_rows(task, rows)
            self._provide(learner, _longest(part), _most_own(part))
            addresses, compared = self._addresses(learner), self._compared.address
            local, learn = self._local.address, self.window._trials.learn
            for t in range(len(part.arrays.predictions)):
                while not begin(*addresses, part.address, local, t, True):
                    self._make_room()
                    addresses = self._addresses(learner)
                learn(addresses[-1], local)
                learn_end(*addresses, part.address, local, compared, t)
            yield rows, self._compared

    def predict(self, learner: Any, task: Any) -> Iterator[tuple[slice, Any]]:
        """Score rows; yield what is said of blocks of rows, before the next block."""
        from kesler.compiled.candidates.trial import begin, predict_end

        for rows in _blocks(task):
            part = task_of_rows(task, rows)
            self._provide(learner, _longest(part))
            outer, own, window = self._addresses(learner)
            tasks, compared = (part.address, self._local.address), self._compared.address
            predict = self.window._trials.predict
            for t in range(len(part.arrays.predictions)):
                begin(outer, own, window, *tasks, t, False)
                predict(window, tasks[-1])
                predict_end(outer, own, *tasks, compared, t)
            yield rows, self._compared

    def show(
        self, learner: Any, indices: npt.NDArray[np.int32], classes: npt.NDArray[np.int32]
    ) -> Any:
        """Return the window, a learner of some features and known classes, numbered from 0.

        The class after the last is the virtual class.
        """
        from kesler.compiled.candidates.trial import show

        self._provide(learner, len(indices), len(classes) - self.most)
        show(*self._addresses(learner), indices, classes)
        return self.window

    def _addresses(self, learner: Any) -> tuple[int, int, int]:
        return (
            learner._kernel_arguments.address,
            self._bound.address,
            self.window._kernel_arguments.address,
        )

    def _make_room(self) -> None:
        """Provide the places that the last row required."""
        self.entries.reserve_places(int(self.entries.stored["pool"]["n_needed"][0]))
        self.__dict__.pop("_bound", None)

    # ---- saving -----------------------------------------------------------------------------

    def arrays(self, n_features: int) -> Arrays:
        """Return what a model file stores."""
        own = {PREFIX + name: array_of(array) for name, array in self.stored.items()}
        return self.entries.arrays(n_features) | own

    def restore(self, arrays: Arrays, n_features: int, n_classes: int) -> None:
        """Restore what `arrays` returned."""
        found = self.entries.restore(arrays, n_features, n_classes, self.n_virtual)
        for name, array in self.stored.items():
            put(found[name], array)
        self.unbind()


OF_ENTRIES = ("statistics.sums", "statistics.totals")
"""The arrays of a table that entries take the place of, beside weights."""


def may_compare(learner: Any) -> bool:
    """Return whether rows may be compared with candidates: a class has weights and counts alone.

    The threshold of label sets must have no weights, as in rules that compare with the rest.
    """
    steps, kinds = learner.preconditioner, [type(part) for part in learner.parts]
    return (
        learner.has_weights
        and not learner.explores
        and kinds.count(PerClass) == 1
        and all(kind in (PerClass, Shared) for kind in kinds)
        and learner.statistics == ["contrast"]
        and _has_answers_to_compare(learner)
        and learner.on_new_class == "inherit"
        and learner.rule.update is None
        and learner.rule.requires != "gram"
        and isinstance(learner.link, Linear)
        and not learner.averaged
        and {*steps.keeps} <= {"evidence"}
        and (learner.costs, learner.half_life, learner.replay, learner.expansion) == (None,) * 4
    )


def _has_answers_to_compare(learner: Any) -> bool:
    if learner.answer == "sets":
        return learner.rule.constraints in VS_REST
    return bool(learner.answer == "class" and learner.decision == "score")


def entries_of(
    learner: Any,
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32], npt.NDArray[np.float32]]:
    """Return the entries of a dense table: of the features that rows of each class had.

    Of label sets, they hold by how much weights and evidence exceed those of the virtual label.
    """
    n, n_used = learner.n_known, learner.n_features
    first = learner._offsets[learner._of_classes]
    tables = [learner.stored["weights.values"]]
    if "evidence" in learner.preconditioner.keeps:
        tables.append(learner.stored["preconditioner.evidence"])
    counts = learner.stored["statistics.sums"][:, :n_used, :n]
    features, classes = np.nonzero((counts != 0).any(axis=0))
    starts = np.searchsorted(features, np.arange(n_used + 1)).astype(np.int64)
    columns = [table[:n_used, first : first + n][features, classes] for table in tables]
    if learner.has_sets:
        pairs = zip(columns, tables, strict=True)
        columns = [own - table[features, first + n] for own, table in pairs]
    columns += [layer[features, classes] for layer in counts]
    numbers = np.column_stack(columns).astype(np.float32)
    return starts, classes.astype(np.int32), np.ascontiguousarray(numbers)


def share_offsets(sets: dict[str, npt.NDArray[np.float64]], first: int, n: int) -> None:
    """Give labels the mean of their offsets, in the place of the threshold."""
    offsets, evidence = sets["sets.offsets"], sets["sets.evidence"]
    offsets[0] = offsets[first:n].mean() if n > first else 0.0
    evidence[0] = evidence[first:n].sum()
    offsets[first:], evidence[first:] = 0.0, 0.0


def _blocks(task: Any) -> Iterator[slice]:
    n_rows = len(task.arrays.predictions)
    for start in range(0, n_rows, ROWS_AT_ONCE):
        yield slice(start, min(n_rows, start + ROWS_AT_ONCE))


def _longest(task: Any) -> int:
    return int(np.diff(task.arrays.rows.indptr).max(initial=1))


def _most_own(task: Any) -> int:
    """Return the largest number of classes that a row of a task has."""
    encoded = task.arrays.encoded
    n_before = np.concatenate([[0], np.cumsum(encoded.levels == RELEVANT)])
    return int(np.diff(n_before[encoded.indptr]).max(initial=1))

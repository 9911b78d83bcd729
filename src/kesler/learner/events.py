"""Events: single rows on their way to a trial, and the counts of trials, mistakes and classes."""

from __future__ import annotations

from collections import Counter, defaultdict
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from kesler.data.rows import MAX_FEATURES, Vocabulary
from kesler.learner.targets import Answers
from kesler.state.fields import Arrays
from kesler.state.records import TARGET_SHAPE

NO_SCORES = np.empty((0, 0), dtype=np.float32)
NO_PROBABILITIES = np.empty((0, 2))

# Mappings whose entries stand where Python's C functions look for them.
DICTIONARIES = (dict, Counter, defaultdict)
# What a value may be for them to read it: the types of numbers that float32 rounds as `Rows` do.
_NUMBERS = (float, int, bool, np.float64, np.float32, np.float16, np.int64, np.int32, np.bool_)
_FLOATS = (np.dtype(np.float64), np.dtype(np.float32))
_FIRST_ROOM, _FEWEST_NAMES = 64, 512


class Event:
    """One row as it was given, in room that the next one will have.

    Attributes
    ----------
    n_entries : int
        How many features it lists.
    n_features : int
        Number of features known; every index is below it, but those of names never seen.
    dense : bool
        Whether it lists every feature.
    address : int
        Where its arrays are lent from.

    Examples
    --------
    >>> event, names = Event(), Vocabulary({"cash": 0})
    >>> event.read_mapping({"win": 1.0, "cash": 2}, names, joins=True), names
    (True, Vocabulary(indices={'cash': 0, 'win': 1}))
    >>> event.read_mapping({"win": "much"}, names, joins=True)
    False
    """

    ratings = None

    def __init__(self) -> None:
        from kesler.compiled.trial import events

        self._kernels, self._recent_names = events, events
        self._kinds = np.array([id(kind) for kind in (str, *_NUMBERS)], dtype=np.int64)
        self.n_entries = self.n_features = self._capacity = 0
        self.dense = False
        self._names: Vocabulary | None = None
        self._n_forgettings = self._most_names = 0
        self._recent = events.no_names(0)
        self._reserve(_FIRST_ROOM)

    def __len__(self) -> int:
        return 1

    def read_mapping(self, entry: dict[Any, Any], names: Vocabulary, *, joins: bool) -> bool:
        """Read a mapping {name: value}; return whether it was one of text to finite numbers.

        Parameters
        ----------
        entry : of a type of `DICTIONARIES`.
        names : whose numbers the features have; new ones join if `joins`, even if the rest cannot
            be read.
        """
        if not self._kernels.READS_MAPPINGS:
            return False
        numbers = names.indices
        if len(numbers) > self._most_names or not self._is_of(names):
            self._reserve_for(names)
        if len(entry) > self._capacity:
            self._reserve(len(entry))
        n = self._kernels.read_mapping(self.address, id(entry), id(numbers), joins)
        return self._has_read(n, len(numbers), dense=False)

    def read_array(self, x: npt.NDArray[Any]) -> bool:
        """Read an array of every feature; return whether it was one of finite floats in a row."""
        if x.dtype not in _FLOATS or x.ndim != 1 or not x.flags.carray:
            return False
        if len(x) > self._capacity:
            self._reserve(len(x))
        return self._has_read(self._kernels.read_array(self.address, x), len(x), dense=True)

    def read_pair(
        self, indices: npt.NDArray[Any], values: npt.NDArray[Any], width: int | None
    ) -> bool:
        """Read indices and values; return whether these are finite, and those rise below width."""
        if values.dtype not in _FLOATS or indices.dtype.kind not in "iu" or indices.ndim != 1:
            return False
        if len(indices) > self._capacity:
            self._reserve(len(indices))
        n = -1
        if indices.shape == values.shape:
            numbers = np.ascontiguousarray(indices, dtype=np.int64)
            doubles = np.ascontiguousarray(values, dtype=np.float64)
            limit = MAX_FEATURES if width is None else width
            n = self._kernels.read_pair(self.address, numbers, doubles, limit)
        n_features = int(indices[-1]) + 1 if n > 0 else 0
        return self._has_read(n, width or n_features, dense=False)

    def _has_read(self, n_entries: int, n_features: int, *, dense: bool) -> bool:
        self.n_entries, self.n_features, self.dense = n_entries, n_features, dense
        return n_entries >= 0

    def _is_of(self, names: Vocabulary) -> bool:
        """Whether the names seen of late have their numbers here."""
        return names is self._names and names.n_forgettings == self._n_forgettings

    def _reserve_for(self, names: Vocabulary) -> None:
        """Make room for names seen of late, four times as many as these; keep those that are."""
        no_names = self._recent_names.no_names
        former = self._recent if self._is_of(names) else no_names(0)
        self._names, self._n_forgettings = names, names.n_forgettings
        self._most_names = max(_FEWEST_NAMES, 4 * len(names))
        self._recent = no_names(self._most_names)
        self._recent_names.take_over(self._recent, former)
        self._write_arguments()

    def _reserve(self, n_entries: int) -> None:
        self._capacity = max(n_entries, 2 * self._capacity)
        self._entries = (
            np.empty(self._capacity, dtype=np.int32),
            np.empty(self._capacity, dtype=np.float32),
            np.empty((self._capacity, self._recent_names.WIDTH), dtype=np.int64),
            np.empty(self._capacity, dtype=np.int64),
        )
        self._write_arguments()

    def _write_arguments(self) -> None:
        from kesler.compiled.jit.pointers import KernelArguments

        cursor = np.zeros(3, dtype=np.int64)
        arrays = self._kernels.Event(*self._entries, cursor, self._kinds, self._recent)
        self._kernel_arguments = KernelArguments(self._kernels.write_arguments, arrays)
        self.address = self._kernel_arguments.address


class RowBuffer:
    """Where an event and its answer lie for the trials of one machine.

    It is in place of the rows of a block: see :class:`~kesler.data.rows.Rows`.

    Parameters
    ----------
    constant : the value of a feature that every row is given before its own, 0 for none.
    keeps_zeros : whether the learner looks at features of value 0.
    """

    ratings = None
    n_sub_experts = 0

    def __init__(self, constant: float, *, keeps_zeros: bool) -> None:
        from kesler.compiled.trial import events

        self._kernels = events
        self._constant, self._keeps_zeros = constant, keeps_zeros
        self.n_features = self._capacity = self._class_capacity = 0
        self._task: Any = None
        self._reserve(_FIRST_ROOM)

    def __len__(self) -> int:
        return 1

    def put(self, event: Event, unseen: int) -> None:
        """Lay an event out as trials read it; features from number `unseen` on become that one."""
        if event.n_entries >= self._capacity:
            self._reserve(event.n_entries + 1)
        self.n_features = event.n_features + bool(self._constant)
        self._kernels.lay_out(
            event.address,
            self._task.address,
            event.n_entries,
            self._constant,
            self._keeps_zeros,
            unseen,
        )

    @property
    def rows(self) -> Any:
        """The event as kernels take rows."""
        return self._task.arrays.rows

    def trial(self, code: int, class_capacity: int) -> Any:
        """Return the task of learning that the answer is the class of this number."""
        encoded = self._task.arrays.encoded
        encoded.codes[0] = code
        if class_capacity != self._class_capacity:
            self._class_capacity = class_capacity
            answers = Answers.of_classes(encoded.codes)
            encoded.shape.most_pairs = answers.most_pairs(class_capacity)
        return self._task

    def scoring(self, scores: npt.NDArray[np.float32]) -> Any:
        """Return the task of scoring."""
        return task_of(self.rows, no_targets(), 1, scores) if scores.size else self._task

    def _reserve(self, n_entries: int) -> None:
        from kesler.compiled.trial.records import Blocks

        self._capacity, self._class_capacity = max(n_entries, 2 * self._capacity), 0
        indices = np.empty(self._capacity, dtype=np.int32)
        values = np.empty(self._capacity, dtype=np.float32)
        rows = Blocks(np.zeros(2, dtype=np.int64), indices, values, no_ratings())
        encoded = encoded_targets_of(Answers.of_classes(np.zeros(1, dtype=np.int32)), None, 1)
        self._task = task_of(rows, encoded, 1)


def no_ratings() -> Any:
    """Return the ratings of rows that bring none, as kernels take them."""
    from kesler.compiled.trial.records import Ratings

    none = np.empty(0, dtype=np.int64)
    short = np.empty(0, dtype=np.int32), np.empty(0, dtype=np.float32)
    return Ratings(none, none, none, *short)


def encoded_targets_of(
    answers: Answers, weights: npt.NDArray[np.float64] | None, class_capacity: int
) -> Any:
    """Return answers, and weights of rows, as kernels take them for so many classes."""
    from kesler.compiled.trial.records import EncodedTargets

    shape = answers.rest, answers.most_pairs(class_capacity), answers.n_levels
    shape = np.array([shape], dtype=TARGET_SHAPE)[0]
    weights = np.empty(0) if weights is None else weights
    return EncodedTargets(answers.indptr, answers.codes, answers.levels, shape, weights)


def no_targets() -> Any:
    """Return the answers of rows that are only scored."""
    return encoded_targets_of(Answers.of_classes(np.empty(0, dtype=np.int32)), None, 1)


def task_of(
    rows: Any,
    encoded: Any,
    n_rows: int,
    scores: npt.NDArray[np.float32] = NO_SCORES,
    probabilities: npt.NDArray[np.float64] = NO_PROBABILITIES,
) -> Any:
    """Lend rows and answers, and room for what is found, to the kernels."""
    predictions = np.empty(n_rows, dtype=np.int32)
    return task_arguments(rows, encoded, predictions, scores, probabilities)


def task_arguments(*arrays: Any) -> Any:
    """Lend all that a task is made of to the kernels."""
    from kesler.compiled.jit.pointers import KernelArguments
    from kesler.compiled.trial import tasks

    return KernelArguments(tasks.write_arguments, tasks.Task(*arrays))


def task_of_rows(task: Any, rows: slice) -> Any:
    """Lend some of the rows of a task, and what is told and found of them, to the kernels."""
    blocks, encoded, *found = task.arrays
    ends = slice(rows.start, None if rows.stop is None else rows.stop + 1)
    return task_arguments(
        blocks._replace(indptr=blocks.indptr[ends]),
        encoded._replace(indptr=encoded.indptr[ends], row_weights=encoded.row_weights[rows]),
        *(each[rows] for each in found),
    )


class Counted:
    """What counts its trials, in the record "counts" of what it stores."""

    stored: Arrays
    lock: Any

    @cached_property
    def event(self) -> Event:
        """Room for one row, for who holds `lock` until its trial is over."""
        return Event()

    @property
    def n_trials(self) -> int:
        """Rows learnt from."""
        return int(self.stored["counts"]["n_trials"][0])

    @property
    def n_mistakes(self) -> int:
        """Trials in which a class already known was not predicted."""
        return int(self.stored["counts"]["n_mistakes"][0])

    @property
    def n_known(self) -> int:
        """Classes seen so far."""
        return int(self.stored["counts"]["n_classes"][0])

"""Events: buffers for single rows, and the counts of trials, mistakes and classes."""

from __future__ import annotations

from collections import Counter, defaultdict
from functools import cache, cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from kesler.data.rows import MAX_FEATURES, Rows, Vocabulary
from kesler.data.texts import folded, plain, spaced, tokenize
from kesler.interrupts import Postponed
from kesler.learner.targets import Answers
from kesler.state.fields import Arrays
from kesler.state.records import TARGET_SHAPE

NO_SCORES = np.empty((0, 0), dtype=np.float32)
NO_PROBABILITIES = np.empty((0, 2))
NO_PLACES = np.empty(0, dtype=np.int32)
NONE_AGAIN = np.empty(0, dtype=np.bool_)

# Mappings whose entries Python's C functions can read.
DICTIONARIES = (dict, Counter, defaultdict)
# The types of values that are read: numbers that are rounded to float32 as in `Rows`.
_NUMBERS = (float, int, bool, np.float64, np.float32, np.float16, np.int64, np.int32, np.bool_)
_FLOATS = (np.dtype(np.float64), np.dtype(np.float32))
_INITIAL_CAPACITY, _FEWEST_NAMES = 64, 512


class Event:
    """One row as it was given, in a buffer that the next row will overwrite.

    Attributes
    ----------
    n_entries : int
        Number of features that it lists.
    n_features : int
        Number of known features; every index is below it, except those of unknown names.
    dense : bool
        Whether it lists every feature.
    address : int
        Address of its arrays for compiled code.

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
        self.dense = self.of_words = False
        self._reads_mappings = False
        self._names: Vocabulary | None = None
        self._n_forgettings = self._most_names = 0
        self._recent = events.no_names(0)
        self._letters = np.zeros(0, dtype=np.uint8)
        self._reserve(_INITIAL_CAPACITY)

    def __len__(self) -> int:
        return 1

    @property
    def rows(self) -> Rows:
        """A copy of the row."""
        indptr = np.array([0, self.n_entries], dtype=np.int64)
        indices, values = self._entries[0][: self.n_entries], self._entries[1][: self.n_entries]
        entries = indptr, indices.copy(), values.copy()
        return Rows(*entries, self.n_features, self.dense, of_words=self.of_words)

    @property
    def indices(self) -> npt.NDArray[np.int32]:
        """The features that it lists, a view."""
        found: npt.NDArray[np.int32] = self._entries[0][: self.n_entries]
        return found

    @property
    def values(self) -> npt.NDArray[np.float32]:
        """The values of these features, a view."""
        found: npt.NDArray[np.float32] = self._entries[1][: self.n_entries]
        return found

    def read_mapping(self, entry: dict[Any, Any], names: Vocabulary, *, joins: bool) -> bool:
        """Read a mapping {name: value}; return whether it maps text to finite numbers.

        Parameters
        ----------
        entry : mapping of one of the types in `DICTIONARIES`.
        names : the numbers of the features.
        joins : whether new names are added to `names`, even if the rest cannot be read.
        """
        if not self._reads_mappings:
            self._reads_mappings = self._kernels.can_read(self._kernels.read_mapping)
            if not self._reads_mappings:
                return False
        self._reserve_names(names, len(entry))
        numbers = names.indices
        n = self._kernels.read_mapping(self.address, id(entry), id(numbers), joins)
        has_read = self._has_read(n, len(numbers), dense=False)
        if has_read and self.n_entries < len(entry):  # names that are not known may be no text
            return {*map(type, entry)} == {str}
        return has_read

    def read_text(self, text: str, names: Vocabulary, beginning: str = "", *, joins: bool) -> bool:
        """Read the words of a text and their counts; return whether its letters could be read.

        Parameters
        ----------
        text : read as by :func:`kesler.data.texts.with_beginning`.
        names, joins : as for `read_mapping`.
        beginning : of the text.
        """
        from kesler.compiled.trial.signs import kinds_of_plain, kinds_of_spaced
        from kesler.compiled.trial.texts import read_text

        if not self._kernels.can_read(read_text):
            return False
        line = plain(text)
        if line is not None:
            if self._read_words(line, folded(beginning), kinds_of_plain(), names, joins=joins):
                if self.n_entries:
                    return True
        line, first = (" ".join(tokenize(each)) for each in (text, beginning))
        return self._read_words(line, first, kinds_of_spaced(), names, joins=joins)

    def _read_words(
        self,
        line: str,
        first: str,
        kinds: npt.NDArray[np.uint8],
        names: Vocabulary,
        *,
        joins: bool,
    ) -> bool:
        """Read the words of a line by the kinds of characters; return whether it could be read."""
        from kesler.compiled.trial.texts import read_text

        numbers = names.indices
        self._reserve_names(names, (len(line) + len(first)) // 2 + 2)
        self._reserve_letters(len(first))
        n = read_text(self.address, id(line), id(first), kinds, id(numbers), joins)
        return self._has_read(n, len(numbers), dense=False, of_words=True)

    def read_short_text(
        self, text: str, lengths: tuple[int, int], names: Vocabulary, *, joins: bool
    ) -> bool:
        """Read a text as :func:`kesler.data.texts.with_runs`; return whether it could be read.

        Parameters
        ----------
        text, names, joins : as for `read_text`.
        lengths : of the runs of characters.
        """
        from kesler.compiled.trial.signs import kinds_of_spaced
        from kesler.compiled.trial.texts import read_short_text

        if not self._kernels.can_read(read_short_text):
            return False
        (tokens, words, capitals), numbers = spaced(text), names.indices
        least, most = lengths
        self._reserve_names(names, len(tokens) + (most - least + 1) * len(capitals) + 1)
        addresses = self.address, id(tokens), id(words), id(capitals)
        n = read_short_text(*addresses, least, most, kinds_of_spaced(), id(numbers), joins)
        return self._has_read(n, len(numbers), dense=False, of_words=True)

    def read_array(self, x: npt.NDArray[Any], *, takes_missing: bool = False) -> bool:
        """Read an array of all features; return whether it is contiguous, of finite floats.

        If `takes_missing`, NaN is read as well.
        """
        if x.dtype not in _FLOATS or x.ndim != 1 or not x.flags.carray:
            return False
        if len(x) > self._capacity:
            self._reserve(len(x))
        n_entries = self._kernels.read_array(self.address, x, takes_missing)
        return self._has_read(n_entries, len(x), dense=True)

    def read_pair(
        self, indices: npt.NDArray[Any], values: npt.NDArray[Any], width: int | None
    ) -> bool:
        """Read a row; return whether values are finite and indices increase below `width`."""
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

    def _has_read(
        self, n_entries: int, n_features: int, *, dense: bool, of_words: bool = False
    ) -> bool:
        self.n_entries, self.n_features, self.dense = n_entries, n_features, dense
        self.of_words = of_words
        return n_entries >= 0

    def _is_of(self, names: Vocabulary) -> bool:
        """Return whether the table of recent names holds numbers of this vocabulary."""
        return names is self._names and names.n_forgettings == self._n_forgettings

    def _reserve_names(self, names: Vocabulary, n_entries: int) -> None:
        """Provide capacity for a row of named features."""
        if len(names) > self._most_names or not self._is_of(names):
            with Postponed():
                self._reserve_for(names)
        if n_entries > self._capacity:
            self._reserve(n_entries)

    def _reserve_for(self, names: Vocabulary) -> None:
        """Provide capacity for four times as many recent names; copy those of this vocabulary."""
        no_names = self._recent_names.no_names
        former = self._recent if self._is_of(names) else no_names(0)
        self._names, self._n_forgettings = names, names.n_forgettings
        self._most_names = max(_FEWEST_NAMES, 4 * len(names))
        self._recent = no_names(self._most_names)
        self._recent_names.take_over(self._recent, former)
        self._write_arguments()

    def _reserve_letters(self, n_characters: int) -> None:
        """Provide capacity for the letters of so many characters, with a sign before each word."""
        if len(self._letters) < 5 * n_characters:  # 4 bytes of each, and a sign
            with Postponed():
                self._letters = np.zeros(10 * n_characters, dtype=np.uint8)
                self._write_arguments()

    def _reserve(self, n_entries: int) -> None:
        with Postponed():
            self._allocate(max(n_entries, 2 * self._capacity))

    def _allocate(self, capacity: int) -> None:
        self._capacity = capacity
        self._entries = (
            np.empty(self._capacity, dtype=np.int32),
            np.empty(self._capacity, dtype=np.float32),
            np.empty((self._capacity, self._recent_names.WIDTH), dtype=np.int64),
            np.empty(self._capacity, dtype=np.int64),
        )
        self._met = np.zeros(1 << (2 * self._capacity).bit_length(), dtype=np.int32)
        self._write_arguments()

    def _write_arguments(self) -> None:
        from kesler.compiled.jit.pointers import KernelArguments

        cursor = np.zeros(3, dtype=np.int64)
        of_names = self._recent, self._met, self._letters
        arrays = self._kernels.Event(*self._entries, cursor, self._kinds, *of_names)
        self._kernel_arguments = KernelArguments(self._kernels.write_arguments, arrays)
        self.address = self._kernel_arguments.address


class RowBuffer:
    """A buffer for an event and its target, as the trials of one learner read them.

    It takes the place of a block of rows: see :class:`~kesler.data.rows.Rows`.

    Parameters
    ----------
    constant : the value of a constant feature that precedes the features of every row, 0 for none.
    keeps_zeros : whether the learner reads features of value 0.
    """

    ratings = None
    n_sub_experts = 0

    def __init__(self, constant: float, *, keeps_zeros: bool) -> None:
        from kesler.compiled.trial import events

        self._kernels = events
        self._constant, self._keeps_zeros = constant, keeps_zeros
        self.n_features = self._capacity = self._class_capacity = 0
        self._task: Any = None
        self._scored: tuple[Any, Any] | None = None
        self._reserve(_INITIAL_CAPACITY)

    def __len__(self) -> int:
        return 1

    def put(self, event: Event, unseen: int, *, counts: bool) -> None:
        """Write an event as trials read it; feature `unseen` replaces those from it on.

        Unless it `counts`, values are 1.
        """
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
            counts,
        )

    @property
    def rows(self) -> Any:
        """The event as compiled code takes rows."""
        return self._task.arrays.rows

    def trial(self, code: int, class_capacity: int) -> Any:
        """Return the task of learning the event, with the class of this number as target."""
        encoded = self._task.arrays.encoded
        encoded.codes[0] = code
        if class_capacity != self._class_capacity:
            answers = Answers.of_classes(encoded.codes)
            encoded.shape.most_pairs = answers.most_pairs(class_capacity)
            self._class_capacity = class_capacity
        return self._task

    def scored_trial(self, code: int, class_capacity: int) -> tuple[Any, Any]:
        """Return the task of `trial` with arrays for scores and probabilities of all classes.

        The second item are the scores, of shape (1, 1, class_capacity).
        """
        encoded, found = self.trial(code, class_capacity).arrays.encoded, self._scored
        if found is None or found[1].shape[2] != class_capacity:
            scores = np.full((1, 1, class_capacity), np.nan, dtype=np.float32)
            with Postponed():
                chances = np.empty((1, 2 + class_capacity))
                found = task_of(self.rows, encoded, 1, scores[0], chances), scores
                self._scored = found
        return found

    def scoring(
        self,
        scores: npt.NDArray[np.float32],
        probabilities: npt.NDArray[np.float64] = NO_PROBABILITIES,
    ) -> Any:
        """Return the task of scoring the event."""
        if not scores.size:
            return self._task
        return task_of(self.rows, no_targets(), 1, scores, probabilities)

    def _reserve(self, n_entries: int) -> None:
        from kesler.compiled.trial.records import Blocks

        capacity = max(n_entries, 2 * self._capacity)
        indices, values = np.empty(capacity, dtype=np.int32), np.empty(capacity, dtype=np.float32)
        rows = Blocks(np.zeros(2, dtype=np.int64), indices, values, no_ratings())
        encoded = encoded_targets_of(Answers.of_classes(np.zeros(1, dtype=np.int32)), None, 1)
        with Postponed():
            self._task = task_of(rows, encoded, 1)
            self._scored = None
            self._capacity, self._class_capacity = capacity, 0


@cache
def no_ratings() -> Any:
    """Return the ratings of rows without ratings, as compiled code takes them."""
    from kesler.compiled.trial.records import Ratings

    none = np.empty(0, dtype=np.int64)
    short = np.empty(0, dtype=np.int32), np.empty(0, dtype=np.float32)
    return Ratings(none, none, none, *short)


def encoded_targets_of(
    targets: Answers,
    weights: npt.NDArray[np.float64] | None,
    class_capacity: int,
    again: npt.NDArray[np.bool_] = NONE_AGAIN,
) -> Any:
    """Return targets and sample weights as compiled code takes them, for this capacity.

    again : whether each row has been learnt before; empty if none has.
    """
    from kesler.compiled.trial.records import EncodedTargets

    shape = targets.rest, targets.most_pairs(class_capacity), targets.n_levels
    shape = np.array([shape], dtype=TARGET_SHAPE)[0]
    weights = np.empty(0) if weights is None else weights
    encoded = targets.indptr, targets.codes, targets.levels
    return EncodedTargets(*encoded, shape, weights, again, targets.costs)


@cache
def no_targets() -> Any:
    """Return the targets of rows that are only scored, of which there are none."""
    return encoded_targets_of(Answers.of_classes(np.empty(0, dtype=np.int32)), None, 1)


def task_of(
    rows: Any,
    encoded: Any,
    n_rows: int,
    scores: npt.NDArray[np.float32] = NO_SCORES,
    probabilities: npt.NDArray[np.float64] = NO_PROBABILITIES,
) -> Any:
    """Return a task for compiled code: rows, targets, and arrays that receive the results."""
    predictions = np.empty(n_rows, dtype=np.int32)
    return task_arguments(rows, encoded, predictions, scores, probabilities)


def task_arguments(*arrays: Any) -> Any:
    """Return a task of these arrays, with its address for compiled code."""
    from kesler.compiled.jit.pointers import KernelArguments
    from kesler.compiled.trial.tasks import Task, write_arguments

    return KernelArguments(write_arguments, Task(*arrays))


def task_of_rows(task: Any, rows: slice) -> Any:
    """Return a task of some rows of another, with their targets and results."""
    blocks, encoded, *results = task.arrays
    ends = slice(rows.start, None if rows.stop is None else rows.stop + 1)
    return task_arguments(
        blocks._replace(indptr=blocks.indptr[ends]),
        encoded._replace(
            indptr=encoded.indptr[ends],
            row_weights=encoded.row_weights[rows],
            again=encoded.again[rows],
        ),
        *(array[rows] for array in results),
    )


class Counted:
    """Base class of learners, which count their trials in the stored record "counts"."""

    stored: Arrays
    lock: Any

    @cached_property
    def event(self) -> Event:
        """The buffer for one row; a caller must hold `lock` until its trial is complete."""
        return Event()

    @property
    def n_trials(self) -> int:
        """Number of rows learnt."""
        return int(self.trials_run[0])

    @cached_property
    def trials_run(self) -> npt.NDArray[np.int64]:
        """The number of rows learnt, a view because every event reads it."""
        found: npt.NDArray[np.int64] = self.stored["counts"]["n_trials"]
        return found

    @property
    def n_mistakes(self) -> int:
        """Number of trials in which a class already known was not predicted."""
        return int(self.stored["counts"]["n_mistakes"][0])

    @property
    def n_imperfect(self) -> int:
        """Number of trials in which a class did not outscore one that it should."""
        return int(self.stored["imperfect"]["n_trials"][0])

    @property
    def n_known(self) -> int:
        """Number of classes seen so far."""
        return int(self.stored["counts"]["n_classes"][0])

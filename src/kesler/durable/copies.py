"""Copies of a learner in memory: the newest is whole, earlier ones are differences from it."""

from __future__ import annotations

import copyreg
import io
import pickle
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice, zip_longest
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from kesler.data.rows import Vocabulary
from kesler.durable.snapshots import rename_classes
from kesler.online.table_state import TableState
from kesler.state.capacity import aligned_zeros

LEAST_BYTES = 1 << 16  # of arrays that are held apart: smaller ones are pickled with the learner
STEP = 1 << 12  # rows that are compared at a time
BLOCK = 64  # rows whose words are combined at a time

Words = npt.NDArray[Any]  # of unsigned integers: equal words are equal bits, also those of NaN


# ---- arrays -------------------------------------------------------------------------------------


class Layout(NamedTuple):
    """How rows of words become an array.

    The first `n_rows` rows are held up to the word `n_words`, after which they are 0. Each row
    after them is the next of `rest`, which has one row for each plane, in turn.
    """

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    n_rows: int
    n_words: int
    rest: Words


class Whole(NamedTuple):
    """An array, without the capacity that is not in use."""

    layout: Layout
    rows: Words


class Difference(NamedTuple):
    """The rows in which an array differs from the same array of the next newer copy."""

    layout: Layout
    where: npt.NDArray[np.int64]
    rows: Words


Held = Whole | Difference


def words_of(array: npt.NDArray[Any]) -> Words:
    """Return a view of a contiguous array as words, of shape (n_rows, n_planes, n_words).

    The rows of an array of three axes are those of all its planes, one after another: they stay
    where they are when the capacity for rows grows.

    Examples
    --------
    >>> words_of(np.zeros((2, 100, 3), np.float32)).shape
    (100, 2, 3)
    """
    lines = array.reshape(-1, *array.shape[-2:]) if array.ndim > 1 else array.reshape(1, -1, 1)
    octets = lines.view(np.uint8)
    size = next(size for size in (8, 4, 2, 1) if octets.shape[2] % size == 0)
    return octets.view(f"u{size}").transpose(1, 0, 2)


def whole(array: npt.NDArray[Any]) -> Whole:
    """Return a copy of the part of an array that is in use."""
    words = words_of(np.ascontiguousarray(array))
    n_planes, n_rows = words.shape[1], _rows_in_use(words)
    n_words = _words_in_use(words[:n_rows])
    layout = Layout(array.dtype, array.shape, n_rows * n_planes, n_words, words[-1].copy())
    rows = words[:n_rows, :, :n_words].copy()
    return Whole(layout, rows.reshape(n_rows * n_planes, n_words))


def _words_in_use(words: Words) -> int:
    """Return the number of words of a row before the last ones, which are 0 in all rows."""
    n_blocks = len(words) // BLOCK  # long lines, of which the processor combines many at once
    lines = words[: n_blocks * BLOCK].reshape(n_blocks, BLOCK * words.shape[1] * words.shape[2])
    combined = np.bitwise_or.reduce(lines, axis=0).reshape(-1, words.shape[2])
    left = words[n_blocks * BLOCK :].reshape(-1, words.shape[2])
    written = np.flatnonzero(np.concatenate([combined, left]).any(axis=0))
    return int(written[-1]) + 1 if written.size else 0


def _rows_in_use(words: Words) -> int:
    """Return the number of rows before the last ones, which are equal."""
    end = len(words)
    while end:
        start = max(0, end - STEP)
        differing = np.flatnonzero((words[start:end] != words[-1]).any(axis=(1, 2)))
        if differing.size:
            return start + int(differing[-1]) + 1
        end = start
    return 0


def array_from(held: Whole) -> npt.NDArray[Any]:
    """Return the array; capacity of zeros takes no memory before it is written."""
    (dtype, shape, _, n_words, rest), rows = held
    array = aligned_zeros(*shape, dtype=dtype)
    words = words_of(array)
    n_rows = len(rows) // words.shape[1]
    words[:n_rows, :, :n_words] = rows.reshape(n_rows, words.shape[1], n_words)
    if rest.any():
        words[n_rows:] = rest
    return array


def difference(older: Whole, newer: Whole | None) -> Held:
    """Return an array as its difference from a newer one, or whole if they have other rows."""
    if newer is None or not _have_like_rows(older, newer):
        return older
    (layout, rows), others = older, newer.rows
    n, k = min(len(rows), len(others)), min(rows.shape[1], others.shape[1])
    differing = np.ones(len(rows), dtype=bool)
    for start in range(0, n, STEP):  # blocks of which the masks stay in the cache
        own, other = rows[start : min(n, start + STEP)], others[start : min(n, start + STEP)]
        found = (own[:, :k] != other[:, :k]).any(axis=1)
        differing[start : start + len(own)] = (
            found | own[:, k:].any(axis=1) | other[:, k:].any(axis=1)
        )
    where = np.flatnonzero(differing)
    return Difference(layout, where, rows[where])


def _have_like_rows(older: Whole, newer: Whole) -> bool:
    same_rest = older.layout.rest.shape == newer.layout.rest.shape
    return older.layout.dtype == newer.layout.dtype and same_rest


def restored(older: Held, newer: Whole | None) -> Whole:
    """Return an array whole, given the next newer one."""
    if isinstance(older, Whole):
        return older
    assert newer is not None
    layout, where, rows = older
    found = np.zeros((layout.n_rows, layout.n_words), dtype=rows.dtype)
    common = newer.rows[: layout.n_rows, : layout.n_words]
    found[: common.shape[0], : common.shape[1]] = common
    found[where] = rows
    return Whole(layout, found)


def joined(older: Held, between: Held | None) -> Held:
    """Return an array as its difference from the one after the next, given those to the next."""
    if isinstance(older, Whole) or between is None:
        return older
    if isinstance(between, Whole):
        return restored(older, between)
    layout, where, rows = older
    is_new = (between.where < layout.n_rows) & ~np.isin(between.where, where)
    n_words = min(layout.n_words, between.layout.n_words)
    added = np.zeros((int(is_new.sum()), layout.n_words), dtype=rows.dtype)
    added[:, :n_words] = between.rows[is_new, :n_words]
    return Difference(
        layout, np.concatenate([where, between.where[is_new]]), np.concatenate([rows, added])
    )


# ---- learners -----------------------------------------------------------------------------------


class Names(NamedTuple):
    """The names of a vocabulary: the first `n` of those numbered, which copies share."""

    numbered: dict[str, int]
    n: int
    n_forgettings: int

    @property
    def own(self) -> dict[str, int]:
        """The numbers of these names alone, in a new mapping."""
        found = dict(self.numbered)  # ten times as fast as numbering the names again
        for _ in range(len(found) - self.n):
            found.popitem()
        return found


@dataclass(slots=True)
class Copy:
    """A learner that has met all rows up to the event of a number."""

    at: int
    pickled: bytes  # without its large arrays, its names and its table
    arrays: Sequence[Held]
    names: list[Names]
    tables: list[TableState]  # which never change
    labels: list[Any]  # what the classes have been renamed to, by number

    @property
    def is_whole(self) -> bool:
        """Whether no array is a difference."""
        return not any(isinstance(each, Difference) for each in self.arrays)

    @property
    def nbytes(self) -> int:
        """The bytes that only this copy takes."""
        rows = sum(held.rows.nbytes + held.layout.rest.nbytes for held in self.arrays)
        where = sum(each.where.nbytes for each in self.arrays if isinstance(each, Difference))
        return len(self.pickled) + rows + where


class _Pickler(pickle.Pickler):
    """A pickler that sets the large parts of a learner apart."""

    def __init__(self, file: Any) -> None:
        super().__init__(file, pickle.HIGHEST_PROTOCOL)
        self.parts: dict[str, dict[int, Any]] = {"array": {}, "names": {}, "table": {}}
        self._numbers: dict[int, tuple[str, int]] = {}

    def persistent_id(self, thing: Any) -> tuple[str, int] | None:
        """Return the kind and the number of a part that is set apart; None for others."""
        kind = _kind_of(thing)
        if kind is None:
            return None
        own = self.parts[kind]
        own.setdefault(id(thing), thing)  # which keeps it, so that no other has its id
        return self._numbers.setdefault(id(thing), (kind, len(own) - 1))

    def reducer_override(self, thing: Any) -> Any:
        """Return how estimators are restored, which pickle copies otherwise, and learners."""
        from kesler.online.base import OnlineLearner

        if isinstance(thing, OnlineLearner):
            return copyreg.__newobj__, (type(thing),), vars(thing)  # type: ignore[attr-defined]
        if hasattr(type(thing), "__setstate__") and "stored" in getattr(thing, "__dict__", ()):
            return *thing.__reduce_ex__(4)[:3], None, None, _hand_over
        return NotImplemented


def _kind_of(thing: Any) -> str | None:
    kind = type(thing)
    if kind is np.ndarray:
        is_large = thing.nbytes >= LEAST_BYTES and not thing.dtype.hasobject
        return "array" if is_large else None
    return "names" if kind is Vocabulary else "table" if kind is TableState else None


class _New:
    """An array in place of which its first copy is taken: nobody else has it."""

    def __init__(self, array: npt.NDArray[Any]) -> None:
        self.array = array

    def copy(self) -> npt.NDArray[Any]:
        return self.array


def _hand_over(learner: Any, state: dict[str, Any]) -> None:
    """Restore a learner, which copies the arrays of its state, without copying them again."""
    stored = {name: _New(array) for name, array in state["stored"].items()}
    learner.__setstate__(state | {"stored": stored})


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: Any, parts: dict[str, list[Any]]) -> None:
        super().__init__(file)
        self._parts = parts

    def persistent_load(self, pid: tuple[str, int]) -> Any:
        return self._parts[pid[0]][pid[1]]


def copy_of(at: int, learner: Any) -> Copy:
    """Return a copy of a learner, whole."""
    file = io.BytesIO()
    pickler = _Pickler(file)
    with learner._learner.lock:
        pickler.dump(learner)
        arrays, names, tables = (list(each.values()) for each in pickler.parts.values())
        held = [whole(array) for array in arrays]
        numbered = [Names(dict(each.indices), len(each), each.n_forgettings) for each in names]
    return Copy(at, file.getvalue(), held, numbered, tables, [])


def learner_from(copy: Copy, arrays: Iterable[Whole]) -> Any:
    """Return the learner of a copy, given its arrays."""
    names = [Vocabulary(each.own, each.n_forgettings) for each in copy.names]
    parts: dict[str, list[Any]] = {
        "array": [*map(array_from, arrays)],
        "names": names,
        "table": copy.tables,
    }
    learner = _Unpickler(io.BytesIO(copy.pickled), parts).load()
    rename_classes(learner, copy.labels)
    return learner


# ---- copies -------------------------------------------------------------------------------------


class Copies:
    """Copies of the learners of one history, each of which has met more of it than the one before.

    The newest copy holds its arrays as far as they are in use; an older one holds the rows in which
    they differ from those of the next newer one, and its vocabulary is a part of a common one.

    Notes
    -----
    Adding and restoring take time proportional to the arrays in use, about 10 ms each for 30 MB.

    Examples
    --------
    >>> from kesler import OnlineClassifier
    >>> learner, copies = OnlineClassifier(), Copies()
    >>> for number, words in enumerate(["win cash", "team lunch", "cash prize"], start=1):
    ...     learner = learner.learn_one(words, f"folder {number}")
    ...     copies.add(number, learner)
    >>> copies.numbers, copies.restore(2).n_trials_
    ([1, 2, 3], 2)
    >>> copies.drop([1, 3])
    >>> copies.numbers, copies.restore(2).classes_.tolist()
    ([2], ['folder 1', 'folder 2'])
    """

    def __init__(self) -> None:
        self._copies: list[Copy] = []

    @property
    def numbers(self) -> list[int]:
        """The number of the last event that each has met, in ascending order."""
        return [each.at for each in self._copies]

    @property
    def nbytes(self) -> int:
        """The bytes of all copies."""
        shared = {id(own.numbered): own.numbered for each in self._copies for own in each.names}
        return sum(each.nbytes for each in self._copies) + sum(map(sys.getsizeof, shared.values()))

    def add(self, at: int, learner: Any) -> None:
        """Copy a learner that has met more events than all copies so far."""
        self._append(copy_of(at, learner))

    def extend(self, others: Copies) -> None:
        """Add the copies of others, which have met more events than all of these."""
        for each in others._copies:
            each.arrays = others._arrays(each.at)
            self._append(each)
        others._copies = []

    def _append(self, new: Copy) -> None:
        """Add a copy that is whole."""
        if self._copies:
            last = self._copies[-1]
            old, newer = self._arrays(last.at), [restored(each, None) for each in new.arrays]
            pairs = zip_longest(old, newer[: len(old)])
            last.arrays = [difference(*pair) for pair in pairs]
            self._share_names(last.names, new.names)
        self._copies.append(new)

    def _share_names(self, old: list[Names], new: list[Names]) -> None:
        """Let all copies use the newest mapping of names where it continues theirs."""
        for before, after in zip(old, new, strict=False):
            names = [*before.numbered]
            if names == [*islice(after.numbered, len(names))]:
                self._replace_numbered(before.numbered, after.numbered)

    def _replace_numbered(self, old: dict[str, int], new: dict[str, int]) -> None:
        for each in self._copies:
            each.names = [
                own._replace(numbered=new) if own.numbered is old else own for own in each.names
            ]

    def restore(self, at: int) -> Any:
        """Return a learner as it was copied at a number.

        The copy is whole from then on: newer ones are mostly dropped next.
        """
        copy = next(each for each in self._copies if each.at == at)
        whole_arrays = self._arrays(at)
        copy.arrays = whole_arrays
        return learner_from(copy, whole_arrays)

    def _arrays(self, at: int) -> list[Whole]:
        """Return the arrays of a copy, whole."""
        later = [each for each in self._copies if each.at >= at]
        end = next(i for i, each in enumerate(later) if each.is_whole)
        found: list[Whole] = []
        for each in reversed(later[: end + 1]):
            pairs = zip_longest(each.arrays, found[: len(each.arrays)])
            found = [restored(*pair) for pair in pairs]
        return found

    def drop(self, numbers: Iterable[int]) -> None:
        """Discard the copies of these numbers."""
        gone = set(numbers)
        kept = [each for each in self._copies if each.at not in gone]
        if kept and kept[-1] is not self._copies[-1]:
            kept[-1].arrays = self._arrays(kept[-1].at)
            self._copies = [each for each in self._copies if each.at <= kept[-1].at]
        for i in reversed(range(1, len(self._copies))):
            if self._copies[i].at in gone:
                self._join(self._copies[i - 1], self._copies[i])
        self._copies = kept
        self._cut_names()

    def _join(self, older: Copy, between: Copy) -> None:
        """Hold a copy as its difference from the one after the next."""
        pairs = zip_longest(older.arrays, between.arrays[: len(older.arrays)])
        older.arrays = [joined(*pair) for pair in pairs]

    def _cut_names(self) -> None:
        """Discard names that no copy has: what has been forgotten stays nowhere."""
        longest: dict[int, Names] = {}
        for own in (own for each in self._copies for own in each.names):
            longest[id(own.numbered)] = max(own, longest.get(id(own.numbered), own), key=_length)
        for own in longest.values():
            if own.n < len(own.numbered):
                self._replace_numbered(own.numbered, own.own)

    def rename(self, labels: Sequence[Any]) -> None:
        """Give the classes of all copies, by number, these names; later ones keep theirs."""
        for each in self._copies:
            each.labels = [*labels, *each.labels[len(labels) :]]


def _length(names: Names) -> int:
    return names.n

"""Rows of names with their features numbered, so that learning them again reads no names.

Numbers of names in a vocabulary depend on the rows before. Those of a `Numbering` do not: they stay
when a row is taken back, and are translated, as arrays, to those of the learner.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from kesler.data.rows import Rows
from kesler.data.sparse_rows import as_float32
from kesler.durable.contents import from_json, names_and_value
from kesler.durable.storage import Learnt

MOST_ENTRIES = (
    1 << 23
)  # of the rows that are kept: 32 MB of numbers, and 32 MB of values if they vary

MOST_NAMES = 1 << 18
"""Beyond this many numbered names, those that a limit on memory has dropped are not kept: 40 MB."""

Values = npt.NDArray[np.float32] | np.float32


class Numbered(NamedTuple):
    """The features of a row: their numbers and values, or the value that all have."""

    numbers: npt.NDArray[np.int32]
    values: Values


class _Codes(dict[str, int]):
    """Numbers of names; one that is asked for the first time gets the next."""

    def __missing__(self, name: str) -> int:
        code = self[name] = len(self)
        return code


class Numbering:
    """Numbers of names, and the rows of the last blocks by these numbers."""

    def __init__(self) -> None:
        self.codes = _Codes()
        self.names: list[str] = []
        self._rows: dict[int, Numbered] = {}
        self._n_entries = 0

    def has_too_many(self, vocabulary: Any) -> bool:
        """Return whether most names are no longer in the vocabulary of the model."""
        return len(self.codes) > max(MOST_NAMES, 2 * len(vocabulary or ()))

    def rows(self, block: Sequence[Learnt]) -> list[Numbered]:
        """Return rows by numbers; those that are not kept are read, and kept."""
        known = self._rows
        self._read([each for each in block if each.number not in known])
        found = [known[each.number] for each in block]
        if self._n_entries > MOST_ENTRIES:
            self._rows, self._n_entries = {}, 0
        return found

    def forget_after(self, number: int) -> None:
        """Discard the rows after a number: they were not written, and others get their numbers."""
        for each in [each for each in self._rows if each > number]:
            self._n_entries -= len(self._rows.pop(each).numbers)

    def _read(self, block: Sequence[Learnt]) -> None:
        """Keep rows by numbers."""
        values_of: dict[str, Values] = {}  # since most rows have the same
        names: list[str] = []
        found: list[Values] = []
        ends = [0]
        for each in block:
            own, value = names_and_value(each.row)
            if value not in values_of:
                values_of[value] = as_float32(np.array(from_json(value)))[()]
            names += own
            found.append(values_of[value])
            ends.append(len(names))
        numbers = self._numbers_of(names)
        for each, start, end, values in zip(block, ends, ends[1:], found, strict=False):
            self._rows[each.number] = Numbered(numbers[start:end], values)
        self._n_entries += len(numbers)

    def _numbers_of(self, names: list[str]) -> npt.NDArray[np.int32]:
        return np.fromiter(map(self.codes.__getitem__, names), np.int32, len(names))

    def follow(self) -> None:
        """List the names that have been numbered since the last call."""
        new = [*islice(reversed(self.codes), len(self.codes) - len(self.names))]
        self.names += reversed(new)


class Translation:
    """The numbers that names have in the vocabulary of a learner.

    Parameters
    ----------
    numbering : the numbers to translate.
    vocabulary : the vocabulary of the learner, which others may extend between two calls.
    """

    def __init__(self, numbering: Numbering, vocabulary: Any) -> None:
        self._numbering, self._vocabulary = numbering, vocabulary
        self._numbered_by = vocabulary.numbering
        self._table = np.full(1024, -1, dtype=np.int32)
        self._n_known = 0

    def translated(self, rows: Sequence[Numbered]) -> tuple[Rows, list[str]]:
        """Return rows as a learner takes them, and the names among their features that are new."""
        self._follow()
        lengths = np.array([len(row.numbers) for row in rows])
        numbers = np.concatenate([row.numbers for row in rows])
        new = self._number_new(numbers)
        values = _values_of(rows, lengths)
        indptr = np.concatenate([[0], np.cumsum(lengths)])
        n_features = len(self._vocabulary) + len(new)
        indices = self._table[numbers]
        numbering = self._vocabulary.numbering
        found = indptr.astype(np.int64), indices, values, n_features
        return Rows(*found, dense=False, numbering=numbering), new

    def _follow(self) -> None:
        """Translate names that others have added to the vocabulary, or all that were renumbered."""
        if self._vocabulary.numbering is not self._numbered_by:
            self._numbered_by, self._n_known = self._vocabulary.numbering, 0
            self._table[:] = -1
        added = self._vocabulary.since(self._n_known)
        codes = self._numbering.codes
        numbers = [codes.setdefault(name, len(codes)) for name in added]
        self._numbering.follow()
        self._reserve()
        self._table[numbers] = np.arange(self._n_known, self._n_known + len(added))
        self._n_known += len(added)

    def _reserve(self) -> None:
        beyond = len(self._numbering.codes) - len(self._table)
        if beyond > 0:
            grown = np.full(beyond + len(self._table), -1, dtype=np.int32)
            self._table = np.concatenate([self._table, grown])

    def _number_new(self, numbers: npt.NDArray[np.int32]) -> list[str]:
        """Give numbers to names that the vocabulary lacks, as they occur, and return them."""
        lacking = numbers[self._table[numbers] < 0]
        distinct, first = np.unique(lacking, return_index=True)
        ordered = distinct[np.argsort(first)]
        self._table[ordered] = np.arange(self._n_known, self._n_known + len(ordered))
        return [self._numbering.names[number] for number in ordered.tolist()]

    def cut(self, vocabulary: Any) -> None:
        """Translate for a vocabulary of which that so far is a continuation."""
        self._vocabulary, self._n_known = vocabulary, min(self._n_known, len(vocabulary))
        self._numbered_by = vocabulary.numbering
        self._table[self._table >= self._n_known] = -1

    def added(self, names: list[str]) -> None:
        """Take note that the learner has learnt rows with these new names."""
        if self._vocabulary.numbering is self._numbered_by:
            self._n_known += len(names)


def _values_of(rows: Sequence[Numbered], lengths: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
    """Return the values of all entries."""
    if not any(isinstance(row.values, np.ndarray) for row in rows):
        return np.repeat(np.array([row.values for row in rows], dtype=np.float32), lengths)
    return np.concatenate([np.broadcast_to(row.values, len(row.numbers)) for row in rows])


def is_by_name(learner: Any) -> bool:
    """Return whether a learner numbers the features of mappings by their names."""
    return (
        learner.vocabulary_ is not None and not has_table(learner) and learner._input.width is None
    )


def has_table(learner: Any) -> bool:
    """Return whether a learner may keep its first rows, with their answers."""
    return learner._input.columns.state is not None


def learn_numbered(
    learner: Any, translation: Translation, rows: list[Numbered], answers: list[Any]
) -> None:
    """Learn rows of names, as `partial_fit` does with the mappings."""
    from kesler.online.training import names_of_learnt_rows, validated_targets

    translated, new = translation.translated(rows)
    with names_of_learnt_rows(learner):
        targets, _ = validated_targets(learner, len(rows), answers)
        learner.vocabulary_.extend(new)
        learner._learn(translated, targets)
    translation.added(new)

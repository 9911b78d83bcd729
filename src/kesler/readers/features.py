"""Conversion of entries to rows, with features identified by name or by position."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from operator import eq
from typing import Any

import numpy as np
import numpy.typing as npt

from kesler.data.rows import Rows, Vocabulary
from kesler.data.schema.inference import N_ROWS
from kesler.data.schema.measurements import MOST_NAMES, are_measurements
from kesler.data.sparse_rows import SparseRows
from kesler.errors import KeslerError, MismatchWarning, warn
from kesler.readers.reader import BadRow, Piece

LARGEST = float(np.finfo(np.float32).max)
MOST_UNKNOWN = 1 << 20  # names outside the vocabulary that a scanner stores


@dataclass(slots=True)
class Names:
    """Features identified by name, numbered by a vocabulary.

    Parameters
    ----------
    vocabulary : Vocabulary
        The names and their numbers.
    grow : bool
        True if new names are added to the vocabulary; False if they get numbers beyond it, or are
        omitted if rows are dense.
    width : int or None, default None
        The number of features of rows that list them all, 0 if rows do not; None if it is unknown.

    Examples
    --------
    >>> names = Names(Vocabulary.of(["price"]), grow=False)
    >>> names.gather([{"price": 2.0, "free": 1.0}]).indices.tolist()
    [0, 1]
    """

    vocabulary: Vocabulary
    grow: bool
    width: int | None = None

    def gather(self, entries: Sequence[Mapping[str, float]], *, dense: bool = False) -> Rows:
        """Return the rows of consecutive entries {name: value}."""
        known = self.vocabulary.known if dense else self.vocabulary.numbered
        number = self.vocabulary.learnt if self.grow else known
        numbered = [number(entry) for entry in entries]
        return Rows.from_sparse_rows(numbered, len(self.vocabulary), dense=dense)

    def gather_words(self, entries: Sequence[Mapping[str, float]]) -> Rows:
        """Return the rows of consecutive entries {word: count}."""
        return replace(self.gather(entries), of_words=True)

    def gather_table(self, columns: Sequence[str], values: npt.NDArray[np.float32]) -> Rows:
        """Return the rows of a dense table (n_rows, n_columns), equal to those of `gather`."""
        number = self.vocabulary.learnt if self.grow else self.vocabulary.known
        numbered = number({column: place for place, column in enumerate(columns)})
        n_rows, n_stored = len(values), len(numbered)
        indices = np.array(list(numbered), dtype=np.int32)
        stored = (
            values if n_stored == len(columns) else values[:, [int(i) for i in numbered.values()]]
        )
        return Rows(
            np.arange(n_rows + 1, dtype=np.int64) * n_stored,
            np.tile(indices, n_rows),
            stored.reshape(-1),
            max(len(self.vocabulary), 1 + int(indices.max(initial=-1))),
            dense=True,
        )


class Renumbering:
    """Conversion of the numbers that a scanner gives names to those of a vocabulary.

    A scanner may be ahead of the learner and of the vocabulary, which grows as rows are learnt.

    Parameters
    ----------
    names : Names
        The vocabulary, and whether it grows.

    Examples
    --------
    >>> names = Names(Vocabulary.of(["price"]), grow=True)
    >>> indptr, indices = np.array([0, 2]), np.array([1, 0], dtype=np.int32)
    >>> entries = SparseRows(indptr, indices, np.ones(2, dtype=np.float32))
    >>> Renumbering(names).rows(entries, ["price", "free"]).indices.tolist()
    [1, 0]
    """

    def __init__(self, names: Names) -> None:
        self._names = names
        self._numbered = list[str]()
        self._numbers = np.empty(0, dtype=np.int32)
        self._n_same = 0
        self._n_forgettings = 0

    def rows(self, entries: SparseRows, names: list[str]) -> Rows:
        """Return the rows of entries whose indices refer to a list of names, which may grow.

        Names that are not added get numbers beyond the vocabulary, distinct within each row.
        """
        self._prepare(names)
        found = entries.indices
        if not (self._are_same(found) or self._join(found, names)):
            found = self._found(entries, names)
        n_features = max(len(self._names.vocabulary), 1 + int(found.max(initial=-1)))
        return Rows(entries.indptr, found, entries.values, n_features, dense=False)

    def _prepare(self, names: list[str]) -> None:
        """Discard numbers that may be outdated, and allocate memory for those of new names."""
        n_forgettings = self._names.vocabulary.n_forgettings
        if names is not self._numbered or n_forgettings != self._n_forgettings:
            self._numbered, self._n_forgettings = names, n_forgettings
            self._n_same = n_in_common(names, self._names.vocabulary.indices)
            self._numbers = np.arange(self._n_same, dtype=np.int32)
        if len(names) > len(self._numbers):
            enlarged = np.full(len(names) + len(self._numbers), -1, dtype=np.int32)
            enlarged[: len(self._numbers)] = self._numbers
            self._numbers = enlarged

    def _are_same(self, indices: npt.NDArray[np.int32]) -> bool:
        """Return whether all indices are the same in the vocabulary."""
        return int(indices.max(initial=-1)) < self._n_same

    def _join(self, indices: npt.NDArray[np.int32], names: list[str]) -> bool:
        """Add new names if they occur in the order of their numbers; return whether they do."""
        vocabulary, start = self._names.vocabulary, self._n_same
        new = indices[indices >= start]
        steps = np.diff(np.maximum.accumulate(new), prepend=start - 1)
        if not self._names.grow or len(vocabulary) != start or (steps > 1).any():
            return False
        self._n_same = int(new.max()) + 1
        vocabulary.extend(names[start : self._n_same])
        self._numbers[start : self._n_same] = np.arange(start, self._n_same, dtype=np.int32)
        return True

    def _found(self, entries: SparseRows, names: list[str]) -> npt.NDArray[np.int32]:
        """Return the numbers of the features of entries."""
        found = self._numbers[entries.indices]
        if (found < 0).any():
            self._find(names, entries.indices[found < 0])
            found = self._numbers[entries.indices]
        unseen = found < 0
        if unseen.any():
            counts = np.concatenate([[0], np.cumsum(unseen)])
            before = np.repeat(counts[entries.indptr[:-1]], np.diff(entries.indptr))
            found[unseen] = (len(self._names.vocabulary) + counts[:-1] - before)[unseen]
        return found

    def _find(self, names: list[str], wanted: npt.NDArray[np.int32]) -> None:
        """Look names up in the vocabulary, in the order of `wanted`."""
        vocabulary = self._names.vocabulary
        for number in dict.fromkeys(wanted.tolist()):
            name = names[number]
            known = vocabulary.add(name) if self._names.grow else vocabulary.indices.get(name, -1)
            self._numbers[number] = known
            self._n_same += number == known == self._n_same


def n_in_common(names: Iterable[str], others: Iterable[str]) -> int:
    """Return the length of the longest common prefix of two lists of names.

    Examples
    --------
    >>> n_in_common(["price", "free", "from"], ["price", "from"])
    1
    """
    return sum(1 for _ in takewhile(bool, map(eq, names, others)))


@dataclass(slots=True)
class Positions:
    """Features identified by position; the largest index so far determines their number.

    Parameters
    ----------
    n_features : int
        The largest index so far, plus one.
    """

    n_features: int = 0

    def gather(self, entries: Sequence[Mapping[int, float]]) -> Rows:
        """Return the rows of consecutive entries {index: value}."""
        largest = max((max(entry) for entry in entries if entry), default=-1)
        self.n_features = max(self.n_features, largest + 1)
        return Rows.from_sparse_rows(entries, self.n_features)

    def rows(self, entries: SparseRows) -> Rows:
        """Return the rows of consecutive entries."""
        self.n_features = max(self.n_features, 1 + int(entries.indices.max(initial=-1)))
        return Rows(entries.indptr, entries.indices, entries.values, self.n_features, dense=False)


class Density:
    """Whether rows of a text that may leave out zeros are measurements, whose zeros are features.

    Parameters
    ----------
    width : int or None
        The number of features of such rows; 0 if they are none, None if the first rows say it.
    names : Names or None
        The names of the features; None if they are positions. No name is added once it is known
        that rows are measurements.

    Examples
    --------
    >>> rows = Rows.from_lists([0, 2, 1], [1, 2, 2], [5.1, 3.5, 4.9], 3)
    >>> [(number, filled)] = Density(None, None).filled([(1, rows)])
    >>> filled.values.tolist()
    [0.0, 5.099999904632568, 3.5, 0.0, 0.0, 4.900000095367432]
    """

    def __init__(self, width: int | None, names: Names | None) -> None:
        self._width, self._names = width, names
        self._has_warned = False

    def filled(self, pieces: Iterable[Piece]) -> Iterator[Piece]:
        """Yield rows with the zeros that they leave out if they are measurements.

        Each piece of rows comes with anything. Pieces are read ahead until they have the first
        rows; an error among them is raised after those before it.
        """
        remaining, first, fault = iter(pieces), list[Piece](), None
        try:
            while self._width is None and sum(len(rows) for _, rows in first) < N_ROWS:
                first.append(next(remaining))
        except StopIteration:
            pass
        except KeslerError as error:
            fault = error
        if self._width is None and first:
            self._width = self._found([rows for _, rows in first])
        for run, rows in first:
            yield run, self._listed(rows)
        if fault is not None:
            raise fault
        for run, rows in remaining:
            yield run, self._listed(rows)

    def _listed(self, rows: Rows) -> Rows:
        if not self._width or rows.dense:
            return rows
        if not self._has_warned and int(rows.indices.max(initial=0)) >= self._width:
            self._has_warned = True
            warn(
                f"rows name features that are in none of the first {N_ROWS} rows, whose "
                f"{self._width} numbers are the features; they are left out: put a row that has "
                "them among these",
                MismatchWarning,
            )
        return rows.with_zeros(self._width)

    def _found(self, pieces: Sequence[Rows]) -> int:
        """Return the number of features if the first rows are measurements, else 0."""
        if pieces[0].dense or any(rows.ratings is not None for rows in pieces):
            return 0
        rows = Rows.concatenate(pieces)[:N_ROWS]
        width = int(rows.indices.max(initial=-1)) + 1
        if width > MOST_NAMES:
            return 0
        listed = list[list[float | None]]([None] * len(rows) for _ in range(width))
        numbers = np.repeat(np.arange(len(rows)), np.diff(rows.indptr))
        for row, index, value in zip(numbers, rows.indices, rows.values.tolist(), strict=True):
            listed[index][row] = value
        used = (cells for cells in listed if any(cell is not None for cell in cells))
        if not are_measurements({str(i): cells for i, cells in enumerate(used)}):
            return 0
        if self._names is not None:
            self._names.grow = False
            self._names.vocabulary.forget_from(width)
        return width


def finite(entry: dict[Any, float], *, or_missing: bool = False) -> dict[Any, float]:
    """Return an entry; raise BadRow if a value is infinite, too large for float32 or NaN.

    NaN is a missing value if `or_missing`.

    Examples
    --------
    >>> finite({"price": float("nan")})
    Traceback (most recent call last):
    ...
    kesler.readers.reader.BadRow: feature 'price' is nan, not a finite number that float32 \
can hold
    """
    if sum(map(abs, entry.values())) <= LARGEST:  # then each value is
        return entry
    for name, value in entry.items():
        if -LARGEST <= value <= LARGEST or (or_missing and value != value):
            continue
        raise BadRow(f"feature {name!r} is {value}, not a finite number that float32 can hold")
    return entry

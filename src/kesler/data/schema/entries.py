"""Entries: the named features of rows of a table, in arrays, and their numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, repeat
from typing import Any

import numpy as np
import numpy.typing as npt

from kesler.data.rows import Rows, Vocabulary
from kesler.data.sparse_rows import as_float32

Integers = npt.NDArray[np.int64]
Doubles = npt.NDArray[np.float64]
Part = tuple[list[int], list[float], float | None]
"""The codes and the values of the features of a cell, and their length; None if it has its own."""


@dataclass(frozen=True, slots=True)
class Entries:
    """The features of rows, one row after another.

    Parameters
    ----------
    counts : int64 array of shape (n_rows,)
        The number of features of each row.
    codes : int64 array of shape (n_entries,)
        The place of the name of each feature among the names.
    values : float64 array of shape (n_entries,)
        The value of each feature.
    names : list of str
        Different names, some of which may not occur.
    """

    counts: Integers
    codes: Integers
    values: Doubles
    names: list[str]

    def __len__(self) -> int:
        return len(self.counts)

    def __getitem__(self, row: int) -> dict[str, float]:
        """Return the features of a row by name."""
        ends = self.counts.cumsum()
        part = slice(int(ends[row] - self.counts[row]), int(ends[row]))
        names = [self.names[code] for code in self.codes[part].tolist()]
        return dict(zip(names, self.values[part].tolist(), strict=True))

    def __iter__(self) -> Iterator[dict[str, float]]:
        return (self[row] for row in range(len(self)))

    def take(self, places: Integers) -> Entries:
        """Return the rows of these places, without features where one is -1."""
        counts = np.where(places < 0, 0, self.counts[places]) if len(self) else places * 0
        starts = starts_of(self.counts)[places] if len(self) else counts
        at = positions(starts, counts)
        return Entries(counts, self.codes[at], self.values[at], self.names)

    def without_zeros(self) -> Entries:
        """Return the rows without features of value 0."""
        present = self.values != 0
        if present.all():
            return self
        n_before = np.concatenate([[0], present.cumsum()])
        ends = self.counts.cumsum()
        counts = n_before[ends] - n_before[ends - self.counts]
        return Entries(counts, self.codes[present], self.values[present], self.names)

    @staticmethod
    def interleaved(parts: Sequence[Entries], n_rows: int) -> Entries:
        """Return rows that have the features of all parts, one part after another."""
        if not parts:
            none = np.zeros(n_rows, dtype=np.int64)
            return Entries(none, none[:0], np.empty(0), [])
        counts = np.array([part.counts for part in parts])
        of_rows = counts.cumsum(axis=0)
        starts = of_rows - counts + starts_of(of_rows[-1])
        n, names = int(counts.sum()), list[str]()
        codes, values = np.empty(n, dtype=np.int64), np.empty(n)
        for part, begins in zip(parts, starts, strict=True):
            places = positions(begins, part.counts)
            codes[places], values[places] = part.codes + len(names), part.values
            names += part.names
        return Entries(of_rows[-1], codes, values, names)

    def rows(self, vocabulary: Vocabulary, *, learn: bool) -> Rows:
        """Return the rows with their features by number.

        If `learn`, new names are added in the order in which they occur; otherwise those of a row
        get consecutive numbers beyond the vocabulary.
        """
        known = vocabulary.indices
        numbers = np.fromiter(map(known.get, self.names, repeat(-1)), np.int64, len(self.names))
        if learn:
            for code in self._in_order((numbers < 0).nonzero()[0]):
                numbers[code] = known.setdefault(self.names[code], len(known))
        indices = numbers[self.codes]
        if not learn:
            n_new = (indices < 0).cumsum()
            before = _before(n_new, self.counts).repeat(self.counts)
            indices = np.where(indices < 0, len(known) + n_new - before - 1, indices)
        return Rows(
            np.concatenate([[0], self.counts.cumsum()]),
            indices.astype(np.int32),
            as_float32(self.values),
            max(len(known), 1 + int(indices.max(initial=-1))),
            dense=False,
            numbering=vocabulary.numbering,
        )

    def _in_order(self, wanted: Integers) -> list[int]:
        """Return those of the wanted codes that occur, in the order of their first occurrence."""
        n = len(self.codes)
        first = np.full(len(self.names), n)
        first[self.codes[::-1]] = np.arange(n - 1, -1, -1)  # the last one written is the first
        found = wanted[first[wanted] < n]
        ordered: list[int] = found[np.argsort(first[found])].tolist()
        return ordered


def positions(starts: Integers, counts: Integers) -> Integers:
    """Return consecutive numbers from each start on, so many of them.

    Examples
    --------
    >>> positions(np.array([5, 0]), np.array([2, 3])).tolist()
    [5, 6, 0, 1, 2]
    """
    shifts = (starts - starts_of(counts)).repeat(counts)
    return np.arange(len(shifts)) + shifts


def starts_of(counts: Integers) -> Integers:
    """Return how many come before each, of runs of these lengths."""
    found: Integers = counts.cumsum() - counts
    return found


def _before(totals: npt.NDArray[Any], counts: Integers) -> Integers:
    """Return the totals before each run of these lengths."""
    found: Integers = np.concatenate([[0], totals])[starts_of(counts)]
    return found


class Coder(dict[Any, int]):
    """The codes of names that begin alike, each new one being the next among all names."""

    def __init__(self, prefix: str, names: list[str]) -> None:
        super().__init__()
        self._prefix, self._names = prefix, names

    def __missing__(self, key: str) -> int:
        code = self[key] = len(self._names)
        self._names.append(self._prefix + key)
        return code


@dataclass(frozen=True, slots=True)
class Grid:
    """Columns whose cells have the same number of features each: numbers and dates.

    Parameters
    ----------
    codes, values : arrays of shape (n_rows, n_columns, n_features)
        The features of each cell; those of value 0 are left out.
    known : bool array of shape (n_rows, n_columns)
        Which cells are not missing.
    names : list of str
    """

    codes: Integers
    values: Doubles
    known: npt.NDArray[np.bool_]
    names: list[str]

    def entries(self, length: float) -> Entries:
        """Return the features, those of a row scaled so that all cells have the same share."""
        present = self.known[:, :, None] & (self.values != 0)
        values = shares(self.known, length)[:, None, None] * self.values
        return Entries(present.sum(axis=(1, 2)), self.codes[present], values[present], self.names)


class Parts:
    """Columns whose cells recur, with the features of each different cell.

    Attributes
    ----------
    names : list of str
        The names of the features.
    """

    def __init__(self) -> None:
        self.names: list[str] = []
        self._codes, self._values = [list[int]()], [list[float]()]  # those of a missing cell
        self._scales = [1.0]
        self._places: list[list[int]] = []

    def add(self, cells: Sequence[Any], features: Callable[[Any], Part | None]) -> None:
        """Add a column.

        Parameters
        ----------
        cells : values that can be keys, None where one is missing.
        features : function of a cell; None if it counts as missing.
        """
        places = {None: 0}
        for cell in dict.fromkeys(cells):
            made = None if cell is None else features(cell)
            places[cell] = 0 if made is None else len(self._codes)
            if made is not None:
                codes, values, length = made
                self._codes.append(codes)
                self._values.append(values)
                self._scales.append(1.0 if length is None else scale_to(length, values))
        self._places.append([places[cell] for cell in cells])

    def entries(self, length: float | None) -> Entries:
        """Return the features, those of a row scaled so that all cells have the same share.

        They keep their values if there is no length.
        """
        places = np.array(self._places).T
        sizes = np.array(list(map(len, self._codes)))
        counts, starts = sizes[places], starts_of(sizes)[places]
        at, of_row = positions(starts.ravel(), counts.ravel()), counts.sum(axis=1)
        scales = np.array(self._scales)[places.ravel()].repeat(counts.ravel())
        values = scales * np.fromiter(chain.from_iterable(self._values), dtype=float)[at]
        if length is not None:
            values = shares(places > 0, length).repeat(of_row) * values
        codes = np.fromiter(chain.from_iterable(self._codes), dtype=np.int64)[at]
        return Entries(of_row, codes, values, self.names).without_zeros()


def scale_to(length: float, values: Sequence[float]) -> float:
    """Return the factor by which values have a length, 0 if all are 0.

    Examples
    --------
    >>> scale_to(10.0, [3.0, 4.0])
    2.0
    """
    found = math.hypot(*values)
    return length / found if found else 0.0


def shares(known: npt.NDArray[np.bool_], length: float) -> Doubles:
    """Return what each of the known cells of a row is scaled by, so that they have this length."""
    found: Doubles = length / np.sqrt(np.maximum(1, known.sum(axis=1)))
    return found

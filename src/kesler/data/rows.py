"""Rows, the input of all kernels; the names of their features; the shape of images."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count, islice
from math import isqrt
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt

from kesler.data.matrices import canonical, well_formed
from kesler.data.ratings import Ratings
from kesler.data.sparse_rows import SparseRows, as_float32, joined
from kesler.errors import KeslerError

MAX_FEATURES = np.iinfo(np.int32).max


@dataclass(frozen=True, slots=True)
class Rows(SparseRows):
    """Compressed sparse rows: row i consists of the entries indptr[i] to indptr[i + 1].

    Parameters
    ----------
    indptr : int64 array of shape (n_rows + 1,)
        The bounds of each row.
    indices : int32 array of shape (n_entries,)
        The feature of each entry. A row holds each at most once, except the index that stands for
        all unknown features.
    values : float32 array of shape (n_entries,)
        The value of each entry; finite.
    n_features : int
        Number of features; every index is below it.
    dense : bool
        True if each row lists every feature, including zeros (an array or a numeric table); False
        if features that are not listed are zero (text, counts).
    ratings : Ratings or None, default None
        The ratings of the classes by sub-experts in each row, if any.
    numbering : Numbering or None, default None
        The numbering of the vocabulary that the indices are numbers of; None if it never changes.
    measured : Rows or None, default None
        The same rows as an array of measurements, for those members of an ensemble that read such;
        None if all read these.
    of_words : bool, default False
        Whether values are counts of the words of texts, which learners without the preprocessing
        :class:`~kesler.preprocessing.Counts` replace by 1.

    Examples
    --------
    >>> rows = Rows.from_dense(np.array([[0.0, 2.0], [1.0, 0.0]]))
    >>> len(rows), rows.n_features, rows.without_zeros().indices.tolist()
    (2, 2, [1, 0])
    """

    n_features: int
    dense: bool
    ratings: Ratings | None = None
    numbering: Numbering | None = field(default=None, compare=False, repr=False)
    measured: Rows | None = None
    of_words: bool = False

    def __getitem__(self, rows: slice) -> Rows:
        """Return a slice of the rows, as views; the same object if these are all."""
        stop = len(self.indptr) - 1
        if not rows.start and rows.step is None and (rows.stop is None or rows.stop >= stop):
            return self
        ratings = None if self.ratings is None else self.ratings[rows]
        measured = None if self.measured is None else self.measured[rows]
        return replace(SparseRows.__getitem__(self, rows), ratings=ratings, measured=measured)

    def without_later(self) -> Rows:
        """Return the rows with no more features and sub-experts than they have entries of.

        Names are numbered in the order of the rows: the other features belong to later rows.
        """
        ratings = None if self.ratings is None else self.ratings.without_later()
        n_features = int(self.indices.max(initial=-1)) + 1
        return replace(self, n_features=n_features, ratings=ratings)

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of rows and of features."""
        return len(self), self.n_features

    @property
    def n_sub_experts(self) -> int:
        """The number of sub-experts, 0 if there are no ratings."""
        return 0 if self.ratings is None else self.ratings.n_sub_experts

    @staticmethod
    def from_dense(values: npt.ArrayLike) -> Rows:
        """Return the rows of an array (n_rows, n_features) as float32, including zeros."""
        array = _own(np.ascontiguousarray(values, dtype=np.float32))
        n_rows, n_features = array.shape
        indices = np.empty((n_rows, n_features), dtype=np.int32)
        indices[:] = np.arange(n_features, dtype=np.int32)
        indptr = np.arange(n_rows + 1, dtype=np.int64) * n_features
        return Rows(indptr, indices.reshape(-1), array.reshape(-1), n_features, dense=True)

    @staticmethod
    def from_sparse(matrix: Any) -> Rows:
        """Return the rows of a scipy sparse matrix (n_rows, n_features), with sorted columns."""
        if matrix.shape[1] > MAX_FEATURES:
            raise KeslerError(
                f"X has {matrix.shape[1]} columns; Kesler takes at most {MAX_FEATURES}"
            )
        csr = canonical(well_formed(matrix))
        return Rows(
            _own(csr.indptr.astype(np.int64, copy=False)),
            _own(csr.indices.astype(np.int32, copy=False)),
            _own(as_float32(csr.data)),
            int(csr.shape[1]),
            dense=False,
        )

    @staticmethod
    def from_sparse_rows(
        entries: Iterable[Mapping[int, float]], n_features: int, *, dense: bool = False
    ) -> Rows:
        """Return rows from mappings {index: value}; a larger index increases `n_features`."""
        lengths, indices, values = [0], list[int](), list[float]()
        for entry in entries:
            indices.extend(entry)
            values.extend(entry.values())
            lengths.append(len(entry))
        return Rows.from_lists(lengths, indices, values, n_features, dense=dense)

    @staticmethod
    def from_lists(
        lengths: list[int],
        indices: list[int],
        values: list[float],
        n_features: int,
        *,
        dense: bool = False,
    ) -> Rows:
        """Return rows of these numbers of entries, after a 0, which stand one after another."""
        return Rows(
            np.cumsum(lengths, dtype=np.int64),
            np.array(indices, dtype=np.int32),
            as_float32(_numbers(values)),
            max(n_features, 1 + max(indices, default=-1)),
            dense,
        )

    @staticmethod
    def empty(n_rows: int) -> Rows:
        """Return rows without features."""
        none = np.empty(0, dtype=np.int32), np.empty(0, dtype=np.float32)
        return Rows(np.zeros(n_rows + 1, dtype=np.int64), *none, 0, dense=False)

    @staticmethod
    def concatenate(pieces: Sequence[Rows]) -> Rows:
        """Return copies of the rows of all pieces, at least one."""
        ratings = [piece.ratings for piece in pieces if piece.ratings is not None]
        measured = [piece.measured for piece in pieces if piece.measured is not None]
        return Rows(
            joined([piece.indptr for piece in pieces]),
            np.concatenate([piece.indices for piece in pieces]),
            np.concatenate([piece.values for piece in pieces]),
            max(piece.n_features for piece in pieces),
            pieces[0].dense,
            Ratings.concatenate(ratings) if ratings else None,
            pieces[-1].numbering,
            Rows.concatenate(measured) if measured else None,
            pieces[0].of_words,
        )

    def take(self, numbers: npt.NDArray[np.int64]) -> Rows:
        """Return copies of the rows of the given numbers, in this order."""
        ratings = None if self.ratings is None else self.ratings.take(numbers)
        measured = None if self.measured is None else self.measured.take(numbers)
        return replace(SparseRows.take(self, numbers), ratings=ratings, measured=measured)

    def first(self, n: int | None) -> Rows:
        """Return rows that list every feature with the first n of these, or all if n is None."""
        if n is None or n == self.n_features:
            return self
        return Rows.from_dense(self.values.reshape(self.shape)[:, :n])

    def with_presence(self) -> Rows:
        """Return the rows, with the value 1 in place of counts of words."""
        if not self.of_words:
            return self
        return replace(self, values=(self.values != 0).astype(np.float32), of_words=False)

    def with_constant(self, value: float) -> Rows:
        """Return rows with a constant feature 0; the indices of the others increase by 1."""
        starts = self.indptr[:-1]
        return replace(
            self,
            indptr=self.indptr + np.arange(len(self) + 1),
            indices=np.insert(self.indices + np.int32(1), starts, 0),
            values=np.insert(self.values, starts, np.float32(value)),
            n_features=self.n_features + 1,
        )

    def with_zeros(self, width: int) -> Rows:
        """Return rows that list each of `width` features; further ones are left out."""
        values = np.zeros((len(self), width), dtype=np.float32)
        numbers = np.repeat(np.arange(len(self)), np.diff(self.indptr))
        known = self.indices < width
        values[numbers[known], self.indices[known]] = self.values[known]
        return Rows.from_dense(values)

    def with_unseen_as(self, unseen: int) -> Rows:
        """Return rows with every index above `unseen` replaced by it, possibly repeatedly."""
        if self.n_features <= unseen:
            return self
        indices = np.minimum(self.indices, np.int32(unseen))
        return replace(self, indices=indices, n_features=unseen + 1)

    def require_finite(self, first_row: int = 0) -> None:
        """Raise an error that names the first row with NaN or infinity, if any."""
        entry = self.first_odd()
        if entry is not None:
            raise KeslerError(
                f"row {first_row + self.list_of(entry)}, feature {self.indices[entry]} is NaN, "
                "infinity or too large for float32: fill, drop or rescale such values before "
                "learning"
            )


def _numbers(values: list[Any]) -> npt.NDArray[Any]:
    """Return values as an array of numbers; text is refused even if it looks like a number."""
    try:
        array = np.array(values) if values else np.empty(0)
    except ValueError:  # some values are lists
        array = np.empty(0, dtype=object)
    if array.dtype.kind not in "biuf" or array.ndim != 1:
        odd = next((v for v in values if not isinstance(v, Real)), values[0])
        raise KeslerError(f"{odd!r} ({type(odd).__name__}) is not a number that float32 can hold")
    return array


def _own(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the array, copied if it is read-only (a memory map): kernels need writable ones."""
    return array if array.flags.writeable else array.copy()


@dataclass(eq=False)  # without slots, which skops could not read
class Numbering:
    """How a vocabulary numbers names until some are dropped.

    Parameters
    ----------
    names : list of str or None
        The names by number, once others are numbered so; None while the numbering is in use.
    """

    names: list[str] | None = None


@dataclass  # without slots, which skops could not read
class Vocabulary:
    """The names of the features, numbered in the order of their first occurrence.

    Parameters
    ----------
    indices : dict of str to int
        The number of each name; iterating it gives the names in order.
    n_forgettings : int
        How often names were removed; numbers returned before may have changed since.
    numbering : Numbering
        The numbering in use, another one after each `keep`.

    Examples
    --------
    >>> vocabulary = Vocabulary()
    >>> vocabulary.add("price"), vocabulary.add("free"), vocabulary.add("price")
    (0, 1, 0)
    >>> vocabulary.names
    ['price', 'free']
    """

    indices: dict[str, int] = field(default_factory=dict)
    n_forgettings: int = field(default=0, compare=False, repr=False)
    numbering: Numbering = field(default_factory=Numbering, compare=False, repr=False)

    @classmethod
    def of(cls, names: Iterable[str]) -> Vocabulary:
        """Create a vocabulary of the names, in order."""
        return cls({name: index for index, name in enumerate(names)})

    def __len__(self) -> int:
        return len(self.indices)

    def __contains__(self, name: object) -> bool:
        return name in self.indices

    @property
    def names(self) -> list[str]:
        """The names in the order of their numbers."""
        return list(self.indices)

    def add(self, name: str) -> int:
        """Return the number of a name, which is added if it is new."""
        return self.indices.setdefault(name, len(self.indices))

    def extend(self, names: Sequence[str]) -> None:
        """Add names, all of which must be new."""
        self.indices.update(zip(names, range(len(self), len(self) + len(names)), strict=True))

    def known(self, entry: Mapping[str, float]) -> dict[int, float]:
        """Return the entry by number, without names outside the vocabulary."""
        indices = self.indices
        return {indices[name]: value for name, value in entry.items() if name in indices}

    def numbered(self, entry: Mapping[str, float]) -> dict[int, float]:
        """Return the entry by number; unknown names get consecutive numbers beyond the vocabulary.

        No name is added: such a number says that the name is unknown, not which name it is.
        """
        indices, unseen = self.indices, count(len(self.indices))
        return {
            indices[name] if name in indices else next(unseen): value
            for name, value in entry.items()
        }

    def learnt(self, entry: Mapping[str, float]) -> dict[int, float]:
        """Return the entry by number; new names are added."""
        indices = self.indices
        numbers = [*map(indices.get, entry)]  # without a step of Python for each known name
        if None in numbers:
            numbers = [indices.setdefault(name, len(indices)) for name in entry]
        return dict(zip(numbers, entry.values(), strict=True))  # type: ignore[arg-type]

    def rows_learnt(self, entries: Iterable[Mapping[str, float]]) -> Rows:
        """Return entries as rows; new names are added, without a call for each entry."""
        known, lengths = self.indices, [0]
        indices, values = list[int](), list[float]()
        for entry in entries:
            for name in entry.keys():  # of what is no mapping, an AttributeError
                indices.append(known.setdefault(name, len(known)))
            values.extend(entry.values())
            lengths.append(len(entry))
        rows = Rows.from_lists(lengths, indices, values, len(known))
        return replace(rows, numbering=self.numbering)

    def since(self, n_names: int) -> list[str]:
        """Return the names from number `n_names` on, in time proportional to their number."""
        return list(islice(reversed(self.indices), max(0, len(self) - n_names)))[::-1]

    def forget_from(self, n_names: int) -> None:
        """Remove the names from number `n_names` on."""
        self.n_forgettings += 1
        for name in self.since(n_names):
            del self.indices[name]

    def keep(self, numbers: npt.NDArray[np.int64]) -> None:
        """Keep only the names of these numbers, in ascending order, and number them from 0.

        Rows that were read before are renumbered by `renumbered`.
        """
        former, self.numbering = self.numbering, Numbering()
        names = former.names = self.names
        self.n_forgettings += 1
        self.indices.clear()  # before it is filled, so that names are not in memory twice
        self.indices.update(zip([names[i] for i in numbers.tolist()], count(), strict=False))

    def renumbered(self, rows: Rows) -> Rows:
        """Return rows, whose names may have been renumbered since they were read.

        Names that have been dropped are added, in the order in which they occur.
        """
        former = None if rows.numbering is None else rows.numbering.names
        if former is None:
            return rows
        distinct, first = np.unique(rows.indices, return_index=True)
        numbers = np.full(len(former), -1, dtype=np.int32)
        for number in distinct[np.argsort(first)].tolist():
            numbers[number] = self.add(former[number])
        return replace(
            rows,
            indices=numbers[rows.indices],
            n_features=len(self),
            numbering=self.numbering,
        )


def image_shape_of(n_pixels: int, given: tuple[int, int] | None) -> tuple[int, int]:
    """Return the rows and columns of images of `n_pixels` pixels, square unless given.

    Raises
    ------
    KeslerError
        If an image of that shape has another number of pixels.
    """
    side = isqrt(n_pixels)
    rows, columns = (side, side) if given is None else map(int, given)
    if rows < 1 or rows * columns != n_pixels:
        shape = "square images" if given is None else f"images of {rows}x{columns}"
        raise KeslerError(
            f"rows of {n_pixels} pixels are not {shape}: set image_shape=(rows, columns)"
        )
    return rows, columns

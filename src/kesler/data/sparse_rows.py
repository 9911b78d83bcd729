"""Sparse rows: lists of entries (index, value) in compressed form, and operations on them."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from kesler.errors import KeslerError

Self = TypeVar("Self", bound="SparseRows")


@dataclass(frozen=True, slots=True)
class SparseRows:
    """Consecutive lists of entries: list i consists of the entries indptr[i] to indptr[i + 1].

    Parameters
    ----------
    indptr : int64 array of shape (n_lists + 1,)
        The bounds of each list.
    indices : int32 array of shape (n_entries,)
        The index of each entry, at most once in each list.
    values : float32 array of shape (n_entries,)
        The value of each entry; finite.

    Examples
    --------
    >>> indptr, indices = np.array([0, 2, 3]), np.array([0, 4, 1], dtype=np.int32)
    >>> entries = SparseRows(indptr, indices, np.array([1, 0, 2], dtype=np.float32))
    >>> len(entries), entries.without_zeros().indices.tolist(), entries[1:].indices.tolist()
    (2, [0, 1], [1])
    """

    indptr: npt.NDArray[np.int64]
    indices: npt.NDArray[np.int32]
    values: npt.NDArray[np.float32]

    def __len__(self) -> int:
        return len(self.indptr) - 1

    def __getitem__(self: Self, lists: slice) -> Self:
        """Return a slice of the lists, as views."""
        start, stop = run_of(lists, len(self))
        indptr = self.indptr[start : stop + 1]
        low, high = indptr[0], indptr[-1]
        return replace(
            self,
            indptr=indptr - low,
            indices=self.indices[low:high],
            values=self.values[low:high],
        )

    def take(self: Self, numbers: npt.NDArray[np.int64]) -> Self:
        """Return copies of the lists of the given numbers, in this order."""
        indptr, entries = picked(self.indptr, numbers)
        return replace(
            self, indptr=indptr, indices=self.indices[entries], values=self.values[entries]
        )

    def where(self: Self, stored: npt.NDArray[np.bool_]) -> Self:
        """Return the lists with only the `stored` entries; the same object if these are all."""
        if stored.all():
            return self
        before = np.concatenate([[0], np.cumsum(stored)])
        return replace(
            self,
            indptr=before[self.indptr].astype(np.int64),
            indices=self.indices[stored],
            values=self.values[stored],
        )

    def without_zeros(self: Self) -> Self:
        """Return the lists without their zero entries; the same object if there are none."""
        return self.where(self.values != 0)

    def first_odd(self) -> int | None:
        """Return the number of the first entry that is NaN or infinite, None if there is none."""
        finite = np.isfinite(self.values)
        return None if finite.all() else int(np.argmin(finite))

    def list_of(self, entry: int) -> int:
        """Return the number of the list that contains an entry."""
        return int(np.searchsorted(self.indptr, entry, side="right")) - 1


def run_of(lists: slice, n: int) -> tuple[int, int]:
    """Return the bounds of a slice of n items; raise if its step is not 1."""
    start, stop, step = lists.indices(n)
    if step != 1:
        raise KeslerError(f"rows can be sliced with a step of 1 only, not {step}")
    return start, max(start, stop)


def picked(
    indptr: npt.NDArray[np.int64], numbers: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the `indptr` of the lists of the given numbers, and the indices of their entries."""
    lengths = np.diff(indptr)[numbers]
    starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    return starts, np.repeat(indptr[numbers] - starts[:-1], lengths) + np.arange(starts[-1])


def joined(pieces: Sequence[npt.NDArray[np.int64]]) -> npt.NDArray[np.int64]:
    """Return the `indptr` of the concatenation of pieces, given the `indptr` of each."""
    starts = np.cumsum([0, *(indptr[-1] for indptr in pieces)])
    ends = [indptr[1:] + start for indptr, start in zip(pieces, starts[:-1], strict=True)]
    return np.concatenate([np.zeros(1, dtype=np.int64), *ends])


def as_float32(values: object) -> npt.NDArray[np.float32]:
    """Return the values as float32; values beyond its range become infinite, without a warning."""
    with np.errstate(over="ignore"):
        return np.asarray(values, dtype=np.float32)


def is_sparse(data: Any) -> bool:
    """Return whether data is a scipy sparse matrix, without importing scipy."""
    sparse = sys.modules.get("scipy.sparse")
    return sparse is not None and bool(sparse.issparse(data))

"""Entries: lists of (index, value) in compressed form, the arithmetic of sparse rows."""

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
    """Lists of entries, one after the other: list i holds entries indptr[i] to indptr[i + 1].

    Parameters
    ----------
    indptr : int64 array of shape (n_lists + 1,)
        Where each list begins and ends.
    indices : int32 array of shape (n_entries,)
        The index of each entry, each at most once in a list.
    values : float32 array of shape (n_entries,)
        Its value; finite.

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
        """Return a run of consecutive lists, as views."""
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
        """Return the lists of these numbers, in this order, copied."""
        indptr, entries = picked(self.indptr, numbers)
        return replace(
            self, indptr=indptr, indices=self.indices[entries], values=self.values[entries]
        )

    def where(self: Self, stored: npt.NDArray[np.bool_]) -> Self:
        """Return the lists without the entries that are not kept: itself if all are."""
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
        """Return the lists without their zero entries: itself if there are none."""
        return self.where(self.values != 0)

    def first_odd(self) -> int | None:
        """Return the number of the first entry that is NaN or infinite, None if there is none."""
        finite = np.isfinite(self.values)
        return None if finite.all() else int(np.argmin(finite))

    def list_of(self, entry: int) -> int:
        """Return the number of the list that an entry stands in."""
        return int(np.searchsorted(self.indptr, entry, side="right")) - 1


def run_of(lists: slice, n: int) -> tuple[int, int]:
    """Return where a slice of n things begins and ends; raise if it is no run of them."""
    start, stop, step = lists.indices(n)
    if step != 1:
        raise KeslerError(f"rows can be sliced with a step of 1 only, not {step}")
    return start, max(start, stop)


def picked(
    indptr: npt.NDArray[np.int64], numbers: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return where the lists of these numbers begin, put together, and which entries they are."""
    lengths = np.diff(indptr)[numbers]
    starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    return starts, np.repeat(indptr[numbers] - starts[:-1], lengths) + np.arange(starts[-1])


def joined(pieces: Sequence[npt.NDArray[np.int64]]) -> npt.NDArray[np.int64]:
    """Return where lists begin and end, put together, of where those of each piece do."""
    starts = np.cumsum([0, *(indptr[-1] for indptr in pieces)])
    ends = [indptr[1:] + start for indptr, start in zip(pieces, starts[:-1], strict=True)]
    return np.concatenate([np.zeros(1, dtype=np.int64), *ends])


def as_float32(values: object) -> npt.NDArray[np.float32]:
    """Return the values as float32; what float32 can't hold becomes infinite, without a warning."""
    with np.errstate(over="ignore"):
        return np.asarray(values, dtype=np.float32)


def is_sparse(data: Any) -> bool:
    """Return whether this is a sparse matrix of scipy's, without importing scipy to ask."""
    sparse = sys.modules.get("scipy.sparse")
    return sparse is not None and bool(sparse.issparse(data))

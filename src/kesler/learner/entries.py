"""Entries: one for each pair of feature and class that met, in arrays that grow."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from kesler.state.candidates import Entries as Record
from kesler.state.candidates import SavedEntries
from kesler.state.capacity import keep_along, require_memory
from kesler.state.fields import (
    Arrays,
    allocated,
    bind,
    checked,
    damaged,
    fields_of,
    put,
    require_lists,
)

if TYPE_CHECKING:
    from scipy import sparse

PREFIX = "entries."  # of the names in a model file
# The initial number of places; it takes no memory before it is written.
INITIAL_PLACES = 1 << 18
NONE = -1
PLACES_AT_ONCE = 1 << 20  # that are moved together, of which there is a copy
Places = npt.NDArray[np.int64]


class Entries:
    """The classes that each feature met; see :mod:`kesler.compiled.candidates.entries`.

    Parameters
    ----------
    n_features : the capacity for features.
    n_numbers : how many numbers an entry holds.

    Notes
    -----
    Memory: 4 bytes and 4 for each number of an entry, and two thirds as much at most for free
    places; 16 bytes for each feature.
    """

    def __init__(self, n_features: int, n_numbers: int) -> None:
        self.n_numbers = n_numbers
        lengths = {"feature": n_features, "entry": INITIAL_PLACES, "number": n_numbers}
        self.stored = allocated(fields_of(Record), self, lengths)
        self.stored["spare"][:] = NONE

    def bound(self) -> Any:
        """Return the record that compiled code takes."""
        return bind(Record, self.stored)

    def reserve(self, n_features: int) -> None:
        """Provide capacity for this many features."""
        if n_features <= len(self.stored["counts"]):
            return
        for name in ("starts", "lengths", "counts"):
            array = self.stored[name]
            self.stored[name] = np.zeros(n_features, dtype=array.dtype)
            put(array, self.stored[name])

    def reserve_places(self, n_more: int) -> None:
        """Provide capacity for this many more places, and a quarter more."""
        stored, needed = self.stored, int(self.stored["pool"]["n_used"][0]) + n_more
        n_before = len(stored["owners"])
        if needed <= n_before:
            return
        capacity = max(needed, n_before + n_before // 4)
        size = 4 * (1 + self.n_numbers) * capacity
        require_memory(size, f"{capacity:,} weights of {len(stored['counts']):,} features")
        # In place if the system can, which halves the peak memory.
        stored["owners"].resize(capacity, refcheck=False)
        stored["numbers"].resize((capacity, self.n_numbers), refcheck=False)

    @property
    def n_entries(self) -> int:
        """Number of entries."""
        return int(self.stored["counts"].sum(dtype=np.int64))

    @property
    def bytes_of_place(self) -> int:
        """Bytes of a place."""
        return 4 * (1 + self.n_numbers)

    @property
    def block_bytes(self) -> npt.NDArray[np.int64]:
        """Bytes of the block of each feature."""
        return self.bytes_of_place * self.stored["lengths"].astype(np.int64)

    def keep(self, kept: npt.NDArray[np.int64], n_before: int) -> None:
        """Keep the entries of these features alone, in blocks without gaps between them."""
        for name in ("starts", "lengths", "counts"):
            keep_along(self.stored[name], 0, kept, n_before)
        self._close_gaps(len(kept))
        self.stored["spare"][:] = NONE

    def _close_gaps(self, n_features: int) -> None:
        """Move all blocks to the beginning of the places, of which the others are free then."""
        n_used = 0
        for features, lengths, places in self._blocks(n_features):
            self.stored["starts"][features] = n_used + np.cumsum(lengths) - lengths
            for name in ("owners", "numbers"):
                self.stored[name][n_used : n_used + len(places)] = self.stored[name][places]
            n_used += len(places)
        self.stored["pool"]["n_used"] = n_used

    def largest(self, n_features: int) -> npt.NDArray[np.float64]:
        """Return the largest absolute weight of each feature, 0 without entries."""
        found = np.zeros(n_features)
        for features, lengths, places in self._blocks(n_features):
            weights = np.abs(self.stored["numbers"][places, 0])
            weights[self.stored["owners"][places] == NONE] = 0
            found[features] = np.maximum.reduceat(weights, np.cumsum(lengths) - lengths)
        return found

    def _blocks(self, n_features: int) -> Iterator[tuple[Places, Places, Places]]:
        """Yield features in the order of their blocks, the lengths of these, and all their places.

        There are about `PLACES_AT_ONCE` places at a time.
        """
        starts = self.stored["starts"][:n_features].copy()
        lengths = self.stored["lengths"][:n_features].astype(np.int64)
        order = np.argsort(starts, kind="stable")
        order = order[lengths[order] > 0]
        lengths = lengths[order]
        chunks = np.cumsum(lengths) // PLACES_AT_ONCE
        cuts = np.flatnonzero(np.diff(chunks)) + 1
        for some in np.split(np.arange(len(order)), cuts) if len(order) else ():
            ends = np.cumsum(lengths[some])
            within = np.arange(ends[-1]) - np.repeat(ends - lengths[some], lengths[some])
            places = np.repeat(starts[order[some]], lengths[some]) + within
            yield order[some], lengths[some], places

    def put(
        self,
        starts: npt.NDArray[np.int64],
        classes: npt.NDArray[np.int32],
        numbers: npt.NDArray[np.float32],
    ) -> None:
        """Store the entries of the first features, which must have none."""
        from kesler.compiled.candidates.entries import take

        self.reserve_places(2 * len(classes) + len(starts))  # more than the longest blocks take
        take(self.bound(), starts, classes, numbers)

    def listed(
        self, n_features: int
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32], npt.NDArray[np.float32]]:
        """Return the entries of the first features, those of each in the order of classes."""
        from kesler.compiled.candidates.entries import get

        counts = self.stored["counts"][:n_features]
        starts = np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])
        classes = np.empty(starts[-1], dtype=np.int32)
        numbers = np.empty((starts[-1], self.n_numbers), dtype=np.float32)
        get(self.bound(), starts, classes, numbers)
        order = np.lexsort((classes, np.repeat(np.arange(n_features), counts)))
        return starts, classes[order], numbers[order]

    def matrix(self, n_features: int, n_classes: int) -> sparse.csr_array:
        """Return the weights (n_features, n_classes) of the entries; the others are 0 in it."""
        from scipy import sparse

        starts, classes, numbers = self.listed(n_features)
        return sparse.csr_array((numbers[:, 0], classes, starts), shape=(n_features, n_classes))

    # ---- saving -----------------------------------------------------------------------------

    def arrays(self, n_features: int) -> Arrays:
        """Return the entries of the first features, as a model file stores them."""
        names = ("starts", "classes", "numbers")
        return dict(zip((PREFIX + n for n in names), self.listed(n_features), strict=True))

    def restore(
        self, arrays: Arrays, n_features: int, n_classes: int, n_virtual: int = 0
    ) -> Arrays:
        """Restore what `arrays` returned; return the other arrays of a file, after validation.

        n_virtual : the number of classes without rows, which have no entries.

        Raises
        ------
        KeslerError
            If they do not fit this many features and classes.
        """
        n_entries = np.size(arrays.get(PREFIX + "classes", ()))
        lengths = {
            "start": n_features + 1,
            "class": n_classes,
            "saved entry": n_entries,
            "number": self.n_numbers,
        }
        found = checked(fields_of(SavedEntries), self, lengths, arrays, PREFIX)
        require_lists(PREFIX + "starts", found["starts"], n_entries)
        of_feature = np.repeat(np.arange(n_features), np.diff(found["starts"]))
        _require_ascending(of_feature, found["classes"])
        _require_possible(found, n_classes, n_virtual)
        columns = (np.ascontiguousarray(found[n]) for n in ("starts", "classes", "numbers"))
        self.put(*columns)
        return found

    def __getstate__(self) -> dict[str, Any]:
        """Return the part of the arrays that is in use."""
        n_used = int(self.stored["pool"]["n_used"][0])
        used = {name: self.stored[name][:n_used] for name in ("owners", "numbers")}
        return {"n_numbers": self.n_numbers, "stored": self.stored | used}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Copy the arrays, which may be a read-only memory map."""
        vars(self).update(state)
        self.stored = {name: array.copy() for name, array in self.stored.items()}


def _require_ascending(features: npt.NDArray[Any], classes: npt.NDArray[np.int32]) -> None:
    """Raise unless the classes of each feature are in order, each once."""
    if ((np.diff(features) == 0) & (np.diff(classes) <= 0)).any():
        raise damaged(f"{PREFIX}classes name a class twice, or not in order")


def _require_possible(found: Arrays, n_classes: int, n_virtual: int) -> None:
    """Raise unless entries were met, evidence is of squares, and the class of most rows is one."""
    if (found["classes"] < n_virtual).any():
        raise damaged(f"{PREFIX}classes name the threshold, which no row has")
    if (found["numbers"][:, -1] <= 0).any():
        raise damaged(f"{PREFIX}numbers count no row")
    if not n_virtual and (found["numbers"][:, 1:-1] < 0).any():  # else relative to another
        raise damaged(f"{PREFIX}numbers have negative evidence")
    n_rows, n_found, frequent = found["recall"].tolist()
    if n_found > n_rows:
        raise damaged(f"{PREFIX}recall has found more rows than there were")
    if not n_virtual <= frequent < n_classes:
        raise damaged(f"{PREFIX}recall names a class that is not there")

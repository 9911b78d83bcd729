"""The columns of each part in the table of weights, and weights in sparse rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from kesler.hypotheses import Ordered, Part, PerClass, Shared
from kesler.state.fields import Arrays, allocated, bind, checked, fields_of, put, require_lists
from kesler.state.records import Reached, SavedRows, SparseRows
from kesler.state.records import SparseWeights as Record

if TYPE_CHECKING:
    from scipy import sparse


def n_columns(part: Part, n_classes: int, n_groups: int) -> int:
    """Return the number of hypotheses of a part for this many classes and groups."""
    if isinstance(part, PerClass):
        return n_classes
    if isinstance(part, Ordered):
        return 1 + n_classes
    return 1 if isinstance(part, Shared) else n_groups


def n_beside(parts: Sequence[Part]) -> int:
    """Return the number of columns at the end of the capacity for classes.

    They hold the hypotheses that all classes share, which in cache lines of their own would make a
    row of 20 classes 50% longer.
    """
    has_classes = any(isinstance(part, PerClass) for part in parts)
    return sum(isinstance(part, Shared) for part in parts) if has_classes else 0


def columns_of(
    parts: Sequence[Part], class_capacity: int, group_capacity: Sequence[int]
) -> tuple[list[int], int]:
    """Return the first column of each part, and the total number of columns.

    The first part with a hypothesis per class has whole cache lines, except for the columns of
    shared hypotheses at their end; the other parts follow.

    Examples
    --------
    >>> from kesler.maps import Frequency
    >>> columns_of([Shared(Frequency()), PerClass()], 16, [0, 0])
    ([15, 0], 16)
    """
    capacities = [
        n_columns(part, class_capacity, n) for part, n in zip(parts, group_capacity, strict=True)
    ]
    of_classes = [i for i, part in enumerate(parts) if isinstance(part, PerClass)][:1]
    shared = [i for i, part in enumerate(parts) if isinstance(part, Shared)]
    for i in of_classes:
        capacities[i] -= len(shared)
    first = [*of_classes, *shared]
    offsets, width = [0] * len(parts), 0
    for i in [*first, *(i for i in range(len(parts)) if i not in first)]:
        offsets[i], width = width, width + capacities[i]
    return offsets, width


# As in `kesler.compiled.weights.sparse_rows`, which is not imported before the first trial.
SIMD_WIDTH = 16
SHARE = 8
IN_TABLE = -1

BYTES_OF_FEATURE = 8  # where its entries begin, and their number
ROWS_AT_ONCE = 16  # rows of the table that are converted together
GROWTH = 4  # capacity grows by a quarter
# The initial size in bytes of arrays that grow; it takes no memory before it is written. Smaller
# arrays would be allocated among others, and leave holes there when they are moved.
INITIAL_BYTES = 33 << 20
PREFIX = "sparse."  # of the names in a model file
STARTS, WEIGHTS = PREFIX + "starts", PREFIX + "weights"


class SparseWeights:
    """One entry for each pair of feature and class that has a weight, in arrays that grow.

    The arrays are those of :class:`kesler.state.records.SparseWeights`.

    Parameters
    ----------
    n_features, n_classes : the capacity for features and classes.

    Notes
    -----
    Memory: 8 to 16 bytes for each weight, or 4 for each class if a feature has weights for a
    quarter of the classes or more; in addition 8 bytes for each feature and 42 for each class.
    """

    def __init__(self, n_features: int, n_classes: int) -> None:
        n_units = INITIAL_BYTES // (4 * SIMD_WIDTH)
        lengths = {
            "feature": n_features,
            "class": n_classes,
            "unit": n_units,
            "entry": n_units * SIMD_WIDTH,
            "table row": _first_rows(n_classes),
        }
        self.stored = allocated(fields_of(SparseRows), self, lengths)
        self.stored["spare"][:] = -1
        self._make_scratch()

    def _make_scratch(self) -> None:
        """Allocate the arrays that a trial requires for each class."""
        n_classes = self.stored["table"].shape[1]
        lengths = {"class": n_classes, "class in words": -(-n_classes // 8) * 8}
        self._scratch = allocated(fields_of(Reached), self, lengths)

    def bound(self) -> Any:
        """Return the record that compiled code takes."""
        given = {"mark_words": self._scratch["marks"].view(np.uint64)}
        return Record(self._rows(), bind(Reached, self._scratch | given))

    def _rows(self) -> Any:
        return bind(SparseRows, self.stored)

    # ---- capacity ---------------------------------------------------------------------------

    @property
    def most_entries(self) -> int:
        """Maximum number of entries of a feature; with more it moves to the table."""
        most = SIMD_WIDTH
        while 2 * most * SHARE <= self.stored["table"].shape[1]:
            most *= 2
        return most

    @property
    def n_done(self) -> int:
        """Number of rows of the last task that the capacity sufficed for."""
        return int(self._scratch["reach"]["n_done"][0])

    def reserve_as_asked(self) -> None:
        """Provide the capacity that the last trial required, and a quarter more."""
        pool = self.stored["pool"][0]
        self._reserve(int(pool["more_units"]), int(pool["more_rows"]))

    def _reserve(self, more_units: int, more_rows: int) -> None:
        """Provide capacity for this many more units of entries, and rows of the table."""
        stored, pool = self.stored, self.stored["pool"][0]
        n_units, n_rows = len(stored["links"]), len(stored["table"])
        if (units := int(pool["n_units"]) + more_units) > n_units:
            capacity = max(units, n_units + n_units // GROWTH)
            # In place if the system can, which halves the peak memory.
            stored["links"].resize(capacity, refcheck=False)
            stored["owners"].resize(capacity * SIMD_WIDTH, refcheck=False)
            stored["values"].resize(capacity * SIMD_WIDTH, refcheck=False)
        if (rows := int(pool["n_rows"]) + more_rows) > n_rows:
            capacity = max(rows, n_rows + n_rows // GROWTH)
            stored["table"].resize((capacity, stored["table"].shape[1]), refcheck=False)

    def reserve(self, n_features: int, n_classes: int) -> None:
        """Provide capacity for this many features and classes."""
        for name in ("heads", "counts"):
            self.stored[name] = _with_rows(self.stored[name], n_features)
        if n_classes > self.stored["table"].shape[1]:
            self._widen(n_classes)

    def _widen(self, n_classes: int) -> None:
        """Make a wider table; features with too few weights for it move to entries."""
        from scipy import sparse

        features = np.flatnonzero(self.stored["counts"] == IN_TABLE).astype(np.int32)
        rows, old = self.stored["heads"][features], self.stored["table"]
        self.stored["counts"][features] = 0
        self.stored["table"] = _empty_table(n_classes)
        self.stored["pool"]["n_rows"] = 1
        self._make_scratch()
        for start in range(0, len(features), ROWS_AT_ONCE):
            block = slice(start, start + ROWS_AT_ONCE)
            self._put(features[block], sparse.csr_array(old[rows[block]]))

    # ---- conversion -------------------------------------------------------------------------

    def put(self, weights: npt.NDArray[np.float32] | sparse.csr_array) -> None:
        """Store weights of shape (n_features, n_classes).

        There must be no weights yet, but capacity for the features.
        """
        from scipy import sparse

        self._put(np.arange(weights.shape[0], dtype=np.int32), sparse.csr_array(weights))

    def _put(self, features: npt.NDArray[np.int32], weights: sparse.csr_array) -> None:
        """Store the weights of features that have none yet, one row per feature."""
        from kesler.compiled.weights import sparse_trial

        lengths = np.diff(weights.indptr)
        in_table = lengths > self.most_entries
        runs = np.maximum(1, 2.0 ** np.ceil(np.log2(np.maximum(1, lengths) / SIMD_WIDTH)))
        runs = runs[~in_table & (lengths > 0)]
        self._reserve(int(runs.sum()), int(in_table.sum()))
        sparse_trial.take(
            self._rows(),
            weights.indptr.astype(np.int64),
            features,
            weights.indices.astype(np.int32),
            weights.data.astype(np.float32),
        )

    def matrix(self, n_features: int, n_classes: int) -> sparse.csr_array:
        """Return the weights (n_features, n_classes) of the first features and classes, sparse."""
        from scipy import sparse

        from kesler.compiled.weights import sparse_trial

        features = np.arange(n_features, dtype=np.int32)
        starts = np.zeros(n_features + 1, dtype=np.int64)
        rows = self._rows()
        total = sparse_trial.count(rows, features, starts)
        owners = np.empty(total, dtype=np.int32)
        weights = np.empty(total, dtype=np.float32)
        sparse_trial.get(rows, features, owners, weights)
        matrix = sparse.csr_array((weights, owners, starts), shape=(n_features, n_classes))
        matrix.sort_indices()
        return matrix

    # ---- saving -----------------------------------------------------------------------------

    def arrays(self, n_features: int, n_classes: int) -> Arrays:
        """Return the weights of the features and classes in use, as a model file stores them."""
        matrix = self.matrix(n_features, n_classes)
        return {
            STARTS: matrix.indptr.astype(np.int64),
            PREFIX + "classes": matrix.indices.astype(np.int32),
            WEIGHTS: matrix.data,
        }

    def restore(self, arrays: Arrays, n_features: int, n_classes: int) -> None:
        """Restore what `arrays` returned, or a dense table, if a model file has either.

        Raises
        ------
        KeslerError
            If the rows do not fit this many features and classes.
        """
        from scipy import sparse

        if "weights.values.0" in arrays:
            self.put(arrays["weights.values.0"])
        if not is_sparse(arrays):
            return
        n_entries = np.size(arrays.get(PREFIX + "classes", ()))
        lengths = {"start": n_features + 1, "class": n_classes, "saved entry": n_entries}
        found = checked(fields_of(SavedRows), self, lengths, arrays, PREFIX)
        require_lists(STARTS, found["starts"], n_entries)
        shape = n_features, self.stored["table"].shape[1]
        rows = found["weights"], found["classes"], found["starts"]
        self.put(sparse.csr_array(rows, shape=shape))

    def own(self) -> None:
        """Copy arrays that may be a read-only memory map."""
        self.stored = {name: array.copy() for name, array in self.stored.items()}
        self._make_scratch()

    def __getstate__(self) -> dict[str, Any]:
        """Return the part of the arrays that is in use, without the scratch arrays."""
        pool, stored = self.stored["pool"][0], self.stored
        units, rows = int(pool["n_units"]), int(pool["n_rows"])
        ends = {
            "owners": units * SIMD_WIDTH,
            "values": units * SIMD_WIDTH,
            "links": units,
            "table": rows,
        }
        return {"stored": stored | {name: stored[name][:end] for name, end in ends.items()}}


def is_sparse(arrays: Arrays) -> bool:
    """Return whether the weights of a model file are in sparse rows."""
    return STARTS in arrays


def _first_rows(n_classes: int) -> int:
    return 1 + INITIAL_BYTES // (4 * n_classes)


def _empty_table(n_classes: int) -> npt.NDArray[np.float32]:
    return np.zeros((_first_rows(n_classes), n_classes), dtype=np.float32)


def _with_rows(array: npt.NDArray[Any], n: int) -> npt.NDArray[Any]:
    """Return the array enlarged to n rows by zeros, or itself if it has as many."""
    if len(array) >= n:
        return array
    enlarged = np.zeros((n, *array.shape[1:]), dtype=array.dtype)
    put(array, enlarged)
    return enlarged

"""Sparse rows of weights: of each feature only the classes that have one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from scipy import sparse

Arrays = dict[str, npt.NDArray[Any]]

# As in `kesler.compiled.sparse_rows`, which is not imported before the first trial.
LANES = 16
SHARE = 8
IN_TABLE = -1
UNITS, ROWS, MORE_UNITS, MORE_ROWS = range(4)
N_DONE = 2

SIZES = 32  # of runs: powers of two
ROWS_AT_ONCE = 16  # of the table, when what stands there is listed
GROWTH = 4  # room grows by a quarter
# Arrays that grow begin with room for so many bytes, which take no memory before they are written:
# smaller ones would lie among others, and leave holes there when they move.
FIRST_ROOM = 33 << 20


class SparseWeights:
    """One weight for each feature and class that has one, in arrays that grow.

    The arrays are those of `kesler.compiled.sparse_rows.SparseLearner`.

    Parameters
    ----------
    n_features, n_classes : how many of them there is room for.

    Notes
    -----
    8 to 16 bytes for each weight, or 4 for each class where a feature has weights for a quarter of
    the classes or more; beside these 8 bytes for each feature and 42 for each class.
    """

    def __init__(self, n_features: int, n_classes: int) -> None:
        self.heads = np.zeros(n_features, dtype=np.int32)
        self.counts = np.zeros(n_features, dtype=np.int32)
        n_units = FIRST_ROOM // (4 * LANES)
        self.owners = np.zeros(n_units * LANES, dtype=np.int32)
        self.values = np.zeros(n_units * LANES, dtype=np.float32)
        self.links = np.zeros(n_units, dtype=np.int32)
        self.spare = np.full(SIZES, -1, dtype=np.int64)
        self.pool = np.array([0, 1, 0, 0])
        self.table = _empty_table(n_classes)
        self._make_scratch()

    def _make_scratch(self) -> None:
        """Make room for what a trial needs for each class."""
        n_classes = self.table.shape[1]
        marks = np.zeros(-(-n_classes // 8) * 8, dtype=np.uint8)
        self._scratch = {
            "scores": np.zeros(n_classes, dtype=np.float32),
            "marks": marks,
            "mark_words": marks.view(np.uint64),
            "reached": np.zeros(n_classes, dtype=np.int64),
            "reach": np.zeros(3, dtype=np.int64),
            "coefficients": np.zeros(n_classes),
            "is_moved": np.zeros(n_classes, dtype=np.bool_),
            "exponentials": np.zeros(n_classes, dtype=np.float32),
            "lanes": np.zeros(2 * LANES),
        }

    def fields(self) -> Arrays:
        """Return the arrays that trials read and move, by name."""
        return {**self._rows(), **self._scratch}

    def _rows(self) -> Arrays:
        """Return the arrays of `kesler.compiled.sparse_rows.SparseRows`."""
        names = ("heads", "counts", "owners", "values", "links", "spare", "table", "pool")
        return {name: getattr(self, name) for name in names}

    # ---- room -------------------------------------------------------------------------------

    @property
    def most_entries(self) -> int:
        """How many entries a feature has at most before it moves to the table."""
        most = LANES
        while 2 * most * SHARE <= self.table.shape[1]:
            most *= 2
        return most

    @property
    def n_done(self) -> int:
        """How many rows of the last task there was room for."""
        return int(self._scratch["reach"][N_DONE])

    def make_room_asked_for(self) -> None:
        """Make the room that the last trial did not find, and a quarter more."""
        self._make_room(int(self.pool[MORE_UNITS]), int(self.pool[MORE_ROWS]))

    def _make_room(self, more_units: int, more_rows: int) -> None:
        """Make room for so many more units of entries, and rows of the table."""
        units = int(self.pool[UNITS]) + more_units
        if units > len(self.links):
            room = max(units, len(self.links) + len(self.links) // GROWTH)
            # In place where the machine can, which halves what it takes at the most.
            self.links.resize(room, refcheck=False)
            self.owners.resize(room * LANES, refcheck=False)
            self.values.resize(room * LANES, refcheck=False)
        rows = int(self.pool[ROWS]) + more_rows
        if rows > len(self.table):
            room = max(rows, len(self.table) + len(self.table) // GROWTH)
            self.table.resize((room, self.table.shape[1]), refcheck=False)

    def make_room(self, n_features: int, n_classes: int) -> None:
        """Make room for so many features and classes."""
        self.heads = _with_rows(self.heads, n_features)
        self.counts = _with_rows(self.counts, n_features)
        if n_classes > self.table.shape[1]:
            self._widen(n_classes)

    def _widen(self, n_classes: int) -> None:
        """Make a wider table, for the features that have weights for most classes even then."""
        from scipy import sparse

        features = np.flatnonzero(self.counts == IN_TABLE).astype(np.int32)
        rows, old = self.heads[features], self.table
        self.counts[features] = 0
        self.table = _empty_table(n_classes)
        self.pool[ROWS] = 1
        self._make_scratch()
        for start in range(0, len(features), ROWS_AT_ONCE):
            some = slice(start, start + ROWS_AT_ONCE)
            self._put(features[some], sparse.csr_array(old[rows[some]]))

    # ---- in and out -------------------------------------------------------------------------

    def put(self, weights: npt.NDArray[np.float32] | sparse.csr_array) -> None:
        """Take weights (n_features, n_classes), having none yet, but room for the features."""
        from scipy import sparse

        self._put(np.arange(weights.shape[0], dtype=np.int32), sparse.csr_array(weights))

    def _put(self, features: npt.NDArray[np.int32], weights: sparse.csr_array) -> None:
        """Take the weights of features that have none, one row each."""
        from kesler.compiled import sparse_trial

        lengths = np.diff(weights.indptr)
        in_table = lengths > self.most_entries
        runs = np.maximum(1, 2.0 ** np.ceil(np.log2(np.maximum(1, lengths) / LANES)))
        runs = runs[~in_table & (lengths > 0)]
        self._make_room(int(runs.sum()), int(in_table.sum()))
        sparse_trial.take(
            sparse_trial.SparseRows(**self._rows()),
            weights.indptr.astype(np.int64),
            features,
            weights.indices.astype(np.int32),
            weights.data.astype(np.float32),
        )

    def matrix(self, n_features: int, n_classes: int) -> sparse.csr_array:
        """Return the weights of the first features and classes, a row a feature, without zeros."""
        from scipy import sparse

        from kesler.compiled import sparse_trial

        features = np.arange(n_features, dtype=np.int32)
        starts = np.zeros(n_features + 1, dtype=np.int64)
        rows = sparse_trial.SparseRows(**self._rows())
        total = sparse_trial.count(rows, features, starts)
        owners = np.empty(total, dtype=np.int32)
        weights = np.empty(total, dtype=np.float32)
        sparse_trial.get(rows, features, owners, weights)
        matrix = sparse.csr_array((weights, owners, starts), shape=(n_features, n_classes))
        matrix.sort_indices()
        return matrix

    # ---- saving -----------------------------------------------------------------------------

    def arrays(self, n_features: int, n_classes: int) -> Arrays:
        """Return all weights, cut to what is in use, as a model file keeps them."""
        matrix = self.matrix(n_features, n_classes)
        return {
            "weight_starts.0": matrix.indptr.astype(np.int64),
            "weight_classes.0": matrix.indices.astype(np.int32),
            "weights.0": matrix.data,
        }

    def restore(self, arrays: Arrays) -> None:
        """Take over what `arrays` returned, or a whole table, if there is anything to take."""
        from scipy import sparse

        if arrays and not is_sparse(arrays):
            self.put(arrays["weights.0"])
        if not is_sparse(arrays):
            return
        kept = arrays["weights.0"], arrays["weight_classes.0"], arrays["weight_starts.0"]
        shape = len(kept[2]) - 1, self.table.shape[1]
        self.put(sparse.csr_array(kept, shape=shape))

    def own(self) -> None:
        """Copy arrays that may be a read-only memory map."""
        for name, array in self._rows().items():
            setattr(self, name, array.copy())
        self._make_scratch()

    def __getstate__(self) -> dict[str, Any]:
        """Leave out room that is not in use, and what holds nothing between trials."""
        units, rows = self.pool[[UNITS, ROWS]].tolist()
        return self._rows() | {
            "owners": self.owners[: units * LANES],
            "values": self.values[: units * LANES],
            "links": self.links[:units],
            "table": self.table[:rows],
        }


def _empty_table(n_classes: int) -> npt.NDArray[np.float32]:
    return np.zeros((1 + FIRST_ROOM // (4 * n_classes), n_classes), dtype=np.float32)


def is_sparse(arrays: Arrays) -> bool:
    """Whether weights were kept in sparse rows."""
    return "weight_starts.0" in arrays


def _with_rows(array: npt.NDArray[Any], n: int) -> npt.NDArray[Any]:
    """Return the array with zeros behind it, itself if it has so many rows."""
    if len(array) >= n:
        return array
    grown = np.zeros((n, *array.shape[1:]), dtype=array.dtype)
    grown[: len(array)] = array
    return grown

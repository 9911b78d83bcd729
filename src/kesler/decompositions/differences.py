"""Kesler's construction: each demand on the scores of a row as one example of a binary problem."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import sparse

BLOCK_ENTRIES = 1 << 20  # about 12 MB of the construction at a time


@dataclass(frozen=True, slots=True)
class Demands:
    """Which class must outscore which, one demand after the other, row by row.

    Parameters
    ----------
    rows, higher, lower : int64 arrays of shape (n_demands,)
        In each row, the class that must have the higher score, and the one of the lower.

    Examples
    --------
    >>> demands = Demands.of_levels(np.array([[1, 0, 1], [0, -1, 1]], dtype=np.int32))
    >>> demands.rows.tolist(), demands.higher.tolist(), demands.lower.tolist()
    ([0, 0, 1], [1, 1, 0], [0, 2, 2])
    """

    rows: npt.NDArray[np.int64]
    higher: npt.NDArray[np.int64]
    lower: npt.NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.rows)

    @staticmethod
    def of_levels(levels: npt.NDArray[np.int32]) -> Demands:
        """Return every pair of classes of a row of which one has the lower level, 0 or more."""
        above = (levels >= 0) & (levels < levels.max(axis=1, initial=0, keepdims=True))
        rows, higher = np.nonzero(above)
        which, lower = np.nonzero(levels[rows] > levels[rows, higher][:, None])
        return Demands(rows[which], higher[which], lower)


def count_demands(levels: npt.NDArray[np.int32]) -> npt.NDArray[np.int64]:
    """Return how many pairs of classes the levels of each row compare.

    Examples
    --------
    >>> count_demands(np.array([[1, 0, 1], [0, -1, 1], [0, 1, 2]], dtype=np.int32)).tolist()
    [2, 1, 3]
    """
    found = np.zeros(len(levels), dtype=np.int64)
    lower = np.zeros(len(levels), dtype=np.int64)
    for level in range(int(levels.max(initial=-1)) + 1):
        here = (levels == level).sum(axis=1)
        found += here * lower
        lower += here
    return found


def count_bytes(X: sparse.csr_array, levels: npt.NDArray[np.int32]) -> int:
    """Return how much memory the whole construction takes: two copies of a row for each demand."""
    demands = count_demands(levels)
    n_entries = 2 * int(demands @ np.diff(X.indptr))
    index = _index_type(n_entries, X.shape[1] * levels.shape[1]).itemsize
    return n_entries * (X.dtype.itemsize + index) + (int(demands.sum()) + 1) * index


def blocks(X: sparse.csr_array, levels: npt.NDArray[np.int32]) -> Iterator[slice]:
    """Yield runs of rows whose construction has about `BLOCK_ENTRIES` entries, or one row."""
    entries = np.cumsum(2 * count_demands(levels) * np.diff(X.indptr))
    start = 0
    while start < len(levels):
        before = entries[start - 1] if start else 0
        stop = int(np.searchsorted(entries, before + BLOCK_ENTRIES, side="right"))
        yield slice(start, start := max(start + 1, stop))


def differences(
    X: sparse.csr_array, demands: Demands, n_classes: int, first: int
) -> tuple[sparse.csr_array, npt.NDArray[np.int64]]:
    r"""Return the examples :math:`\pm (\phi(x, r) - \phi(x, s))` and their signs.

    :math:`\phi(x, r)` has x in the block of class r and zeros elsewhere. Signs alternate: an
    example and its mirror demand the same of weights without an intercept, so one of the two is
    enough, and both labels are as frequent.

    Parameters
    ----------
    X : rows of shape (n_rows, n_features), indices sorted.
    demands : those of these rows.
    n_classes : how many blocks there are.
    first : number of the first demand; the even ones are positive.

    Returns
    -------
    Matrix of shape (n_demands, n_classes * n_features), and 1 or -1 for each demand.

    Examples
    --------
    >>> X = sparse.csr_array([[5.0, 7.0]])
    >>> examples, signs = differences(X, Demands.of_levels(np.array([[1, 0, 1]])), 3, 0)
    >>> examples.toarray().tolist(), signs.tolist()
    ([[-5.0, -7.0, 5.0, 7.0, 0.0, 0.0], [0.0, 0.0, -5.0, -7.0, 5.0, 7.0]], [1, -1])
    """
    signs = 1 - 2 * ((first + np.arange(len(demands))) % 2)
    copies = X[demands.rows]
    lengths, begins = np.diff(copies.indptr), copies.indptr
    left = np.repeat(np.minimum(demands.higher, demands.lower), lengths)
    right = np.repeat(np.maximum(demands.higher, demands.lower), lengths)
    values = copies.data * np.repeat(
        np.where(demands.higher < demands.lower, signs, -signs), lengths
    )
    # Entry e of a row that begins at b and ends at f goes to e + b, and once more to e + f.
    entries = np.arange(len(values))
    places = entries + np.repeat(begins[:-1], lengths), entries + np.repeat(begins[1:], lengths)
    width = n_classes * X.shape[1]
    kind = _index_type(2 * len(values), width)
    indices, data = np.empty(2 * len(values), dtype=kind), np.empty(2 * len(values), X.dtype)
    for place, block, sign in zip(places, (left, right), (1, -1), strict=True):
        indices[place] = copies.indices + block * X.shape[1]
        data[place] = sign * values
    made = sparse.csr_array((data, indices, (2 * begins).astype(kind)), (len(demands), width))
    return made, signs


def _index_type(n_entries: int, width: int) -> np.dtype[np.signedinteger]:
    return np.dtype(np.int32 if max(n_entries, width) < 1 << 31 else np.int64)

"""Training rows of which none repeats another, each with the total weight of its copies.

Solvers visit, sample and average rows. On distinct rows, a row of weight n and n copies of it are
the same problem with the same random numbers, so results do not depend on which was given.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.utils.multiclass import check_classification_targets

from kesler.batch.estimator import class_weights
from kesler.data.labels import require_few_fractions
from kesler.state.capacity import require_memory

Doubles = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]

# Size of the blocks of rows that are hashed or compared, so that they stay in the cache.
BLOCK_BYTES = 1 << 20
HALF = np.uint64(32)


def _require_classes(y: npt.NDArray[Any]) -> None:
    """Raise ValueError unless labels name classes, such as grades with fractions."""
    if y.dtype.kind == "f":
        require_few_fractions(np.unique(y).tolist())
    else:
        check_classification_targets(y)


@dataclass(frozen=True, eq=False)
class DistinctRows:
    """The distinct pairs of a row and its class among the training rows of weight above 0.

    Parameters
    ----------
    classes : array of shape (n_classes,)
        The labels of these rows, sorted.
    codes : int64 array of shape (n_distinct,)
        The class of each distinct row by number.
    weights : float64 array of shape (n_distinct,)
        The total weight of its copies, above 0.
    numbers : int64 array of shape (n_distinct,)
        The number of its first copy.
    members : int64 array of shape (n_rows,)
        The distinct row that each training row is a copy of, -1 for rows of weight 0.

    Notes
    -----
    If the rows of each class have equal weights, distinct rows are in the order of their first
    copies. Otherwise their order depends on their values only, so that it is the same for permuted
    rows.
    """

    classes: npt.NDArray[Any]
    codes: Ints
    weights: Doubles
    numbers: Ints
    members: Ints

    @classmethod
    def of(cls, X: Any, y: npt.NDArray[Any], weights: Doubles) -> DistinctRows:
        """Find the distinct rows among rows with labels and weights.

        Parameters
        ----------
        X : array or CSR array of shape (n_rows, n_features), with sorted indices
        y : array of shape (n_rows,)
        weights : array of shape (n_rows,), 0 or more, not all 0

        Raises
        ------
        KeslerError
            If the weights of all features and classes would not fit into memory, or more than 50
            labels are different numbers with fractions.
        """
        _require_classes(y)
        kept = np.flatnonzero(weights)
        classes, codes = np.unique(y[kept], return_inverse=True)
        n_features = X.shape[1]
        require_memory(8 * n_features * len(classes), f"the weights of {n_features:,} features")
        groups, firsts = _groups(X, kept, codes)
        totals = np.bincount(groups, weights[kept]).astype(np.float64)
        of_classes = totals[np.unique(codes[firsts], return_index=True)[1]]
        if (totals == of_classes[codes[firsts]]).all():
            order = np.argsort(firsts)
            places = np.empty_like(order)
            places[order] = np.arange(len(order))
            groups, firsts, totals = places[groups], firsts[order], totals[order]
        members = np.full(len(y), -1)
        members[kept] = groups
        return cls(classes, codes[firsts], totals, kept[firsts], members)

    @property
    def are_all(self) -> bool:
        """Whether these are all training rows in their order."""
        return np.array_equal(self.numbers, np.arange(len(self.members)))

    @property
    def y(self) -> npt.NDArray[Any]:
        """The labels."""
        return np.asarray(self.classes[self.codes])

    def of_rows(self, X: Any) -> Any:
        """Return the distinct ones of the training rows; X itself if these are all of them."""
        return X if self.are_all else X[self.numbers]

    def counts(self, class_weight: Any) -> Doubles:
        """Return the weight of each row times that of its class.

        Raises
        ------
        KeslerError
            If there is one class only, a class weight is below 0, or all are 0.
        """
        totals = np.bincount(self.codes, self.weights)
        return self.weights * class_weights(self.classes, totals, class_weight)[self.codes]


def _groups(X: Any, kept: Ints, codes: Ints) -> tuple[Ints, Ints]:
    """Return the group of equal rows that each kept row is in, and the first row of each group.

    Groups are numbered in the order of their hashes.
    """
    hashes = hash_rows(X)[kept] + codes.astype(np.uint64) * _multipliers(1)[0, 0]
    order = np.argsort(hashes, kind="stable")
    is_first = np.ones(len(order), dtype=bool)
    alike = 1 + np.flatnonzero(hashes[order[1:]] == hashes[order[:-1]])
    before, after = order[alike - 1], order[alike]
    equal = (codes[before] == codes[after]) & _are_equal(X, kept[before], kept[after])
    is_first[alike[equal]] = False
    groups = np.empty(len(order), dtype=np.int64)
    groups[order] = np.cumsum(is_first) - 1
    return groups, order[is_first]


def hash_rows(X: Any) -> Words:
    """Return a hash of the values of each row, the same for dense and sparse, float32 and float64.

    Both halves of each value are multiplied by random numbers of its column, and added modulo 2^64.
    """
    whole, upper = _multipliers(X.shape[1])
    if sparse.issparse(X):
        rows: Any = X
        values = _bits(rows.data)
        terms = values * whole[rows.indices] + (values >> HALF) * upper[rows.indices]
        sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(terms)])
        return np.asarray(sums[rows.indptr[1:]] - sums[rows.indptr[:-1]])
    hashes = np.empty(len(X), dtype=np.uint64)
    for block in _blocks(len(X), X.shape[1]):
        values = _bits(X[block])
        hashes[block] = values @ whole + (values >> HALF) @ upper
    return hashes


def _bits(values: npt.NDArray[Any]) -> Words:
    """Return the bits of numbers as float64, where -0.0 is 0.0."""
    return np.add(values, 0.0, dtype=np.float64, order="C").view(np.uint64)


def _multipliers(n: int) -> Words:
    """Return random odd numbers of shape (2, n), the same in every process."""
    numbers = np.random.Generator(np.random.PCG64(0)).integers(0, 2**64, (n, 2), dtype=np.uint64)
    return np.ascontiguousarray((numbers | np.uint64(1)).T)


def _are_equal(X: Any, some: Ints, others: Ints) -> npt.NDArray[np.bool_]:
    """Return whether rows are equal to others, pair by pair."""
    equal = np.empty(len(some), dtype=bool)
    for block in _blocks(len(some), X.shape[1]):
        differs = X[some[block]] != X[others[block]]
        equal[block] = np.asarray(differs.sum(axis=1)).ravel() == 0
    return equal


def _blocks(n_rows: int, n_columns: int) -> list[slice]:
    step = max(1, BLOCK_BYTES // (8 * max(1, n_columns)))
    return [slice(i, i + step) for i in range(0, n_rows, step)]

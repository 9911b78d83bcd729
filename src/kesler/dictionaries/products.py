"""Products: products of pairs of features, computed when needed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeVar

import numpy as np

from kesler.dictionaries.dictionary import (
    BLOCK_BYTES,
    Dictionary,
    Floats,
    Ints,
    Moments,
    SummablePool,
    check_dense,
    spread,
)
from kesler.dictionaries.steps import Product, Step
from kesler.errors import KeslerError

Self = TypeVar("Self", bound="Products")

# Block sizes of products with residuals, in rows and in columns: they fit into the cache and are
# large enough for BLAS to be fast.
N_ROWS, N_PRODUCTS = 512, 512


class Products(Dictionary):
    r"""Products of two features, each pair once.

    .. math:: x_{ab} = v_a v_b, \quad a < b

    Parameters
    ----------
    squares : bool, default False
        Whether to include pairs with a = b.

    Attributes
    ----------
    n_features_ : int
        The number of features, d.
    n_candidates_ : int
        d (d - 1) / 2, or d (d + 1) / 2 with squares. Candidates have the order (0, 1), (0, 2), ...,
        (1, 2), ...; no list of them is stored.

    Raises
    ------
    KeslerError
        If rows are sparse, or there is no pair.

    Notes
    -----
    A round costs O(m d^2 k / 2) for m rows and k classes, in matrix products in the precision of
    the rows; it takes O(d k) memory beyond that of the rows.

    References
    ----------
    Shalev-Shwartz, Wexler and Shashua (2011), Section 7.2, after Duchi and Singer (2009).

    Examples
    --------
    >>> from kesler.dictionaries import Products
    >>> import numpy as np
    >>> X = np.array([[2.0, 3.0, 5.0]])
    >>> products = Products().fit(X)
    >>> products.columns(X, np.arange(3)).tolist()
    [[6.0, 10.0, 15.0]]
    """

    n_features_: int

    def __init__(self, squares: bool = False) -> None:
        self.squares = squares

    def fit(self: Self, X: Any, y: Any = None) -> Self:
        """Count the pairs."""
        check_dense(X, "products of features")
        self.n_features_ = int(X.shape[1])
        self.n_candidates_ = int(self.first_of(self.n_features_))
        if self.n_candidates_ == 0:
            raise KeslerError("one feature makes no pair: give more, or squares=True")
        return self

    def first_of(self, a: Any) -> Any:
        """Return the number of the first pair (a, b), that is, of pairs with first feature < a."""
        return a * (self.n_features_ - 1 + self.squares) - a * (a - 1) // 2

    def pairs(self, candidates: Ints) -> tuple[Ints, Ints]:
        """Return the first and the second feature of some pairs."""
        firsts = self.first_of(np.arange(self.n_features_, dtype=np.int64))
        a = np.searchsorted(firsts, candidates, side="right") - 1
        return a, candidates - firsts[a] + a + (not self.squares)

    def number(self, a: int, b: int) -> int:
        """Return the candidate number of the pair (a, b), where a is before b."""
        return int(self.first_of(a)) + b - a - (not self.squares)

    def columns(self, X: Any, candidates: Ints) -> Floats:
        """Return the products of some pairs."""
        a, b = self.pairs(candidates)
        return np.asarray(X[:, a] * X[:, b])

    def pool(self, X: Any) -> ProductsPool:
        """Return the pool of training rows, which scores all pairs by matrix products."""
        return ProductsPool(self, X)

    def ends(self, least: Floats, most: Floats) -> tuple[Floats, Floats]:
        """Return lower and upper bounds of the products, given those of the features."""
        a, b = self.pairs(np.arange(self.n_candidates_))
        ends = np.array([least, most])
        found = _corners(ends[:, a], ends[:, b])
        return found.min(axis=(0, 1)), found.max(axis=(0, 1))

    def step(self, candidate: int) -> Step:
        """Return the step for a pair."""
        a, b = self.pairs(np.array([candidate], dtype=np.int64))
        return Product(int(a[0]), int(b[0]))


class ProductsPool(SummablePool):
    """Training rows whose candidates are products of two features."""

    dictionary: Products

    def scores(self, residuals: Floats) -> Iterator[tuple[int, Floats]]:
        """Yield the scores of all pairs of a few first features at a time."""
        for some in self._some_features(residuals.shape[1]):
            norms = np.abs(self._sums(some, residuals)).sum(axis=1)
            yield self._of_pairs(some, norms)

    def spreads(self, row_weights: Floats, *, centred: bool) -> Iterator[tuple[int, Floats]]:
        """Yield the spreads of all pairs of a few first features at a time."""
        for some in self._some_features(1):
            sums, squares = (
                self._sums(some, row_weights[:, None], of)[:, 0].astype(self.X.dtype)
                for of in (np.asarray, np.square)
            )
            ends = self._ends(some)
            spreads = spread(sums, squares, ends, row_weights, centred=centred)
            yield self._of_pairs(some, spreads)

    def gradients(self, residuals: Floats) -> Floats:
        """Return the sums of all products times residuals, of shape (n_classes, n_candidates)."""
        found = []
        for some in self._some_features(residuals.shape[1]):
            sums = self._sums(some, residuals).transpose(1, 0, 2)
            found.append(np.stack([self._of_pairs(some, each)[1] for each in sums]))
        return np.concatenate(found, axis=1)

    def moments(self, row_weights: Floats) -> Moments:
        """Return the moments that determine spreads."""
        sums, squares = (
            np.concatenate(
                [
                    self._of_pairs(some, self._sums(some, row_weights[:, None], of)[:, 0])[1]
                    for some in self._some_features(1)
                ]
            ).astype(self.X.dtype)
            for of in (np.asarray, np.square)
        )
        return Moments(sums, squares, self.X.min(axis=0), self.X.max(axis=0))

    def _ends(self, some: slice) -> tuple[Floats, Floats]:
        """Return lower and upper bounds of products of some features with all from there on."""
        ends = np.array([self.X.min(axis=0), self.X.max(axis=0)])
        corners = _corners(ends[:, some, None], ends[:, None, some.start :])
        return corners.min(axis=(0, 1)), corners.max(axis=(0, 1))

    def _some_features(self, n_classes: int) -> Iterator[slice]:
        d = self.X.shape[1]
        step = max(1, min(N_PRODUCTS // n_classes, BLOCK_BYTES // (8 * d * n_classes)))
        return (slice(first, min(first + step, d)) for first in range(0, d, step))

    def _sums(self, some: slice, coefficients: Floats, of: Any = np.asarray) -> Floats:
        """Return sums over rows of coefficients times products of some features and later ones.

        The shape is (features, columns of coefficients, features from the first of them on).
        """
        coefficients = coefficients.astype(self.X.dtype, copy=False)
        n_rows, n_classes = coefficients.shape
        width = some.stop - some.start
        sums = np.zeros((width * n_classes, self.X.shape[1] - some.start))
        for start in range(0, n_rows, N_ROWS):
            rows = slice(start, start + N_ROWS)
            right = of(self.X[rows, some.start :])
            left = right[:, :width, None] * coefficients[rows, None, :]
            sums += left.reshape(-1, width * n_classes).T @ right
        return sums.reshape(width, n_classes, -1)

    def _of_pairs(self, some: slice, values: Floats) -> tuple[int, Floats]:
        """Return the number of the first pair, and the values of actual pairs in order."""
        is_pair = np.triu(np.ones(values.shape, dtype=bool), 1 - self.dictionary.squares)
        return int(self.dictionary.first_of(some.start)), values[is_pair]


def _corners(ends: Floats, others: Floats) -> Floats:
    """Return the four products of the smallest and largest values of features."""
    return ends[:, None] * others[None]

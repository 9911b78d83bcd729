"""Pieces: linear functions on balls, which compose piecewise linear functions."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from kesler.dictionaries.dictionary import (
    BLOCK_BYTES,
    Dictionary,
    Floats,
    Ints,
    Pool,
    check_dense,
    spread,
)
from kesler.dictionaries.steps import Piece, Step
from kesler.dictionaries.stumps import Thresholds
from kesler.errors import KeslerError, integer_of

Self = TypeVar("Self", bound="Pieces")

MOST_RADII = 255
# Size of the sums of a block of centres, which stay in the cache during a pass over the rows.
SUM_BYTES = 1 << 19


class Pieces(Dictionary):
    r"""Groups of d + 1 columns: the indicator of a ball, and offsets from its centre inside it.

    .. math:: x_{v, r} = 1[\|x - v\| < r] \, (1, x_1 - v_1, \dots, x_d - v_d)

    Parameters
    ----------
    centres : int >= 1, or array of shape (n_centres, n_features), default 100
        The number of centres, found by k-means, or the centres themselves. More centres give more
        candidates; the time of a round is linear in their number.
    n_radii : int from 1 to 255, default 10
        Maximum number of radii per centre, at quantiles of the rows' distances from it; each ball
        contains some rows, but not all. Larger values take little more time.
    random_state : int, RandomState or None, default None
        Controls k-means.

    Attributes
    ----------
    centres_ : float64 array of shape (n_centres, n_features)
    radii_ : Thresholds
        The radii of each centre; a candidate's number is its index among them.
    n_candidates_ : int

    Raises
    ------
    KeslerError
        If rows are sparse, all rows are equally far from every centre, there are more centres than
        rows, or given centres have another width than the rows or are not finite.

    Notes
    -----
    Distances are sorted once, at O(m log m) per centre for m rows. A round costs O(m d k) per
    centre, whatever its number of radii, in the precision of the rows. Memory is one byte per row
    and centre.

    References
    ----------
    Shalev-Shwartz, Wexler and Shashua (2011), Section 4.2; Zhou, Yu, Zhang and Huang (2010).

    Examples
    --------
    >>> from kesler.dictionaries import Pieces
    >>> import numpy as np
    >>> X = np.array([[0.0], [1.0], [3.0]])
    >>> pieces = Pieces(centres=[[0.5]], n_radii=1).fit(X)
    >>> pieces.radii_.values.tolist()
    [1.5]
    >>> pieces.columns(X, np.array([0])).tolist()
    [[1.0, -0.5], [1.0, 0.5], [0.0, 0.0]]
    """

    centres_: npt.NDArray[np.float64]
    radii_: Thresholds

    def __init__(self, centres: Any = 100, n_radii: int = 10, random_state: Any = None) -> None:
        self.centres = centres
        self.n_radii = n_radii
        self.random_state = random_state

    def fit(self: Self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Find the centres, and the radii of each."""
        check_dense(X, "pieces")
        integer_of("n_radii", self.n_radii, 1, MOST_RADII)
        given = np.ndim(self.centres) > 0
        self.centres_ = self._given(X) if given else self._means(X, sample_weight)
        self.radii_ = Thresholds.between(distances(X, self.centres_), self.n_radii, sample_weight)
        self.n_candidates_ = len(self.radii_)
        if self.n_candidates_ == 0:
            raise KeslerError(
                "all rows are equally far from every centre, so there is no radius: give rows "
                "that differ, or other centres"
            )
        return self

    def _means(self, X: Floats, sample_weight: Any) -> npt.NDArray[np.float64]:
        from sklearn.cluster import MiniBatchKMeans

        integer_of("centres", self.centres, 1)
        if self.centres > X.shape[0]:
            raise KeslerError(
                f"centres={self.centres} is more than the number of rows, {X.shape[0]}: give a "
                "smaller number"
            )
        means = MiniBatchKMeans(self.centres, n_init=1, random_state=self.random_state)
        means.fit(X, sample_weight=sample_weight)
        return np.asarray(means.cluster_centers_, dtype=np.float64)

    def _given(self, X: Floats) -> npt.NDArray[np.float64]:
        centres = np.asarray(self.centres, dtype=np.float64)
        if centres.ndim != 2 or centres.shape[1] != X.shape[1] or len(centres) == 0:
            raise KeslerError(
                f"centres have the shape {centres.shape}, but rows have {X.shape[1]} features: "
                f"give an array of shape (n_centres, {X.shape[1]})"
            )
        if not np.isfinite(centres).all():
            row = int(np.flatnonzero(~np.isfinite(centres).all(axis=1))[0])
            raise KeslerError(f"centre {row} holds NaN or infinity: give finite numbers")
        return centres

    def columns(self, X: Any, candidates: Ints) -> Floats:
        """Return the indicator and the offsets of each piece."""
        centres = self.radii_.lines(candidates)
        columns = np.zeros((X.shape[0], len(candidates), X.shape[1] + 1), dtype=X.dtype)
        away = distances(X, self.centres_[centres])
        radii = self.radii_.values[candidates]
        for number, (centre, radius, far) in enumerate(zip(centres, radii, away, strict=True)):
            within = far < radius
            columns[within, number, 0] = 1
            columns[within, number, 1:] = X[within] - self.centres_[centre]
        return columns.reshape(X.shape[0], -1)

    def widths(self, candidates: Ints) -> Ints:
        """Return d + 1 for each candidate."""
        return np.full(len(candidates), self.centres_.shape[1] + 1, dtype=np.int64)

    def pool(self, X: Any) -> PiecesPool:
        """Return the pool of training rows, sorted into rings between radii."""
        return PiecesPool(self, X)

    def step(self, candidate: int) -> Step:
        """Return the step for a centre and radius."""
        centre = self.radii_.lines(np.array([candidate]))[0]
        return Piece(self.centres_[centre], float(self.radii_.values[candidate]))


class PiecesPool(Pool):
    """Training rows sorted into the rings between the radii of each centre."""

    dictionary: Pieces

    @cached_property
    def rings(self) -> npt.NDArray[np.uint8]:
        """The number of radii of each centre that do not reach each row, (n_centres, n_rows)."""
        centres, radii = self.dictionary.centres_, self.dictionary.radii_
        rings = np.empty((len(centres), self.X.shape[0]), dtype=np.uint8)
        for number, away in enumerate(distances(self.X, centres)):
            rings[number] = radii.bins(number, away)
        return rings

    def blocks(self) -> Iterator[Ints]:
        """Yield all candidates in blocks whose columns fit into memory."""
        width = self.X.shape[1] + 1
        step = max(1, BLOCK_BYTES // (8 * width * self.X.shape[0]))
        for first in range(0, self.n_candidates, step):
            yield np.arange(first, min(first + step, self.n_candidates))

    def scores(self, residuals: Floats) -> Iterator[tuple[int, Floats]]:
        """Yield the scores of all radii of a few centres at a time."""
        residuals = np.ascontiguousarray(residuals, dtype=self.X.dtype)
        for some, away in self._some_centres(residuals.shape[1]):
            sums = self._sums(some, self._offsets, residuals)
            sums[:, :, 1:] -= away * sums[:, :, :1]
            yield self._of_radii(some, np.abs(sums, out=sums).sum(axis=(2, 3)))

    def spreads(self, row_weights: Floats, *, centred: bool) -> Iterator[tuple[int, Floats]]:
        """Yield the spreads of all radii of a few centres at a time."""
        d = self.X.shape[1]
        coefficients = np.ascontiguousarray(row_weights[:, None], dtype=self.X.dtype)
        for some, away in self._some_centres(2):
            sums = self._sums(some, self._offsets_and_squares, coefficients)[..., 0]
            within, offsets, squares = sums[:, :, :1], sums[:, :, 1 : d + 1], sums[:, :, d + 1 :]
            away = away[..., 0]
            squares -= away * (2 * offsets - away * within)
            offsets -= away * within
            # One offset may be as long as the radius, but the vector of all offsets is no longer.
            share = self._radii(some)[..., None] / np.sqrt(d)
            each = [
                spread(total.astype(self.X.dtype), square, ends, row_weights, centred=centred)
                for total, square, ends in (
                    (within, within.astype(self.X.dtype), (0.0, 1.0)),
                    (offsets, np.maximum(squares, 0).astype(self.X.dtype), (-share, share)),
                )
            ]
            lengths = np.sqrt(sum(np.square(part).sum(axis=2) for part in each))
            yield self._of_radii(some, np.asarray(lengths))

    @cached_property
    def _origin(self) -> Floats:
        """The reference point of offsets in sums, close to the rows to avoid cancellation."""
        return np.asarray(self.X.mean(axis=0, dtype=np.float64), dtype=self.X.dtype)

    @cached_property
    def _offsets(self) -> Floats:
        return np.ascontiguousarray(self.X - self._origin)

    @cached_property
    def _offsets_and_squares(self) -> Floats:
        return np.hstack([self._offsets, np.square(self._offsets)])

    def _some_centres(self, n_classes: int) -> Iterator[tuple[slice, Floats]]:
        """Yield blocks of centres whose sums fit into the cache, and their offsets from the origin.

        The offsets have the shape (centres, 1, features, 1).
        """
        n_sums = (self.dictionary.n_radii + 1) * (self.X.shape[1] + 1) * n_classes
        step = max(1, SUM_BYTES // (self.X.itemsize * n_sums))
        for first in range(0, len(self.rings), step):
            some = slice(first, first + step)
            yield some, (self.dictionary.centres_[some] - self._origin)[:, None, :, None]

    def _sums(self, some: slice, columns: Floats, coefficients: Floats) -> Floats:
        """Return sums of coefficients times (1, columns) over the balls of some centres.

        The shape is (centres, radii, 1 + columns, columns of coefficients).
        """
        from kesler.compiled.batch.pieces import add_outer_products

        rings, n_classes = self.rings[some], coefficients.shape[1]
        n_rings, width = self.dictionary.n_radii + 1, columns.shape[1] + 1
        sums = np.zeros((len(rings), n_rings, width * n_classes), dtype=columns.dtype)
        add_outer_products(rings, columns, coefficients, sums)
        balls = np.cumsum(sums[:, :-1], axis=1, dtype=np.float64)
        return balls.reshape(len(rings), n_rings - 1, width, n_classes)

    def _radii(self, some: slice) -> Floats:
        """Return the radii of some centres, shape (centres, radii), padded with 0."""
        radii = self.dictionary.radii_
        counts = radii.counts[some]
        table = np.zeros((len(counts), self.dictionary.n_radii), dtype=self.X.dtype)
        is_radius = np.arange(table.shape[1]) < counts[:, None]
        first = int(radii.firsts[some.start])
        table[is_radius] = radii.values[first : first + int(counts.sum())]
        return table

    def _of_radii(self, some: slice, values: Floats) -> tuple[int, Floats]:
        """Return the number of the first candidate, and the values of actual radii."""
        radii = self.dictionary.radii_
        is_radius = np.arange(values.shape[1]) < radii.counts[some, None]
        return int(radii.firsts[some.start]), values[is_radius]


def distances(X: Floats, centres: npt.NDArray[np.float64]) -> Iterator[Floats]:
    """Yield the distances of all rows from each centre, independent of the number of centres."""
    from scipy.spatial.distance import cdist

    n_rows = X.shape[0]
    n_centres, n_at_once = (max(1, BLOCK_BYTES // (8 * n)) for n in (n_rows, X.shape[1]))
    for first in range(0, len(centres), n_centres):
        some = centres[first : first + n_centres]
        away = np.empty((len(some), n_rows))
        # Rows are converted to float64 in blocks.
        for start in range(0, n_rows, n_at_once):
            away[:, start : start + n_at_once] = cdist(some, X[start : start + n_at_once])
        yield from away

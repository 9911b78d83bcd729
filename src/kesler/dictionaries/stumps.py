"""Stumps: indicators of features below thresholds, as boosting uses them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
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
    dense,
)
from kesler.dictionaries.steps import Step, Stump
from kesler.errors import KeslerError, integer_of


@dataclass(frozen=True, eq=False)
class Thresholds:
    """Thresholds (cuts) of several sequences of numbers (lines), in ascending order for each.

    Parameters
    ----------
    values : float64 array of shape (n_cuts,)
    firsts : int64 array of shape (n_lines + 1,)
        The cuts of line j are numbers firsts[j] to firsts[j + 1] - 1; a line may have none.
    """

    values: npt.NDArray[np.float64]
    firsts: Ints

    @classmethod
    def between(
        cls, lines: Iterable[Floats], most: int | None, weights: Floats | None = None
    ) -> Thresholds:
        """Cut each line between its distinct numbers, or at up to `most` quantiles if given.

        Each cut has numbers on both sides. Quantiles are by the weights of the numbers of a line,
        all 1 if None.
        """
        cuts = [_cuts(line, most, weights) for line in lines]
        firsts = np.cumsum([0, *map(len, cuts)], dtype=np.int64)
        return cls(np.concatenate([np.empty(0), *cuts]), firsts)

    def __len__(self) -> int:
        return len(self.values)

    @property
    def counts(self) -> Ints:
        """Number of cuts of each line."""
        return np.diff(self.firsts)

    @property
    def bin_type(self) -> np.dtype[Any]:
        """The smallest dtype for bin numbers."""
        return np.min_scalar_type(int(self.counts.max(initial=0)))

    def lines(self, cuts: Ints) -> Ints:
        """Return the line of each of some cuts."""
        return np.searchsorted(self.firsts, cuts, side="right") - 1

    def bins(self, line: int, numbers: Floats) -> Ints:
        """Return the bin of each number: how many of a line's cuts are at or below it.

        A number is below cut t of the line if and only if its bin is t or less.
        """
        cuts = self.values[self.firsts[line] : self.firsts[line + 1]]
        return np.searchsorted(cuts, numbers, side="right")


def _cuts(line: Floats, most: int | None, weights: Floats | None) -> npt.NDArray[np.float64]:
    order = np.argsort(line)
    line = line[order]
    places = np.flatnonzero(line[1:] > line[:-1]) + 1
    if most is not None and len(places) > most:
        totals = np.cumsum(np.ones(len(line)) if weights is None else weights[order])
        wanted = totals[-1] * np.arange(1, most + 1) / (most + 1)
        nearest = np.searchsorted(totals[places - 1], wanted)
        places = places[np.unique(np.minimum(nearest, len(places) - 1))]
    return middles(line[places - 1].astype(np.float64), line[places].astype(np.float64))


def middles(
    below: npt.NDArray[np.float64], above: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    """Return midpoints, strictly above the lower and at most equal to the upper number."""
    # Each number is halved, since their sum may overflow. The midpoint of adjacent floats may be
    # rounded to the lower one.
    middle = below / 2 + above / 2
    return np.where(middle > below, middle, above)


Self = TypeVar("Self", bound="Stumps")


class Stumps(Dictionary):
    r"""Indicators of whether a feature is below a threshold.

    .. math:: x_{j, \theta} = 1[v_j < \theta]

    Parameters
    ----------
    n_thresholds : int >= 1 or None, default None
        Maximum number of thresholds per feature. None uses all midpoints between neighbouring
        distinct values; a number, those closest to that many quantiles, for very many rows. Larger
        values give more candidates; memory and the time of `fit` grow with them, that of a round
        hardly.

    Attributes
    ----------
    thresholds_ : Thresholds
        The thresholds of each feature; a candidate's number is its index among them. Each has
        training rows above and below, so no candidate is constant.
    n_candidates_ : int

    Raises
    ------
    KeslerError
        If n_thresholds is not a whole number of 1 or more, or no feature has two values.

    Notes
    -----
    Features are sorted once, at O(m log m) each for m rows. A round then costs O(m k) per feature,
    whatever its number of thresholds: residuals are summed between thresholds and then accumulated.
    Each entry of the rows takes 1 byte for up to 255 thresholds per feature, 2 for up to 65,535,
    else 4; each threshold takes 8. Sparse rows are read a few columns at a time, but take as much
    memory.

    References
    ----------
    Shalev-Shwartz, Wexler and Shashua (2011), Section 4.1.

    Examples
    --------
    >>> from kesler.dictionaries import Stumps
    >>> import numpy as np
    >>> X = np.array([[1.0], [3.0], [3.0], [8.0]])
    >>> stumps = Stumps().fit(X)
    >>> stumps.thresholds_.values.tolist()
    [2.0, 5.5]
    >>> stumps.columns(X, np.array([0])).ravel().tolist()
    [1.0, 0.0, 0.0, 0.0]
    """

    thresholds_: Thresholds
    indicators = True

    def __init__(self, n_thresholds: int | None = None) -> None:
        self.n_thresholds = n_thresholds

    def fit(self: Self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Find the thresholds of each feature."""
        if self.n_thresholds is not None:
            integer_of("n_thresholds", self.n_thresholds, 1)
        self.thresholds_ = Thresholds.between(features(X), self.n_thresholds, sample_weight)
        self.n_candidates_ = len(self.thresholds_)
        if self.n_candidates_ == 0:
            raise KeslerError(
                "no feature takes two values on these rows, so there is no threshold: give rows "
                "that differ"
            )
        return self

    def columns(self, X: Any, candidates: Ints) -> Floats:
        """Return 1 where a row is below the threshold, else 0."""
        values = dense(X[:, self.thresholds_.lines(candidates)])
        return np.asarray(values < self.thresholds_.values[candidates], dtype=X.dtype)

    def pool(self, X: Any) -> StumpsPool:
        """Return the pool of training rows, sorted into bins between thresholds."""
        return StumpsPool(self, X)

    def step(self, candidate: int) -> Step:
        """Return the step for a feature and threshold."""
        feature = self.thresholds_.lines(np.array([candidate]))[0]
        return Stump(int(feature), float(self.thresholds_.values[candidate]))


class StumpsPool(Pool):
    """Training rows sorted into bins between thresholds."""

    dictionary: Stumps

    @cached_property
    def bins(self) -> npt.NDArray[Any]:
        """The bin of each row for each feature, shape (n_features, n_rows)."""
        thresholds = self.dictionary.thresholds_
        bins = np.empty(self.X.shape[::-1], dtype=thresholds.bin_type)
        for number, feature in enumerate(features(self.X)):
            bins[number] = thresholds.bins(number, feature)
        return bins

    def scores(self, residuals: Floats) -> Iterator[tuple[int, Floats]]:
        """Yield the scores of all thresholds at once."""
        from kesler.compiled.batch.stumps import score_stumps

        scores = np.empty(self.n_candidates)
        residuals = np.ascontiguousarray(residuals, dtype=np.float64)
        score_stumps(self.bins, self.dictionary.thresholds_.firsts, residuals, scores)
        yield 0, scores


def features(X: Any) -> Iterator[Floats]:
    """Yield the columns of rows as dense contiguous arrays."""
    X = X if isinstance(X, np.ndarray) else X.tocsc()
    step = max(1, BLOCK_BYTES // (8 * max(1, X.shape[0])))
    for first in range(0, X.shape[1], step):
        yield from np.ascontiguousarray(dense(X[:, first : first + step]).T)

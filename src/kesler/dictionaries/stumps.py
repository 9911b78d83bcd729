"""Stumps: features cut at a threshold, as boosting uses them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from kesler.dictionaries.columns import dense
from kesler.dictionaries.dictionary import BLOCK_BYTES, Dictionary, Floats, Ints, Pool
from kesler.dictionaries.options import check_count
from kesler.dictionaries.steps import Step, Stump
from kesler.dictionaries.thresholds import Thresholds
from kesler.errors import KeslerError

Self = TypeVar("Self", bound="Stumps")


class Stumps(Dictionary):
    r"""Whether a feature is below a threshold.

    .. math:: x_{j, \theta} = 1[v_j < \theta]

    Parameters
    ----------
    n_thresholds : int >= 1 or None, default None
        The most thresholds of a feature. None: all middles between neighbours among its distinct
        values. A number: those of them nearest to that many quantiles, for very many rows. More
        leave more to choose from; memory and the time to fit grow with them, that of a round
        hardly.

    Attributes
    ----------
    thresholds_ : Thresholds
        Those of each feature; a candidate's number is its place among them. None is above or below
        all training rows, so that no candidate is constant.
    n_candidates_ : int

    Raises
    ------
    KeslerError
        If n_thresholds is not a whole number of 1 or more, or no feature has two values.

    Notes
    -----
    Features are sorted once, O(m log m) each for m rows. A round then costs O(m k) a feature,
    whatever its number of thresholds: residuals are summed between thresholds, then added up. Each
    entry of the rows takes 1 byte up to 255 thresholds a feature, 2 up to 65,535, else 4; each
    threshold takes 8. Sparse rows are read a few columns at a time, but take as much.

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

    def fit(self: Self, X: Any, y: Any = None) -> Self:
        """Find the thresholds of each feature."""
        if self.n_thresholds is not None:
            check_count("n_thresholds", self.n_thresholds)
        self.thresholds_ = Thresholds.between(features(X), self.n_thresholds)
        self.n_candidates_ = len(self.thresholds_)
        if self.n_candidates_ == 0:
            raise KeslerError(
                "no feature takes two values on these rows, so that there is no threshold to "
                "choose: give rows that differ"
            )
        return self

    def columns(self, X: Any, candidates: Ints) -> Floats:
        """Return 1 where a row is below the threshold, else 0."""
        values = dense(X[:, self.thresholds_.lines(candidates)])
        return np.asarray(values < self.thresholds_.values[candidates], dtype=X.dtype)

    def pool(self, X: Any) -> StumpsPool:
        """Return the training rows as bins between thresholds."""
        return StumpsPool(self, X)

    def step(self, candidate: int) -> Step:
        """Return the feature and the threshold."""
        feature = self.thresholds_.lines(np.array([candidate]))[0]
        return Stump(int(feature), float(self.thresholds_.values[candidate]))


class StumpsPool(Pool):
    """Training rows that have been sorted into the bins between thresholds."""

    dictionary: Stumps

    @cached_property
    def bins(self) -> npt.NDArray[Any]:
        """The bin of each row by each feature, of shape (n_features, n_rows)."""
        thresholds = self.dictionary.thresholds_
        bins = np.empty(self.X.shape[::-1], dtype=thresholds.bin_type)
        for number, feature in enumerate(features(self.X)):
            bins[number] = thresholds.bins(number, feature)
        return bins

    def scores(self, residuals: Floats) -> Iterator[tuple[int, Floats]]:
        """Yield the scores of all thresholds at once."""
        from kesler.compiled.stumps import score_stumps

        scores = np.empty(self.n_candidates)
        residuals = np.ascontiguousarray(residuals, dtype=np.float64)
        score_stumps(self.bins, self.dictionary.thresholds_.firsts, residuals, scores)
        yield 0, scores


def features(X: Any) -> Iterator[Floats]:
    """Yield the columns of rows one after the other, each in one piece and dense."""
    X = X if isinstance(X, np.ndarray) else X.tocsc()
    step = max(1, BLOCK_BYTES // (8 * max(1, X.shape[0])))
    for first in range(0, X.shape[1], step):
        yield from np.ascontiguousarray(dense(X[:, first : first + step]).T)

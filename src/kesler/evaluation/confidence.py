"""Answers by confidence: the error of the surest rows, and the confidence for a given error."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from kesler.errors import KeslerError, is_number

CERTAINTY = 0.95


@dataclass(frozen=True, slots=True)
class Threshold:
    """The lowest confidence from which answers have at most a given error.

    Attributes
    ----------
    confidence : float
        Rows of at least this confidence are answered.
    error : float
        Share of mistakes among the rows answered.
    error_limit : float
        The exact upper limit of the error at this confidence, at 95 % (Clopper and Pearson 1934).
        The threshold was chosen by the same rows, so it is a little too low; see `interval`.
    coverage : float
        Share of rows answered.
    n_answered : int
        Number of rows answered.
    interval : tuple of two floats
        A 95 % interval of the threshold: with certainty 0.975 each, every confidence below the
        first number has a larger error than the given one, and the second number has not. The
        second is infinite if the rows are too few to be certain.
    """

    confidence: float
    error: float
    error_limit: float
    coverage: float
    n_answered: int
    interval: tuple[float, float]


@dataclass(frozen=True, slots=True)
class RiskCoverage:
    r"""The error among the rows of highest confidence, for every number of rows answered.

    .. math:: \text{area} = \frac1n \sum_{k=1}^n \frac{m_k}{k}

    where m_k is the number of mistakes among the k surest rows. Rows of equal confidence are one
    block: the mistakes of a part of a block are its share of those of the block, which is their
    mean over all orders of its rows.

    Parameters
    ----------
    thresholds : float64 array of shape (n_blocks,)
        The distinct confidences, the highest first.
    n_answered, n_wrong : int64 arrays of shape (n_blocks,)
        Numbers of rows of at least this confidence, and of mistakes among them.
    n_left_out : int
        Number of rows without a confidence, and of rows of classes that had not been seen.

    Attributes
    ----------
    coverage : float64 array of shape (n_blocks,)
        Share of rows answered, of those not left out.
    risk : float64 array of shape (n_blocks,)
        Share of mistakes among the rows answered.
    area : float
        The area under the curve, the mean of the risk over all coverages; less is better.

    References
    ----------
    El-Yaniv and Wiener (2010); Geifman, Uziel and El-Yaniv (2019), the area.

    Examples
    --------
    >>> found = RiskCoverage.of([0.9, 0.8, 0.8, 0.5], [False, True, False, True])
    >>> found.coverage.tolist(), found.risk.round(3).tolist(), round(found.area, 4)
    ([0.25, 0.75, 1.0], [0.0, 0.333, 0.5], 0.2708)
    """

    thresholds: npt.NDArray[np.float64]
    n_answered: npt.NDArray[np.int64]
    n_wrong: npt.NDArray[np.int64]
    n_left_out: int = 0

    @staticmethod
    def of(confidences: npt.ArrayLike, wrong: npt.ArrayLike, asked: Any = None) -> RiskCoverage:
        """Return the curve of rows.

        Parameters
        ----------
        confidences : float array of shape (n_rows,)
            The confidence of each prediction; rows of NaN are left out.
        wrong : bool array of shape (n_rows,)
            Whether each prediction is a mistake.
        asked : bool array of shape (n_rows,) or None, default None
            The rows that count; None means all.

        Raises
        ------
        KeslerError
            If no row that counts has a confidence, or the arrays differ in shape.
        """
        p, is_wrong = np.asarray(confidences, dtype=np.float64), np.asarray(wrong, dtype=np.bool_)
        if p.ndim != 1 or p.shape != is_wrong.shape:
            raise KeslerError(
                f"confidences of shape {p.shape} and mistakes of shape {is_wrong.shape}: give one "
                "of each for every row"
            )
        kept = ~np.isnan(p) if asked is None else ~np.isnan(p) & asked
        if not kept.any():
            raise KeslerError(
                "no row has a confidence, as for methods that are not Kesler's: validate a "
                "classifier of Kesler, whose results have probabilities"
            )
        order = np.argsort(-p[kept], kind="stable")
        p, is_wrong = p[kept][order], is_wrong[kept][order]
        ends = np.flatnonzero(np.append(p[1:] != p[:-1], True))
        n_wrong = np.cumsum(is_wrong, dtype=np.int64)[ends]
        return RiskCoverage(p[ends], ends + 1, n_wrong, len(kept) - len(p))

    @property
    def coverage(self) -> npt.NDArray[np.float64]:
        """Share of rows answered at each threshold."""
        shares: npt.NDArray[np.float64] = self.n_answered / self.n_answered[-1]
        return shares

    @property
    def risk(self) -> npt.NDArray[np.float64]:
        """Share of mistakes among the rows answered at each threshold."""
        shares: npt.NDArray[np.float64] = self.n_wrong / self.n_answered
        return shares

    @property
    def area(self) -> float:
        """The mean of the risk over all numbers of rows answered."""
        k = np.arange(1, self.n_answered[-1] + 1)
        wrong = np.interp(k, np.append(0, self.n_answered), np.append(0, self.n_wrong))
        return float((wrong / k).mean())

    def threshold_for(self, error: float = 0.05) -> Threshold:
        r"""Return the lowest confidence from which the rows answered have at most this error.

        Parameters
        ----------
        error : float in [0, 1), default 0.05
            The largest share of mistakes among the rows answered. Smaller values answer fewer rows.

        Returns
        -------
        Threshold
            With the limits of its uncertainty, which assume that rows are exchangeable: for a
            stream that drifts they are too narrow.

        Raises
        ------
        KeslerError
            If `error` is no such number, or the rows of every confidence have more mistakes.

        Notes
        -----
        The lower end of the interval is found by tests in a fixed sequence, from the lowest
        confidence upwards until the first that does not reject (Angelopoulos, Bates, Candès, Jordan
        and Lei 2025), the upper end by the binary search of selection with guaranteed risk (Geifman
        and El-Yaniv 2017). The tests are the exact binomial limits of Clopper and Pearson (1934).

        Examples
        --------
        >>> confidences, wrong = [0.9, 0.8, 0.7, 0.6], [False, False, True, True]
        >>> found = RiskCoverage.of(confidences, wrong).threshold_for(0.4)
        >>> found.confidence, round(found.error, 3), found.coverage, found.interval
        (0.7, 0.333, 0.75, (0.6, inf))
        """
        require_share(error)
        reached = np.flatnonzero(self.risk <= error)
        if not len(reached):
            raise KeslerError(
                f"no confidence reaches an error of {error:g}: the rows of the highest, "
                f"{self.thresholds[0]:.4g}, have {self.risk[0]:.4g}, and the least of all is "
                f"{self.risk.min():.4g}: give a larger error"
            )
        last = reached[-1]
        return Threshold(
            float(self.thresholds[last]),
            float(self.risk[last]),
            float(upper_limits(self.n_wrong[last], self.n_answered[last], 1 - CERTAINTY)),
            float(self.coverage[last]),
            int(self.n_answered[last]),
            (self._not_refuted(error), self._guaranteed(error)),
        )

    def _not_refuted(self, error: float) -> float:
        """Return the first confidence, from below, whose error may be as low as this."""
        chances = _chances_of_as_many(self.n_wrong, self.n_answered, error)
        return float(self.thresholds[np.flatnonzero(chances >= (1 - CERTAINTY) / 2)[-1]])

    def _guaranteed(self, error: float) -> float:
        """Return the lowest confidence that a binary search finds to have at most this error."""
        n_blocks = len(self.thresholds)
        n_tests = max(1, math.ceil(math.log2(n_blocks + 1)))
        miss = (1 - CERTAINTY) / 2 / n_tests
        found, low, high = math.inf, 0, n_blocks - 1
        while low <= high:
            middle = (low + high) // 2
            if upper_limits(self.n_wrong[middle], self.n_answered[middle], miss) <= error:
                found, low = float(self.thresholds[middle]), middle + 1
            else:
                high = middle - 1
        return found


def require_share(error: Any) -> None:
    """Raise unless an error is a number from 0 to below 1."""
    if not is_number(error, 0, below=1):
        raise KeslerError(f"error={error!r}: give a share of mistakes from 0 to below 1, as 0.05")


def upper_limits(n_wrong: Any, n: Any, miss: float) -> Any:
    """Return the largest shares under which so few mistakes have a probability of `miss`."""
    from scipy.special import betaincinv

    return np.where(n_wrong < n, betaincinv(n_wrong + 1, np.maximum(n - n_wrong, 1), 1 - miss), 1.0)


def _chances_of_as_many(n_wrong: Any, n: Any, error: float) -> Any:
    """Return the probabilities of at least as many mistakes under an error.

    Where one is below 0.025, the lower limit of Clopper and Pearson at 0.975 exceeds the error.
    """
    from scipy.special import betainc

    return np.where(n_wrong > 0, betainc(np.maximum(n_wrong, 1), n - n_wrong + 1, error), 1.0)

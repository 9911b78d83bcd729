"""GentleBoost over stumps that classes share: rounds of a threshold and who shares it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Doubles = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int32]
Ints = npt.NDArray[np.int64]

# A round that lowers the squared error by so small a share of the weight is rounding.
LEAST_GAIN = 1e-12


@dataclass(frozen=True, eq=False)
class Thresholds:
    """Where each feature may be cut, and how many of its cuts each row is above.

    Parameters
    ----------
    values : float64 array of shape (n_thresholds,)
        Feature by feature, each in rising order.
    starts : int64 array of shape (n_features + 1,)
        Where each feature's begin and end.
    codes : int32 array of shape (n_features, n_rows)
    """

    values: Doubles
    starts: Ints
    codes: Codes

    @classmethod
    def of(cls, X: npt.NDArray[Any], counts: Doubles, most: int | None) -> Thresholds:
        """Return all thresholds between values of each feature, or `most` at even quantiles."""
        cuts = [_cuts(column, counts, most) for column in X.T]
        codes = [np.searchsorted(cut, column) for cut, column in zip(cuts, X.T, strict=True)]
        starts = np.cumsum([0, *map(len, cuts)])
        return cls(np.concatenate(cuts), starts, np.array(codes, dtype=np.int32))

    def feature_of(self, threshold: int) -> int:
        """Return the feature that a threshold cuts."""
        return int(np.searchsorted(self.starts, threshold, side="right")) - 1

    def above(self, threshold: int) -> npt.NDArray[np.bool_]:
        """Return which rows are above a threshold."""
        feature = self.feature_of(threshold)
        return np.asarray(self.codes[feature] > threshold - self.starts[feature])


def _cuts(column: npt.NDArray[Any], counts: Doubles, most: int | None) -> Doubles:
    """Return numbers halfway between neighbouring values of a feature, or the lower of the two."""
    values, numbers = np.unique(column.astype(np.float64), return_inverse=True)
    lower, upper = values[:-1], values[1:]
    halfway = lower + (upper - lower) / 2
    cuts = np.where(halfway < upper, halfway, lower)
    if most is None or len(cuts) <= most:
        return cuts
    below = np.cumsum(np.bincount(numbers, counts))
    nearest = np.searchsorted(below[:-1] / below[-1], np.arange(1, most + 1) / (most + 1))
    return np.asarray(cuts[np.unique(np.minimum(nearest, len(cuts) - 1))])


@dataclass(frozen=True, eq=False)
class SharedStump:
    """What a round adds to the score of each class, above and below a threshold of a feature.

    Parameters
    ----------
    feature : int
    threshold : float
    members : bool array of shape (n_classes,)
        The classes that share it: the others have a constant, the same above and below.
    below, above : float64 arrays of shape (n_classes,)
    loss : float
        The mean exponential loss after the round.
    seconds : float
        From the beginning to the end of the round.
    """

    feature: int
    threshold: float
    members: npt.NDArray[np.bool_]
    below: Doubles
    above: Doubles
    loss: float
    seconds: float


def boost(
    thresholds: Thresholds, signs: Doubles, counts: Doubles, n_rounds: int
) -> Iterator[SharedStump]:
    r"""Yield the stumps of GentleBoost, classes sharing each by best-first search.

    .. math:: \sum_i c_i \sum_r e^{-z_{ir} H_r(x_i)}

    is lowered by Newton steps: each round fits z by least squares weighted by
    :math:`c_i e^{-z_{ir} H_r(x_i)}`, and adds what it has fitted to H. Ends early where no
    threshold gains anything.

    Parameters
    ----------
    thresholds : Thresholds
    signs : float64 array of shape (n_rows, n_classes)
        z: 1 where the row is of the class, -1 where it is not.
    counts : float64 array of shape (n_rows,)
        What rows count, c, above 0.
    n_rounds : int
    """
    from kesler.compiled.jointboost import best_sharing, sum_above

    begun, scores = time.perf_counter(), np.zeros_like(signs)
    shape = len(thresholds.values), signs.shape[1]
    weights_above, pulls_above = np.empty(shape), np.empty(shape)
    members = np.zeros(shape[1], dtype=bool)
    for _ in range(n_rounds):
        weights = _weights(signs, scores, counts)
        pulls = weights * signs
        sum_above(thresholds.codes, thresholds.starts, weights, pulls, weights_above, pulls_above)
        totals = weights.sum(axis=0), pulls.sum(axis=0)
        best, gain = best_sharing(weights_above, pulls_above, *totals, members)
        if not gain > LEAST_GAIN * weights.sum():
            return
        is_above = thresholds.above(best)
        below, above = _fitted(is_above, weights, pulls, members)
        scores += np.where(is_above[:, None], above, below)
        yield SharedStump(
            thresholds.feature_of(best),
            float(thresholds.values[best]),
            members.copy(),
            below,
            above,
            float(counts @ np.exp(-signs * scores).sum(axis=1) / counts.sum()),
            time.perf_counter() - begun,
        )


def _weights(signs: Doubles, scores: Doubles, counts: Doubles) -> Doubles:
    """Return the weights of the rows up to a factor, by which nothing changes."""
    exponents = -signs * scores
    return np.asarray(counts[:, None] * np.exp(exponents - exponents.max()))


def _fitted(
    is_above: npt.NDArray[np.bool_],
    weights: Doubles,
    pulls: Doubles,
    members: npt.NDArray[np.bool_],
) -> tuple[Doubles, Doubles]:
    """Return what the classes are given below and above a threshold: weighted means."""
    constant = pulls.sum(axis=0) / weights.sum(axis=0)
    shared_weights, shared_pulls = weights[:, members].sum(axis=1), pulls[:, members].sum(axis=1)
    sides = [
        np.where(members, shared_pulls[side].sum() / shared_weights[side].sum(), constant)
        for side in (~is_above, is_above)
    ]
    return sides[0], sides[1]

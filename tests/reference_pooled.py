"""Maps that compare a class with all rows, in float64 NumPy: each statistic from the rows again."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


class Seen(list[Any]):
    """The rows of one class with their weights, and those of all classes in their order."""

    def __init__(self, everyone: list[Any]) -> None:
        super().__init__()
        self.everyone = everyone

    def append(self, row: Any) -> None:
        super().append(row)
        self.everyone.append((*row, self))


def unpacked(past: Any) -> tuple[Array, Array, Any]:
    """Return all rows, their weights, and which of them are the class's."""
    rows, weights, owners = zip(*past.everyone, strict=True)
    return np.array(rows), np.array(weights), np.array([owner is past for owner in owners])


def share(occurs: Array, w: Array) -> Any:
    """Return the share of the weight of rows in which each feature occurs, 0 without rows."""
    return w @ occurs / w.sum() if len(w) else np.zeros(occurs.shape[1])


def contrast(x: Array, past: Any) -> Array:
    """x_i (p_i^r - p_i^{not r}), shares of rows in which x_i is not zero, without smoothing."""
    rows, w, own = unpacked(past)
    occurs = (rows != 0).astype(float)
    return np.asarray(x * (share(occurs[own], w[own]) - share(occurs[~own], w[~own])))


def smooth_share(occurs: Array, w: Array, s: float, everywhere: Any) -> Any:
    """Return the share where s rows more have each feature as often as all rows."""
    return (w @ occurs + s * everywhere) / (w.sum() + s)


def relative_contrast(x: Array, past: Any, s: float = 1.0) -> Array:
    """x_i (a_i - b_i) / (a_i + b_i), smooth shares of class and rest; 0 where both are."""
    rows, w, own = unpacked(past)
    occurs = (rows != 0).astype(float)
    everywhere = share(occurs, w)
    a, b = (smooth_share(occurs[each], w[each], s, everywhere) for each in (own, ~own))
    return np.asarray(x * np.divide(a - b, a + b, out=np.zeros(len(x)), where=a + b > 0))


def variance(rows: Array, w: Array) -> Any:
    return np.average((rows - np.average(rows, axis=0, weights=w)) ** 2, axis=0, weights=w)


def log_density(x: Array, mean: Any, variance: Any) -> Any:
    return -0.5 * np.log(variance) - (x - mean) ** 2 / (2 * variance)


def gaussian_ratio(
    x: Array, past: Any, shrinkage: float = 2.0, floor: float = 1e-3, clip: float = 8.0
) -> Array:
    """log N(x; class) - log N(x; all), the class's variance shrunk to that of all.

    That of all, as it was at the class's latest row, at the latest trial whose number is a power of
    two, or when the feature varied for the first time, whichever came last.
    """
    rows, w, own = unpacked(past)
    phi, varies = np.zeros(len(x)), rows != rows[0]
    renewed = max(1 + np.flatnonzero(own)[-1], 2 ** int(np.log2(len(rows))))
    shrunk = min(1.0, shrinkage / (w[own].sum() + 1))
    for i in np.flatnonzero(varies.any(axis=0)):
        column, since = rows[:, i], max(renewed, 1 + int(varies[:, i].argmax()))
        then = variance(column[:since], w[:since])
        spread = (1 - shrunk) * variance(column[own], w[own]) + shrunk * then
        ratio = log_density(
            x[i], np.average(column[own], weights=w[own]), max(spread, floor * then)
        ) - log_density(x[i], np.average(column, weights=w), variance(column, w))
        phi[i] = np.clip(ratio, -clip, clip)
    return phi


VIEWS = {"contrast": relative_contrast, "gaussian-ratio": gaussian_ratio}

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


def unpacked(running: Any) -> tuple[Array, Array, Any]:
    """Return all rows, their weights, and which of them are the class's."""
    rows, weights, owners = zip(*running.everyone, strict=True)
    return np.array(rows), np.array(weights), np.array([owner is running for owner in owners])


def share(occurs: Array, w: Array) -> Any:
    """Return the share of the weight of rows in which each feature occurs, 0 without rows."""
    return w @ occurs / w.sum() if len(w) else np.zeros(occurs.shape[1])


def contrast(x: Array, running: Any) -> Array:
    """x_i (p_i^r - p_i^{not r}), shares of rows in which x_i is not zero, without smoothing."""
    rows, w, own = unpacked(running)
    occurs = (rows != 0).astype(float)
    return np.asarray(x * (share(occurs[own], w[own]) - share(occurs[~own], w[~own])))


def smooth_share(occurs: Array, w: Array, s: float, everywhere: Any) -> Any:
    """Return the share where s rows more have each feature as often as all rows."""
    return (w @ occurs + s * everywhere) / (w.sum() + s)


def smooth_shares(running: Any, s: float) -> Any:
    """Return the smooth shares of the class and of the rest."""
    rows, w, own = unpacked(running)
    occurs = (rows != 0).astype(float)
    everywhere = share(occurs, w)
    return (smooth_share(occurs[each], w[each], s, everywhere) for each in (own, ~own))


def plain_contrast(x: Array, running: Any, s: float = 1.0) -> Array:
    """x_i (a_i - b_i), smooth shares of class and rest."""
    a, b = smooth_shares(running, s)
    return np.asarray(x * (a - b))


def relative_contrast(x: Array, running: Any, s: float = 1.0) -> Array:
    """x_i (a_i - b_i) / (a_i + b_i), smooth shares of class and rest; 0 where both are."""
    a, b = smooth_shares(running, s)
    return np.asarray(x * np.divide(a - b, a + b, out=np.zeros(len(x)), where=a + b > 0))


def moments(rows: Array, w: Array) -> tuple[Any, Any]:
    """Return mean and variance of each feature; weights are of the rows, or of each value."""
    w = np.broadcast_to(w.reshape(len(w), -1), rows.shape)
    mean = (w * rows).sum(axis=0) / w.sum(axis=0)
    return mean, (w * (rows - mean) ** 2).sum(axis=0) / w.sum(axis=0)


def log_density(x: Array, mean: Any, variance: Any) -> Any:
    return -0.5 * np.log(variance) - (x - mean) ** 2 / (2 * variance)


def gaussian_ratio(
    x: Array, running: Any, shrinkage: float = 2.0, floor: float = 1e-3, clip: float = 8.0
) -> Array:
    """log N(x; class) - log N(x; all), the class's variance shrunk to that of all.

    That of all, as it was at the class's latest row, at the latest trial whose number is a power of
    two, or when the feature varied for the first time, whichever came last.
    """
    rows, w, own = unpacked(running)
    phi, varies = np.zeros(len(x)), rows != rows[0]
    renewed = max(1 + np.flatnonzero(own)[-1], 2 ** int(np.log2(len(rows))))
    shrunk = min(1.0, shrinkage / (w[own].sum() + 1))
    moved = varies.any(axis=0)
    rows, x = rows[:, moved], x[moved]
    since = np.maximum(renewed, 1 + varies[:, moved].argmax(axis=0))
    _, then = moments(rows, w[:, None] * (np.arange(len(rows))[:, None] < since))
    mean, own_variance = moments(rows[own], w[own])
    spread = np.maximum((1 - shrunk) * own_variance + shrunk * then, floor * then)
    ratio = log_density(x, mean, spread) - log_density(x, *moments(rows, w))
    phi[moved] = np.clip(ratio, -clip, clip)
    return phi


VIEWS = {"contrast": relative_contrast, "gaussian-ratio": gaussian_ratio}

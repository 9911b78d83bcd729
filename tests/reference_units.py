"""The oracle of units that follow the rows: the kernel of each trial, in plain float64 NumPy.

Rows and support vectors are kept as they came; what changes is how they are compared.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

import reference_relevance
from reference import Array
from reference_kernels import Kernel
from reference_preprocessing import followed, width

RECENT, SHARE = 64, 0.04


def scales(X: Array, t: int, *, ranged: bool, y: Any = None) -> Array:
    """Return 1 over the range of each feature in the first t + 1 rows; or 1.

    With the classes, times the weights of the features that follow from them.
    """
    ranges = width(X[: t + 1])
    inverse = np.divide(1.0, ranges, out=0 * ranges, where=ranges > 0)
    if y is not None:
        inverse = inverse * reference_relevance.by_row(X[: t + 1], y, np.ones(t + 1))[-1]
    return inverse if ranged else np.ones_like(ranges)


def medians(X: Array, *, ranged: bool, y: Any = None) -> list[float]:
    """Follow the median of the squared distances of each row to the 64 before it, latest first."""
    median, n, found = 0.0, 0, []
    for t, x in enumerate(X):
        scale = scales(X, t, ranged=ranged, y=y)
        for running in X[max(0, t - RECENT) : t][::-1]:
            distance = float((((x - running) * scale) ** 2).sum())
            if distance > 0:
                n += 1
                ratio = 1 + min(0.5, 1 / np.sqrt(n))
                step = ratio if distance > median else 1 / ratio
                median = distance if n == 1 else median * step
        found.append(median)
    return found


def gaussian(scale: Array, sigma: float) -> Kernel:
    """Return K(x, z) = exp(-sum of squared differences in these units / (2 sigma))."""
    return lambda A, b: np.exp(-((((A - b) * scale) ** 2).sum(axis=1)) / (2 * sigma))


def kernels(X: Array, *, ranged: bool, sigma: float | None, y: Any = None) -> Sequence[Kernel]:
    """Return the Gaussian kernel of each trial; without a sigma, that of the distances so far.

    With the classes y, features have weights.
    """
    X = np.asarray(X, dtype=np.float64)
    X = followed(X) if ranged else X
    sigmas = None
    if sigma is None:
        sigmas = [SHARE * m or 1.0 for m in medians(X, ranged=ranged, y=y)]
    return [
        gaussian(scales(X, t, ranged=ranged, y=y), sigmas[t] if sigmas else float(sigma or 1))
        for t in range(len(X))
    ]

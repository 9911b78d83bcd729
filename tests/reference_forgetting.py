"""The oracle of forgetting: what is kept of the past from its rows again, each as it counts now."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

import reference_preprocessing
from kesler.preprocessing import Counts

Array = NDArray[np.float64]


def counting(n_rows: int, half_life: float) -> Array:
    """What each of so many rows counts after the last: 1/2 after every half-life."""
    return np.asarray(2.0 ** (-np.arange(n_rows)[::-1] / half_life))


def conditioned(part: Any, X: Array, half_life: float, y: Any) -> Array:
    """Return all rows of a stream as their trials see them."""
    oracle = reference_preprocessing
    running, rows = X[:0], []
    for t, x in enumerate(X):
        w = counting(t, half_life)
        if isinstance(part, Counts):
            rows.append(oracle.counts(x, running, w, part, y[:t]))
        else:
            rows.append(oracle.z_scores(x, running, w, part))
        running = np.vstack(
            [running, x if isinstance(part, Counts) else oracle.taken_in(x, running, w)]
        )
    return np.array(rows)

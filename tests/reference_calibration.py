"""Calibration in plain float64 NumPy, written from the maths in `kesler.learner.calibration`."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def probabilities(scores: Array, lapse: float, inverse: float) -> tuple[Array, Array]:
    """Softmax of inverse times the scores, mixed with 1 / k, and these scores from the top."""
    z = np.maximum(inverse * (scores - scores.max()), -80.0)
    shares = np.exp(z) / np.exp(z).sum()
    return (1 - lapse) * shares + lapse / len(scores), z


def calibrate(scores: Array, y: Any) -> tuple[Array, float, float]:
    """Probabilities of the prediction and of the answer, inverse temperature and lapse at the end.

    Classes are seen in the order of their numbers, and a row scores those seen before it.
    """
    inverse, information, lapse, encoded, k, found = 1.0, 0.0, 1.0, 50.0, 0, []
    for row, answer in zip(scores, y, strict=True):
        s, new = row[:k], answer >= k
        k += new
        found.append((np.nan, np.nan))
        if new:
            continue
        if information == 0 and np.ptp(s) > 0:
            inverse, information = 2 / np.ptp(s), 1.0
        p, z = probabilities(s, lapse / encoded, inverse)
        found[-1] = p[s.argmax()], p[answer]
        if len(s) == 1 or information == 0:
            continue
        u = lapse / encoded / len(s) / p[answer]
        softmax = probabilities(s, 0.0, inverse)[0]
        mean = softmax @ z
        counts = max(1 - u, 0.01)
        information = 0.99 * information + counts * (softmax @ (z - mean) ** 2)
        inverse *= np.exp(-np.clip(counts * (mean - z[answer]) / information, -1, 1))
        lapse, encoded = 0.99 * lapse + u, 0.99 * encoded + 1
    return np.array(found), inverse, lapse / encoded

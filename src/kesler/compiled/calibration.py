"""Calibration: how far scores are to be trusted, learnt from each answer before it moves anything.

See `kesler.calibration` for what is learnt.
"""
# mypy: disallow_untyped_defs=False, disallow_untyped_calls=False

from __future__ import annotations

import math

import numpy as np

from kesler.compiled.jit import always_inlined, inlined

# What is kept: the inverse temperature, its information (0 before the first row that teaches), the
# answers that scores did not explain, and those heard; all but the first discounted.
INVERSE, INFORMATION, LAPSES, HEARD = range(4)
DISCOUNT = 0.99
# What a row counts at least, so that scores whose scale has jumped are not taken for lapses.
LEAST = 0.01
# Scores further below the highest one than this count as being there: e^-80 is as good as 0.
FURTHEST = -80.0
NOTHING_LEFT = 1e-30
COLDEST, HOTTEST = 1e60, 1e-60


@inlined
def exponential(t):
    """Return e^t of -80 <= t <= 0 to 1e-7 of itself, in float32 alone: eight lanes wide.

    The polynomial of Moshier's Cephes library (1989), as in `kesler.kernels.rbf`.
    """
    n = np.floor(t * np.float32(1.44269504) + np.float32(0.5))
    f = t - n * np.float32(0.693359375)
    f = f + n * np.float32(2.12194440e-4)
    p = np.float32(1.9875691500e-4)
    p = p * f + np.float32(1.3981999507e-3)
    p = p * f + np.float32(8.3334519073e-3)
    p = p * f + np.float32(4.1665795894e-2)
    p = p * f + np.float32(1.6666665459e-1)
    p = p * f + np.float32(5.0000001201e-1)
    p = p * f * f + f + np.float32(1)
    return p * np.int32((np.int32(n) + 127) << 23).view(np.float32)


@inlined
def below(inverse, score, top):
    """Return beta (score - top), as far below 0 as counts."""
    z = inverse * (np.float64(score) - top)
    return np.float32(z if z >= FURTHEST else FURTHEST)


@inlined
def begin(calibration, scores, k, top):
    """Let the classes of a first row lie 2 apart; whether they differ at all."""
    lowest = top
    for r in range(k):
        lowest = min(lowest, np.float64(scores[r]))
    if not (0 < top - lowest and top - lowest < np.inf):
        return False
    calibration[INVERSE] = 2.0 / (top - lowest)
    calibration[INFORMATION] = 1.0
    return True


@always_inlined
def calibrate(calibration, scores, k, winner, y, exponentials, probabilities, t):
    """Learn from the answer y; probabilities[t] becomes those of the winner and of y, if kept.

    An answer teaches nothing if its class is new, or the only one.
    """
    if probabilities.shape[0]:
        probabilities[t, 0], probabilities[t, 1] = np.nan, np.nan
    if y >= k or not np.isfinite(scores[winner]):
        return
    top = np.float64(scores[winner])
    teaches = k > 1 and (calibration[INFORMATION] > 0 or begin(calibration, scores, k, top))
    inverse = calibration[INVERSE]
    for r in range(k):
        exponentials[r] = exponential(below(inverse, scores[r], top))
    total, first, second = 0.0, 0.0, 0.0
    for r in range(k):
        z, share = np.float64(below(inverse, scores[r], top)), np.float64(exponentials[r])
        total += share
        first += share * z
        second += share * z * z
    lapse = calibration[LAPSES] / calibration[HEARD]
    answered = (1.0 - lapse) * np.float64(exponentials[y]) / total + lapse / k
    if probabilities.shape[0]:
        probabilities[t, 0], probabilities[t, 1] = (1.0 - lapse) / total + lapse / k, answered
    if teaches:
        mean = first / total
        slope = mean - np.float64(below(inverse, scores[y], top))
        learn(calibration, slope, second / total - mean * mean, lapse / k / answered)


@inlined
def learn(calibration, slope, variance, lapsed):
    """Take a Newton step of log beta, of one at most, and count the lapse."""
    counts = max(LEAST, 1.0 - lapsed)
    information = DISCOUNT * calibration[INFORMATION] + counts * max(0.0, variance)
    calibration[INFORMATION] = max(NOTHING_LEFT, information)
    step = max(-1.0, min(1.0, counts * slope / calibration[INFORMATION]))
    inverse = calibration[INVERSE] * math.exp(-step)
    calibration[INVERSE] = min(COLDEST, max(HOTTEST, inverse))
    calibration[LAPSES] = DISCOUNT * calibration[LAPSES] + lapsed
    calibration[HEARD] = DISCOUNT * calibration[HEARD] + 1.0

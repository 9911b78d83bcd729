"""Kernels for columns of numbers and dates: z-scores over the numbers so far, places on circles."""
# mypy: disallow_untyped_defs=False, disallow_untyped_calls=False

from __future__ import annotations

import math

from numba import types

from kesler.compiled.jit.decorators import DOUBLE_TABLE, DOUBLES, kernel

FURTHEST = 30.0  # a value further from the mean, in deviations, counts as this far
NEARLY_FURTHEST = 0.99 * FURTHEST**2
CLIP = 4.0  # the largest z-score
LEAST_VARIANCE = 1e-200


@kernel(types.void(DOUBLES, DOUBLES, types.float64, types.boolean, DOUBLES, DOUBLES))
def fill_z_scores(numbers, weights, decay, learn, moments, scores):
    """Fill the z-score of each number over those so far with the number itself.

    The moments are those of West (1979).

    Parameters
    ----------
    numbers : the numbers, NaN where one is missing.
    weights : those of the rows; empty if all are 1.
    decay : what remains of the influence of a number on the moments after another one.
    learn : whether each number adds to the moments.
    moments : the sum of weights, the mean and the sum of squared deviations, changed if `learn`.
    scores : filled, NaN where a number is missing.
    """
    n, mean, squares = moments[0], moments[1], moments[2]
    for row in range(len(numbers)):
        number = numbers[row]
        if number != number:
            scores[row] = number
            continue
        gap, seen = number - mean, n + 1.0
        if n * gap * gap > NEARLY_FURTHEST * squares > NEARLY_FURTHEST * LEAST_VARIANCE * n:
            most = FURTHEST * math.sqrt(squares / n)  # clipped where it is very far away
            gap = min(most, max(-most, gap))
        share = 1.0 / seen
        total, middle = squares + n * share * gap * gap, mean + share * gap
        z = (number - middle) / math.sqrt(total / seen) if total > LEAST_VARIANCE * seen else 0.0
        scores[row] = z if -CLIP < z < CLIP else math.copysign(CLIP, z)
        if not learn:
            continue
        if len(weights):
            weight = weights[row]
            seen = n + weight
            share = weight / seen
            total, middle = squares + n * share * gap * gap, mean + share * gap
        n, mean, squares = decay * seen, middle, decay * total
    if learn:
        moments[0], moments[1], moments[2] = n, mean, squares


@kernel(types.void(DOUBLE_TABLE, DOUBLE_TABLE))
def fill_circles(places, points):
    """Fill the points of places from 0 to 1 on circles: the sine and the cosine of each place."""
    for row in range(len(places)):
        for i in range(places.shape[1]):
            angle = 2 * math.pi * places[row, i]
            points[row, 2 * i], points[row, 2 * i + 1] = math.sin(angle), math.cos(angle)

"""Kernels for columns of numbers and dates: z-scores over the numbers so far, places on circles."""
# mypy: disallow_untyped_defs=False, disallow_untyped_calls=False

from __future__ import annotations

import math

from numba import types

from kesler.compiled.jit.decorators import DOUBLE_TABLE, DOUBLES, kernel
from kesler.compiled.trial.preprocessing import MEAN, SQUARES, score_with, with_value

AMOUNT = 2  # the sum of the weights, beside the moments of the column


@kernel(
    types.void(DOUBLES, DOUBLES, types.float64, types.boolean, types.float64, DOUBLE_TABLE, DOUBLES)
)
def fill_z_scores(numbers, weights, decay, learn, clip, running, scores):
    """Fill the z-score of each number over those so far with the number itself.

    Parameters
    ----------
    numbers : the numbers, NaN where one is missing.
    weights : those of the rows; empty if all are 1.
    decay : what remains of the influence of a number on the moments after another one.
    learn : whether each number adds to the moments.
    clip : the largest z-score.
    running : a row of the mean, the sum of squared deviations and the sum of weights, changed if
        `learn`.
    scores : filled, NaN where a number is missing.
    """
    for row in range(len(numbers)):
        number, n = numbers[row], running[0, AMOUNT]
        if number != number:
            scores[row] = number
            continue
        scores[row] = min(clip, max(-clip, score_with(running, 0, number, n, 1.0)))
        if learn:
            weight = weights[row] if len(weights) else 1.0
            mean, squares = with_value(running, 0, number, n, weight)
            running[0, MEAN], running[0, SQUARES] = mean, decay * squares
            running[0, AMOUNT] = decay * (n + weight)


@kernel(types.void(DOUBLE_TABLE, DOUBLE_TABLE))
def fill_circles(places, points):
    """Fill the points of places from 0 to 1 on circles: the sine and the cosine of each place."""
    for row in range(len(places)):
        for i in range(places.shape[1]):
            angle = 2 * math.pi * places[row, i]
            points[row, 2 * i], points[row, 2 * i + 1] = math.sin(angle), math.cos(angle)

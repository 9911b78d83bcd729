"""Dual coordinate ascent for multinomial logistic regression.

The dual variables of row i are a distribution p_i over the classes. They determine the weights,

    W = 1/rho sum_i c_i x_i (e_y - p_i)^T.

At the optimum, p_i is softmax(W x_i + margins). With all other rows fixed, one Newton step from
that softmax nearly reaches the optimum of p_i (Yu, Huang and Lin 2011 solve the same sub-problem).
"""
# mypy: disallow_untyped_defs=False, disallow_untyped_calls=False

from __future__ import annotations

import math

import numpy as np
from numba import types

from kesler.compiled.batch.dual_ascent import (
    AHEAD,
    ROWS,
    fetch_row,
    fetch_weights,
    move_weights,
    score_row,
)
from kesler.compiled.jit.decorators import DOUBLE_TABLE, DOUBLES, INTS, inlined, kernel

# The columns of `facts` for each row: c_i / rho, ||x_i||^2 with the constant feature, the class,
# and the level of the last solution.
COUNT, SQUARE, RIGHT, LEVEL = range(4)
# The initial level, below all levels.
UNKNOWN = -1e300
# Tolerance of the sum of probabilities, and maximum number of Newton steps for a level.
EXACT, MOST_STEPS = 1e-9, 50
# Below this, W(e^s) equals e^s up to 1e-8.
FAINT = -18.0


@inlined
def lambert(s):
    """Return W(e^s), the w > 0 with w + ln w = s (Corless et al. 1996), to about 1e-7.

    It takes two Newton steps from a series about 0 or an asymptotic value, accurate to 0.05.
    """
    if s < FAINT:
        return math.exp(s)
    if s > 2.5:
        w = s - math.log(s) * (1.0 - 1.0 / s)
    elif s > -1.5:
        w = 0.5671 + s * (0.3619 + 0.0737 * s)
    else:
        w = math.exp(s) / (1.0 + math.exp(s))
    for _ in range(2):
        w *= (1.0 + s - math.log(w)) / (1.0 + w)
    return w


@inlined
def find_probabilities(pace, targets, k, level, probabilities):
    """Find p with ln p_r + pace p_r = t_r - level and sum 1; return the level.

    The sum is convex and decreasing in the level: Newton's method is monotone from the second step.
    """
    shift = math.log(pace)
    highest = targets[0]
    for r in range(1, k):
        highest = max(highest, targets[r])
    level = max(level, highest - pace)
    for _ in range(MOST_STEPS):
        total, slope = 0.0, 0.0
        for r in range(k):
            w = lambert(targets[r] - level + shift)
            probabilities[r] = w / pace
            total += probabilities[r]
            slope += probabilities[r] / (1.0 + w)
        if abs(total - 1.0) <= EXACT:
            break
        level += (total - 1.0) / slope
    for r in range(k):
        probabilities[r] /= total
    return level


@inlined
def solve_row(pace, own, targets, k, level, probabilities, steps):
    """Optimise the dual variables of a row; return their level and the gain.

    steps[r] becomes the decrease of p(r); pace is c_i ||x_i||^2 / rho. The gain is that of the dual
    objective divided by c_i, to second order.
    """
    level = find_probabilities(pace, targets, k, level, probabilities)
    gain = 0.0
    for r in range(k):
        steps[r] = own[r] - probabilities[r]
        bend = 2.0 / (own[r] + probabilities[r] + 1e-300) + pace
        gain += 0.5 * bend * steps[r] * steps[r]
        own[r] = probabilities[r]
    return level, gain


@kernel(
    [
        types.float64(
            each,
            DOUBLE_TABLE,
            types.float64,
            types.float64,
            INTS,
            DOUBLE_TABLE,
            DOUBLES,
            DOUBLE_TABLE,
        )
        for each in ROWS
    ]
)
def ascend(rows, facts, margin, constant, order, weights, bias, duals):
    """Visit rows in the given order; return the approximate gain of the dual objective over rho.

    bias : the weights of the feature with the value `constant` in every row.
    """
    k, width = duals.shape[1], weights.shape[1]
    scores, probabilities, steps = np.empty(width), np.empty(width), np.zeros(width)
    total, last = 0.0, order.shape[0] - 1
    for position in range(order.shape[0]):
        fetch_row(rows, order[min(position + AHEAD, last)])
        fetch_weights(rows, order[min(position + 1, last)], weights)
        i = order[position]
        fact, own = facts[i], duals[i]
        right, pace = np.int64(fact[RIGHT]), fact[COUNT] * fact[SQUARE]
        score_row(rows, i, weights, scores)
        for r in range(k):
            wanted = 0.0 if r == right else margin
            scores[r] += constant * bias[r] + wanted + pace * own[r]
        fact[LEVEL], gain = solve_row(pace, own, scores, k, fact[LEVEL], probabilities, steps)
        total += fact[COUNT] * gain
        for r in range(k):
            steps[r] *= fact[COUNT]
            bias[r] += constant * steps[r]
        move_weights(rows, i, steps, weights)
    return total

"""Momentum of dual coordinate ascent: each row's duals go on as they went, within their simplex."""
# mypy: disallow_untyped_defs=False, disallow_untyped_calls=False

from __future__ import annotations

import numpy as np
from numba import types

from kesler.compiled.dual_ascent import (
    BOUND,
    RIGHT,
    ROWS,
    fetch_ahead,
    highest_of,
    level_above,
    move,
    product,
)
from kesler.compiled.jit import DOUBLE_TABLE, INTS, inlined, kernel


@inlined
def go_on(beta, own, before, targets):
    """Take duals on, targets = own + beta (own - before); before = own. Return the least."""
    least = 0.0
    for r in range(own.shape[0]):
        targets[r] = own[r] + beta * (own[r] - before[r])
        before[r] = own[r]
        least = min(least, targets[r])
    return least


@inlined
def project(targets, bound, chosen):
    """Bring targets to the nearest point of the simplex of sum `bound`."""
    floor, n_chosen = highest_of(targets) - bound, 0
    for r in range(targets.shape[0]):
        chosen[n_chosen] = r
        n_chosen += targets[r] > floor
    level = level_above(targets, chosen, n_chosen, bound, floor)
    total = 0.0
    for r in range(targets.shape[0]):
        targets[r] = max(0.0, targets[r] - level)
        total += targets[r]
    for r in range(targets.shape[0]):
        targets[r] *= bound / total


@kernel(
    [
        types.float64(
            each,
            DOUBLE_TABLE,
            DOUBLE_TABLE,
            INTS,
            types.float64,
            DOUBLE_TABLE,
            DOUBLE_TABLE,
            DOUBLE_TABLE,
        )
        for each in ROWS
    ]
)
def extrapolate(rows, facts, costs, order, beta, weights, duals, previous):
    """Move the duals of rows on by `beta` times what they moved since the last call.

    They become `previous` as they were, and the weights follow. Return by how much the sum of the
    costs under the duals rises.
    """
    width = weights.shape[1]
    targets, steps = np.empty(width), np.empty(width)
    chosen = np.empty(width + 1, dtype=np.int64)
    rise = 0.0
    for position in range(order.shape[0]):
        fetch_ahead(rows, facts, order, position, weights, duals)
        i = order[position]
        own, fact = duals[i], facts[i]
        if go_on(beta, own, previous[i], targets) < 0:
            project(targets, fact[BOUND], chosen)
        moved = 0.0
        for r in range(width):
            steps[r] = own[r] - targets[r]
            own[r] = targets[r]
            moved = max(moved, abs(steps[r]))
        if moved > 0:
            rise -= product(steps, costs[np.int64(fact[RIGHT])])
            move(rows, i, steps, chosen, weights)
    return rise


@kernel(types.void(DOUBLE_TABLE, types.float64, DOUBLE_TABLE))
def draw_near(mean, share, weights):
    """Mean += share (weights - mean)."""
    for j in range(mean.shape[0]):
        for r in range(mean.shape[1]):
            mean[j, r] += share * (weights[j, r] - mean[j, r])

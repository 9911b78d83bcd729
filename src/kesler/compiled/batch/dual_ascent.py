"""Dual coordinate ascent with momentum for the multiclass SVM with one vector per class.

The dual variables of row i are u_i >= 0 over the classes, with sum C_i. They determine the weights,

    W = sum_i x_i (C_i e_y - u_i)^T.

With all other rows fixed, the optimal u_i is the projection of u_i + m_i / ||x_i||^2 onto that
simplex, where m_i(r) = cost(y, r) + <w_r, x_i>. The columns of weights, costs and dual variables
are padded to whole vectors of classes; padded classes have the cost FORBIDDEN and are never used.
"""
# mypy: disallow_untyped_defs=False, disallow_untyped_calls=False

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import types

from kesler.compiled.jit.decorators import (
    DOUBLE_TABLE,
    DOUBLES,
    FLOAT_TABLE,
    FLOATS,
    INDICES,
    INTS,
    always_inlined,
    by_class,
    inlined,
    kernel,
)
from kesler.compiled.jit.pointers import fetch

FORBIDDEN = -1e30
# Weight tables with fewer numbers than this stay in a core's own cache and are not prefetched.
LEAST_FETCHED = 1 << 16
# Number of visits by which a row is prefetched ahead; the weights that it reads, by one visit.
AHEAD = 3
# Number of float64 values, and of int32 feature indices, in a cache line.
LINE, SHORT_LINE = 8, 16
# Maximum number of values to prefetch in a run; the hardware prefetches the rest.
LONGEST = 64

# The columns of `facts`, which are read together: C_i, ||x_i||^2, the class, and the share in the
# duality gap at the last visit.
BOUND, NORM, RIGHT, GAP = range(4)


class SparseRows(NamedTuple):
    """Sparse rows; row i has the entries indptr[i] to indptr[i + 1] - 1."""

    indptr: npt.NDArray[np.int64]
    indices: npt.NDArray[np.int32]
    values: npt.NDArray[np.floating]


class DenseRows(NamedTuple):
    """Dense rows."""

    values: npt.NDArray[np.floating]


ROWS = [
    types.NamedTuple((INTS, INDICES, FLOATS), SparseRows),
    types.NamedTuple((INTS, INDICES, DOUBLES), SparseRows),
    types.NamedUniTuple(FLOAT_TABLE, 1, DenseRows),
    types.NamedUniTuple(DOUBLE_TABLE, 1, DenseRows),
]


@always_inlined
def sparse_score_row(rows, i, weights, scores):
    """Set scores[r] = <w_r, x_i>."""
    indices, values = rows.indices, rows.values
    width = np.uintp(weights.shape[1])
    for r in range(width):
        scores[r] = 0.0
    j, stop = rows.indptr[i], rows.indptr[i + 1]
    while j + 4 <= stop:
        x1, x2 = np.float64(values[j]), np.float64(values[j + 1])
        x3, x4 = np.float64(values[j + 2]), np.float64(values[j + 3])
        i1, i2 = np.uintp(indices[j]), np.uintp(indices[j + 1])
        i3, i4 = np.uintp(indices[j + 2]), np.uintp(indices[j + 3])
        for r in range(width):
            pair = x1 * weights[i1, r] + x2 * weights[i2, r]
            scores[r] += pair + (x3 * weights[i3, r] + x4 * weights[i4, r])
        j += 4
    while j < stop:
        x1, i1 = np.float64(values[j]), np.uintp(indices[j])
        for r in range(width):
            scores[r] += x1 * weights[i1, r]
        j += 1


@always_inlined
def dense_score_row(rows, i, weights, scores):
    """Set scores[r] = <w_r, x_i>."""
    values = rows.values[i]
    width, n = np.uintp(weights.shape[1]), weights.shape[0]
    for r in range(width):
        scores[r] = 0.0
    j, four = 0, n // 4 * 4
    while j < four:
        x1, x2 = np.float64(values[j]), np.float64(values[j + 1])
        x3, x4 = np.float64(values[j + 2]), np.float64(values[j + 3])
        first = np.uintp(j)
        for r in range(width):
            pair = x1 * weights[first, r] + x2 * weights[first + np.uintp(1), r]
            other = x3 * weights[first + np.uintp(2), r] + x4 * weights[first + np.uintp(3), r]
            scores[r] += pair + other
        j += 4
    while j < n:
        x1, first = np.float64(values[j]), np.uintp(j)
        for r in range(width):
            scores[r] += x1 * weights[first, r]
        j += 1


score_row = by_class({SparseRows: sparse_score_row, DenseRows: dense_score_row})


@always_inlined
def sparse_move_weights(rows, i, steps, weights):
    """Add steps[r] x_i to w_r for all classes."""
    width = np.uintp(weights.shape[1])
    for j in range(rows.indptr[i], rows.indptr[i + 1]):
        x, feature = np.float64(rows.values[j]), np.uintp(rows.indices[j])
        for r in range(width):
            weights[feature, r] += x * steps[r]


@always_inlined
def dense_move_weights(rows, i, steps, weights):
    """Add steps[r] x_i to w_r for all classes."""
    width = np.uintp(weights.shape[1])
    for j in range(np.uintp(weights.shape[0])):
        x = np.float64(rows.values[i, j])
        for r in range(width):
            weights[j, r] += x * steps[r]


move_weights = by_class({SparseRows: sparse_move_weights, DenseRows: dense_move_weights})


@always_inlined
def sparse_move_class(rows, i, r, step, weights):
    """Add step x_i to w_r."""
    for j in range(rows.indptr[i], rows.indptr[i + 1]):
        weights[np.uintp(rows.indices[j]), r] += step * np.float64(rows.values[j])


@always_inlined
def dense_move_class(rows, i, r, step, weights):
    """Add step x_i to w_r."""
    for j in range(np.uintp(weights.shape[0])):
        weights[j, r] += step * np.float64(rows.values[i, j])


move_class = by_class({SparseRows: sparse_move_class, DenseRows: dense_move_class})


@always_inlined
def sparse_fetch_row(rows, i):
    """Prefetch the entries of a row."""
    start = rows.indptr[i]
    stop = min(rows.indptr[i + 1], start + LONGEST)
    for j in range(start, stop, SHORT_LINE):
        fetch(rows.indices, j)
    for j in range(start, stop, LINE):
        fetch(rows.values, j)


@always_inlined
def dense_fetch_row(rows, i):
    """Prefetch the entries of a row."""
    n = rows.values.shape[1]
    for j in range(0, min(n, LONGEST), LINE):
        fetch(rows.values, i * n + j)


fetch_row = by_class({SparseRows: sparse_fetch_row, DenseRows: dense_fetch_row})


@always_inlined
def sparse_fetch_weights(rows, i, weights):
    """Prefetch the weights that a row reads."""
    width = weights.shape[1]
    for j in range(rows.indptr[i], rows.indptr[i + 1]):
        for r in range(0, min(width, LONGEST), LINE):
            fetch(weights, rows.indices[j] * width + r)


@always_inlined
def dense_fetch_weights(rows, i, weights):
    """Prefetch nothing, since a dense row reads all weights."""


fetch_weights = by_class({SparseRows: sparse_fetch_weights, DenseRows: dense_fetch_weights})


@inlined
def fetch_ahead(rows, facts, order, position, weights, duals):
    """Prefetch the data of the next visits."""
    last = order.shape[0] - 1
    if weights.size >= LEAST_FETCHED:
        fetch_weights(rows, order[min(position + 1, last)], weights)
    i, width = order[min(position + AHEAD, last)], duals.shape[1]
    fetch_row(rows, i)
    fetch(facts, i * facts.shape[1])
    for r in range(0, min(width, LONGEST), LINE):
        fetch(duals, i * width + r)


@inlined
def highest_of(numbers):
    """Return the largest of numbers padded to whole vectors, by four maxima at a time."""
    a, b, c, d = numbers[0], numbers[1], numbers[2], numbers[3]
    for r in range(4, numbers.shape[0], 4):
        a, b = max(a, numbers[r]), max(b, numbers[r + 1])
        c, d = max(c, numbers[r + 2]), max(d, numbers[r + 3])
    return max(max(a, b), max(c, d))


@inlined
def product(left, right):
    """Return the inner product of arrays padded to whole vectors, by four sums at a time."""
    a, b, c, d = 0.0, 0.0, 0.0, 0.0
    for r in range(0, left.shape[0], 4):
        a += left[r] * right[r]
        b += left[r + 1] * right[r + 1]
        c += left[r + 2] * right[r + 2]
        d += left[r + 3] * right[r + 3]
    return (a + b) + (c + d)


@inlined
def gap_of(costs, bound, duals, scores):
    """Add costs to the scores of a row; return the row's share in the duality gap."""
    for r in range(scores.shape[0]):
        scores[r] += costs[r]
    return bound * highest_of(scores) - product(duals, scores)


@inlined
def level_above(targets, chosen, n_chosen, mass, level):
    """Return the level with sum_r max(0, t_r - level) = mass.

    Newton's method on this piecewise linear, convex function must start from a level that is not
    too high: each step ends at or below the zero of one piece, and no piece occurs twice.
    """
    last = -np.inf
    while level > last:
        last, total, count = level, 0.0, 0
        for j in range(n_chosen):
            t = targets[chosen[j]]
            if t > last:
                total += t - last
                count += 1
        if count > 0:
            level = last + (total - mass) / count
    return level


@inlined
def solve_row(squared_norm, bound, margins, duals, targets, steps, chosen):
    """Optimise the dual variables of a row; return the gain of the dual objective.

    steps[r] becomes the decrease of u(r), which is the step of w_r along x.
    """
    width, inverse = margins.shape[0], 1.0 / squared_norm
    for r in range(width):
        targets[r] = duals[r] + margins[r] * inverse
    floor = highest_of(targets) - bound
    n_chosen = 0
    for r in range(width):
        chosen[n_chosen] = r
        n_chosen += targets[r] > floor
    level = level_above(targets, chosen, n_chosen, bound, floor)
    total = 0.0
    for j in range(n_chosen):
        total += max(0.0, targets[chosen[j]] - level)
    scale = bound / total
    for r in range(width):
        steps[r] = duals[r]
        duals[r] = 0.0
    for j in range(n_chosen):
        r = chosen[j]
        after = scale * max(0.0, targets[r] - level)
        steps[r] -= after
        duals[r] = after
    return -product(steps, margins) - 0.5 * squared_norm * product(steps, steps)


@inlined
def move(rows, i, steps, chosen, weights):
    """Add steps[r] x_i to w_r, for all classes at a time or, if few change, one by one."""
    width, n_moved = steps.shape[0], 0
    for r in range(width):
        chosen[n_moved] = r
        n_moved += steps[r] != 0
    if 4 * n_moved > width:
        move_weights(rows, i, steps, weights)
        return
    for j in range(n_moved):
        move_class(rows, i, chosen[j], steps[chosen[j]], weights)


@kernel(
    [
        types.float64(
            each, DOUBLE_TABLE, DOUBLE_TABLE, INTS, types.float64, DOUBLE_TABLE, DOUBLE_TABLE
        )
        for each in ROWS
    ]
)
def ascend(rows, facts, costs, order, least, weights, duals):
    """Visit rows in the given order, and solve the sub-problem of each; return the dual gain.

    facts[i, GAP] becomes the share of row i in the duality gap at its visit; rows with a share of
    `least` or less are not updated.
    """
    width = weights.shape[1]
    scores, targets, steps = np.empty(width), np.empty(width), np.empty(width)
    chosen = np.empty(width + 1, dtype=np.int64)
    gained = 0.0
    for position in range(order.shape[0]):
        fetch_ahead(rows, facts, order, position, weights, duals)
        i = order[position]
        score_row(rows, i, weights, scores)
        own, fact = duals[i], facts[i]
        fact[GAP] = gap_of(costs[np.int64(fact[RIGHT])], fact[BOUND], own, scores)
        if fact[GAP] > least:
            gained += solve_row(fact[NORM], fact[BOUND], scores, own, targets, steps, chosen)
            move(rows, i, steps, chosen, weights)
    return gained


@always_inlined
def sparse_square_row(rows, i, totals):
    """Return ||x_i||^2; totals are zeros, one per feature, before and after the call."""
    # The value of a feature with duplicate entries is their sum.
    square = 0.0
    for j in range(rows.indptr[i], rows.indptr[i + 1]):
        totals[rows.indices[j]] += np.float64(rows.values[j])
    for j in range(rows.indptr[i], rows.indptr[i + 1]):
        square += np.float64(rows.values[j]) * totals[rows.indices[j]]
    for j in range(rows.indptr[i], rows.indptr[i + 1]):
        totals[rows.indices[j]] = 0.0
    return square


@always_inlined
def dense_square_row(rows, i, totals):
    """Return ||x_i||^2; totals are unused."""
    square = 0.0
    for j in range(rows.values.shape[1]):
        x = np.float64(rows.values[i, j])
        square += x * x
    return square


square_row = by_class({SparseRows: sparse_square_row, DenseRows: dense_square_row})


@kernel([types.void(each, types.int64, DOUBLE_TABLE) for each in ROWS])
def square_rows(rows, n_features, facts):
    """Set facts[i, NORM] = ||x_i||^2."""
    totals = np.zeros(n_features)
    for i in range(facts.shape[0]):
        facts[i, NORM] = square_row(rows, i, totals)


@kernel(types.float64(DOUBLE_TABLE, DOUBLE_TABLE, DOUBLE_TABLE))
def sum_costs(facts, costs, duals):
    """Return the sum of costs times dual variables."""
    total = 0.0
    for i in range(facts.shape[0]):
        total += product(duals[i], costs[np.int64(facts[i, RIGHT])])
    return total


@kernel(types.float64(DOUBLE_TABLE))
def regulariser(weights):
    """Return ||W||^2 / 2 in one thread; BLAS would start threads that then busy-wait."""
    total = 0.0
    for j in range(weights.shape[0]):
        total += product(weights[j], weights[j])
    return 0.5 * total


@inlined
def loss_at(scale, costs, right, scores):
    """Return max_r [cost(y, r) + scale (s_r - s_y)] for scores padded to whole vectors."""
    a, b, c, d = FORBIDDEN, FORBIDDEN, FORBIDDEN, FORBIDDEN
    for r in range(0, scores.shape[0], 4):
        a = max(a, costs[r] + scale * scores[r])
        b = max(b, costs[r + 1] + scale * scores[r + 1])
        c = max(c, costs[r + 2] + scale * scores[r + 2])
        d = max(d, costs[r + 3] + scale * scores[r + 3])
    return max(max(a, b), max(c, d)) - scale * scores[right]


@kernel(
    [types.void(each, DOUBLE_TABLE, DOUBLE_TABLE, DOUBLE_TABLE, DOUBLES, DOUBLES) for each in ROWS]
)
def add_losses(rows, facts, costs, weights, scales, losses):
    """Add sum_i C_i times the loss of row i at scales[t] times these weights to losses[t]."""
    scores = np.empty(weights.shape[1])
    for i in range(facts.shape[0]):
        score_row(rows, i, weights, scores)
        right = np.int64(facts[i, RIGHT])
        for t in range(scales.shape[0]):
            losses[t] += facts[i, BOUND] * loss_at(scales[t], costs[right], right, scores)


@inlined
def go_on(beta, own, before, targets):
    """Set targets = own + beta (own - before), then before = own; return the smallest target."""
    least = 0.0
    for r in range(own.shape[0]):
        targets[r] = own[r] + beta * (own[r] - before[r])
        before[r] = own[r]
        least = min(least, targets[r])
    return least


@inlined
def project(targets, bound, chosen):
    """Project targets onto the simplex of sum `bound`."""
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
    """Extrapolate the duals of rows by `beta` times their change since the last call.

    The duals before the call are copied to `previous`, and the weights are updated. Return the
    increase of the sum of costs times duals.
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
    """Add share (weights - mean) to mean."""
    for j in range(mean.shape[0]):
        for r in range(mean.shape[1]):
            mean[j, r] += share * (weights[j, r] - mean[j, r])

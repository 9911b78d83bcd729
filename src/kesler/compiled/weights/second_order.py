"""The second-order preconditioner: directions of steps, and the inverse of the second moments.

The matrix is symmetric: only its lower triangle is read and written. With a half-life it is the
inverse of g times the second moments, g being the decayed weight of the last row (see
`kesler.compiled.trial.forgetting`): it does not change as they decay.
"""
# mypy: disallow_untyped_defs=False, disallow_untyped_calls=False

from __future__ import annotations

import math

import numpy as np

from kesler.codes import Follows
from kesler.compiled.jit.decorators import always_inlined, inlined
from kesler.compiled.jit.simd import SIMD_WIDTH, load, spread, store, total_of

SECOND_ORDER = int(Follows.SECOND_MOMENTS)
# A bound that holds exactly may be exceeded by this factor, since numbers are rounded.
BEYOND = 1 + 1e-6


@always_inlined
def is_second_order(learner):
    """Return whether steps go along P x instead of x."""
    return learner.preconditioner.kind == SECOND_ORDER


@inlined
def find_direction(learner, values, scratch):
    """Write P x to scratch.direction, and x'P x to the rates; rows list all features.

    Both are 0 where P x consists of rounding errors: no eigenvalue of P exceeds 1 / ridge, so that
    ||P x||^2 is at most x'P x / ridge. With a half-life, the ridge is half as large at times.
    """
    least = learner.preconditioner.parameter * (0.5 if learner.decay.growth != 1 else 1.0)
    n, x, out = values.shape[0], scratch.exact_values, scratch.exact_direction
    for j in range(n):
        x[j] = np.float64(values[j])
    multiply(learner.preconditioner.inverse, x, out, n)
    total, squared, g = 0.0, 0.0, learner.decay.row.weight
    for j in range(n):
        out[j] *= g
        total += x[j] * out[j]
        squared += out[j] * out[j]
    is_exact = least * squared <= BEYOND * total < np.inf
    learner.preconditioner.rates.total = total if is_exact else 0.0
    for j in range(n):
        if not is_exact:
            out[j] = 0.0
        scratch.direction[j] = np.float32(out[j])


@inlined
def multiply(matrix, x, out, n):
    """Set out to the product of a symmetric matrix, given by its lower triangle, and x."""
    for i in range(n):
        start, in_lines = i * matrix.shape[1], i // SIMD_WIDTH * SIMD_WIDTH
        own, line, total = x[i], spread(0.0), 0.0
        for j in range(0, in_lines, SIMD_WIDTH):
            row = load(matrix, start + j)
            line = line + row * load(x, j)
            store(out, j, load(out, j) + row * own)
        for j in range(in_lines, i):
            total += matrix[i, j] * x[j]
            out[j] += matrix[i, j] * own
        out[i] = total_of(line) + total + matrix[i, i] * own


@inlined
def add_second_moments(learner, values, weight, scratch):
    """Add a row to the second moments: P -= (P x)(P x)' / (1 / weight + x'P x)."""
    n, direction = values.shape[0], scratch.exact_direction
    factor = 1 / (1 / weight + learner.preconditioner.rates.total) / learner.decay.row.weight
    subtract_square(learner.preconditioner.inverse, factor, direction, n)


@inlined
def renew_ridge(learner, n, scratch):
    """Give the next features, after the second moments have decayed, their whole ridge again.

    There are so many of them that each of the n features is renewed once in a half-life at least.
    To renew the ridge of a feature is to learn a row of it alone, with target 0 for all classes.
    """
    growth = learner.decay.growth
    n_each = math.ceil(n * math.log2(growth) - 1e-9)
    n_turns = (n + n_each - 1) // n_each
    n_rows = learner.counts.n_trials
    ridge = learner.preconditioner.parameter * learner.decay.row.weight
    lost = ridge * (1.0 - growth ** -float(min(n_rows, n_turns)))
    start = (n_rows - 1) % n_turns * n_each
    for i in range(start, min(n, start + n_each)):
        add_to_diagonal(learner, i, lost, n, scratch)


@inlined
def add_to_diagonal(learner, i, amount, n, scratch):
    """Add an amount to the second moment of feature i, and move the weights to the new optimum."""
    matrix, weights = learner.preconditioner.inverse, learner.weights.values
    column, factor = scratch.exact_direction, 1.0 / (1.0 / amount + matrix[i, i])
    for j in range(n):
        column[j] = matrix[i, j] if j < i else matrix[j, i]
    subtract_square(matrix, factor, column, n)
    for j in range(n):
        share = np.float32(factor * column[j])
        for c in range(weights.shape[1] if j != i else 0):
            weights[j, c] -= share * weights[i, c]
    kept = np.float32(1.0 - factor * column[i])
    for c in range(weights.shape[1]):
        weights[i, c] *= kept


@inlined
def shrink_moments(learner, divisor):
    """Divide the second moments by a number."""
    matrix = learner.preconditioner.inverse
    for i in range(matrix.shape[0]):
        for j in range(i + 1):
            matrix[i, j] *= divisor


@inlined
def subtract_square(matrix, factor, x, n):
    """Subtract factor x x' from the lower triangle of a matrix."""
    for i in range(n):
        start, in_lines = i * matrix.shape[1], i // SIMD_WIDTH * SIMD_WIDTH
        own = factor * x[i]
        for j in range(0, in_lines, SIMD_WIDTH):
            store(matrix, start + j, load(matrix, start + j) - load(x, j) * own)
        for j in range(in_lines, i + 1):
            matrix[i, j] -= x[j] * own

"""Column-sparse weights: proximal steps of mixed norms, and coordinate descent over columns."""
# mypy: disallow_untyped_defs=False, disallow_untyped_calls=False

from __future__ import annotations

import math

import numpy as np
from numba import types

from kesler.codes import RowNorm
from kesler.compiled.jit.decorators import DOUBLE_TABLE, INT, inlined, kernel

LARGEST, LENGTH = int(RowNorm.LARGEST), int(RowNorm.LENGTH)

_READ_TABLE = types.Array(types.float64, 2, "C", readonly=True)
_READ_DOUBLES = types.Array(types.float64, 1, "C", readonly=True)


@inlined
def clipped(point, cap):
    """Take the proximal step of `cap` times the largest magnitude: clip magnitudes at a level.

    The part that is clipped off is the projection onto the L1 ball of radius `cap`. The level rises
    until no further magnitude falls below it, which takes at most as many rounds as there are
    magnitudes. A magnitude equal to the level, which rounding may cause, does not count as above.
    """
    total = 0.0
    for k in range(point.shape[0]):
        total += abs(point[k])
    if total <= cap:
        point[:] = 0.0
        return
    level, n_above = (total - cap) / point.shape[0], point.shape[0]
    while True:
        total, n = 0.0, 0
        for k in range(point.shape[0]):
            if abs(point[k]) > level:
                total += abs(point[k])
                n += 1
        if n >= n_above or n == 0:
            break
        level, n_above = (total - cap) / n, n
    for k in range(point.shape[0]):
        point[k] = min(max(point[k], -level), level)


@inlined
def shortened(point, cap):
    """Take the proximal step of `cap` times the Euclidean length: shorten the vector by `cap`."""
    square = 0.0
    for k in range(point.shape[0]):
        square += point[k] * point[k]
    length = math.sqrt(square)
    share = 1.0 - cap / length if length > cap else 0.0
    for k in range(point.shape[0]):
        point[k] *= share


@inlined
def shrunk(point, cap):
    """Take the proximal step of `cap` times the sum of all magnitudes: reduce each by `cap`."""
    for k in range(point.shape[0]):
        point[k] -= min(max(point[k], -cap), cap)


@inlined
def take_step(point, cap, norm):
    """Take the proximal step of `cap` times a norm of one row of the weights."""
    if norm == LENGTH:
        shortened(point, cap)
    elif norm == LARGEST:
        clipped(point, cap)
    else:
        shrunk(point, cap)


@kernel(types.void(DOUBLE_TABLE, types.float64, INT))
def proximal_step(weights, cap, norm):
    """Take the proximal step of each row of the weights."""
    for j in range(weights.shape[0]):
        take_step(weights[j], cap, norm)


@inlined
def move_row(weights, gradient, curvature, cap, norm, change):
    """Take the proximal step of one row of the weights; return the squared length of its change."""
    for k in range(weights.shape[0]):
        change[k] = -weights[k]
        weights[k] -= gradient[k] / curvature
    take_step(weights, cap / curvature, norm)
    square = 0.0
    for k in range(weights.shape[0]):
        change[k] += weights[k]
        square += change[k] * change[k]
    return square


@kernel(
    types.int64(_READ_TABLE, DOUBLE_TABLE, DOUBLE_TABLE, types.float64, INT, types.float64, INT)
)
def descend(gram, weights, gradient, cap, norm, tol, most):
    """Minimise a quadratic plus `cap` times a mixed norm by descent over the rows of the weights.

    The quadratic's Hessian is `gram` for each class; `gradient` is its gradient at the weights,
    and is updated with them. The descent ends when the squared length of a sweep's changes in the
    quadratic's metric is `tol` or less, or after `most` sweeps; returns the number of sweeps.
    """
    n, n_classes = weights.shape
    change = np.empty(n_classes)
    for sweep in range(most):
        moved = 0.0
        for j in range(n):
            if gram[j, j] <= 0.0:
                continue
            square = move_row(weights[j], gradient[j], gram[j, j], cap, norm, change)
            if square == 0.0:
                continue
            moved += gram[j, j] * square
            for i in range(n):
                pull = gram[j, i]
                for k in range(n_classes):
                    gradient[i, k] += pull * change[k]
        if moved <= tol:
            return sweep + 1
    return most


@kernel(
    types.int64(
        _READ_TABLE,
        _READ_DOUBLES,
        DOUBLE_TABLE,
        DOUBLE_TABLE,
        types.float64,
        INT,
        types.float64,
        INT,
    )
)
def descend_jointly(hessian, curvatures, weights, gradient, cap, norm, share, most):
    """Minimise like `descend`, for a Hessian with interactions between classes.

    `hessian` has one row per weight, with the weights of a feature adjacent; `curvatures` are upper
    bounds of the quadratic's curvature in the weights of each feature. The descent ends when the
    squared length of a sweep is at most `share` times that of the first.
    """
    n, n_classes = weights.shape
    enough = 0.0
    change = np.empty(n_classes)
    pulled = gradient.reshape(n * n_classes)
    for sweep in range(most):
        moved = 0.0
        for j in range(n):
            if curvatures[j] <= 0.0:
                continue
            square = move_row(weights[j], gradient[j], curvatures[j], cap, norm, change)
            if square == 0.0:
                continue
            moved += curvatures[j] * square
            for k in range(n_classes):
                row = hessian[j * n_classes + k]
                for i in range(pulled.shape[0]):
                    pulled[i] += change[k] * row[i]
        if sweep == 0:
            enough = share * moved
        if moved <= enough:
            return sweep + 1
    return most

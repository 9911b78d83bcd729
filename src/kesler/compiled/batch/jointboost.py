"""JointBoost: sums over the rows above each threshold, and best-first search for who shares one."""
# mypy: disallow_untyped_defs=False, disallow_untyped_calls=False

from __future__ import annotations

import numpy as np
from numba import types

from kesler.compiled.jit.decorators import BOOLS, DOUBLE_TABLE, INT, inlined, kernel

_READ_CODES = types.Array(types.int32, 2, "C", readonly=True)
_READ_INTS = types.Array(types.int64, 1, "C", readonly=True)
_READ_TABLE = types.Array(types.float64, 2, "C", readonly=True)
_READ_DOUBLES = types.Array(types.float64, 1, "C", readonly=True)

# Rows of so small a share of the weight are no side of a threshold: it is rounding.
NOTHING = 1e-12
# Of gains that differ by less than this share of the weight the first counts as the best: it does
# not depend on rounding, then, which of equals is chosen.
EQUAL = 1e-10


@kernel(types.void(_READ_CODES, _READ_INTS, _READ_TABLE, _READ_TABLE, DOUBLE_TABLE, DOUBLE_TABLE))
def sum_above(codes, starts, weights, pulls, weights_above, pulls_above):
    """Sum weights and pulls of each class over the rows above each threshold.

    `codes` tells for each feature how many of its thresholds a row is above; the thresholds of
    feature f are those from starts[f] to starts[f + 1].
    """
    n_classes = weights.shape[1]
    weights_above[:] = 0.0
    pulls_above[:] = 0.0
    for f in range(codes.shape[0]):
        for i in range(codes.shape[1]):
            if codes[f, i] > 0:
                highest = starts[f] + codes[f, i] - 1
                for k in range(n_classes):
                    weights_above[highest, k] += weights[i, k]
                    pulls_above[highest, k] += pulls[i, k]
        for t in range(starts[f + 1] - 2, starts[f] - 1, -1):
            for k in range(n_classes):
                weights_above[t, k] += weights_above[t + 1, k]
                pulls_above[t, k] += pulls_above[t + 1, k]


@inlined
def explained(pull, weight, least):
    """Return by how much the mean of rows lowers their squared error."""
    return pull * pull / weight if weight > least else 0.0


@kernel(
    types.Tuple((INT, types.float64))(_READ_TABLE, _READ_TABLE, _READ_DOUBLES, _READ_DOUBLES, BOOLS)
)
def best_sharing(weights_above, pulls_above, weights, pulls, members):
    """Find a threshold, and the classes to share it, that lower the weighted squared error most.

    Classes join one at a time, each time the one with which the best threshold gains most, until
    all are in; of the sets seen on the way the best is kept in `members`. Returns the threshold
    and what it gains over a constant for each class.
    """
    n_thresholds, n_classes = weights_above.shape
    shared_weights, shared_pulls = np.zeros(n_thresholds), np.zeros(n_thresholds)
    joined = np.zeros(n_classes, dtype=np.bool_)
    gains, at = np.empty(n_classes), np.empty(n_classes, dtype=np.int64)
    weight, pull, alone = 0.0, 0.0, 0.0
    best_gain, best_threshold, equal = -np.inf, 0, EQUAL * weights.sum()
    for _ in range(n_classes):
        gains[:] = -np.inf
        for t in range(n_thresholds):
            for k in range(n_classes):
                if joined[k]:
                    continue
                whole, least = weight + weights[k], NOTHING * (weight + weights[k])
                above = shared_weights[t] + weights_above[t, k]
                pull_above = shared_pulls[t] + pulls_above[t, k]
                gain = explained(pull_above, above, least)
                gain += explained(pull + pulls[k] - pull_above, whole - above, least)
                gain -= explained(pulls[k], weights[k], 0.0)
                if gain > gains[k] + equal:
                    gains[k], at[k] = gain, t
        newest = np.argmax(gains >= gains.max() - equal)
        joined[newest] = True
        gain = gains[newest] - alone
        alone += explained(pulls[newest], weights[newest], 0.0)
        weight += weights[newest]
        pull += pulls[newest]
        for t in range(n_thresholds):
            shared_weights[t] += weights_above[t, newest]
            shared_pulls[t] += pulls_above[t, newest]
        if gain > best_gain + equal:
            best_gain, best_threshold = gain, at[newest]
            members[:] = joined
    return best_threshold, best_gain

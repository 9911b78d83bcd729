"""JointBoost: sums over the rows above each threshold, and best-first search of sharing classes."""
# mypy: disallow_untyped_defs=False, disallow_untyped_calls=False

from __future__ import annotations

import numpy as np
from numba import types

from kesler.compiled.jit.decorators import BOOLS, DOUBLE_TABLE, INT, inlined, kernel

_READ_CODES = types.Array(types.int32, 2, "C", readonly=True)
_READ_INTS = types.Array(types.int64, 1, "C", readonly=True)
_READ_TABLE = types.Array(types.float64, 2, "C", readonly=True)
_READ_DOUBLES = types.Array(types.float64, 1, "C", readonly=True)

# A side of a threshold with a smaller share of the weight counts as empty: it is a rounding error.
NOTHING = 1e-12
# Gains that differ by less than this share of the weight are equal, and the first is chosen, so
# that the choice does not depend on rounding.
EQUAL = 1e-10


@kernel(types.void(_READ_CODES, _READ_INTS, _READ_TABLE, _READ_TABLE, DOUBLE_TABLE, DOUBLE_TABLE))
def sum_above(codes, starts, weights, pulls, weights_above, pulls_above):
    """Sum weights and pulls of each class over the rows above each threshold.

    `codes` has, for each feature, the number of its thresholds that a row is above; the thresholds
    of feature f are numbers starts[f] to starts[f + 1] - 1.
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
    """Return the reduction of the squared error of rows by their mean."""
    return pull * pull / weight if weight > least else 0.0


@kernel(
    types.Tuple((INT, types.float64))(_READ_TABLE, _READ_TABLE, _READ_DOUBLES, _READ_DOUBLES, BOOLS)
)
def best_sharing(weights_above, pulls_above, weights, pulls, members):
    """Find the threshold and the set of sharing classes with the lowest weighted squared error.

    The search adds one class at a time, each time the class that gives the best threshold, until
    all are added; `members` becomes the best of these sets. Returns the threshold and its gain over
    a constant for each class.
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

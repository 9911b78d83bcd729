"""Stumps: scores of all thresholds of a feature in one pass over the rows."""
# mypy: disallow_untyped_defs=False, disallow_untyped_calls=False

from __future__ import annotations

import numpy as np
from numba import types

from kesler.compiled.jit.decorators import DOUBLES, kernel

_FIRSTS = types.Array(types.int64, 1, "C", readonly=True)
_RESIDUALS = types.Array(types.float64, 2, "C", readonly=True)
_SIGNATURES = [
    types.void(types.Array(kind, 2, "C", readonly=True), _FIRSTS, _RESIDUALS, DOUBLES)
    for kind in (types.uint8, types.uint16, types.uint32)
]


@kernel(_SIGNATURES)
def score_stumps(bins, firsts, residuals, scores):
    """Write the L1 norm, over classes, of the residuals summed below each threshold.

    Threshold t of feature j has number firsts[j] + t, and is above the rows in bins 0 to t.
    """
    n_rows, n_classes = residuals.shape
    n_most = 0
    for j in range(bins.shape[0]):
        n_most = max(n_most, firsts[j + 1] - firsts[j])
    sums = np.zeros((n_most + 1, n_classes))
    for j in range(bins.shape[0]):
        n = firsts[j + 1] - firsts[j]
        if n == 0:
            continue
        sums[: n + 1] = 0.0
        for i in range(n_rows):
            row = bins[j, i]
            for k in range(n_classes):
                sums[row, k] += residuals[i, k]
        for t in range(n):
            score = 0.0
            for k in range(n_classes):
                if t > 0:
                    sums[t, k] += sums[t - 1, k]
                score += abs(sums[t, k])
            scores[firsts[j] + t] = score

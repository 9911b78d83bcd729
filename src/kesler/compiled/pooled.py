"""Statistics beside those of all rows: what the maps `Contrast` and `GaussianRatio` look at."""
# mypy: disallow_untyped_defs=False, disallow_untyped_calls=False

from __future__ import annotations

import math

import numpy as np

from kesler.compiled.jit import inlined
from kesler.compiled.learner import (
    CENTRE,
    CONTRAST,
    COUNT,
    FIRST_SEEN,
    FLOOR,
    FULL,
    HEIGHT,
    MET,
    ORIGIN,
    OTHERS,
    OWN,
    POOLED_HEIGHT,
    POOLED_MEAN,
    POOLED_SHARPNESS,
    POOLED_SQUARES,
    PRIOR,
    PSEUDO,
    PSEUDO_ROWS,
    SHARPNESS,
    SHRINKAGE,
    TRIALS,
)
from kesler.compiled.worth import WORTH

# Less than this is none, lest the root of its inverse be more than float32 holds.
LEAST_VARIANCE = 1e-60


@inlined
def take_in_pooled(learner, indices, values, codes, levels, weight):
    """Add the row to what is kept of all rows, and to its classes beside them."""
    share, full = np.float64(np.float32(weight)), FULL * learner.forgetting[WORTH]
    for i in range(codes.shape[0]):
        if levels[i] == 0 and learner.amounts[1 + codes[i]] + share > full:
            return
    learner.amounts[0] += share
    for i in range(codes.shape[0]):
        if levels[i] == 0:
            learner.amounts[1 + codes[i]] += share
    weigh_classes(learner)
    for layer in range(learner.kinds.shape[0]):
        if learner.kinds[layer] == CONTRAST:
            count(learner, layer, indices, values, codes, levels, share)
        elif learner.kinds[layer] == CENTRE:
            take_in_moments(learner, layer, indices, values, codes, levels, share)


@inlined
def weigh_classes(learner):
    """Keep what counts are divided by, 1 where there is nothing to count."""
    total = learner.amounts[0]
    pseudo = learner.smoothing[PSEUDO_ROWS] * learner.forgetting[WORTH]
    for r in range(learner.counters[FIRST_SEEN]):
        own = learner.amounts[1 + r]
        rest = total - own
        learner.divisors[OWN, r] = own + pseudo if own + pseudo > 0 else 1
        learner.divisors[OTHERS, r] = rest + pseudo if rest + pseudo > 0 else 1
        learner.divisors[MET, r] = 1 if own > 0 else 0
        learner.divisors[PSEUDO, r] = pseudo / total if total > 0 else 0


@inlined
def count(learner, layer, indices, values, codes, levels, share):
    """Count the features that are not zero, in all rows and in those of the row's classes."""
    counts, pooled = learner.statistics[layer], learner.pooled
    for j in range(indices.shape[0]):
        if values[j] != 0:
            pooled[np.uintp(indices[j]), COUNT] += share
    for i in range(codes.shape[0]):
        if levels[i] == 0:
            y = np.uintp(codes[i])
            for j in range(indices.shape[0]):
                if values[j] != 0:
                    counts[np.uintp(indices[j]), y] += np.float32(share)


@inlined
def take_in_moments(learner, layer, indices, values, codes, levels, share):
    """Add the row to means and variances, and bring what maps read of them up to date."""
    k = learner.counters[FIRST_SEEN]
    pool(learner, layer, indices, values, share, k)
    for i in range(codes.shape[0]):
        if levels[i] == 0:
            add_to_class(learner, layer, indices, values, codes[i], share)
    t = learner.counters[TRIALS]
    if t & (t - 1) == 0:
        for j in range(indices.shape[0]):
            pooled = learner.pooled[indices[j]]
            pooled[ORIGIN] = np.float64(np.float32(pooled[POOLED_MEAN]))
            for r in range(k):
                renew(learner, layer, indices[j], r)


@inlined
def pool(learner, layer, indices, values, share, k):
    """Welford (1962): mean and squares about it of all rows, in one pass that cancels nothing."""
    part = share / learner.amounts[0]
    for j in range(indices.shape[0]):
        pooled, x = learner.pooled[indices[j]], np.float64(values[j])
        least, off = LEAST_VARIANCE * learner.amounts[0], x - pooled[POOLED_MEAN]
        varied = pooled[POOLED_SQUARES] > least
        pooled[POOLED_MEAN] += off * part
        pooled[POOLED_SQUARES] += share * off * (x - pooled[POOLED_MEAN])
        if pooled[POOLED_SQUARES] > least:
            variance = pooled[POOLED_SQUARES] / learner.amounts[0]
            pooled[POOLED_SHARPNESS] = math.sqrt(0.5 / variance)
            pooled[POOLED_HEIGHT] = -0.5 * math.log(variance)
            if not varied:  # constant until now, and of no account
                for r in range(k):
                    renew(learner, layer, indices[j], r)
    if learner.smoothing[PRIOR] != 0:
        learner.pooled[0, POOLED_HEIGHT] = learner.smoothing[PRIOR] * math.log(learner.amounts[0])


@inlined
def add_to_class(learner, layer, indices, values, y, share):
    """Welford (1962), of the rows of class y."""
    part, means, squares = (
        share / learner.amounts[1 + y],
        learner.moments[0, y],
        learner.moments[1, y],
    )
    for j in range(indices.shape[0]):
        f, x = indices[j], np.float64(values[j])
        off = x - means[f]
        means[f] += off * part
        squares[f] += share * off * (x - means[f])
        renew(learner, layer, f, y)
    if learner.smoothing[PRIOR] != 0:
        height = learner.smoothing[PRIOR] * math.log(learner.amounts[1 + y])
        learner.statistics[layer + HEIGHT - CENTRE, 0, y] = height


@inlined
def renew(learner, layer, f, r):
    """Compute what maps read of one feature and class: N(x) = e^(height - (sharpness off)^2)."""
    own, pooled = learner.amounts[1 + r], learner.pooled[f]
    variance = pooled[POOLED_SQUARES] / learner.amounts[0]
    if not (own > 0 and variance > LEAST_VARIANCE):
        return
    worth = learner.forgetting[WORTH]
    shrunk = min(1.0, learner.smoothing[SHRINKAGE] * worth / (own + worth))
    spread = (1 - shrunk) * learner.moments[1, r, f] / own + shrunk * variance
    spread = max(spread, learner.smoothing[FLOOR] * variance)
    learner.statistics[layer, f, r] = learner.moments[0, r, f] - pooled[ORIGIN]
    learner.statistics[layer + SHARPNESS - CENTRE, f, r] = math.sqrt(0.5 / spread)
    learner.statistics[layer + HEIGHT - CENTRE, f, r] = -0.5 * math.log(spread)

"""Statistics of the instances of each class and of all rows, which feature maps read."""
# mypy: disallow_untyped_defs=False, disallow_untyped_calls=False

from __future__ import annotations

import math

import numpy as np

from kesler.compiled.jit.decorators import always_inlined, inlined
from kesler.compiled.trial.records import (
    CENTRE,
    CONTRAST,
    COUNT,
    FIRST,
    FREQUENCY,
    FULL,
    HEIGHT,
    INHERIT,
    MEAN,
    NO_INSTANCE,
    ORIGIN,
    OTHERS,
    OWN,
    PER_CLASS,
    POOLED_HEIGHT,
    POOLED_MEAN,
    POOLED_SHARPNESS,
    POOLED_SQUARES,
    PSEUDO,
    SEEN,
    SHARPNESS,
)


@inlined
def join(learner, y):
    """Initialise the statistics of a class without instances."""
    for i in range(learner.statistics.kinds.shape[0]):
        if learner.statistics.kinds[i] <= FREQUENCY:
            learner.statistics.totals[i, y] = NO_INSTANCE


@always_inlined
def dense_inherit(learner, y):
    """Give class y the weights of the virtual class, and copy them to the next virtual class."""
    own = learner.preconditioner
    for part in range(learner.parts.kind.shape[0]):
        if learner.parts.kind[part] == PER_CLASS:
            column = learner.parts.offset[part] + y
            for j in range(learner.weights.lists.n_listed):
                i = learner.weights.listed[j]
                learner.weights.values[i, column + 1] = learner.weights.values[i, column]
                if own.evidence.shape[0]:
                    own.evidence[i, column + 1] = own.evidence[i, column]
                if own.sums.shape[0]:
                    own.sums[i, column + 1] = own.sums[i, column]
                    own.winnings[i, column + 1] = own.winnings[i, column]
                    own.sizes[i, column + 1] = own.sizes[i, column]
                for n in range(learner.weights.states.shape[0]):
                    learner.weights.states[n, i, column + 1] = learner.weights.states[n, i, column]


@always_inlined
def dense_list_features(learner, indices):
    """List new features: a class inherits the weights of listed features only."""
    if learner.settings.on_new_class == INHERIT:
        for j in range(indices.shape[0]):
            i = indices[j]
            if not learner.weights.is_listed[i]:
                learner.weights.is_listed[i] = True
                learner.weights.listed[learner.weights.lists.n_listed] = i
                learner.weights.lists.n_listed += 1


@inlined
def take_in(learner, indices, values, y, weight):
    """Add the row to the statistics of class y, after the trial, which uses earlier rows only."""
    share, full = np.float32(weight), FULL * learner.decay.row.weight
    for i in range(learner.statistics.kinds.shape[0]):
        kind, sums = learner.statistics.kinds[i], learner.statistics.sums[i]
        if kind == FIRST:
            if learner.statistics.totals[i, y] == NO_INSTANCE:
                learner.statistics.totals[i, y] = 1
                for j in range(indices.shape[0]):
                    sums[indices[j], y] = values[j]
        elif kind > FREQUENCY or learner.statistics.totals[i, y] + share > full:
            continue
        elif kind == MEAN:
            add_to_mean(learner, i, indices, values, y, share)
        else:
            learner.statistics.totals[i, y] += share
            for j in range(indices.shape[0]):
                if values[j] != 0:
                    sums[indices[j], y] += share


@inlined
def add_to_mean(learner, i, indices, values, y, share):
    """Add share x to a sum, with the rounding errors of float32 in the last layer (Kahan 1965).

    The relative error of a plain sum of a million rows would be about 0.01.
    """
    last = learner.statistics.kinds.shape[0] - 1
    sums, rests = learner.statistics.sums[i], learner.statistics.sums[last]
    learner.statistics.totals[i, y], learner.statistics.totals[last, y] = summed(
        learner.statistics.totals[i, y], share, learner.statistics.totals[last, y]
    )
    for j in range(indices.shape[0]):
        f = indices[j]
        if values[j] != 0:  # explicit zeros must not change the result
            sums[f, y], rests[f, y] = summed(sums[f, y], share * values[j], rests[f, y])


@inlined
def summed(total, value, rest):
    """Return total + value, and its rounding error."""
    carried = value - rest
    raised = total + carried
    return raised, (raised - total) - carried


# A smaller variance counts as 0: float32 could not represent the root of its inverse.
LEAST_VARIANCE = 1e-60


@inlined
def take_in_pooled(learner, indices, values, codes, levels, weight):
    """Add the row to the statistics of all rows, and to those of its classes."""
    share, full = np.float64(np.float32(weight)), FULL * learner.decay.row.weight
    for i in range(codes.shape[0]):
        if levels[i] == 0 and learner.statistics.amounts[codes[i]] + share > full:
            return
    learner.statistics.total.amount += share
    for i in range(codes.shape[0]):
        if levels[i] == 0:
            learner.statistics.amounts[codes[i]] += share
    weigh_classes(learner)
    for layer in range(learner.statistics.kinds.shape[0]):
        if learner.statistics.kinds[layer] == CONTRAST:
            count(learner, layer, indices, values, codes, levels, share)
        elif learner.statistics.kinds[layer] == CENTRE:
            take_in_moments(learner, layer, indices, values, codes, levels, share)


@inlined
def weigh_classes(learner):
    """Update the divisors of the counts; a divisor is 1 where there is nothing to count."""
    total = learner.statistics.total.amount
    pseudo = learner.statistics.pseudo_rows * learner.decay.row.weight
    for r in range(learner.counts.n_classes):
        own = learner.statistics.amounts[r]
        rest = total - own
        learner.statistics.divisors[OWN, r] = own + pseudo if own + pseudo > 0 else 1
        learner.statistics.divisors[OTHERS, r] = rest + pseudo if rest + pseudo > 0 else 1
        learner.statistics.divisors[SEEN, r] = 1 if own > 0 else 0
        learner.statistics.divisors[PSEUDO, r] = pseudo / total if total > 0 else 0


@inlined
def count(learner, layer, indices, values, codes, levels, share):
    """Count the features that are not zero, over all rows and over those of the row's classes."""
    counts, pooled = learner.statistics.sums[layer], learner.statistics.pooled
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
    """Add the row to means and variances, and update what maps read of them."""
    k = learner.counts.n_classes
    pool(learner, layer, indices, values, share, k)
    for i in range(codes.shape[0]):
        if levels[i] == 0:
            add_to_class(learner, layer, indices, values, codes[i], share)
    t = learner.counts.n_trials
    if t & (t - 1) == 0:
        for j in range(indices.shape[0]):
            pooled = learner.statistics.pooled[indices[j]]
            pooled[ORIGIN] = np.float64(np.float32(pooled[POOLED_MEAN]))
            for r in range(k):
                renew(learner, layer, indices[j], r)


@inlined
def pool(learner, layer, indices, values, share, k):
    """Update the means and squared deviations of all rows without cancellation (Welford 1962)."""
    part = share / learner.statistics.total.amount
    for j in range(indices.shape[0]):
        pooled, x = learner.statistics.pooled[indices[j]], np.float64(values[j])
        least, off = LEAST_VARIANCE * learner.statistics.total.amount, x - pooled[POOLED_MEAN]
        varied = pooled[POOLED_SQUARES] > least
        pooled[POOLED_MEAN] += off * part
        pooled[POOLED_SQUARES] += share * off * (x - pooled[POOLED_MEAN])
        if pooled[POOLED_SQUARES] > least:
            variance = pooled[POOLED_SQUARES] / learner.statistics.total.amount
            pooled[POOLED_SHARPNESS] = math.sqrt(0.5 / variance)
            pooled[POOLED_HEIGHT] = -0.5 * math.log(variance)
            if not varied:  # constant until now: `renew` has skipped it
                for r in range(k):
                    renew(learner, layer, indices[j], r)
    if learner.statistics.prior != 0:
        learner.statistics.pooled[0, POOLED_HEIGHT] = learner.statistics.prior * math.log(
            learner.statistics.total.amount
        )


@inlined
def add_to_class(learner, layer, indices, values, y, share):
    """Update the means and squared deviations of the rows of class y (Welford 1962)."""
    part, means, squares = (
        share / learner.statistics.amounts[y],
        learner.statistics.moments[0, y],
        learner.statistics.moments[1, y],
    )
    for j in range(indices.shape[0]):
        f, x = indices[j], np.float64(values[j])
        off = x - means[f]
        means[f] += off * part
        squares[f] += share * off * (x - means[f])
        renew(learner, layer, f, y)
    if learner.statistics.prior != 0:
        height = learner.statistics.prior * math.log(learner.statistics.amounts[y])
        learner.statistics.sums[layer + HEIGHT - CENTRE, 0, y] = height


@inlined
def renew(learner, layer, f, r):
    """Compute the Gaussian of one feature and class: N(x) = e^(height - (sharpness off)^2)."""
    own, pooled = learner.statistics.amounts[r], learner.statistics.pooled[f]
    variance = pooled[POOLED_SQUARES] / learner.statistics.total.amount
    if not (own > 0 and variance > LEAST_VARIANCE):
        return
    decay = learner.decay.row.weight
    shrunk = min(1.0, learner.statistics.shrinkage * decay / (own + decay))
    spread = (1 - shrunk) * learner.statistics.moments[1, r, f] / own + shrunk * variance
    spread = max(spread, learner.statistics.floor * variance)
    learner.statistics.sums[layer, f, r] = learner.statistics.moments[0, r, f] - pooled[ORIGIN]
    learner.statistics.sums[layer + SHARPNESS - CENTRE, f, r] = math.sqrt(0.5 / spread)
    learner.statistics.sums[layer + HEIGHT - CENTRE, f, r] = -0.5 * math.log(spread)

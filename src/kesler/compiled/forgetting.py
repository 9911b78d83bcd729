"""Forgetting: each row counts more than the one before, which is the same as the past fading.

What is kept of rows is sums, of which only ratios are read: instead of all that was summed falling
to gamma of itself, what a row counts grows by 1 / gamma. Before it outgrows float32 all of it is
divided by a power of two, which leaves the bits of every number but its exponent.
"""
# mypy: disallow_untyped_defs=False, disallow_untyped_calls=False

from __future__ import annotations

import math

import numpy as np

from kesler.compiled.conditioning import METHOD, SQUARES, Z_SCORES
from kesler.compiled.jit import always_inlined, by_learner, inlined
from kesler.compiled.learner import (
    CONTRAST,
    COUNT,
    FIRST_SEEN,
    FREQUENCY,
    HEIGHT,
    MEAN,
    N_SCALED,
    OFFSET,
    POOLED_HEIGHT,
    POOLED_SQUARES,
    PRIOR,
    SCALED_LENGTH,
)
from kesler.compiled.worth import GROWTH, ROOT, WORTH

# When a row counts so much, all is divided by it.
MOST = 2.0**20
# A class whose rows count less keeps its means, though any row outweighs them: float32 ends there.
FAINT = 1e-20


@always_inlined
def age(learner):
    """Let the next row count more than the rows so far."""
    numbers = learner.forgetting
    if numbers[GROWTH] == 1:
        return
    numbers[WORTH] *= numbers[GROWTH]
    if numbers[WORTH] >= MOST:
        shrink_weights(learner)
        shrink_statistics(learner)
        shrink_past(learner)
        numbers[WORTH] /= MOST
    numbers[ROOT] = math.sqrt(numbers[WORTH])


@by_learner
def shrink_weights(learner):
    """Divide the weights and what metrics have gathered."""
    shrink(learner.weights)
    for part in range(learner.parts.shape[0]):
        if learner.beginnings[part] != 0:
            column = learner.parts[part, OFFSET]
            rest = np.float32(learner.beginnings[part] * (1 - 1 / MOST))
            for i in range(learner.weights.shape[0]):
                learner.weights[i, column] += rest
    shrink(learner.evidence)
    learner.metric_numbers[N_SCALED] /= MOST
    learner.metric_numbers[SCALED_LENGTH] /= MOST


@inlined
def shrink_statistics(learner):
    """Divide what is kept of the rows of each class and of all; means stay."""
    last = learner.kinds.shape[0] - 1
    for i in range(learner.kinds.shape[0]):
        kind = learner.kinds[i]
        for r in range(learner.counters[FIRST_SEEN]):
            if kind == CONTRAST:
                shrink_class(learner, i, r)
            elif (kind == MEAN or kind == FREQUENCY) and learner.totals[i, r] > FAINT:
                shrink_class(learner, i, r)
                if kind == MEAN:  # and what float32 rounded off it
                    shrink_class(learner, last, r)
    for r in range(learner.amounts.shape[0]):
        learner.amounts[r] /= MOST
    for i in range(learner.pooled.shape[0]):
        if learner.pooled.shape[1]:
            learner.pooled[i, COUNT] /= MOST
        if learner.pooled.shape[1] > POOLED_SQUARES:
            learner.pooled[i, POOLED_SQUARES] /= MOST
    if learner.moments.shape[1]:
        shrink(learner.moments[1])
        if learner.smoothing[PRIOR] != 0:
            weigh_priors(learner)


@inlined
def shrink_class(learner, layer, r):
    """Divide one statistic of a class."""
    for f in range(learner.statistics.shape[1]):
        learner.statistics[layer, f, r] /= MOST
    learner.totals[layer, r] /= MOST


@inlined
def weigh_priors(learner):
    """Compute anew what the amounts of rows add to densities: logarithms of what was divided."""
    learner.pooled[0, POOLED_HEIGHT] = learner.smoothing[PRIOR] * math.log(learner.amounts[0])
    for layer in range(learner.kinds.shape[0]):
        if learner.kinds[layer] == HEIGHT:
            for r in range(learner.counters[FIRST_SEEN]):
                if learner.amounts[1 + r] > 0:
                    height = learner.smoothing[PRIOR] * math.log(learner.amounts[1 + r])
                    learner.statistics[layer, 0, r] = height


@inlined
def shrink_past(learner):
    """Divide what conditioning keeps; means stay."""
    first = SQUARES if learner.conditioning[METHOD] == Z_SCORES else 0
    for i in range(learner.past.shape[0]):
        for c in range(first, learner.past.shape[1]):
            learner.past[i, c] /= MOST
    learner.past_rows[0] /= MOST


@inlined
def shrink(table):
    """Divide every number of a table."""
    for i in range(table.shape[0]):
        for j in range(table.shape[1]):
            table[i, j] /= MOST

"""Decay: the weight of each row exceeds that of the previous row, instead of a decay of the past.

Rows are stored as sums of which only ratios are read: instead of multiplying all sums by gamma, the
weight of a row grows by 1 / gamma. Before it overflows float32, everything is divided by a power of
two, which changes only the exponents of the numbers.
"""
# mypy: disallow_untyped_defs=False, disallow_untyped_calls=False

from __future__ import annotations

import math

import numpy as np

from kesler.compiled.jit.decorators import always_inlined, inlined
from kesler.compiled.trial.preprocessing import RANGES, SQUARES, Z_SCORES
from kesler.compiled.trial.records import (
    CONTRAST,
    COUNT,
    FREQUENCY,
    HEIGHT,
    MEAN,
    POOLED_HEIGHT,
    POOLED_SQUARES,
)
from kesler.compiled.trial.relevance import fade
from kesler.compiled.trial.variants import shrink_weights
from kesler.compiled.weights.second_order import is_second_order, renew_ridge, shrink_moments

# When the weight of a row reaches this, everything is divided by it.
MOST = 2.0**20
# A class with a smaller total keeps its statistics, lest they underflow: any row outweighs them.
FAINT = 1e-20


@always_inlined
def age(learner, n, scratch):
    """Increase the weight of the next row, after one of n entries."""
    if learner.decay.growth == 1:
        return
    row = learner.decay.row
    row.weight *= learner.decay.growth
    if row.weight >= MOST:
        shrink_weights(learner)
        shrink_statistics(learner)
        shrink_running(learner)
        row.weight /= MOST
    row.root = math.sqrt(row.weight)
    if is_second_order(learner):
        renew_ridge(learner, n, scratch)


@always_inlined
def dense_shrink_weights(learner):
    """Divide the weights and the evidence of preconditioners by MOST."""
    if is_second_order(learner):
        shrink_moments(learner, MOST)
        return
    shrink(learner.weights.values)
    for part in range(learner.parts.kind.shape[0]):
        if learner.weights.initial[part] != 0:
            column = learner.parts.offset[part]
            rest = np.float32(learner.weights.initial[part] * (1 - 1 / MOST))
            for i in range(learner.weights.values.shape[0]):
                learner.weights.values[i, column] += rest
    shrink(learner.preconditioner.evidence)
    learner.preconditioner.rates.n_scaled /= MOST
    learner.preconditioner.rates.scaled_length /= MOST


@inlined
def shrink_statistics(learner):
    """Divide the statistics of the rows of each class and of all rows by MOST, except means."""
    last = learner.statistics.kinds.shape[0] - 1
    for i in range(learner.statistics.kinds.shape[0]):
        kind = learner.statistics.kinds[i]
        for r in range(learner.counts.n_classes):
            if kind == CONTRAST:
                shrink_class(learner, i, r)
            elif (kind == MEAN or kind == FREQUENCY) and learner.statistics.totals[i, r] > FAINT:
                shrink_class(learner, i, r)
                if kind == MEAN:  # and its rounding errors
                    shrink_class(learner, last, r)
    learner.statistics.total.amount /= MOST
    for r in range(learner.statistics.amounts.shape[0]):
        learner.statistics.amounts[r] /= MOST
    for i in range(learner.statistics.pooled.shape[0]):
        if learner.statistics.pooled.shape[1]:
            learner.statistics.pooled[i, COUNT] /= MOST
        if learner.statistics.pooled.shape[1] > POOLED_SQUARES:
            learner.statistics.pooled[i, POOLED_SQUARES] /= MOST
    if learner.statistics.moments.shape[1]:
        shrink(learner.statistics.moments[1])
        if learner.statistics.prior != 0:
            weigh_priors(learner)


@inlined
def shrink_class(learner, layer, r):
    """Divide one statistic of a class by MOST."""
    for f in range(learner.statistics.sums.shape[1]):
        learner.statistics.sums[layer, f, r] /= MOST
    learner.statistics.totals[layer, r] /= MOST


@inlined
def weigh_priors(learner):
    """Recompute the log priors of densities, which depend on the divided amounts of rows."""
    statistics = learner.statistics
    statistics.pooled[0, POOLED_HEIGHT] = statistics.prior * math.log(statistics.total.amount)
    for layer in range(learner.statistics.kinds.shape[0]):
        if learner.statistics.kinds[layer] == HEIGHT:
            for r in range(learner.counts.n_classes):
                if learner.statistics.amounts[r] > 0:
                    height = learner.statistics.prior * math.log(learner.statistics.amounts[r])
                    learner.statistics.sums[layer, 0, r] = height


@inlined
def shrink_running(learner):
    """Divide the running statistics of preprocessing by MOST, except means and ranges.

    Expansions let their own fade row by row.
    """
    if learner.preprocessing.method == RANGES:
        fade(learner.relevance, 1 / MOST)
        learner.preprocessing.seen.n_rows /= MOST
        return
    first = SQUARES if learner.preprocessing.method == Z_SCORES else 0
    for i in range(learner.preprocessing.statistics.shape[0]):
        for c in range(first, learner.preprocessing.statistics.shape[1]):
            learner.preprocessing.statistics[i, c] /= MOST
    for i in range(learner.preprocessing.missing.shape[0]):
        learner.preprocessing.missing[i] /= MOST
    learner.preprocessing.seen.n_rows /= MOST


@inlined
def shrink(table):
    """Divide every number of a table by MOST."""
    for i in range(table.shape[0]):
        for j in range(table.shape[1]):
            table[i, j] /= MOST

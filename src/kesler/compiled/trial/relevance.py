"""How much of each feature the classes explain, and the weights of features that follow from it."""
# mypy: disallow_untyped_defs=False, disallow_untyped_calls=False

from __future__ import annotations

import math

import numpy as np

from kesler.compiled.jit.decorators import always_inlined, inlined
from kesler.compiled.jit.record_types import tuple_type
from kesler.state.records import Relevance

RELEVANCE = tuple_type(Relevance)
# What is added to the share that the classes explain: a constant, and a part of the mean share. A
# feature that says nothing by itself may say something together with others.
LEAST_SHARE, PART_OF_MEAN = 0.02, 0.1
# A smaller part of the squares of a feature is the rounding error of its variance.
LEAST_PART = 1e-12
# Weights are computed again this often, or more often, while the number of rows doubles.
TIMES_A_DOUBLING = 8


@always_inlined
def has_relevance(relevance):
    """Return whether features have weights that follow from the classes."""
    return relevance.weights.shape[0] != 0


@inlined
def in_distances(weights, feature, unit):
    """Return a unit times the weight of a feature, if features have weights."""
    return unit * np.float32(weights[feature]) if weights.shape[0] else unit


@inlined
def add_value(relevance, feature, value, y, weight):
    """Add a value of a row of class y to the sums of its feature."""
    relevance.sums[feature, y] += weight * value
    relevance.squares[feature] += weight * value * value


@inlined
def fade(relevance, factor):
    """Multiply the weights of all earlier rows by a factor."""
    for i in range(relevance.sums.shape[0]):
        relevance.squares[i] *= factor
        for y in range(relevance.sums.shape[1]):
            relevance.sums[i, y] *= factor
    for y in range(relevance.amounts.shape[0]):
        relevance.amounts[y] *= factor


@inlined
def weigh_if_due(relevance, n_rows, unit):
    """Compute the weights of features again if they are due after this number of rows.

    unit : the weight of a row of sample weight 1.
    """
    period = 1
    while 2 * TIMES_A_DOUBLING * period <= n_rows:
        period *= 2
    if n_rows % period == 0:
        weigh(relevance, unit)


@inlined
def weigh(relevance, unit):
    """Set the weights to roots of shares that the classes explain, less those by chance.

    The mean square of the weights, times the prior ones, stays that of the prior ones.
    """
    weights, amount, n_classes = relevance.weights, 0.0, 0
    for y in range(relevance.amounts.shape[0]):
        amount += relevance.amounts[y]
        n_classes += relevance.amounts[y] > 0
    chance = (n_classes - 1) / max(1.0, amount / unit - 1)
    mean, n = 0.0, 0
    for i in range(weights.shape[0]):
        share = explained(relevance, i, amount)
        weights[i] = max(0.0, share - chance) if share >= 0 else -1.0
        if share >= 0:
            mean, n = mean + weights[i], n + 1
    added = LEAST_SHARE + chance + PART_OF_MEAN * mean / max(n, 1)
    before, after = 0.0, 0.0
    for i in range(weights.shape[0]):
        if weights[i] >= 0:
            prior = relevance.prior[i] if i < relevance.prior.shape[0] else 1.0
            before += prior * prior
            after += prior * prior * (added + weights[i])
    for i in range(weights.shape[0]):
        # A feature that has been constant has no part in distances so far.
        share = added + weights[i]
        weights[i] = math.sqrt(share * before / after) if weights[i] >= 0 and after > 0 else 1.0


@inlined
def explained(relevance, feature, amount):
    """Return the share of the variance of a feature that the classes explain, -1 if it has none."""
    total, between = 0.0, 0.0
    for y in range(relevance.amounts.shape[0]):
        if relevance.amounts[y] > 0:
            value = relevance.sums[feature, y]
            total += value
            between += value * value / relevance.amounts[y]
    common, squares = total * total / max(amount, 1e-300), relevance.squares[feature]
    if not squares - common > LEAST_PART * squares:
        return -1.0
    return min(1.0, max(0.0, (between - common) / (squares - common)))

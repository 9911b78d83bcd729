"""Ensembles: the predictions of several learners, combined row by row."""
# mypy: disallow_untyped_defs=False, disallow_untyped_calls=False

from __future__ import annotations

import math

import numpy as np
from numba import types

from kesler.codes import Combination
from kesler.compiled.jit.decorators import (
    DOUBLE_STACK,
    DOUBLE_TABLE,
    FLOAT_TABLE,
    INDICES,
    INT_TABLE,
    always_inlined,
    inlined,
    kernel,
)
from kesler.compiled.jit.record_types import tuple_type
from kesler.compiled.jit.simd import whole_lines
from kesler.compiled.trial.calibration import calibrate, probability
from kesler.compiled.weights.scores import dense_best
from kesler.state.records import EnsembleRecord

# How members are combined.
MAJORITY = int(Combination.MAJORITY)
BEST = int(Combination.BEST)
MIXTURE = int(Combination.MIXTURE)
FIXED_SHARE = int(Combination.FIXED_SHARE)
# The minimum probability that a member is assumed to give a target, and to give a class in the
# pool.
LEAST, LEAST_POOLED = 1e-30, 1e-6
# The step sizes, in AdaGrad's units, of the exponents in the pool, and of what is learnt of whether
# the last class comes again.
EXPONENT_STEP, FACTOR_STEP, ADDEND_STEP = 0.1, 0.1, 0.3
MOST_EXPONENT = 5.0
# The rows of the scratch of pools: the pool, the pool that knows the last class, and the logarithms
# of the probabilities of each member.
POOL, REPEATED, LOGARITHMS = 0, 1, 2


ENSEMBLE = tuple_type(EnsembleRecord)


@inlined
def followed(losses):
    """Return the member with the smallest loss, the first if tied."""
    member = 0
    for i in range(1, losses.shape[0]):
        if losses[i] < losses[member]:
            member = i
    return member


@inlined
def has_pools(ensemble):
    """Return whether there are more experts than members."""
    return ensemble.weights.shape[0] > ensemble.losses.shape[0]


@always_inlined
def blend(ensemble, winners, member_probabilities, t, k, last, pooled, scores):
    """Score the k classes of row t by votes, by the best member, or by probabilities.

    last : the class of the row before, negative if it is not known.
    pooled : (2 + members, classes), receives the pool of the members' probabilities, the pool that
    knows the last class, and the logarithms of the members' probabilities, if they are used.
    """
    rule, n_members = ensemble.rule, ensemble.losses.shape[0]
    if k == 0:
        return
    for r in range(k):
        scores[r] = 0.0
    if rule == BEST:
        member = followed(ensemble.losses)
        for r in range(k):
            scores[r] = member_probabilities[member, t, 2 + r]
        return
    for i in range(n_members):
        if rule == MAJORITY:
            scores[winners[i, t]] += ensemble.weights[i]
        else:
            for r in range(k):
                scores[r] += ensemble.weights[i] * member_probabilities[i, t, 2 + r]
    if rule == FIXED_SHARE and has_pools(ensemble):
        pool(ensemble, member_probabilities, t, k, pooled)
        repeat(ensemble, k, last, pooled[POOL], pooled[REPEATED])
        for r in range(k):
            scores[r] += ensemble.weights[n_members] * pooled[POOL, r]
            scores[r] += ensemble.weights[n_members + 1] * pooled[REPEATED, r]


@inlined
def pool(ensemble, member_probabilities, t, k, pooled):
    """Set the pool to the product of the members' probabilities with their exponents.

    They are scaled to a sum of 1. The logarithms of the probabilities are stored beside the pool.
    """
    exponents, highest, total = ensemble.exponents, -np.inf, 0.0
    for r in range(k):
        pooled[POOL, r] = 0.0
    for i in range(exponents.shape[0]):
        for r in range(k):
            logarithm = math.log(max(LEAST_POOLED, member_probabilities[i, t, 2 + r]))
            pooled[LOGARITHMS + i, r] = logarithm
            pooled[POOL, r] += exponents[i] * logarithm
    for r in range(k):
        highest = max(highest, pooled[POOL, r])
    for r in range(k):
        pooled[POOL, r] = math.exp(pooled[POOL, r] - highest)
        total += pooled[POOL, r]
    for r in range(k):
        pooled[POOL, r] /= total


@inlined
def learn_exponents(ensemble, k, y, pooled):
    """Learn from a target of a known class how far to trust each member: steps against log-loss.

    The loss is convex in the exponents. A member that others know better than gets none, and those
    that err on different rows have a sum above 1: their mean is less sure than it may be.
    """
    exponents, slopes = ensemble.exponents, ensemble.slopes
    for i in range(exponents.shape[0]):
        derivative = -pooled[LOGARITHMS + i, y]
        for r in range(k):
            derivative += pooled[POOL, r] * pooled[LOGARITHMS + i, r]
        slopes[i] += derivative * derivative
        exponent = exponents[i] - EXPONENT_STEP * derivative / math.sqrt(slopes[i])
        exponents[i] = min(max(exponent, 0.0), MOST_EXPONENT)


@inlined
def within(p):
    """Return a probability that is neither 0 nor 1."""
    return min(max(p, LEAST_POOLED), 1.0 - LEAST_POOLED)


@inlined
def log_odds(p):
    """Return the logarithm of the odds of a probability."""
    return math.log(p / (1.0 - p))


@inlined
def may_repeat(last, k):
    """Return whether the last class is one of several known classes."""
    return k > 1 and 0 <= last < k


@inlined
def repeat(ensemble, k, last, pooled, repeated):
    """Set repeated[r] to the pool, with the probability that the last class comes again as learnt.

    The log-odds of the last class are those of the pool, times a factor, plus an addend. The other
    classes share the rest as they do in the pool.
    """
    for r in range(k):
        repeated[r] = pooled[r]
    if not may_repeat(last, k):
        return
    learnt = ensemble.repetition
    before = within(pooled[last])
    odds = learnt.factor * log_odds(before) + learnt.addend
    again = within(probability(odds))
    rest = 0.0
    for r in range(k):
        if r != last:
            rest += pooled[r]
    for r in range(k):
        repeated[r] *= (1.0 - again) / rest
    repeated[last] = again


@inlined
def learn_repetition(ensemble, k, y, pooled, repeated):
    """Learn from a target of a known class whether the last class comes again: logistic regression.

    AdaGrad takes a step for the factor and for the addend.
    """
    last, learnt, squares = ensemble.last.target, ensemble.repetition, ensemble.repetition_squares
    if not may_repeat(last, k):
        return
    by_addend = repeated[last] - (1.0 if y == last else 0.0)
    by_factor = by_addend * log_odds(within(pooled[last]))
    squares.addend += by_addend * by_addend
    squares.factor += by_factor * by_factor
    learnt.addend -= ADDEND_STEP * by_addend / math.sqrt(squares.addend)
    learnt.factor -= FACTOR_STEP * by_factor / math.sqrt(squares.factor)


@always_inlined
def judge(ensemble, winners, member_probabilities, t, k, y, pooled):
    """Update the losses and weights of the members with a target of a known class."""
    rule = ensemble.rule
    if rule == FIXED_SHARE:
        for i in range(ensemble.losses.shape[0]):
            ensemble.losses[i] -= math.log(max(LEAST, member_probabilities[i, t, 1]))
        share(ensemble, member_probabilities, t, y, pooled)
        if has_pools(ensemble):
            learn_repetition(ensemble, k, y, pooled[POOL], pooled[REPEATED])
            learn_exponents(ensemble, k, y, pooled)
        return
    for i in range(ensemble.losses.shape[0]):
        wrong = 1.0 if winners[i, t] != y else 0.0
        if rule == MAJORITY:
            ensemble.losses[i] += wrong
        elif rule == BEST:
            ensemble.losses[i] = ensemble.discount * ensemble.losses[i] + wrong
        else:
            log_loss = -math.log(max(LEAST, member_probabilities[i, t, 1]))
            ensemble.losses[i] = ensemble.discount * ensemble.losses[i] + log_loss
    weigh(ensemble)


@inlined
def share(ensemble, member_probabilities, t, y, pooled):
    """Update weights by Bayes' rule, then share a part among all; update the best sequences.

    The experts are the members and, after several members, the rows of pooled. paths[i] is the
    least loss of a sequence of experts that ends with i, with the cost of its switches: -log of its
    probability in the prior over sequences, which begins with any expert and may switch before each
    row.
    """
    weights, paths, n = ensemble.weights, ensemble.paths, ensemble.weights.shape[0]
    n_members = ensemble.losses.shape[0]
    part, total, least = ensemble.share / n, 0.0, np.inf
    for i in range(n):
        least = min(least, paths[i])
    for i in range(n):
        is_member = i < n_members
        chance = member_probabilities[i, t, 1] if is_member else pooled[i - n_members, y]
        chance = max(LEAST, chance)
        weights[i] *= chance
        total += weights[i]
        loss = -math.log(chance)
        stays, switches = paths[i] + loss, least + loss
        stays -= math.log(1 - ensemble.share + part)
        switches -= math.log(part)
        paths[i] = min(stays, switches)
    for i in range(n):
        weights[i] = (1 - ensemble.share) * (weights[i] / total) + part


@inlined
def weigh(ensemble):
    """Compute the weights from the losses; they sum to 1."""
    lowest = ensemble.losses[followed(ensemble.losses)]
    rate = 1.0
    if ensemble.rule == MAJORITY:
        rate = -math.log(ensemble.demotion)
    total = 0.0
    for i in range(ensemble.losses.shape[0]):
        ensemble.weights[i] = math.exp(-rate * (ensemble.losses[i] - lowest))
        total += ensemble.weights[i]
    for i in range(ensemble.losses.shape[0]):
        ensemble.weights[i] /= total


@kernel(types.void(ENSEMBLE, INT_TABLE, DOUBLE_STACK, INDICES, INDICES, FLOAT_TABLE, DOUBLE_TABLE))
def combine(ensemble, winners, member_probabilities, codes, predictions, scores, probabilities):
    """Combine the members' predictions of each row, then update the weights with its target.

    winners : (members, rows), the predicted classes; member_probabilities :
    (members, rows, 2 + classes), as `calibrate` writes them; codes : (rows,), the targets;
    predictions, scores, probabilities : as in `kesler.compiled.trial.weight_trial.learn`.
    """
    n_classes = member_probabilities.shape[2] - 2
    blended = np.empty(n_classes)
    pooled = np.empty((LOGARITHMS + ensemble.losses.shape[0], n_classes))
    capacity = whole_lines(n_classes)
    votes, exponentials = np.zeros(capacity, np.float32), np.empty(capacity, np.float32)
    for t in range(codes.shape[0]):
        k, y = ensemble.counts.n_classes, codes[t]
        last = ensemble.last.target
        blend(ensemble, winners, member_probabilities, t, k, last, pooled, blended)
        predictions[t] = dense_best(ensemble, blended, k)
        if k and ensemble.rule == BEST:
            predictions[t] = winners[followed(ensemble.losses), t]
        for r in range(k):
            votes[r] = np.float32(blended[r])
            if scores.shape[0]:
                scores[t, r] = votes[r]
        if ensemble.rule == MAJORITY:
            said = predictions[t]
            calibrate(ensemble, votes, k, said, said, y, exponentials, probabilities, t)
        elif probabilities.shape[0]:
            known = y < k
            probabilities[t, 0] = blended[predictions[t]] if known else np.nan
            probabilities[t, 1] = blended[y] if known else np.nan
            for r in range(min(k, probabilities.shape[1] - 2)):
                probabilities[t, 2 + r] = blended[r]
        ensemble.counts.n_trials += 1
        if y < k:
            ensemble.counts.n_mistakes += predictions[t] != y
            judge(ensemble, winners, member_probabilities, t, k, y, pooled)
        else:
            ensemble.counts.n_classes = y + 1
        ensemble.last.target = y if ensemble.is_ordered else -1


@kernel(types.void(ENSEMBLE, INT_TABLE, DOUBLE_STACK, DOUBLE_TABLE))
def combine_all(ensemble, winners, member_probabilities, blended):
    """Write the scores of the known classes of each row, as `combine` does, without learning."""
    k, last = ensemble.counts.n_classes, ensemble.last.target
    pooled = np.empty((LOGARITHMS + ensemble.losses.shape[0], k))
    for t in range(blended.shape[0]):
        blend(ensemble, winners, member_probabilities, t, k, last, pooled, blended[t])

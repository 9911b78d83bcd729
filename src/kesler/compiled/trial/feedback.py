"""Steps of a trial whose target is whether the class that was shown is right."""
# mypy: disallow_untyped_defs=False, disallow_untyped_calls=False

from __future__ import annotations

import math

import numpy as np

from kesler.codes import Feedback
from kesler.compiled.jit.decorators import inlined
from kesler.compiled.trial.calibration import (
    LEAST,
    below,
    chance,
    far_below,
    learn,
    of_score,
    temper,
)
from kesler.compiled.trial.choices import dense_set_levels
from kesler.compiled.trial.decay import grow
from kesler.compiled.trial.records import NOT_COMPARED, THE_REST, is_vs_rest, n_candidates
from kesler.compiled.trial.trial import dense_judge, learn_from, note_odd
from kesler.compiled.trial.variants import best_but, choose_loops, is_movable, moments, move, soften
from kesler.compiled.weights.moves import forget_coefficients, sum_coefficients
from kesler.compiled.weights.norms import forget_columns

# The rules of feedback: constraints for a rule of targets, and those of `kesler.updates`.
BANDITRON = int(Feedback.BANDITRON)
SECOND_ORDER = int(Feedback.SECOND_ORDER)
# The largest probability that a wrong class is taken to have had, when probabilities are learnt.
CERTAIN = 1.0 - 1e-6


@inlined
def learn_feedback(
    learner, indices, values, codes, levels, weight, winner, shown, right, p, scratch, solver
):
    """Learn whether the class that was shown with probability p is right."""
    if learner.exploration.feedback == BANDITRON:
        learn_banditron(learner, indices, values, weight, winner, shown, right, p, scratch, solver)
    elif learner.exploration.feedback == SECOND_ORDER:
        if right:
            learn_soba(learner, indices, values, shown, p, scratch)
    else:
        if learner.exploration.is_weighted != 0:
            weight = weight / p
        if right:
            learn_right(learner, indices, values, codes, levels, weight, scratch, solver)
        else:
            learn_wrong(learner, indices, values, weight, shown, scratch, solver)


@inlined
def learn_right(learner, indices, values, codes, levels, weight, scratch, solver):
    """Learn a right class as any target."""
    k = n_candidates(learner)
    highest = dense_set_levels(learner, codes, levels, 1, k, solver)
    r, s = dense_judge(learner, codes, k, highest, scratch, solver)
    learn_from(learner, indices, values, k, weight, highest, r, s, scratch, solver)


@inlined
def learn_wrong(learner, indices, values, weight, shown, scratch, solver):
    """Learn that a class is wrong: it is to be below the rest, or below the best other class."""
    k = n_candidates(learner)
    if note_odd(learner, scratch.scores, k):
        return
    for c in range(k):
        solver.levels[c] = NOT_COMPARED
    solver.levels[shown] = 1
    other = shown
    if not is_vs_rest(learner.rule.selection):
        other = best_but(learner, scratch.scores, k, shown)
        if other < 0:
            return
        solver.levels[other] = 0
    learn_from(learner, indices, values, k, weight, 1, other, shown, scratch, solver)


@inlined
def learn_banditron(learner, indices, values, weight, winner, shown, right, p, scratch, solver):
    """Move by the estimate of the Perceptron's update, against the rest on either side."""
    if note_odd(learner, scratch.scores, n_candidates(learner)):
        return
    solver.better[0], solver.worse[0], solver.steps[0] = THE_REST, winner, weight
    solver.better[1], solver.worse[1] = shown, THE_REST
    solver.steps[1] = weight / p if right else 0.0
    choose_loops(learner, 2, n_candidates(learner), scratch, solver)
    n_moved = sum_coefficients(2, solver)
    grow(learner, n_moved, solver)
    if is_movable(learner, indices, values, n_moved, scratch, solver):
        move(learner, indices, values, n_moved, scratch, solver)
    else:
        learner.counts.n_not_finite += 1
    forget_coefficients(n_moved, solver)
    forget_columns(solver)


@inlined
def learn_soba(learner, indices, values, y, p, scratch):
    """Update A and the weights of SOBA, for the right class y that was shown with probability p."""
    other = best_but(learner, scratch.scores, learner.counts.n_classes, y)
    if other < 0:
        return
    size = 1.0 / math.sqrt(p)  # z is size (e_other - e_y) x, and g is size z
    lead = size * (np.float64(scratch.scores[other]) - np.float64(scratch.scores[y]))
    if learner.exploration.diagonal.shape[0] != 0:
        spread = diagonal_spread(learner, indices, values, y, other, size)
    else:
        spread = full_spread(learner, indices, values, y, other, size)
    margin = (lead * lead + 2.0 * size * lead) / (1.0 + spread)
    if not np.isfinite(margin):
        learner.counts.n_not_finite += 1
        return
    if learner.exploration.draws.margin + margin < 0:
        return
    learner.exploration.draws.margin += margin
    learner.exploration.draws.spread += spread / (1.0 + spread)
    if learner.exploration.diagonal.shape[0] != 0:
        move_diagonal(learner, indices, values, y, -1.0, size)
        move_diagonal(learner, indices, values, other, 1.0, size)
    else:
        move_full(learner, (lead + size) / (1.0 + spread), spread)


@inlined
def diagonal_spread(learner, indices, values, y, other, size):
    """Return z^T A^-1 z, given the diagonal of A."""
    diagonal, a, total = learner.exploration.diagonal, learner.rule.parameters[0], 0.0
    for j in range(indices.shape[0]):
        z, f = size * np.float64(values[j]), indices[j]
        total += z * z * (1.0 / (a + diagonal[y, f]) + 1.0 / (a + diagonal[other, f]))
    return total


@inlined
def move_diagonal(learner, indices, values, r, sign, size):
    """Add z z^T to the diagonal of A, and -g to theta, for the weights of class r."""
    weights, column = learner.weights.values, learner.parts.offset[0] + r
    diagonal, a = learner.exploration.diagonal, learner.rule.parameters[0]
    for j in range(indices.shape[0]):
        f, z = indices[j], sign * size * np.float64(values[j])
        theta = np.float64(weights[f, column]) * (a + diagonal[r, f]) - size * z
        diagonal[r, f] += z * z
        weights[f, column] = np.float32(theta / (a + diagonal[r, f]))


@inlined
def full_spread(learner, indices, values, y, other, size):
    """Return z^T A^-1 z, and write A^-1 z to the direction."""
    inverse, direction = learner.exploration.inverse, learner.exploration.direction
    k, a = learner.counts.n_classes, learner.rule.parameters[0]
    direction[:k] = 0.0
    for j in range(indices.shape[0]):
        f, z = indices[j], size * np.float64(values[j])
        direction[other, f] += z / a
        direction[y, f] -= z / a
        for r in range(k):
            for i in range(direction.shape[1]):
                direction[r, i] += z * (inverse[other, f, r, i] - inverse[y, f, r, i])
    total = 0.0
    for j in range(indices.shape[0]):
        f = indices[j]
        total += size * np.float64(values[j]) * (direction[other, f] - direction[y, f])
    return total


@inlined
def move_full(learner, step, spread):
    """Move the weights against the direction v = A^-1 z, and subtract v v^T / (1 + z^T v)."""
    inverse, direction = learner.exploration.inverse, learner.exploration.direction
    weights, first = learner.weights.values, learner.parts.offset[0]
    k, n = learner.counts.n_classes, direction.shape[1]
    for r in range(k):
        for i in range(n):
            if direction[r, i] != 0:
                weights[i, first + r] -= np.float32(step * direction[r, i])
                share = direction[r, i] / (1.0 + spread)
                for s in range(k):
                    for j in range(n):
                        inverse[r, i, s, j] -= share * direction[s, j]


@inlined
def calibrate_shown(learner, scores, k, winner, shown, right, y, exponentials, probabilities, t):
    """Learn probabilities from whether the shown class is right; write the earlier ones.

    The likelihood is that of an answer: the probability of the shown class, or 1 minus it. The
    probabilities are those of the shown class and of y, NaN if y is no known class.
    """
    if probabilities.shape[0]:
        probabilities[t, 0], probabilities[t, 1] = np.nan, np.nan
    if k == 0:
        return
    calibration, top = learner.calibration, np.float64(scores[winner])
    inverse = temper(calibration, scores, k, top)
    total, of_zeros = soften(learner, inverse, scores, k, top, exponentials)
    lapse = calibration.lapses / calibration.n_targets
    of_shown = of_score(inverse, scores[shown], top)
    if probabilities.shape[0] and y < k:
        probabilities[t, 0] = chance(of_shown, total, lapse, k)
        probabilities[t, 1] = chance(of_score(inverse, scores[y], top), total, lapse, k)
    if k > 1 and inverse > 0 and np.isfinite(top):
        if calibration.information == 0:
            calibration.inverse, calibration.information = inverse, 1.0
        first, _ = moments(learner, inverse, scores, k, top, exponentials)
        z = far_below(inverse, np.float32(0), max(top, 0.0))
        mean = (first + of_zeros * z) / total
        rise = np.float64(below(inverse, scores[shown], top)) - mean
        p = min(CERTAIN, np.float64(of_shown) / total)
        told = chance(of_shown, total, lapse, k)
        odds = p / (1.0 - p)
        if right:
            learn(calibration, -rise, odds * rise * rise, lapse / k / told)
        else:
            lapsed = min(1.0, lapse * (1.0 - 1.0 / k) / max(LEAST * lapse, 1.0 - told))
            learn(calibration, odds * rise, odds * rise * rise, lapsed)

"""A trial in a metric: gradients that it follows, norms that it measures, evidence that it leaves.

Where most classes move, the loops run over classes in contiguous memory ("wide"); elsewhere the
walk of `moves.py` visits the weights that a direction touches, whatever hypotheses they are of.
"""
# mypy: disallow_untyped_defs=False, disallow_untyped_calls=False

from __future__ import annotations

import numpy as np

from kesler.compiled.jit import by_learner, inlined
from kesler.compiled.lanes import whole_lines
from kesler.compiled.learner import (
    ADAPTIVE,
    CONFIDENT,
    EUCLIDEAN,
    EVIDENCE,
    FEATURES,
    FIXED,
    GAIN,
    GATHER,
    KIND,
    MEASURE,
    METRIC,
    MOVE,
    N_SCALED,
    NO_UNIT,
    NOTHING,
    ONE,
    ORDERED,
    SCALED_LENGTH,
    SHARE,
    TASK,
    THE_REST,
    TOTAL,
    UNIT,
    WIDE,
    is_vs_rest,
)
from kesler.compiled.moves import (
    add_coefficient,
    forget_coefficients,
    move_part,
    sum_coefficients,
)
from kesler.compiled.rules import call_gradient
from kesler.compiled.scores import clear
from kesler.compiled.wide import (
    add_view_lengths,
    change_widely,
    is_wide_part,
    spread_coefficients,
)
from kesler.compiled.worth import WORTH


@by_learner
def has_metric(learner):
    """Whether weights have step sizes of their own."""
    return learner.metric[METRIC] != EUCLIDEAN or learner.metric[UNIT] != NO_UNIT


# ---- before the step -----------------------------------------------------------------------------


@by_learner
def rescale(learner, indices, values, weight):
    """Learn how long rows are, and how large features; return whether weights have changed."""
    return learner.metric[UNIT] != NO_UNIT and measure_row(learner, indices, values, weight)


@inlined
def measure_row(learner, indices, values, weight):
    """Bring the gain of rates up to date, and the scales; return whether one of them has grown."""
    numbers, length, has_grown = learner.metric_numbers, 0.0, False
    for j in range(indices.shape[0]):
        share = np.float64(values[j])
        if learner.metric[UNIT] == FEATURES and share != 0:
            has_grown |= rescale_feature(learner, indices[j], abs(values[j]))
            share /= np.float64(learner.scales[indices[j]])
        length += share * share
    numbers[N_SCALED] += weight
    numbers[SCALED_LENGTH] += weight * length
    if numbers[SCALED_LENGTH] > 0:
        numbers[GAIN] = numbers[N_SCALED] / numbers[SCALED_LENGTH]
    return has_grown


@inlined
def rescale_feature(learner, i, size):
    """Let a feature that is larger than ever have smaller weights (Ross et al. 2013, Alg. 2).

    Scores then are as if all its values had been measured in the larger unit. Return whether it is.
    """
    if size <= learner.scales[i]:
        return False
    ratio = learner.scales[i] / size
    if learner.metric[METRIC] != ADAPTIVE:
        ratio *= ratio
    for c in range(learner.weights.shape[1]):
        learner.weights[i, c] *= ratio
    learner.scales[i] = size
    return True


@by_learner
def gather_gradient(learner, indices, values, k, m, weight, scratch, solver):
    """Add the square of the gradient of the loss to the evidence, before any step is measured."""
    if learner.metric[METRIC] == ADAPTIVE:
        gather_squares(learner, indices, values, k, m, weight, scratch, solver)


@inlined
def gather_squares(learner, indices, values, k, m, weight, scratch, solver):
    """Add the square of the gradient by each class, along each weight, to the evidence."""
    if learner.rule[3] == 0:
        for j in range(m):
            solver.steps[j] = 1
    else:
        call_gradient(learner.rule[3], learner.rule_parameters, solver.losses[:m], solver.steps[:m])
    n_moved = sum_coefficients(m, solver)
    learner.metric[TASK] = GATHER
    learner.metric_numbers[SHARE] = weight * learner.forgetting[WORTH]
    wide = solver.counts[WIDE] != 0
    if wide:
        spread_coefficients(n_moved, k, scratch, solver)
    for part in range(learner.parts.shape[0]):
        if wide and is_wide_part(learner, part, solver):
            change_widely(learner, part, indices, values, k, scratch)
        elif learner.parts[part, KIND] == ORDERED:
            move_part(learner, part, indices, values, n_moved, scratch, solver)
        else:
            gather_by_class(learner, part, indices, values, n_moved, scratch, solver)
    learner.metric[TASK] = MOVE
    forget_coefficients(n_moved, solver)


@inlined
def gather_by_class(learner, part, indices, values, n_moved, scratch, solver):
    """Add the square of what each class adds to the gradient, whatever cancels in their sum."""
    moved = solver.moved
    for i in range(n_moved):
        moved[0], moved[i] = moved[i], moved[0]
        move_part(learner, part, indices, values, ONE, scratch, solver)
        moved[0], moved[i] = moved[i], moved[0]


# ---- norms ---------------------------------------------------------------------------------------


@by_learner
def measure_in_metric(learner, indices, values, k, m, scratch, solver):
    """norms[j] = <d_j, d_j> in the metric, for the chosen pairs."""
    measure_pairs(learner, indices, values, k, m, scratch, solver)


@inlined
def measure_pairs(learner, indices, values, k, m, scratch, solver):
    """norms[j] = <d_j, d_j>, part after part."""
    clear(solver.norms, m)
    wide = solver.counts[WIDE] != 0
    for part in range(learner.parts.shape[0]):
        if not (wide and is_wide_part(learner, part, solver)):
            for j in range(m):
                solver.norms[j] += walked_norm(learner, part, indices, values, j, scratch, solver)
        elif is_vs_rest(learner.rule[1]):
            clear(scratch.lengths, whole_lines(k))
            add_view_lengths(learner, part, indices, values, k, THE_REST, scratch)
            for j in range(m):
                solver.norms[j] += scratch.lengths[max(solver.better[j], solver.worse[j])]
        else:
            add_pair_norms(learner, part, indices, values, k, m, scratch, solver)


@inlined
def add_pair_norms(learner, part, indices, values, k, m, scratch, solver):
    """norms[j] += <d_j, d_j> in the hypotheses of a wide part."""
    of = THE_REST
    for j in range(m):
        r, s = solver.better[j], solver.worse[j]
        if r != of:  # pairs of one better class stand in a row
            clear(scratch.lengths, whole_lines(k))
            add_view_lengths(learner, part, indices, values, k, r, scratch)
            of = r
        solver.norms[j] += scratch.lengths[s]


@inlined
def walked_norm(learner, part, indices, values, j, scratch, solver):
    """Return <d, d> of the j-th pair in one part, weight by weight."""
    n_moved = add_pair(j, 0, solver)
    learner.metric[TASK] = MEASURE
    learner.metric_numbers[TOTAL] = 0
    move_part(learner, part, indices, values, n_moved, scratch, solver)
    learner.metric[TASK] = MOVE
    forget_coefficients(n_moved, solver)
    return learner.metric_numbers[TOTAL]


@inlined
def add_pair(j, n_moved, solver):
    """Let the j-th pair of classes stand 1 apart, but for the rest, which has no weights."""
    if solver.better[j] != THE_REST:
        n_moved = add_coefficient(solver, solver.better[j], 1.0, n_moved)
    if solver.worse[j] != THE_REST:
        n_moved = add_coefficient(solver, solver.worse[j], -1.0, n_moved)
    return n_moved


# ---- after the step ------------------------------------------------------------------------------


@by_learner
def leave_evidence(learner, indices, values, m, weight, scratch, solver):
    """Add what the trial taught of the weights that its constraints touch, once it has moved."""
    if learner.metric[METRIC] == CONFIDENT:
        add_evidence(learner, indices, values, m, weight, scratch, solver)


@inlined
def add_evidence(learner, indices, values, m, weight, scratch, solver):
    """Add the square of the direction in which the trial moved, as sure as it is of it."""
    share = weight / learner.metric_parameters[0]
    if learner.metric[EVIDENCE] != FIXED:
        share = soft_evidence(solver.steps[0], solver.norms[0], learner.metric_parameters[0])
    n_moved = NOTHING
    for j in range(m):
        if solver.steps[j] > 0:
            n_moved = add_pair(j, n_moved, solver)
    learner.metric[TASK] = GATHER
    learner.metric_numbers[SHARE] = share * learner.forgetting[WORTH]
    for part in range(learner.parts.shape[0]):
        move_part(learner, part, indices, values, n_moved, scratch, solver)
    learner.metric[TASK] = MOVE
    forget_coefficients(n_moved, solver)


@inlined
def soft_evidence(step, variance, phi):
    """Return alpha phi / sqrt(u), with which 1 / Sigma grows (Wang, Zhao and Hoi 2012, Prop. 1)."""
    moved = step * variance * phi
    # (sqrt(a^2 + 4 v) - a) / 2, in which a long step leaves nothing of the root, the other way up.
    twice = np.sqrt(moved * moved + 4.0 * variance) + moved
    return 0.5 * step * phi * twice / variance if variance > 0 else 0.0

"""Changes of weights: step sizes, and the computation of weights from sums through a link.

A pass over the weights along a direction (`moves.move_part`) has one of three tasks: to update the
weights, to add the squares of the direction to their evidence, or to measure the direction.
"""
# mypy: disallow_untyped_defs=False, disallow_untyped_calls=False

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numba import types

from kesler.compiled.jit.background import recipe
from kesler.compiled.jit.decorators import (
    DOUBLES,
    INT,
    always_inlined,
    by_address,
    callback_address,
    inlined,
    instantiate,
)
from kesler.compiled.trial.records import (
    ADAPTIVE,
    CONFIDENT,
    EUCLIDEAN,
    FEATURES,
    GATHER,
    GIVEN,
    GROUPED,
    LARGEST,
    LINK_SCALE,
    MOVE,
    NO_UNIT,
    ORDERED,
    PER_CLASS,
)
from kesler.compiled.weights.preconditioners import (
    BETTING,
    CUSTOM,
    betting_step,
    custom_step,
)
from kesler.compiled.weights.second_order import is_second_order


class Walk(NamedTuple):
    """The task of a pass over the weights and the parameters of its steps, constant for the pass.

    They are read once: for all that LLVM knows, each write to a weight might change them.
    """

    task: int
    kind: int
    unit: int
    share: float
    decay: np.float32
    root: float
    gain: float


@always_inlined
def is_plain(learner):
    """Return whether a pass adds the amounts to the weights as they are, and does nothing else."""
    preconditioner = learner.preconditioner
    as_they_are = preconditioner.kind == EUCLIDEAN and preconditioner.unit == NO_UNIT
    as_they_are = as_they_are or is_second_order(learner)
    return as_they_are and learner.weights.states.shape[0] == 0


@always_inlined
def pace_of(learner):
    """Return the factor of all step sizes that follows the distance from the initial weights."""
    if learner.preconditioner.is_paced:
        return learner.preconditioner.parameter * learner.preconditioner.pace.factor
    return 1.0


@always_inlined
def begin_walk(learner):
    """Return the task and the parameters of the next pass over the weights.

    The direction of a second-order preconditioner contains its step sizes.
    """
    task, kind, unit = (
        learner.preconditioner.walk.task,
        learner.preconditioner.kind,
        learner.preconditioner.unit,
    )
    if is_second_order(learner):
        kind = np.int64(EUCLIDEAN)
    return Walk(
        task,
        kind,
        unit,
        learner.preconditioner.rates.share,
        np.float32(learner.decay.row.weight),
        learner.decay.row.root * pace_of(learner),
        learner.preconditioner.rates.gain,
    )


STEEPEST = 1e15  # largest factor of 1 / sqrt(evidence): float32 must represent the product


@always_inlined
def rate_of(kind, evidence, decay):
    """Return the step size of a weight, given its evidence.

    Evidence is stored multiplied by the weight of a row; `scale_of` includes that if it is a
    factor.
    """
    if kind == ADAPTIVE:
        return np.float32(1) / np.sqrt(evidence) if evidence > 0 else np.float32(0)
    if kind == CONFIDENT:
        return decay / (decay + evidence)
    return np.float32(1)


@always_inlined
def scale_of(learner, walk, feature):
    """Return the factor of the step sizes of a feature's weights."""
    root = walk.root  # with the pace; squares of gradients are stored multiplied by its square
    if walk.unit == NO_UNIT:
        return np.float32(root if walk.kind == ADAPTIVE else 1.0)
    gain, scale = walk.gain, 1.0
    if walk.unit == FEATURES:
        scale = np.float64(learner.preconditioner.scales[feature])
        if scale == 0:
            return np.float32(0)
    if walk.kind == ADAPTIVE:
        return np.float32(root * min(np.sqrt(gain) / scale, STEEPEST))
    return np.float32(min(gain / scale / scale, LARGEST))


@always_inlined
def gathered(evidence, share, amount):
    """Return the evidence of a weight plus `share` times the square of an amount."""
    return min(evidence + share * (amount * amount), np.float32(LARGEST))


@always_inlined
def step_preconditioned(learner, walk, feature, column, amount, view, out):
    """Return the step for an amount if the task is MOVE; else do the task and return 0."""
    kind, task = walk.kind, walk.task
    if kind == EUCLIDEAN and walk.unit == NO_UNIT and task == MOVE:
        return amount
    if kind == BETTING:
        return betting_step(learner, feature, column, amount, view)
    evidence = np.float32(0)
    if kind != EUCLIDEAN:
        evidence = learner.preconditioner.evidence[feature, column]
    if task == GATHER:
        # In float64: in float32 the square may overflow, and its product with the share underflow.
        enlarged = gathered(np.float64(evidence), walk.share, np.float64(amount))
        learner.preconditioner.evidence[feature, column] = enlarged
        return np.float32(0)
    if kind == CUSTOM:
        step = custom_step(learner, evidence, amount, out)
    else:
        step = amount * (rate_of(kind, evidence, walk.decay) * scale_of(learner, walk, feature))
    if task == MOVE:
        return step
    learner.preconditioner.rates.total += np.float64(amount) * np.float64(step)
    return np.float32(0)


# The tasks of a link, as in `kesler.links.link`; not literals, as in `views.maps`.
WEIGHT, MASS, SCALE, EXTENT, ROOM = np.arange(5)
# Below this share of its peak, a sum consists mostly of rounding errors.
LEAST = 1e-6

# task, v, reference, parameters, out
LINK = types.void(INT, types.float64, types.float64, DOUBLES, DOUBLES)
call_link = by_address(LINK)


def f(*arguments: Any) -> Any:
    """Stand for the function of the link, which `instantiate` inserts."""
    raise NotImplementedError


def geometry_task(task, v, reference, parameters, out):
    """Write the result of one of our own links."""
    out[0] = f(task, v, reference, parameters)


def user_task(task, v, reference, parameters, out):
    """Write the result of a user-defined f(v, q), which has neither scale nor reference.

    If it fails, the result is not finite, and the fault word behind the parameters is set.
    """
    out[0] = 1.0
    if task == WEIGHT:
        out[0] = np.nan
        try:
            out[0] = f(v, parameters[:-1])
        except Exception:
            parameters[-1] = 1.0
        if not abs(out[0]) < np.inf:
            parameters[-1] = 1.0


def without_parameters(v, q):
    """Call an f that takes no parameters."""
    return f(v)


@recipe
@cache
def link_address(function: Callable[..., Any], *, custom: bool) -> int:
    """Return the address of a link's function, compiled and cached in its own file."""
    if not custom:
        return callback_address(instantiate(geometry_task, "f", function), LINK)
    takes_q = function.__code__.co_argcount == 2
    if not takes_q:
        function = instantiate(without_parameters, "f", function, checked=True)
    return callback_address(instantiate(user_task, "f", function, checked=takes_q), LINK)


@inlined
def ask(learner, task, v, out):
    """Return the result of a task of the link for the number v."""
    call_link(
        learner.link.address, task, v, learner.link.scale.reference, learner.link.parameters, out
    )
    return out[0]


@always_inlined
def change(learner, walk, feature, column, amount, view, out):
    """Add the step for an amount to a weight, or to the sum that it is computed from.

    `view` is the value of the feature, of which the amount is a multiple.
    """
    amount = step_preconditioned(learner, walk, feature, column, amount, view, out)
    if learner.weights.states.shape[0] == 0:
        learner.weights.values[feature, column] += amount
    elif learner.link.address == 0:
        before = learner.weights.values[feature, column]
        learner.weights.values[feature, column] += amount
        note_change(learner, feature, column, before)
    else:
        change_sum(learner, feature, column, np.float64(amount), out)


@inlined
def note_change(learner, feature, column, before):
    """Add the change of a weight to the sum from which its mean is computed.

    Its contribution to the mean depends on when it was made. It is that of the weight as stored:
    rounding errors of float32 would otherwise add up.
    """
    step = np.float64(learner.weights.values[feature, column]) - np.float64(before)
    learner.weights.states[0, feature, column] += np.float64(learner.counts.n_trials) * step


@inlined
def has_linked_means(learner):
    """Return whether the means of weights are computed that follow from sums."""
    return learner.link.address != 0 and learner.weights.states.shape[0] > 1


@inlined
def passed(learner):
    """Return the sum of the scales after each trial; without a scale, the number of trials."""
    if learner.link.scale_source == LINK_SCALE:
        return learner.link.means.passed
    return np.float64(learner.counts.n_trials)


@inlined
def sum_of_weights(learner, feature, column):
    """Return the sum of a weight after each trial."""
    states, weight = learner.weights.states, learner.weights.values[feature, column]
    since = passed(learner) - states[2, feature, column]
    return states[1, feature, column] + np.float64(weight) * since


@inlined
def bring_up_to_date(learner, feature, column):
    """Store the sum of a weight after each trial, before the weight changes."""
    learner.weights.states[1, feature, column] = sum_of_weights(learner, feature, column)
    learner.weights.states[2, feature, column] = passed(learner)


@always_inlined
def change_plainly(weights, column, indices, phi, coefficient):
    """Change the weights of one hypothesis as `change` does in a plain pass.

    Nothing is read from the learner, which for all that LLVM knows might change with every weight:
    a pass of PA-I takes a sixth less time.
    """
    c = np.uintp(column)  # unsigned indices spare the loop the test for negative ones
    for j in range(np.uintp(indices.shape[0])):
        weights[np.uintp(indices[j]), c] += coefficient * phi[j]


@always_inlined
def change_two_plainly(weights, column, other_column, indices, phi, coefficient, other):
    """Change the weights of two hypotheses as `change_plainly` does, in one loop."""
    c, d = np.uintp(column), np.uintp(other_column)
    for j in range(np.uintp(indices.shape[0])):
        i = np.uintp(indices[j])
        weights[i, c] += coefficient * phi[j]
        weights[i, d] += other * phi[j]


@inlined
def change_sum(learner, feature, column, amount, out):
    """Add to the sum that a weight is computed from, and recompute the weight."""
    old = learner.weights.states[0, feature, column]
    new = old + amount
    if learner.link.scale_source == LINK_SCALE and ask(learner, ROOM, new, out) == 0:
        # The weight would be out of range relative to the others: `settle` finds a new reference.
        learner.weights.states[0, feature, column] = new
        learner.link.scale.is_stale = 1
        return
    weight = ask(learner, WEIGHT, new, out)
    if not abs(weight) < np.inf:
        learner.counts.n_not_finite += 1
        return
    if learner.link.scale_source == LINK_SCALE:
        scale = learner.link.scale
        scale.mass += ask(learner, MASS, new, out) - ask(learner, MASS, old, out)
        scale.peak = max(scale.peak, scale.mass)
    learner.weights.states[0, feature, column] = new
    if has_linked_means(learner):
        bring_up_to_date(learner, feature, column)
    learner.weights.values[feature, column] = np.float32(weight)


@always_inlined
def dense_settle(learner, out):
    """Update the scale, and all weights if they are too far from their reference."""
    if learner.link.scale_source != LINK_SCALE:
        return
    scale = learner.link.scale
    if scale.is_stale != 0 or not scale.mass >= LEAST * scale.peak:
        renew(learner, out)
    scale.value = ask(learner, SCALE, scale.mass, out)
    if has_linked_means(learner):
        means = learner.link.means
        if scale.value < LEAST * means.passed:
            restart_means(learner, out)
        means.passed += scale.value


@inlined
def renew(learner, out):
    """Recompute the reference, the weights and their mass from the sums."""
    scale, sums = learner.link.scale, learner.weights.states[0]
    if has_linked_means(learner):
        restart_means(learner, out)
    largest, n_seen = 0.0, 0
    for i in range(sums.shape[0]):
        for part in range(learner.parts.kind.shape[0]):
            if learner.link.is_seen[i, part]:
                for j in range(n_weights(learner, part, i)):
                    c = column_of_weight(learner, part, i, j)
                    extent = ask(learner, EXTENT, sums[i, c], out)
                    if n_seen == 0 or extent > largest:
                        largest = extent
                    n_seen += 1
    scale.reference = largest
    for i in range(sums.shape[0]):
        for c in range(sums.shape[1]):
            learner.weights.values[i, c] = np.float32(ask(learner, WEIGHT, sums[i, c], out))
    total = 0.0
    for i in range(sums.shape[0]):
        for part in range(learner.parts.kind.shape[0]):
            if learner.link.is_seen[i, part]:
                for j in range(n_weights(learner, part, i)):
                    c = column_of_weight(learner, part, i, j)
                    total += ask(learner, MASS, sums[i, c], out)
    scale.mass, scale.peak, scale.is_stale = total, total, 0.0


@inlined
def restart_means(learner, out):
    """Bring the sums of all weights up to date, so that the sum of the scales begins anew.

    Scales get another unit with the reference, and would vanish beside a sum that is much larger.
    """
    means, states = learner.link.means, learner.weights.states
    for i in range(states.shape[1]):
        for c in range(states.shape[2]):
            states[1, i, c] = sum_of_weights(learner, i, c)
            states[2, i, c] = 0.0
    means.begun += means.passed * np.float64(np.float32(ask(learner, WEIGHT, 0.0, out)))
    means.passed = 0.0


@inlined
def n_weights(learner, part, i):
    """Return how many weights a feature has in the hypotheses of the known classes.

    The constant feature of an ordered part has a threshold below each rank but the lowest.
    """
    if learner.parts.kind[part] == ORDERED and i == 0:
        return max(0, learner.counts.n_classes - 1)
    return learner.link.n_hypotheses[part]


@inlined
def column_of_weight(learner, part, i, j):
    """Return the column of weight j of a feature, as `n_weights` counts them."""
    if learner.parts.kind[part] == ORDERED and i == 0:
        return learner.parts.offset[part] + 1 + learner.ranks.order[1 + j]
    return learner.parts.offset[part] + j


@inlined
def meet_weights(learner, n, out):
    """Add n new weights to the mass of the link."""
    if learner.link.scale_source == LINK_SCALE:
        scale = learner.link.scale
        scale.mass += ask(learner, MASS, 0.0, out) * n
        scale.peak = max(scale.peak, scale.mass)


@always_inlined
def dense_meet_features(learner, indices, k, scratch):
    """Add the weights of new features and sub-experts to the mass of the link."""
    if learner.link.scale_source != LINK_SCALE:
        return
    views = scratch.views
    mass = ask(learner, MASS, 0.0, scratch.out)
    for part in range(learner.parts.kind.shape[0]):
        if learner.parts.map[part] == GIVEN:
            for r in range(k):
                for j in range(views.begins[r], views.ends[r]):
                    meet_feature(learner, views.indices[j], part, mass)
        else:
            for j in range(indices.shape[0]):
                meet_feature(learner, indices[j], part, mass)
    learner.link.scale.peak = max(learner.link.scale.peak, learner.link.scale.mass)


@inlined
def meet_feature(learner, feature, part, mass):
    """Add the weights of a part for a feature to the mass, if the feature is new."""
    if not learner.link.is_seen[feature, part]:
        learner.link.is_seen[feature, part] = True
        learner.link.n_features[part] += 1
        learner.link.scale.mass += mass * n_weights(learner, part, feature)


@always_inlined
def dense_meet_hypotheses(learner, y, out):
    """Add the weights of the hypotheses that class y introduces to the mass of the link."""
    if learner.link.scale_source != LINK_SCALE:
        return
    for part in range(learner.parts.kind.shape[0]):
        n_before = learner.link.n_hypotheses[part]
        n = n_before
        if learner.parts.kind[part] == PER_CLASS:
            n = y + 1
        elif learner.parts.kind[part] == GROUPED:
            # Groups are numbered in the order of their classes.
            for m in range(
                learner.parts.member_starts[part, y], learner.parts.member_starts[part, y + 1]
            ):
                n = max(n, learner.parts.members[m] + 1)
        learner.link.n_hypotheses[part] = n
        meet_weights(learner, (n - n_before) * learner.link.n_features[part], out)

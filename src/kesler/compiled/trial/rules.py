"""Calls of update rules and linear-threshold algorithms by the trial."""
# mypy: disallow_untyped_defs=False, disallow_untyped_calls=False

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numba import types

from kesler.compiled.jit.background import recipe
from kesler.compiled.jit.decorators import (
    DOUBLE_TABLE,
    DOUBLES,
    FLOATS,
    INTS,
    allocating,
    always_inlined,
    are_finite,
    by_address,
    callback_address,
    inlined,
    instantiate,
)
from kesler.compiled.trial.records import (
    GIVEN,
    GROUPED,
    ITSELF,
    NOTHING,
    ORDERED,
    PER_CLASS,
    is_member,
)
from kesler.compiled.views.given import spread
from kesler.compiled.weights.scores import phi_of

# parameters, weight, losses, squared_norms, gram, steps
RULE = types.void(DOUBLES, types.float64, DOUBLES, DOUBLES, DOUBLE_TABLE, DOUBLES)
call_rule = by_address(RULE)

# parameters, losses, gradient
GRADIENT = types.void(DOUBLES, DOUBLES, DOUBLES)
call_gradient = by_address(GRADIENT)


def f(*arguments: Any) -> None:
    """Stand for a user-defined rule or algorithm, which `instantiate` inserts."""
    raise NotImplementedError


def guarded_rule(parameters, weight, losses, squared_norms, gram, steps):
    """Call a user-defined rule; if it fails, set the fault word, and steps that are not taken."""
    try:
        f(parameters[:-1], weight, losses, squared_norms, gram, steps)
    except Exception:
        parameters[-1] = 1.0
        steps[:] = np.nan


@recipe
@cache
def rule_address(function: Callable[..., Any], *, custom: bool) -> int:
    """Return the address of a rule, compiled and cached in its own file."""
    if custom:
        function = instantiate(guarded_rule, "f", function, checked=True)
    return callback_address(function, RULE)


@recipe
@cache
def gradient_address(function: Callable[..., Any] | None) -> int:
    """Return the address of the gradient of a rule's loss, 0 if it is 1 along each constraint."""
    return 0 if function is None else callback_address(function, GRADIENT)


# parameters, positions, z, margin, weights, states, numbers
ALGORITHM = types.void(DOUBLES, INTS, DOUBLES, types.float64, FLOATS, DOUBLE_TABLE, DOUBLES)
call_algorithm = by_address(ALGORITHM)


def guarded_algorithm(parameters, positions, z, margin, weights, states, numbers):
    """Call a user-defined algorithm; if it fails, set the fault word and undo what it changed.

    Only the weights of the row and their states are restored, not others that it may have changed.
    """
    places = positions.copy()  # the function might change the positions
    before, numbers_before = values_at(places, weights, states), numbers.copy()
    failed = False
    try:
        f(parameters[:-1], positions, z, margin, weights, states, numbers)
    except Exception:
        failed = True
    if failed or not stay_finite(places, weights, states, numbers):
        parameters[-1] = 1.0
        put_back(before, places, weights, states)
        numbers[:] = numbers_before


@allocating
def values_at(places, weights, states):
    """Return the weights at some places and, in the other rows, their states."""
    found = np.empty((1 + states.shape[0], places.shape[0]))
    for j in range(places.shape[0]):
        found[0, j] = weights[places[j]]
        for i in range(states.shape[0]):
            found[1 + i, j] = states[i, places[j]]
    return found


@inlined
def put_back(found, places, weights, states):
    """Write what `values_at` returned."""
    for j in range(places.shape[0]):
        weights[places[j]] = found[0, j]
        for i in range(states.shape[0]):
            states[i, places[j]] = found[1 + i, j]


@allocating
def stay_finite(places, weights, states, numbers):
    """Return whether weights at some places, their states and the numbers are finite."""
    found = values_at(places, weights, states)
    return are_finite(found.reshape(-1)) and are_finite(numbers)


@recipe
@cache
def algorithm_address(function: Callable[..., Any], *, custom: bool) -> int:
    """Return the address of an algorithm, compiled and cached in its own file."""
    if custom:
        function = instantiate(guarded_algorithm, "f", function, checked=True)
    return callback_address(function, ALGORITHM)


@always_inlined
def dense_run_algorithm(learner, indices, values, scratch, solver):
    """Call the algorithm with z = V^r - V^s of the single chosen pair."""
    n = gather(learner, indices, values, solver.better[0], solver.worse[0], scratch)
    positions, z = scratch.positions, scratch.z
    margin = 0.0
    for j in range(n):
        margin += np.float64(learner.weights.flat[positions[j]]) * z[j]
    numbers = learner.algorithm.numbers
    margin *= numbers[0]
    if not abs(margin) < np.inf:
        learner.counts.n_not_finite += 1
        return
    call_algorithm(
        learner.algorithm.address,
        learner.rule.parameters,
        positions[:n],
        z[:n],
        margin,
        learner.weights.flat,
        learner.weights.flat_states,
        numbers,
    )


@inlined
def gather(learner, indices, values, r, s, scratch):
    """List the positions and values of the non-zeros of V^r - V^s; return their number."""
    n, starts = 0, learner.parts.member_starts
    for part in range(learner.parts.kind.shape[0]):
        offset, kind = learner.parts.offset[part], learner.parts.kind[part]
        view_both(learner, part, indices, values, r, s, scratch)
        if kind == PER_CLASS:
            n = list_places(learner, part, offset + r, indices, r, 1.0, s, 0.0, scratch, n)
            n = list_places(learner, part, offset + s, indices, r, 0.0, s, -1.0, scratch, n)
        elif kind == GROUPED:
            for m in range(starts[part, r], starts[part, r + 1]):
                group = learner.parts.members[m]
                sign = -1.0 if is_member(learner, part, s, group) else 0.0
                n = list_places(learner, part, offset + group, indices, r, 1.0, s, sign, scratch, n)
            for m in range(starts[part, s], starts[part, s + 1]):
                group = learner.parts.members[m]
                if not is_member(learner, part, r, group):
                    n = list_places(
                        learner, part, offset + group, indices, r, 0.0, s, -1.0, scratch, n
                    )
        elif kind == ORDERED:
            n = list_ordered(learner, offset, indices, values, r, s, scratch, n)
        else:
            n = list_places(learner, part, offset, indices, r, 1.0, s, -1.0, scratch, n)
    return n


@inlined
def list_ordered(learner, offset, indices, values, r, s, scratch, n):
    """List the thresholds between two ranks, and the direction as often."""
    here, there = learner.ranks.positions[r], learner.ranks.positions[s]
    constant = np.float64(values[0]) if here > there else -np.float64(values[0])
    for i in range(min(here, there) + 1, max(here, there) + 1):
        column = offset + 1 + learner.ranks.order[i]
        n = list_place(learner, NOTHING, column, constant, scratch, n)
    for j in range(1, indices.shape[0]):
        value = (here - there) * np.float64(values[j])
        n = list_place(learner, indices[j], offset, value, scratch, n)
    return n


@inlined
def view_both(learner, part, indices, values, r, s, scratch):
    """Compute phi(x, r) and phi(x, s) of a part, unless they are given with the row."""
    if learner.parts.map[part] > GIVEN:
        phi_of(learner, part, indices, values, r, scratch, scratch.phi)
        phi_of(learner, part, indices, values, s, scratch, scratch.other)
    elif learner.parts.map[part] == ITSELF:
        for j in range(indices.shape[0]):
            scratch.phi[j], scratch.other[j] = values[j], values[j]


@inlined
def list_places(learner, part, column, indices, r, sign, s, other_sign, scratch, n):
    """List the non-zeros of sign phi(x, r) + other_sign phi(x, s) in one hypothesis."""
    if learner.parts.map[part] != GIVEN:
        for j in range(indices.shape[0]):
            value = sign * np.float64(scratch.phi[j]) + other_sign * np.float64(scratch.other[j])
            n = list_place(learner, indices[j], column, value, scratch, n)
        return n
    views = scratch.views
    spread(views, r, sign)
    spread(views, s, other_sign)
    for c in (r, s):
        for j in range(views.begins[c], views.ends[c]):
            i = views.indices[j]
            n = list_place(learner, i, column, views.sums[i], scratch, n)
            views.sums[i] = 0
    return n


@inlined
def list_place(learner, feature, column, value, scratch, n):
    """List one position and its value, unless the value is 0."""
    if value == 0:
        return n
    scratch.positions[n] = np.int64(feature) * learner.weights.values.shape[1] + column
    scratch.z[n] = value
    return n + 1

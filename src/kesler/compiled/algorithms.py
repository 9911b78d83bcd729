"""Linear-threshold algorithms, which move weights by themselves, in a multiclass trial."""
# mypy: disallow_untyped_defs=False, disallow_untyped_calls=False

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numba import types

from kesler.compiled.given import spread
from kesler.compiled.jit import (
    DOUBLE_TABLE,
    DOUBLES,
    FLOATS,
    INTS,
    by_address,
    by_learner,
    callback_address,
    inlined,
)
from kesler.compiled.learner import (
    FACTOR,
    GIVEN,
    GROUPED,
    ITSELF,
    KIND,
    MAP,
    NOT_FINITE,
    OFFSET,
    PER_CLASS,
)
from kesler.compiled.members import is_member
from kesler.compiled.scores import phi_of

# parameters, positions, z, margin, weights, states, numbers
ALGORITHM = types.void(DOUBLES, INTS, DOUBLES, types.float64, FLOATS, DOUBLE_TABLE, DOUBLES)
call_algorithm = by_address(ALGORITHM)


@cache
def algorithm_address(function: Callable[..., Any]) -> int:
    """Return the address of an algorithm, compiled and cached in its own file."""
    return callback_address(function, ALGORITHM)


@by_learner
def run_algorithm(learner, indices, values, scratch, solver):
    """Hand z = V^r - V^s of the one chosen pair to the algorithm."""
    n = gather(learner, indices, values, solver.better[0], solver.worse[0], scratch)
    positions, z = scratch.positions, scratch.z
    margin = 0.0
    for j in range(n):
        margin += np.float64(learner.flat_weights[positions[j]]) * z[j]
    numbers = learner.numbers[FACTOR:]
    margin *= numbers[0]
    if not abs(margin) < np.inf:
        learner.counters[NOT_FINITE] += 1
        return
    call_algorithm(
        learner.algorithm[0],
        learner.rule_parameters,
        positions[:n],
        z[:n],
        margin,
        learner.flat_weights,
        learner.flat_states,
        numbers,
    )


@inlined
def gather(learner, indices, values, r, s, scratch):
    """List where V^r - V^s is not 0, and what it is there; return how many places that is."""
    n = 0
    for part in range(learner.parts.shape[0]):
        offset, kind = learner.parts[part, OFFSET], learner.parts[part, KIND]
        view_both(learner, part, indices, values, r, s, scratch)
        if kind == PER_CLASS:
            n = list_places(learner, part, offset + r, indices, r, 1.0, s, 0.0, scratch, n)
            n = list_places(learner, part, offset + s, indices, r, 0.0, s, -1.0, scratch, n)
        elif kind == GROUPED:
            for m in range(learner.member_starts[part, r], learner.member_starts[part, r + 1]):
                group = learner.members[m]
                sign = -1.0 if is_member(learner, part, s, group) else 0.0
                n = list_places(learner, part, offset + group, indices, r, 1.0, s, sign, scratch, n)
            for m in range(learner.member_starts[part, s], learner.member_starts[part, s + 1]):
                group = learner.members[m]
                if not is_member(learner, part, r, group):
                    n = list_places(
                        learner, part, offset + group, indices, r, 0.0, s, -1.0, scratch, n
                    )
        else:
            n = list_places(learner, part, offset, indices, r, 1.0, s, -1.0, scratch, n)
    return n


@inlined
def view_both(learner, part, indices, values, r, s, scratch):
    """Write phi(x, r) and phi(x, s) of a part, unless they are given with the row."""
    if learner.parts[part, MAP] > GIVEN:
        phi_of(learner, part, indices, values, r, scratch, scratch.phi)
        phi_of(learner, part, indices, values, s, scratch, scratch.other)
    elif learner.parts[part, MAP] == ITSELF:
        for j in range(indices.shape[0]):
            scratch.phi[j], scratch.other[j] = values[j], values[j]


@inlined
def list_places(learner, part, column, indices, r, sign, s, other_sign, scratch, n):
    """List the places of one hypothesis where sign phi(x, r) + other_sign phi(x, s) is not 0."""
    if learner.parts[part, MAP] != GIVEN:
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
    """List one place, unless its value is 0."""
    if value == 0:
        return n
    scratch.positions[n] = np.int64(feature) * learner.weights.shape[1] + column
    scratch.z[n] = value
    return n + 1

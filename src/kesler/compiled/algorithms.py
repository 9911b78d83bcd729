"""Linear-threshold algorithms, which move weights by themselves, in a multiclass trial."""
# mypy: disallow_untyped_defs=False, disallow_untyped_calls=False

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numba import types

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
from kesler.compiled.learner import FACTOR, GROUPED, KIND, MAP, NOT_FINITE, OFFSET, PER_CLASS
from kesler.compiled.moves import is_member
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
    n, width = 0, learner.weights.shape[1]
    for part in range(learner.parts.shape[0]):
        offset, kind = learner.parts[part, OFFSET], learner.parts[part, KIND]
        phi, other = values, values
        if learner.parts[part, MAP] != 0:
            phi_of(learner, part, indices, values, r, scratch, scratch.phi)
            phi_of(learner, part, indices, values, s, scratch, scratch.other)
            phi, other = scratch.phi, scratch.other
        if kind == PER_CLASS:
            n = list_view(indices, width, offset + r, phi, 1.0, phi, 0.0, scratch, n)
            n = list_view(indices, width, offset + s, other, -1.0, phi, 0.0, scratch, n)
        elif kind == GROUPED:
            for m in range(learner.member_starts[part, r], learner.member_starts[part, r + 1]):
                group = learner.members[m]
                sign = -1.0 if is_member(learner, part, s, group) else 0.0
                n = list_view(indices, width, offset + group, phi, 1.0, other, sign, scratch, n)
            for m in range(learner.member_starts[part, s], learner.member_starts[part, s + 1]):
                group = learner.members[m]
                if not is_member(learner, part, r, group):
                    n = list_view(indices, width, offset + group, other, -1.0, phi, 0.0, scratch, n)
        else:
            n = list_view(indices, width, offset, phi, 1.0, other, -1.0, scratch, n)
    return n


@inlined
def list_view(indices, width, column, phi, sign, other, other_sign, scratch, n):
    """List the places of one hypothesis where sign phi + other_sign other is not 0."""
    for j in range(indices.shape[0]):
        value = sign * np.float64(phi[j]) + other_sign * np.float64(other[j])
        if value != 0:
            scratch.positions[n] = np.int64(indices[j]) * width + column
            scratch.z[n] = value
            n += 1
    return n

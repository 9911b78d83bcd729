"""Moves: the steps of a trial, added to the weights."""
# mypy: disallow_untyped_defs=False, disallow_untyped_calls=False

from __future__ import annotations

import numpy as np

from kesler.compiled.jit import inlined
from kesler.compiled.learner import GROUPED, KIND, LARGEST, MAP, OFFSET, PER_CLASS, SHARED
from kesler.compiled.maps import PHI
from kesler.compiled.scores import of_map


@inlined
def is_movable(learner, indices, values, y, chosen, steps, m, scratch):
    """Whether no weight would move by more than float32 bears; NaN is more."""
    total = 0.0
    for j in range(m):
        total += abs(steps[j])
    for part in range(learner.parts.shape[0]):
        if not total * largest(learner, part, indices, values, y, scratch) <= LARGEST:
            return False
        if learner.parts[part, MAP] != 0:
            for j in range(m):
                size = largest(learner, part, indices, values, chosen[j], scratch)
                if not abs(steps[j]) * size <= LARGEST:
                    return False
    return True


@inlined
def largest(learner, part, indices, values, r, scratch):
    """Return the largest |phi_i(x, r)|, NaN if one is NaN."""
    phi = values
    if learner.parts[part, MAP] != 0:
        of_map(learner, part, PHI, indices, values, scratch.narrow, r, scratch.phi)
        phi = scratch.phi
    size = 0.0
    for j in range(indices.shape[0]):
        if not abs(phi[j]) <= size:
            size = np.float64(abs(phi[j]))
    return size


@inlined
def move(learner, indices, values, y, chosen, steps, m, scratch):
    """Add sum_j steps[j] (phi(x, y) - phi(x, s_j)) to every hypothesis."""
    total = 0.0
    for j in range(m):
        total += steps[j]
    for part in range(learner.parts.shape[0]):
        if learner.parts[part, KIND] == SHARED and learner.parts[part, MAP] != 0:
            move_shared(learner, part, indices, values, y, total, chosen, steps, m, scratch)
        else:
            move_owned(learner, part, indices, values, y, total, scratch)
            for j in range(m):
                if steps[j] != 0:
                    move_owned(learner, part, indices, values, chosen[j], -steps[j], scratch)


@inlined
def move_shared(learner, part, indices, values, y, total, chosen, steps, m, scratch):
    """Move the one hypothesis of all classes, summing first what each class adds to it."""
    n = indices.shape[0]
    of_map(learner, part, PHI, indices, values, scratch.narrow, y, scratch.phi)
    for j in range(n):
        scratch.narrow[j, 0] = np.float32(total) * scratch.phi[j]
    for i in range(m):
        if steps[i] == 0:
            continue
        of_map(learner, part, PHI, indices, values, scratch.narrow, chosen[i], scratch.phi)
        for j in range(n):
            scratch.narrow[j, 0] -= np.float32(steps[i]) * scratch.phi[j]
    for j in range(n):
        learner.weights[indices[j], learner.parts[part, OFFSET]] += scratch.narrow[j, 0]


@inlined
def move_owned(learner, part, indices, values, r, coefficient, scratch):
    """Add coefficient phi(x, r) to the hypotheses that belong to class r and not to all."""
    phi = values
    if learner.parts[part, MAP] != 0:
        of_map(learner, part, PHI, indices, values, scratch.narrow, r, scratch.phi)
        phi = scratch.phi
    offset = learner.parts[part, OFFSET]
    if learner.parts[part, KIND] == PER_CLASS:
        add_to_column(learner.weights, offset + r, indices, phi, coefficient)
    elif learner.parts[part, KIND] == GROUPED:
        for m in range(learner.member_starts[part, r], learner.member_starts[part, r + 1]):
            add_to_column(learner.weights, offset + learner.members[m], indices, phi, coefficient)


@inlined
def add_to_column(weights, column, indices, phi, coefficient):
    """Add coefficient phi to one hypothesis."""
    step = np.float32(coefficient)
    for j in range(indices.shape[0]):
        weights[indices[j], column] += step * phi[j]

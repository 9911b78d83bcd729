"""Moves: the steps of a trial, added to the weights."""
# mypy: disallow_untyped_defs=False, disallow_untyped_calls=False

from __future__ import annotations

import numpy as np

from kesler.compiled.jit import inlined
from kesler.compiled.learner import GROUPED, KIND, LARGEST, MAP, OFFSET, PER_CLASS, SHARED
from kesler.compiled.maps import PHI
from kesler.compiled.scores import of_map


@inlined
def is_movable(learner, indices, values, n_moved, scratch, solver):
    """Whether no weight would move by more than float32 bears; NaN is more."""
    for part in range(learner.parts.shape[0]):
        size = largest(values)
        for i in range(n_moved):
            r = solver.moved[i]
            if learner.parts[part, MAP] != 0:
                of_map(learner, part, PHI, indices, values, scratch.narrow, r, scratch.phi)
                size = largest(scratch.phi[: indices.shape[0]])
            if not abs(solver.coefficients[r]) * size <= LARGEST:
                return False
    return True


@inlined
def largest(phi):
    """Return the largest |phi_j|, NaN if one is NaN."""
    size = 0.0
    for j in range(phi.shape[0]):
        if not abs(phi[j]) <= size:
            size = np.float64(abs(phi[j]))
    return size


@inlined
def move(learner, indices, values, n_moved, scratch, solver):
    """Add coefficient phi(x, r) to the hypotheses of each class r that moves."""
    for part in range(learner.parts.shape[0]):
        if learner.parts[part, KIND] == SHARED:
            move_shared(learner, part, indices, values, n_moved, scratch, solver)
        else:
            for i in range(n_moved):
                r = solver.moved[i]
                move_owned(learner, part, indices, values, r, solver.coefficients[r], scratch)


@inlined
def forget_coefficients(n_moved, solver):
    """Make room for the coefficients of the next trial."""
    for i in range(n_moved):
        solver.coefficients[solver.moved[i]] = 0
        solver.is_moved[solver.moved[i]] = False


@inlined
def sum_coefficients(m, solver):
    """Sum the steps into one coefficient a class; return how many classes move, list them."""
    n_moved = 0
    for j in range(m):
        if solver.steps[j] != 0:
            n_moved = add_coefficient(solver, solver.better[j], solver.steps[j], n_moved)
            n_moved = add_coefficient(solver, solver.worse[j], -solver.steps[j], n_moved)
    return n_moved


@inlined
def add_coefficient(solver, r, step, n_moved):
    """Add a step to the coefficient of class r; return how many classes are listed by now."""
    if not solver.is_moved[r]:
        solver.is_moved[r] = True
        solver.moved[n_moved] = r
        n_moved += 1
    solver.coefficients[r] += step
    return n_moved


@inlined
def move_shared(learner, part, indices, values, n_moved, scratch, solver):
    """Move the one hypothesis of all classes, summing first what each class adds to it."""
    n = indices.shape[0]
    for j in range(n):
        scratch.narrow[j, 0] = 0
    for i in range(n_moved):
        r = solver.moved[i]
        of_map(learner, part, PHI, indices, values, scratch.narrow, r, scratch.phi)
        coefficient = np.float32(solver.coefficients[r])
        for j in range(n):
            scratch.narrow[j, 0] += coefficient * scratch.phi[j]
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

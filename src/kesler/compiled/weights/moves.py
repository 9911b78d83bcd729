"""Updates of the weights by the steps of a trial."""
# mypy: disallow_untyped_defs=False, disallow_untyped_calls=False

from __future__ import annotations

import numpy as np

from kesler.compiled.jit.decorators import always_inlined, inlined
from kesler.compiled.jit.simd import largest
from kesler.compiled.trial.records import (
    GIVEN,
    GROUPED,
    ITSELF,
    LARGEST,
    NOTHING,
    ORDERED,
    PER_CLASS,
    SHARED,
    THE_REST,
    groups_of,
    is_member,
    n_candidates,
)
from kesler.compiled.views.given import add_given_sum, add_given_view, largest_given
from kesler.compiled.weights.links import (
    begin_walk,
    change,
    change_plainly,
    change_two_plainly,
    is_plain,
)
from kesler.compiled.weights.ordered import largest_ordered_step, move_ordered
from kesler.compiled.weights.preconditioners import begin_steps, steps_follow_views
from kesler.compiled.weights.scores import phi_of
from kesler.compiled.weights.second_order import is_second_order
from kesler.compiled.weights.wide import (
    change_widely,
    is_wide,
    is_wide_part,
    spread_coefficients,
    sum_views,
)


@always_inlined
def dense_is_movable(learner, indices, values, n_moved, scratch, solver):
    """Return whether no weight changes by more than LARGEST; False for NaN."""
    k = n_candidates(learner)
    if is_second_order(learner):
        values = scratch.direction[: values.shape[0]]
    wide = is_wide(learner, solver)
    if wide:
        spread_coefficients(n_moved, k, scratch, solver)
    for part in range(learner.parts.kind.shape[0]):
        if wide and learner.parts.kind[part] == SHARED and is_wide_part(learner, part, solver):
            n, sums = indices.shape[0], scratch.amounts[part]
            n_classes = min(k, scratch.wide.shape[0])
            sum_views(part, n, n_classes, 1, scratch)
            if not largest(sums[:n]) <= LARGEST:
                return False
            continue
        size = largest(values)
        if learner.parts.kind[part] == ORDERED:
            if not largest_ordered_step(learner, n_moved, solver) * size <= LARGEST:
                return False
            continue
        for i in range(n_moved):
            r = solver.moved[i]
            if learner.parts.map[part] == GIVEN:
                size = largest_given(scratch.views, r)
            elif learner.parts.map[part] != ITSELF:
                phi_of(learner, part, indices, values, r, scratch, scratch.phi)
                size = largest(scratch.phi[: indices.shape[0]])
            if not abs(solver.coefficients[r]) * size <= LARGEST:
                return False
    return True


@always_inlined
def dense_move(learner, indices, values, n_moved, scratch, solver):
    """Add coefficient phi(x, r) to the hypotheses of each class r to be updated.

    With a second-order preconditioner, P x takes the place of x.
    """
    begin_steps(learner, n_moved, solver)
    k = n_candidates(learner)
    if is_second_order(learner):
        values = scratch.direction[: values.shape[0]]
    wide = is_wide(learner, solver)
    if wide:
        spread_coefficients(n_moved, k, scratch, solver)
    for part in range(learner.parts.kind.shape[0]):
        if wide and is_wide_part(learner, part, solver):
            change_widely(learner, part, indices, values, k, scratch)
        else:
            move_part(learner, part, indices, values, n_moved, scratch, solver)


@inlined
def move_part(learner, part, indices, values, n_moved, scratch, solver):
    """Add coefficient phi(x, r) to the hypotheses of one part, weight by weight."""
    offset, kind = learner.parts.offset[part], learner.parts.kind[part]
    if kind == ORDERED:
        move_ordered(learner, part, indices, values, scratch, solver)
        return
    if kind == SHARED:
        add_sum(learner, part, offset, indices, values, n_moved, scratch, solver)
        return
    if kind == PER_CLASS and n_moved == 2 and learner.parts.map[part] == ITSELF:
        if is_plain(learner):
            r, s, coefficients = solver.moved[0], solver.moved[1], solver.coefficients
            step, other = np.float32(coefficients[r]), np.float32(coefficients[s])
            table = learner.weights.values
            change_two_plainly(table, offset + r, offset + s, indices, values, step, other)
            return
    for i in range(n_moved):
        r = solver.moved[i]
        if kind == PER_CLASS:
            add_view(learner, part, offset + r, indices, values, r, scratch, solver)
            continue
        start, end = groups_of(learner, part, r)
        for m in range(start, end):
            group = learner.parts.members[m]
            if is_first_with(learner, part, group, i, solver):
                add_sum(learner, part, offset + group, indices, values, n_moved, scratch, solver)


@inlined
def is_first_with(learner, part, group, i, solver):
    """Return whether class i of those to be updated is the first of them in a group."""
    for j in range(i):
        if is_member(learner, part, solver.moved[j], group):
            return False
    return True


@always_inlined
def forget_coefficients(n_moved, solver):
    """Reset the coefficients for the next trial."""
    for i in range(n_moved):
        solver.coefficients[solver.moved[i]] = 0
        solver.is_moved[solver.moved[i]] = False


@always_inlined
def sum_coefficients(m, solver):
    """Sum the steps into one coefficient per class; list the classes to update, return how many."""
    n_moved = NOTHING
    for j in range(m):
        if solver.steps[j] != 0:
            if solver.better[j] != THE_REST:
                n_moved = add_coefficient(solver, solver.better[j], solver.steps[j], n_moved)
            if solver.worse[j] != THE_REST:
                n_moved = add_coefficient(solver, solver.worse[j], -solver.steps[j], n_moved)
    return n_moved


@inlined
def add_coefficient(solver, r, step, n_moved):
    """Add a step to the coefficient of class r; return the number of classes listed so far."""
    if not solver.is_moved[r]:
        solver.is_moved[r] = True
        solver.moved[n_moved] = r
        n_moved += 1
    solver.coefficients[r] += step
    return n_moved


@inlined
def add_sum(learner, part, column, indices, values, n_moved, scratch, solver):
    """Update a hypothesis that classes share by the sum of their updates.

    These are summed first, since the updates of classes that share it may cancel.
    """
    if learner.parts.map[part] == GIVEN:
        add_given_sum(learner, part, column, n_moved, scratch, solver)
        return
    n = indices.shape[0]
    for j in range(n):
        scratch.other[j] = 0
    if steps_follow_views(learner):
        for j in range(n):
            scratch.scales[j] = 0
    total, group = 0.0, column - learner.parts.offset[part]
    for i in range(n_moved):
        r = solver.moved[i]
        if learner.parts.kind[part] == GROUPED and not is_member(learner, part, r, group):
            continue
        total += solver.coefficients[r]
        if learner.parts.map[part] != ITSELF:
            phi_of(learner, part, indices, values, r, scratch, scratch.phi)
            coefficient = np.float32(solver.coefficients[r])
            for j in range(n):
                scratch.other[j] += coefficient * scratch.phi[j]
            if steps_follow_views(learner):
                for j in range(n):
                    scratch.scales[j] = max(scratch.scales[j], abs(scratch.phi[j]))
    walk = begin_walk(learner)
    for j in range(n):
        amount, view = scratch.other[j], scratch.scales[j]
        if learner.parts.map[part] == ITSELF:
            amount, view = np.float32(total) * values[j], values[j]
        change(learner, walk, indices[j], column, amount, view, scratch.out)


@always_inlined
def add_view(learner, part, column, indices, values, r, scratch, solver):
    """Update the hypothesis that belongs to class r alone."""
    if learner.parts.map[part] == GIVEN:
        add_given_view(learner, column, r, scratch, solver)
        return
    phi = values
    if learner.parts.map[part] != ITSELF:
        phi_of(learner, part, indices, values, r, scratch, scratch.phi)
        phi = scratch.phi
    coefficient = np.float32(solver.coefficients[r])
    if is_plain(learner):
        change_plainly(learner.weights.values, column, indices, phi, coefficient)
        return
    walk = begin_walk(learner)
    for j in range(indices.shape[0]):
        change(learner, walk, indices[j], column, coefficient * phi[j], phi[j], scratch.out)

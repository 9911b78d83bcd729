"""Trials of learners whose hypotheses are sums over support vectors."""
# mypy: disallow_untyped_defs=False, disallow_untyped_calls=False

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numba import types

from kesler.compiled.jit.background import recipe
from kesler.compiled.jit.decorators import INT, always_inlined, inlined, kernel, with_globals
from kesler.compiled.jit.pointers import Facts, dereference, hold, pointer_reader, put
from kesler.compiled.jit.record_types import KERNEL_LEARNER_RECORD
from kesler.compiled.kernels.exact import similarity
from kesler.compiled.kernels.ordered import (
    add_products_along,
    length_along,
    movable_along,
    move_along,
    pair_norm_along,
)
from kesler.compiled.kernels.scores import set_plain_view
from kesler.compiled.kernels.supports import (
    LEAST_RECENT,
    PANEL,
    PROJECTRON,
    enter,
    hypothesis,
    make_kernel_scratch,
    squared_norm,
    stays_small,
    store,
)
from kesler.compiled.trial.facts import KERNEL, KERNELS
from kesler.compiled.trial.facts import hold as hold_facts
from kesler.compiled.trial.forgetting import MOST
from kesler.compiled.trial.records import (
    ORDERED,
    Blocks,
    EncodedTargets,
    Ratings,
    make_solver,
    n_common,
    n_hypotheses,
)
from kesler.compiled.trial.tasks import Kernels, task_at
from kesler.compiled.trial.trial import dense_has_fault, learn_all, score_all
from kesler.compiled.trial.variants import project, remove_beyond
from kesler.compiled.weights.scores import clear, compute_phi


@inlined
def view_of(learner, part, indices, values, r, scratch, out):
    """Return phi(x, r), written to `out` unless it is x itself."""
    if learner.parts.map[part] == 0:
        return values
    compute_phi(learner, part, indices, values, r, scratch, out)
    return out


@inlined
def own_similarity(learner, part, indices, values, r, scratch):
    """Return K(phi(x, r), phi(x, r))."""
    view = view_of(learner, part, indices, values, r, scratch, scratch.phi[: indices.shape[0]])
    return similarity(learner, view, view, scratch)


@always_inlined
def kernel_gram_column(learner, indices, values, s, k, scratch, out):
    """Compute out[r] = <Phi(x, r), Phi(x, s)> over the hypotheses that r and s share, for r < k."""
    clear(out, k)
    n = indices.shape[0]
    for part in range(learner.parts.kind.shape[0]):
        if learner.parts.kind[part] == ORDERED:
            add_products_along(learner, values, s, k, scratch, out)
            continue
        of_s = view_of(learner, part, indices, values, s, scratch, scratch.phi[:n])
        for r in range(k):
            common = n_common(learner, part, r, s)
            if common:
                of_r = view_of(
                    learner, part, indices, values, r, scratch, scratch.views[0, 1 : n + 1]
                )
                out[r] += common * similarity(learner, of_r, of_s, scratch)


@always_inlined
def kernel_gram_diagonal(learner, indices, values, k, scratch, out):
    """Compute out[r] = ||Phi(x, r)||^2 over the hypotheses of class r, for r < k."""
    clear(out, k)
    for part in range(learner.parts.kind.shape[0]):
        for r in range(k):
            times = n_hypotheses(learner, part, r)
            if learner.parts.kind[part] == ORDERED:
                out[r] += length_along(learner, values, r, scratch)
            elif times:
                out[r] += times * own_similarity(learner, part, indices, values, r, scratch)


@always_inlined
def kernel_pair_norm(learner, indices, values, y, s, scratch):
    """Return ||Phi(x, y) - Phi(x, s)||^2 over all hypotheses, for one pair."""
    total, n = 0.0, indices.shape[0]
    for part in range(learner.parts.kind.shape[0]):
        if learner.parts.kind[part] == ORDERED:
            total += pair_norm_along(learner, values, y, s, scratch)
            continue
        of_y = view_of(learner, part, indices, values, y, scratch, scratch.phi[:n])
        of_s = view_of(learner, part, indices, values, s, scratch, scratch.views[0, 1 : n + 1])
        total += n_hypotheses(learner, part, y) * similarity(learner, of_y, of_y, scratch)
        total += n_hypotheses(learner, part, s) * similarity(learner, of_s, of_s, scratch)
        total -= 2.0 * n_common(learner, part, y, s) * similarity(learner, of_y, of_s, scratch)
    return max(0.0, total)


@always_inlined
def kernel_is_movable(learner, indices, values, n_moved, scratch, solver):
    """Return whether no score of x itself changes by more than LARGEST; False for NaN."""
    phi = scratch.phi[: indices.shape[0]]
    for part in range(learner.parts.kind.shape[0]):
        if learner.parts.kind[part] == ORDERED:
            if not movable_along(learner, values, n_moved, scratch, solver):
                return False
            continue
        for i in range(n_moved):
            coefficient = abs(solver.coefficients[solver.moved[i]])
            view = view_of(learner, part, indices, values, solver.moved[i], scratch, phi)
            own = similarity(learner, view, view, scratch)
            if not stays_small(coefficient, view, own):
                return False
    return True


@always_inlined
def kernel_move(learner, indices, values, n_moved, scratch, solver):
    """Add coefficient Phi(x, r) to the hypotheses of each class r to be updated."""
    for part in range(learner.parts.kind.shape[0]):
        n_before = learner.weights.following[part]
        if learner.parts.kind[part] == ORDERED:
            move_along(learner, part, indices, values, scratch, solver)
        elif learner.weights.policy >= PROJECTRON:
            project_moved(learner, part, indices, values, n_moved, scratch, solver)
        elif learner.parts.map[part] == 0:
            add_plain(learner, part, indices, values, n_moved, scratch, solver)
        else:
            add_views(learner, part, indices, values, n_moved, scratch, solver)
        keep_budget(learner, part, n_before, indices, scratch)


@inlined
def keep_budget(learner, part, n_before, indices, scratch):
    """Remove support vectors beyond the budget; the least recent ones as Cavallanti et al. (2007).

    n_before : the index that the next support vector had before the trial.
    """
    budget = learner.weights.budget
    if learner.weights.policy == LEAST_RECENT:
        if budget:
            oldest = learner.weights.following[part] - budget
            learner.weights.oldest[part] = max(learner.weights.oldest[part], oldest)
    else:
        remove_beyond(learner, part, n_before, indices, scratch)


@inlined
def project_moved(learner, part, indices, values, n_moved, scratch, solver):
    """Add coefficient Phi(x, r) to the hypotheses of each class r, or its projection."""
    column = scratch.column
    if learner.parts.map[part] == 0:
        clear(column, column.shape[0])
        sum_column(learner, part, n_moved, solver, column)
        set_plain_view(learner, indices, values, scratch)
        view = scratch.stored[: indices.shape[0]]
        project(learner, part, indices, view, scratch.sizes[0], scratch, solver)
        return
    for i in range(n_moved):
        r = solver.moved[i]
        clear(column, column.shape[0])
        for j in range(n_hypotheses(learner, part, r)):
            column[hypothesis(learner, part, r, j)] += np.float32(solver.coefficients[r])
        view = view_of(learner, part, indices, values, r, scratch, scratch.phi[: indices.shape[0]])
        project(learner, part, indices, view, squared_norm(view), scratch, solver)


@inlined
def add_plain(learner, part, indices, values, n_moved, scratch, solver):
    """Add x as one support vector, with an entry for each hypothesis to be updated.

    The coefficients of a hypothesis are summed first, since those of classes that share it may
    cancel.
    """
    column = scratch.column
    set_plain_view(learner, indices, values, scratch)
    for i in range(n_moved):
        r = solver.moved[i]
        for j in range(n_hypotheses(learner, part, r)):
            column[hypothesis(learner, part, r, j)] = 0
    sum_column(learner, part, n_moved, solver, column)
    is_stored = False
    for i in range(n_moved):
        r = solver.moved[i]
        for j in range(n_hypotheses(learner, part, r)):
            owner = hypothesis(learner, part, r, j)
            if column[owner] != 0:
                if not is_stored:
                    store(learner, part, indices, scratch.stored, scratch.sizes[0])
                    is_stored = True
                enter(learner, part, owner, column[owner])
                column[owner] = 0


@inlined
def sum_column(learner, part, n_moved, solver, column):
    """Add the coefficient of each class to be updated to its hypotheses."""
    for i in range(n_moved):
        r = solver.moved[i]
        for j in range(n_hypotheses(learner, part, r)):
            column[hypothesis(learner, part, r, j)] += np.float32(solver.coefficients[r])


@inlined
def add_views(learner, part, indices, values, n_moved, scratch, solver):
    """Add the view of each class to be updated, with an entry for each of its hypotheses."""
    for i in range(n_moved):
        r = solver.moved[i]
        coefficient, times = solver.coefficients[r], n_hypotheses(learner, part, r)
        if coefficient != 0 and times:
            view = view_of(
                learner, part, indices, values, r, scratch, scratch.phi[: indices.shape[0]]
            )
            store(learner, part, indices, view, squared_norm(view))
            for j in range(times):
                owner = hypothesis(learner, part, r, j)
                enter(learner, part, owner, np.float32(coefficient))


@always_inlined
def kernel_shrink_weights(learner):
    """Divide the coefficients of support vectors and the thresholds by MOST."""
    for part in range(learner.weights.thresholds.shape[0]):
        for r in range(learner.weights.thresholds.shape[2]):
            learner.weights.thresholds[part, 0, r] /= MOST
    for part in range(learner.weights.coefficients.shape[0]):
        for e in range(learner.weights.coefficients.shape[1]):
            learner.weights.coefficients[part, e] /= MOST


@inlined
def kernel_has_fault(learner, scratch):
    """Return whether the fault word of a part or of the kernel is set."""
    pass_on_fault(learner, scratch)
    return learner.weights.parameters[-1] != 0 or dense_has_fault(learner, scratch)


@inlined
def pass_on_fault(learner, scratch):
    """Set the fault word of the learner's kernel if a copy of it was set."""
    if scratch.singles[-1] != 0 or scratch.doubles[-1] != 0:
        learner.weights.parameters[-1] = 1.0


__all__ = ["PANEL", "Blocks", "EncodedTargets", "Ratings", "kernels_for", "write_arguments"]


def kernels_for(learner: Any) -> Kernels:
    """Return the kernels of a learner, given its record."""
    return kernels(next(n for n, each in KERNELS.items() if hold_facts(each, learner)))


@recipe
@cache
def kernels(name: str) -> Kernels:
    """Return the kernels of a variant, compiled for its facts."""
    return compiled_for(name, KERNELS[name])


def compiled_for(name: str, known: Facts, **values: Any) -> Kernels:
    """Return the kernels below, compiled for facts, with other values of some of their globals."""
    values |= {"learner_at": pointer_reader(KERNEL_LEARNER_RECORD, known)}
    found = (with_globals(each, name, values) for each in (_learn, _predict))
    return Kernels(*(kernel(types.void(INT, INT))(each) for each in found))


learner_at = pointer_reader(KERNEL_LEARNER_RECORD, KERNEL)  # differs between variants


@kernel(types.void(KERNEL_LEARNER_RECORD, INT))
def write_arguments(learner, address):
    """Write a learner to an address, from which the other kernels read it."""
    put(learner, address)


def _learn(learner, task):
    """Run one trial per row; the arrays must have capacity for all rows.

    See `kesler.compiled.trial.weight_trial._learn`.
    """
    learner_, task_ = learner_at(learner), task_at(task)
    scratch = make_kernel_scratch(learner_, task_.rows.indptr)
    solver = make_solver(learner_, scratch.scores.shape[0], task_.encoded)
    outputs = task_.predictions, task_.scores, task_.probabilities
    learn_all(
        learner_, task_.rows, task_.encoded, *outputs, dereference(scratch), dereference(solver)
    )
    pass_on_fault(learner_, scratch)
    hold(scratch, solver)


def _predict(learner, task):
    """Score rows as `_learn` does, without targets and without changing the learner."""
    learner_, task_ = learner_at(learner), task_at(task)
    scratch = make_kernel_scratch(learner_, task_.rows.indptr)
    outputs = task_.predictions, task_.scores, task_.probabilities
    score_all(learner_, task_.rows, *outputs, dereference(scratch))
    pass_on_fault(learner_, scratch)
    hold(scratch)

"""Moves: the steps of a trial, as new support vectors."""
# mypy: disallow_untyped_defs=False, disallow_untyped_calls=False

from __future__ import annotations

import numpy as np

from kesler.compiled.algorithms import run_algorithm
from kesler.compiled.forgetting import MOST, shrink_weights
from kesler.compiled.given import find_views
from kesler.compiled.jit import inlined
from kesler.compiled.kernel_norms import similarity, view_of
from kesler.compiled.kernel_units import set_plain_view
from kesler.compiled.learner import LARGEST, MAP
from kesler.compiled.lengths import largest
from kesler.compiled.links import meet_features, meet_hypotheses, settle
from kesler.compiled.members import n_hypotheses
from kesler.compiled.moves import is_movable, move
from kesler.compiled.ordered import insert_rank
from kesler.compiled.supports import (
    KernelLearner,
    enter,
    hypothesis,
    keep_budget,
    squared_norm,
    store,
)


@is_movable.register(KernelLearner)
def kernel_is_movable(learner, indices, values, n_moved, scratch, solver):
    """Whether no score of x itself would move by more than float32 bears; NaN is more."""
    phi = scratch.phi[: indices.shape[0]]
    for part in range(learner.parts.shape[0]):
        for i in range(n_moved):
            coefficient = abs(solver.coefficients[solver.moved[i]])
            view = view_of(learner, part, indices, values, solver.moved[i], scratch, phi)
            own = similarity(learner, view, view, scratch)
            if not (coefficient <= LARGEST and largest(view) <= LARGEST):
                return False
            if not (own <= LARGEST and coefficient * own <= LARGEST):
                return False
    return True


@move.register(KernelLearner)
def kernel_move(learner, indices, values, n_moved, scratch, solver):
    """Add coefficient Phi(x, r) to the hypotheses of each class r that moves."""
    for part in range(learner.parts.shape[0]):
        if learner.parts[part, MAP] == 0:
            add_plain(learner, part, indices, values, n_moved, scratch, solver)
        else:
            add_views(learner, part, indices, values, n_moved, scratch, solver)
    keep_budget(learner)


@inlined
def add_plain(learner, part, indices, values, n_moved, scratch, solver):
    """Add x once, with an entry for each hypothesis that moves.

    Summed first: what classes that share one take from each other cancels to nothing.
    """
    column = scratch.column
    set_plain_view(learner, indices, values, scratch)
    for i in range(n_moved):
        r = solver.moved[i]
        for j in range(n_hypotheses(learner, part, r)):
            column[hypothesis(learner, part, r, j)] = 0
    for i in range(n_moved):
        r = solver.moved[i]
        for j in range(n_hypotheses(learner, part, r)):
            column[hypothesis(learner, part, r, j)] += np.float32(solver.coefficients[r])
    is_stored = False
    for i in range(n_moved):
        r = solver.moved[i]
        for j in range(n_hypotheses(learner, part, r)):
            owner = hypothesis(learner, part, r, j)
            if column[owner] != 0:
                if not is_stored:
                    store(learner, part, indices, scratch.kept, scratch.sizes[0])
                    is_stored = True
                enter(learner, part, owner, column[owner])
                column[owner] = 0


@inlined
def add_views(learner, part, indices, values, n_moved, scratch, solver):
    """Add the view of each class that moves, with an entry for each of its hypotheses."""
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


@settle.register(KernelLearner)
def kernel_settle(learner, out):
    """Do nothing: there is no link."""


@meet_features.register(KernelLearner)
def kernel_meet_features(learner, indices, k, scratch):
    """Do nothing: there is no link."""


@meet_hypotheses.register(KernelLearner)
def kernel_meet_hypotheses(learner, y, out):
    """Do nothing: there is no link."""


@find_views.register(KernelLearner)
def kernel_find_views(learner, ratings, t, k, scratch):
    """Do nothing: views are not given."""


@insert_rank.register(KernelLearner)
def kernel_insert_rank(learner, y):
    """Do nothing: there are no thresholds."""


@run_algorithm.register(KernelLearner)
def kernel_run_algorithm(learner, indices, values, scratch, solver):
    """Do nothing: there are no weights to move."""


@shrink_weights.register(KernelLearner)
def kernel_shrink_weights(learner):
    """Divide the coefficients of support vectors."""
    for part in range(learner.coefficients.shape[0]):
        for e in range(learner.coefficients.shape[1]):
            learner.coefficients[part, e] /= MOST

"""Moves over sparse rows of weights, and which of two classes a trial is about."""
# mypy: disallow_untyped_defs=False, disallow_untyped_calls=False

from __future__ import annotations

import numpy as np

from kesler.compiled.algorithms import run_algorithm
from kesler.compiled.choices import set_levels
from kesler.compiled.fetch import fetch
from kesler.compiled.forgetting import MOST, shrink_weights
from kesler.compiled.given import find_views
from kesler.compiled.lanes import LANES
from kesler.compiled.learner import LARGEST, ONE
from kesler.compiled.lengths import largest, squared_length
from kesler.compiled.links import meet_features, meet_hypotheses, settle
from kesler.compiled.metrics import (
    gather_gradient,
    has_metric,
    leave_evidence,
    measure_in_metric,
    rescale,
)
from kesler.compiled.moves import is_movable, move
from kesler.compiled.norms import gram_column, gram_diagonal, pair_norm
from kesler.compiled.ordered import insert_rank
from kesler.compiled.prefetch import fetch_ahead
from kesler.compiled.scores import best_but
from kesler.compiled.sparse_rows import (
    ROWS,
    UNITS,
    SparseLearner,
    add_to_weight,
    has_room_for,
)
from kesler.compiled.statistics import inherit, list_features
from kesler.compiled.trial import has_room, judge, note_odd
from kesler.compiled.wide import choose_loops

# ---- the pair of a trial: the answer, and the class of highest score but it ----------------------


@set_levels.register(SparseLearner)
def sparse_set_levels(learner, codes, levels, rest, k, solver):
    """Note the right class, of the lowest level, NONE if it is new; all others share the next."""
    solver.lowest[0] = codes[0] if codes[0] < k else -1
    return ONE


@judge.register(SparseLearner)
def sparse_judge(learner, codes, k, highest, scratch, solver):
    """Return the right class and its best rival; (-1, -1) if one is missing or no number."""
    if note_odd(learner, scratch.scores, k):
        return -1, -1
    y = solver.lowest[0]
    if y < 0 or k < 2:
        return -1, -1
    return y, best_but(learner, scratch.scores, k, y)


# ---- moves ---------------------------------------------------------------------------------------


@has_room.register(SparseLearner)
def sparse_has_room(learner, indices):
    """Whether there is room for the entries that a trial may add."""
    return has_room_for(learner, indices)


@pair_norm.register(SparseLearner)
def sparse_pair_norm(learner, indices, values, y, s, scratch):
    """||phi(x, y) - phi(x, s)||^2: each class has a hypothesis of its own over x itself."""
    return 2.0 * squared_length(values)


@is_movable.register(SparseLearner)
def sparse_is_movable(learner, indices, values, n_moved, scratch, solver):
    """Whether no weight would move by more than float32 bears; NaN is more."""
    size = largest(values)
    for i in range(n_moved):
        if not abs(solver.coefficients[solver.moved[i]]) * size <= LARGEST:
            return False
    return True


@move.register(SparseLearner)
def sparse_move(learner, indices, values, n_moved, scratch, solver):
    """Add coefficient x to the weights of each class that moves."""
    for i in range(n_moved):
        r = solver.moved[i]
        coefficient = np.float32(solver.coefficients[r])
        for j in range(indices.shape[0]):
            add_to_weight(learner, indices[j], r, coefficient * values[j])


@shrink_weights.register(SparseLearner)
def sparse_shrink_weights(learner):
    """Divide the weights."""
    for e in range(learner.pool[UNITS] * LANES):
        learner.values[e] /= MOST
    for row in range(learner.pool[ROWS]):
        for r in range(learner.table.shape[1]):
            learner.table[row, r] /= MOST


@fetch_ahead.register(SparseLearner)
def sparse_fetch_ahead(learner, rows, t, k, scratch):
    """Ask for where the features of row t have their entries, if there is such a row."""
    if t + 1 < rows.indptr.shape[0]:
        for j in range(rows.indptr[t], rows.indptr[t + 1]):
            i = rows.indices[j]
            if learner.counts[i] > 0:
                fetch(learner.owners, learner.heads[i] * LANES)
                fetch(learner.values, learner.heads[i] * LANES)


# ---- what such learners have none of -------------------------------------------------------------


@has_metric.register(SparseLearner)
@rescale.register(SparseLearner)
def no(learner, *arguments):
    """There are no step sizes and no units."""
    return False


@settle.register(SparseLearner)
@meet_features.register(SparseLearner)
@meet_hypotheses.register(SparseLearner)
@find_views.register(SparseLearner)
@insert_rank.register(SparseLearner)
@run_algorithm.register(SparseLearner)
@gram_column.register(SparseLearner)
@gram_diagonal.register(SparseLearner)
@measure_in_metric.register(SparseLearner)
@gather_gradient.register(SparseLearner)
@leave_evidence.register(SparseLearner)
@inherit.register(SparseLearner)
@list_features.register(SparseLearner)
@choose_loops.register(SparseLearner)
def nothing(learner, *arguments):
    """Do nothing: a machine keeps weights in sparse rows only where this is not asked for."""

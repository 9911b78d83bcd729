"""Trials of learners whose weights are stored in sparse rows.

Sums have the order of `scores.add_products`, feature by feature, so that they are equal in every
bit: a class without a weight adds 0 x, which changes nothing.
"""
# mypy: disallow_untyped_defs=False, disallow_untyped_calls=False

from __future__ import annotations

import sys
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import types

from kesler.compiled.jit.decorators import (
    FLOATS,
    INDICES,
    INT,
    INTS,
    allocating,
    always_inlined,
    inlined,
    kernel,
)
from kesler.compiled.jit.pointers import dereference, fetch, hold, pointer_reader, put
from kesler.compiled.jit.record_types import SPARSE_LEARNER_RECORD, tuple_type
from kesler.compiled.jit.simd import (
    SIMD_WIDTH,
    cut,
    largest,
    length_of,
    load,
    spread,
    squared_length,
    store,
    total_of,
    whole_lines,
)
from kesler.compiled.trial.calibration import (
    dense_moments,
    dense_soften,
    far_below,
    of_score,
    shared_by_zeros,
)
from kesler.compiled.trial.choices import is_ahead
from kesler.compiled.trial.facts import SPARSE
from kesler.compiled.trial.facts import hold as hold_facts
from kesler.compiled.trial.forgetting import MOST
from kesler.compiled.trial.records import LARGEST, ONE, Blocks, EncodedTargets, Ratings, Solver
from kesler.compiled.trial.tasks import task_at
from kesler.compiled.trial.trial import learn_all, note_odd, score_all
from kesler.compiled.trial.variants import best, best_but
from kesler.compiled.weights.scores import add_products, clear, dense_best
from kesler.compiled.weights.sparse_rows import (
    ALL,
    IN_TABLE,
    MOST_MOVED,
    UNKNOWN,
    add_to_weight,
    append,
    before_last,
    has_capacity_for,
    most_entries,
    move_to_table,
)
from kesler.state.records import SOLVER_STATUS, SparseRows


@always_inlined
def sparse_score(learner, indices, values, k, scratch, scores):
    """Compute scores[r] = <w_r, x>; list the classes that have a weight for a feature of x."""
    forget_scores(learner, k)
    reaches_all = False
    for j in range(indices.shape[0]):
        reaches_all |= learner.weights.rows.counts[indices[j]] == IN_TABLE
    learner.weights.trial.reach.n_reached = ALL if reaches_all else 0
    width = whole_lines(k)
    for j in range(indices.shape[0]):
        if learner.weights.rows.counts[indices[j]] == IN_TABLE:
            add_row(learner, indices[j], values[j : j + 1], width, scratch)
        else:
            add_entries(learner, indices[j], values[j])
    if not reaches_all:
        list_reached(learner, k)


@inlined
def forget_scores(learner, k):
    """Reset all scores to 0."""
    n = learner.weights.trial.reach.n_reached
    if n == ALL:
        clear(learner.weights.trial.scores, whole_lines(k))
    for i in range(n):
        learner.weights.trial.scores[learner.weights.trial.reached[i]] = 0
    learner.weights.trial.reach.winner = UNKNOWN


@inlined
def add_row(learner, i, x, width, scratch):
    """Add the products x w of a feature in the table to the scores."""
    scratch.row[0] = learner.weights.rows.heads[i]
    add_products(
        scratch.row,
        x,
        scratch.row[:0],
        learner.weights.rows.table,
        0,
        width,
        learner.weights.trial.scores,
    )


@inlined
def add_entries(learner, i, x):
    """Add the products x w of a feature to the scores, and mark its classes.

    If all classes count as reached, the marks are not read, and remain 0.
    """
    owners, weights, scores, marks = (
        learner.weights.rows.owners,
        learner.weights.rows.values,
        learner.weights.trial.scores,
        learner.weights.trial.marks,
    )
    marked = np.uint8(learner.weights.trial.reach.n_reached != ALL)
    n, unit = np.int64(learner.weights.rows.counts[i]), np.int64(learner.weights.rows.heads[i])
    while n > 0:
        before, first = before_last(n), unit * SIMD_WIDTH
        for e in range(np.uintp(first), np.uintp(first + n - before)):
            r = np.uintp(owners[e])
            scores[r] += x * weights[e]
            marks[r] = marked
        n, unit = before, np.int64(learner.weights.rows.links[unit])


@inlined
def list_reached(learner, k):
    """List the marked classes in the order of their first instances, and reset their marks."""
    n, words, marks, reached = (
        np.uintp(0),
        learner.weights.trial.mark_words,
        learner.weights.trial.marks,
        learner.weights.trial.reached,
    )
    for word in range(np.uintp((k + 7) // 8)):
        if words[word] != 0:
            for r in range(np.uintp(8 * word), np.uintp(8 * word + 8)):
                reached[n] = r  # unconditionally, since a branch would be unpredictable
                n += np.uintp(marks[r])
            words[word] = 0
    learner.weights.trial.reach.n_reached = np.int64(n)


# ---- tests and maxima of scores ------------------------------------------------------------------


@always_inlined
def sparse_finite(learner, scores, k):
    """Return whether every score is finite."""
    n, not_finite = learner.weights.trial.reach.n_reached, False
    if n == ALL:
        for r in range(k):
            not_finite |= not abs(scores[r]) < np.inf
    for i in range(n):
        not_finite |= not abs(scores[learner.weights.trial.reached[i]]) < np.inf
    return not not_finite


@always_inlined
def sparse_best(learner, scores, k):
    """Return the class of the highest score, the first seen if tied, or -1."""
    if learner.weights.trial.reach.winner == UNKNOWN:
        learner.weights.trial.reach.winner = find_best(learner, scores, k, -1)
    return learner.weights.trial.reach.winner


@always_inlined
def sparse_best_but(learner, scores, k, y):
    """Return the class of the highest score except y, the first seen if tied, or -1."""
    winner = best(learner, scores, k)
    if winner != y:
        return winner
    own, scores[y] = scores[y], -np.inf
    winner = find_best(learner, scores, k, y) if k > 1 else -1
    scores[y] = own
    return winner


@inlined
def find_best(learner, scores, k, y):
    """Return the class of the highest score: one reached, or the first of the others except y."""
    n = learner.weights.trial.reach.n_reached
    if n == ALL:
        return dense_best(learner.weights.trial.scores, scores, k)  # which reads only scores
    winner = first_unreached(learner, y)
    if winner >= k:
        winner = learner.weights.trial.reached[0] if n else -1
    for i in range(n):
        r = learner.weights.trial.reached[i]
        if is_ahead(scores, r, winner):
            winner = r
    return winner


@inlined
def first_unreached(learner, y):
    """Return the first class, except y, that is not reached; it may be an unseen one."""
    r, i, n = 0, 0, learner.weights.trial.reach.n_reached
    while r == y or (i < n and learner.weights.trial.reached[i] == r):
        i += i < n and learner.weights.trial.reached[i] == r
        r += 1
    return r


# ---- sums of the calibration ---------------------------------------------------------------------


@always_inlined
def sparse_soften(learner, inverse, scores, k, top, exponentials):
    """Compute what `calibration.dense_soften` does, over the classes reached."""
    n = learner.weights.trial.reach.n_reached
    if n == ALL:
        return dense_soften(scores, inverse, scores, k, top, exponentials)
    lanes, n_zeros = learner.weights.trial.lanes, k - n
    store(lanes, 0, spread(0.0))
    for i in range(n):
        r = learner.weights.trial.reached[i]
        share = of_score(inverse, scores[r], top)
        exponentials[r] = share if scores[r] != 0 else np.float32(0)
        n_zeros += scores[r] == 0
    for i in range(n):
        r = learner.weights.trial.reached[i]
        lanes[r % SIMD_WIDTH] += np.float64(exponentials[r])
    of_zeros = shared_by_zeros(inverse, n_zeros, top)
    return total_of(load(lanes, 0)) + of_zeros, of_zeros


@always_inlined
def sparse_moments(learner, inverse, scores, k, top, exponentials):
    """Compute what `calibration.dense_moments` does, over the classes reached."""
    n = learner.weights.trial.reach.n_reached
    if n == ALL:
        return dense_moments(scores, inverse, scores, k, top, exponentials)
    lanes = learner.weights.trial.lanes
    store(lanes, 0, spread(0.0))
    store(lanes, SIMD_WIDTH, spread(0.0))
    for i in range(n):
        r = learner.weights.trial.reached[i]
        z = far_below(inverse, scores[r], top)
        share = np.float64(exponentials[r]) * z
        lanes[r % SIMD_WIDTH] += share
        lanes[SIMD_WIDTH + r % SIMD_WIDTH] += share * z
    return total_of(load(lanes, 0)), total_of(load(lanes, SIMD_WIDTH))


# ---- the pair of a trial: the target, and the class of the highest score except it ---------------


@always_inlined
def sparse_set_levels(learner, codes, levels, rest, k, solver):
    """Set lowest[0] to the target, -1 if it is new; all other classes share the next level."""
    solver.lowest[0] = codes[0] if codes[0] < k else -1
    return ONE


@always_inlined
def sparse_judge(learner, codes, k, highest, scratch, solver):
    """Return the target and its best rival; (-1, -1) if one is missing or a score not finite."""
    if note_odd(learner, scratch.scores, k):
        return -1, -1
    y = solver.lowest[0]
    if y < 0 or k < 2:
        return -1, -1
    return y, best_but(learner, scratch.scores, k, y)


# ---- updates -------------------------------------------------------------------------------------


@always_inlined
def sparse_has_capacity(learner, indices):
    """Return whether there is capacity for the entries that a trial may add."""
    return has_capacity_for(learner.weights.rows, indices)


@always_inlined
def sparse_pair_norm(learner, indices, values, y, s, scratch):
    """Return ||phi(x, y) - phi(x, s)||^2: each class has its own hypothesis over x itself."""
    return 2.0 * squared_length(values)


@always_inlined
def sparse_is_movable(learner, indices, values, n_moved, scratch, solver):
    """Return whether no weight changes by more than LARGEST; False for NaN."""
    size = largest(values)
    for i in range(n_moved):
        if not abs(solver.coefficients[solver.moved[i]]) * size <= LARGEST:
            return False
    return True


@always_inlined
def sparse_move(learner, indices, values, n_moved, scratch, solver):
    """Add coefficient x to the weights of each class to be updated."""
    for i in range(n_moved):
        r = solver.moved[i]
        coefficient = np.float32(solver.coefficients[r])
        for j in range(indices.shape[0]):
            add_to_weight(learner.weights.rows, indices[j], r, coefficient * values[j])


@always_inlined
def sparse_shrink_weights(learner):
    """Divide the weights by MOST."""
    for e in range(learner.weights.rows.pool.n_units * SIMD_WIDTH):
        learner.weights.rows.values[e] /= MOST
    for row in range(learner.weights.rows.pool.n_rows):
        for r in range(learner.weights.rows.table.shape[1]):
            learner.weights.rows.table[row, r] /= MOST


@always_inlined
def sparse_fetch_ahead(learner, rows, t, k, scratch):
    """Prefetch the entries of the features of row t, if there is such a row."""
    if t + 1 < rows.indptr.shape[0]:
        for j in range(rows.indptr[t], rows.indptr[t + 1]):
            i = rows.indices[j]
            if learner.weights.rows.counts[i] > 0:
                fetch(learner.weights.rows.owners, learner.weights.rows.heads[i] * SIMD_WIDTH)
                fetch(learner.weights.rows.values, learner.weights.rows.heads[i] * SIMD_WIDTH)


__all__ = ["Blocks", "EncodedTargets", "Ratings", "kernels_for", "write_arguments"]

SPARSE_ROWS = tuple_type(SparseRows)
learner_at = pointer_reader(SPARSE_LEARNER_RECORD, SPARSE)


def kernels_for(learner: Any) -> Any:
    """Return the module, which contains the kernels, after checking its facts for a learner."""
    assert hold_facts(SPARSE, learner)
    return sys.modules[__name__]


class SparseScratch(NamedTuple):
    """Scratch arrays of a trial, allocated once per call; those over classes are the learner's.

    row : (1,), of the table; conditioned, exact : as in `Scratch`; out : (1,), of links.
    """

    scores: npt.NDArray[np.float32]
    row: npt.NDArray[np.int32]
    conditioned: npt.NDArray[np.float32]
    exact: npt.NDArray[np.float64]
    out: npt.NDArray[np.float64]


@allocating
def make_sparse_scratch(learner, indptr):
    """Allocate scratch arrays for the longest row."""
    longest = 0
    for i in range(indptr.shape[0] - 1):
        longest = max(longest, indptr[i + 1] - indptr[i])
    n_conditioned = 0 if learner.preprocessing.method == 0 else longest
    return SparseScratch(
        learner.weights.trial.scores,
        np.empty(1, np.int32),
        np.empty(n_conditioned, np.float32),
        np.empty(n_conditioned),
        np.empty(1),
    )


@allocating
def make_sparse_solver(learner):
    """Allocate a solver for the single constraint of a trial."""
    integers, doubles = (1, 2, 1, 1, 1, 1, 1, MOST_MOVED), (1, 1, 1, (1, 0), (0, 0))
    status = np.zeros(1, SOLVER_STATUS)
    held = np.zeros(length_of(integers), np.int64), np.zeros(length_of(doubles)), status
    before = (learner.weights.trial.coefficients, held[1])
    others = (
        learner.weights.trial.is_moved,
        learner.weights.trial.exponentials,
        learner.ranks,
        status,
        held,
    )
    return Solver(*(cut(held[0], integers) + cut(held[1], doubles) + before + others))


@kernel(types.void(SPARSE_LEARNER_RECORD, INT))
def write_arguments(learner, address):
    """Write a learner to an address, from which the other kernels read it."""
    put(learner, address)


@kernel(types.void(INT, INT))
def learn(learner, task):
    """Run one trial per row while there is capacity, and set `n_done`; see `weight_trial.learn`."""
    learner_, task_ = learner_at(learner), task_at(task)
    scratch, solver = make_sparse_scratch(learner_, task_.rows.indptr), make_sparse_solver(learner_)
    outputs = task_.predictions, task_.scores, task_.probabilities
    n = learn_all(
        learner_, task_.rows, task_.encoded, *outputs, dereference(scratch), dereference(solver)
    )
    learner_.weights.trial.reach.n_done = n
    hold(scratch, solver)


@kernel(types.void(INT, INT))
def predict(learner, task):
    """Score rows as `learn` does, without targets and without changing the learner."""
    learner_, task_ = learner_at(learner), task_at(task)
    scratch = make_sparse_scratch(learner_, task_.rows.indptr)
    outputs = task_.predictions, task_.scores, task_.probabilities
    score_all(learner_, task_.rows, *outputs, dereference(scratch))
    hold(scratch)


# ---- reading and writing entries -----------------------------------------------------------------


@kernel(types.void(SPARSE_ROWS, INTS, INDICES, INDICES, FLOATS))
def take(rows, starts, features, owners, weights):
    """Store a list of entries for each feature, which must have none; there must be capacity."""
    for f in range(features.shape[0]):
        i = features[f]
        n = starts[f + 1] - starts[f]
        if n > most_entries(rows.table.shape[1]):
            move_to_table(rows, i)
        for e in range(starts[f], starts[f + 1]):
            if rows.counts[i] == IN_TABLE:
                rows.table[rows.heads[i], owners[e]] = weights[e]
            else:
                append(rows, i, owners[e], weights[e])


@kernel(types.int64(SPARSE_ROWS, INDICES, INTS))
def count(rows, features, starts):
    """Set starts[f + 1] to the number of non-zero weights of features 0 to f; return the last."""
    total = 0
    for f in range(features.shape[0]):
        i = features[f]
        n, unit = np.int64(rows.counts[i]), np.int64(rows.heads[i])
        if n == IN_TABLE:
            for r in range(rows.table.shape[1]):
                total += rows.table[unit, r] != 0
        while n > 0:
            before, first = before_last(n), unit * SIMD_WIDTH
            for e in range(first, first + n - before):
                total += rows.values[e] != 0
            n, unit = before, np.int64(rows.links[unit])
        starts[f + 1] = total
    return total


@kernel(types.void(SPARSE_ROWS, INDICES, INDICES, FLOATS))
def get(rows, features, owners, weights):
    """List the non-zero weights of features, in no particular order of classes."""
    m = 0
    for f in range(features.shape[0]):
        i = features[f]
        n, unit = np.int64(rows.counts[i]), np.int64(rows.heads[i])
        if n == IN_TABLE:
            for r in range(rows.table.shape[1]):
                if rows.table[unit, r] != 0:
                    owners[m], weights[m] = r, rows.table[unit, r]
                    m += 1
        while n > 0:
            before, first = before_last(n), unit * SIMD_WIDTH
            for e in range(first, first + n - before):
                if rows.values[e] != 0:
                    owners[m], weights[m] = rows.owners[e], rows.values[e]
                    m += 1
            n, unit = before, np.int64(rows.links[unit])

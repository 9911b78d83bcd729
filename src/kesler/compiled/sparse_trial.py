"""The trial of `trial.py`, for learners whose weights stand in sparse rows."""
# mypy: disallow_untyped_defs=False, disallow_untyped_calls=False

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import types

# Imported for the versions that they register.
from kesler.compiled import sparse_moves, sparse_scores  # noqa: F401
from kesler.compiled.borrowed import borrow, borrower, hold, put
from kesler.compiled.conditioning import METHOD
from kesler.compiled.jit import (
    FLOATS,
    INDICES,
    INT,
    INTS,
    allocating,
    kernel,
)
from kesler.compiled.lanes import LANES
from kesler.compiled.learner import Blocks, Heard, Ratings, Solver
from kesler.compiled.slices import cut, length_of
from kesler.compiled.sparse_rows import (
    IN_TABLE,
    MOST_MOVED,
    N_DONE,
    SPARSE_LEARNER,
    SPARSE_ROWS,
    SparseLearner,
    SparseRows,
    append,
    before_last,
    most_entries,
    move_to_table,
)
from kesler.compiled.tasks import task_at
from kesler.compiled.trial import learn_all, score_all

__all__ = ["Blocks", "Heard", "Ratings", "SparseLearner", "SparseRows", "learn", "lend", "predict"]

learner_at = borrower(SPARSE_LEARNER)


class SparseScratch(NamedTuple):
    """Room for one trial, made once a call; what takes room for all classes is the learner's own.

    row : (1,), of the table; conditioned, exact : as in `Scratch`; out : (1,), of links.
    """

    scores: npt.NDArray[np.float32]
    row: npt.NDArray[np.int32]
    conditioned: npt.NDArray[np.float32]
    exact: npt.NDArray[np.float64]
    out: npt.NDArray[np.float64]


@allocating
def make_sparse_scratch(learner, indptr):
    """Room for the longest row."""
    longest = 0
    for i in range(indptr.shape[0] - 1):
        longest = max(longest, indptr[i + 1] - indptr[i])
    n_conditioned = 0 if learner.conditioning[METHOD] == 0 else longest
    return SparseScratch(
        learner.scores,
        np.empty(1, np.int32),
        np.empty(n_conditioned, np.float32),
        np.empty(n_conditioned),
        np.empty(1),
    )


@allocating
def make_sparse_solver(learner):
    """Room for the one constraint of a trial."""
    integers, doubles = (1, 2, 1, 1, 1, 1, 1, 3, MOST_MOVED), (1, 1, 1, (1, 0), (0, 0))
    held = np.zeros(length_of(integers), np.int64), np.zeros(length_of(doubles))
    before = (learner.coefficients, held[1])
    others = (learner.is_moved, learner.exponentials, learner.ranks, held)
    return Solver(*(cut(held[0], integers) + cut(held[1], doubles) + before + others))


@kernel(types.void(SPARSE_LEARNER, INT))
def lend(learner, address):
    """Write a learner to an address, where the other kernels borrow it."""
    put(learner, address)


@kernel(types.void(INT, INT))
def learn(learner, task):
    """Run a trial a row, and tell how many there was room for; see `weight_trial.learn`."""
    learner_, task_ = learner_at(learner), task_at(task)
    scratch, solver = make_sparse_scratch(learner_, task_.rows.indptr), make_sparse_solver(learner_)
    outputs = task_.predictions, task_.scores, task_.probabilities
    n = learn_all(learner_, task_.rows, task_.heard, *outputs, borrow(scratch), borrow(solver))
    learner_.reach[N_DONE] = n
    hold(scratch, solver)


@kernel(types.void(INT, INT))
def predict(learner, task):
    """Score rows, changing nothing, as in `learn` but for answers."""
    learner_, task_ = learner_at(learner), task_at(task)
    scratch = make_sparse_scratch(learner_, task_.rows.indptr)
    score_all(learner_, task_.rows, task_.predictions, task_.scores, borrow(scratch))
    hold(scratch)


# ---- entries in and out --------------------------------------------------------------------------


@kernel(types.void(SPARSE_ROWS, INTS, INDICES, INDICES, FLOATS))
def take(rows, starts, features, owners, weights):
    """Give features that have no entry those of a list each, for which there must be room."""
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
    """starts[f + 1] = how many weights the features up to the f-th have; return the last."""
    total = 0
    for f in range(features.shape[0]):
        i = features[f]
        n, unit = np.int64(rows.counts[i]), np.int64(rows.heads[i])
        if n == IN_TABLE:
            for r in range(rows.table.shape[1]):
                total += rows.table[unit, r] != 0
        while n > 0:
            before, first = before_last(n), unit * LANES
            for e in range(first, first + n - before):
                total += rows.values[e] != 0
            n, unit = before, np.int64(rows.links[unit])
        starts[f + 1] = total
    return total


@kernel(types.void(SPARSE_ROWS, INDICES, INDICES, FLOATS))
def get(rows, features, owners, weights):
    """List the weights of features that are not 0, in no order of classes."""
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
            before, first = before_last(n), unit * LANES
            for e in range(first, first + n - before):
                if rows.values[e] != 0:
                    owners[m], weights[m] = rows.owners[e], rows.values[e]
                    m += 1
            n, unit = before, np.int64(rows.links[unit])

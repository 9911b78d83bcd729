"""The trial of `trial.py`, for learners whose hypotheses are weights."""
# mypy: disallow_untyped_defs=False, disallow_untyped_calls=False

from __future__ import annotations

from numba import types

from kesler.compiled.borrowed import borrow, borrower, hold, put
from kesler.compiled.jit import INT, kernel
from kesler.compiled.learner import (
    LEARNER,
    Blocks,
    Heard,
    Learner,
    Ratings,
    make_scratch,
    make_solver,
)
from kesler.compiled.tasks import task_at
from kesler.compiled.trial import learn_all, score_all

__all__ = ["Blocks", "Heard", "Learner", "Ratings", "learn", "lend", "predict"]

learner_at = borrower(LEARNER)


@kernel(types.void(LEARNER, INT))
def lend(learner, address):
    """Write a learner to an address, where the other kernels borrow it."""
    put(learner, address)


@kernel(types.void(INT, INT))
def learn(learner, task):
    """Run a trial a row; of the learner and the task, see `Task`, the addresses are given."""
    learner_, task_ = learner_at(learner), task_at(task)
    scratch = make_scratch(learner_, task_.rows)
    solver = make_solver(learner_, scratch.scores.shape[0], task_.heard)
    outputs = task_.predictions, task_.scores, task_.probabilities
    learn_all(learner_, task_.rows, task_.heard, *outputs, borrow(scratch), borrow(solver))
    hold(scratch, solver)


@kernel(types.void(INT, INT))
def predict(learner, task):
    """Score rows, changing nothing, as in `learn` but for answers."""
    learner_, task_ = learner_at(learner), task_at(task)
    scratch = make_scratch(learner_, task_.rows)
    score_all(learner_, task_.rows, task_.predictions, task_.scores, borrow(scratch))
    hold(scratch)

"""Trials of learners whose hypotheses are rows of a weight table."""
# mypy: disallow_untyped_defs=False, disallow_untyped_calls=False

from __future__ import annotations

from numba import types

from kesler.compiled.jit.decorators import INT, kernel
from kesler.compiled.jit.pointers import dereference, hold, pointer_reader, put
from kesler.compiled.jit.record_types import LEARNER_RECORD
from kesler.compiled.trial.records import Blocks, EncodedTargets, Ratings, make_scratch, make_solver
from kesler.compiled.trial.tasks import task_at
from kesler.compiled.trial.trial import learn_all, score_all

__all__ = ["Blocks", "EncodedTargets", "Ratings", "learn", "predict", "write_arguments"]

learner_at = pointer_reader(LEARNER_RECORD)


@kernel(types.void(LEARNER_RECORD, INT))
def write_arguments(learner, address):
    """Write a learner to an address, from which the other kernels read it."""
    put(learner, address)


@kernel(types.void(INT, INT))
def learn(learner, task):
    """Run one trial per row, given the addresses of a learner and of a task (see `Task`)."""
    learner_, task_ = learner_at(learner), task_at(task)
    scratch = make_scratch(learner_, task_.rows)
    solver = make_solver(learner_, scratch.scores.shape[0], task_.encoded)
    outputs = task_.predictions, task_.scores, task_.probabilities
    learn_all(
        learner_, task_.rows, task_.encoded, *outputs, dereference(scratch), dereference(solver)
    )
    hold(scratch, solver)


@kernel(types.void(INT, INT))
def predict(learner, task):
    """Score rows as `learn` does, without targets and without changing the learner."""
    learner_, task_ = learner_at(learner), task_at(task)
    scratch = make_scratch(learner_, task_.rows)
    score_all(learner_, task_.rows, task_.predictions, task_.scores, dereference(scratch))
    hold(scratch)

"""Trials of learners over a kernel whose budget has a policy other than the least recent."""
# mypy: disallow_untyped_defs=False, disallow_untyped_calls=False

from __future__ import annotations

from numba import types

from kesler.compiled.jit.decorators import INT, kernel
from kesler.compiled.jit.pointers import dereference, hold, pointer_reader
from kesler.compiled.jit.record_types import KERNEL_LEARNER_RECORD
from kesler.compiled.kernels.kernel_trial import pass_on_fault
from kesler.compiled.kernels.supports import make_kernel_scratch
from kesler.compiled.trial.facts import BUDGET
from kesler.compiled.trial.records import make_solver
from kesler.compiled.trial.tasks import task_at
from kesler.compiled.trial.trial import learn_all, score_all

learner_at = pointer_reader(KERNEL_LEARNER_RECORD, BUDGET)


@kernel(types.void(INT, INT))
def learn(learner, task):
    """Run one trial per row; see `kesler.compiled.kernels.kernel_trial.learn`."""
    learner_, task_ = learner_at(learner), task_at(task)
    scratch = make_kernel_scratch(learner_, task_.rows.indptr)
    solver = make_solver(learner_, scratch.scores.shape[0], task_.encoded)
    outputs = task_.predictions, task_.scores, task_.probabilities
    learn_all(
        learner_, task_.rows, task_.encoded, *outputs, dereference(scratch), dereference(solver)
    )
    pass_on_fault(learner_, scratch)
    hold(scratch, solver)


@kernel(types.void(INT, INT))
def predict(learner, task):
    """Score rows as `learn` does, without targets and without changing the learner."""
    learner_, task_ = learner_at(learner), task_at(task)
    scratch = make_kernel_scratch(learner_, task_.rows.indptr)
    outputs = task_.predictions, task_.scores, task_.probabilities
    score_all(learner_, task_.rows, *outputs, dereference(scratch))
    pass_on_fault(learner_, scratch)
    hold(scratch)

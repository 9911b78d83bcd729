"""The trial of `trial.py`, for learners whose hypotheses are support vectors."""
# mypy: disallow_untyped_defs=False, disallow_untyped_calls=False

from __future__ import annotations

from numba import types

# Imported for the versions that they register.
from kesler.compiled import kernel_moves, kernel_norms, kernel_scores, kernel_units  # noqa: F401
from kesler.compiled.borrowed import borrow, borrower, hold, put
from kesler.compiled.jit import INT, kernel
from kesler.compiled.learner import Blocks, Heard, Ratings, make_solver
from kesler.compiled.supports import KERNEL_LEARNER, PANEL, KernelLearner, make_kernel_scratch
from kesler.compiled.tasks import task_at
from kesler.compiled.trial import learn_all, score_all

__all__ = ["PANEL", "Blocks", "Heard", "KernelLearner", "Ratings", "learn", "lend", "predict"]

learner_at = borrower(KERNEL_LEARNER)


@kernel(types.void(KERNEL_LEARNER, INT))
def lend(learner, address):
    """Write a learner to an address, where the other kernels borrow it."""
    put(learner, address)


@kernel(types.void(INT, INT))
def learn(learner, task):
    """Run a trial a row, for which there must be room; see `kesler.compiled.weight_trial.learn`."""
    learner_, task_ = learner_at(learner), task_at(task)
    scratch = make_kernel_scratch(learner_, task_.rows.indptr)
    solver = make_solver(learner_, scratch.scores.shape[0], task_.heard)
    outputs = task_.predictions, task_.scores, task_.probabilities
    learn_all(learner_, task_.rows, task_.heard, *outputs, borrow(scratch), borrow(solver))
    hold(scratch, solver)


@kernel(types.void(INT, INT))
def predict(learner, task):
    """Score rows, changing nothing, as in `learn` but for answers."""
    learner_, task_ = learner_at(learner), task_at(task)
    scratch = make_kernel_scratch(learner_, task_.rows.indptr)
    score_all(learner_, task_.rows, task_.predictions, task_.scores, borrow(scratch))
    hold(scratch)

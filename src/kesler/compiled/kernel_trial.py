"""The trial of `trial.py`, for learners whose hypotheses are support vectors."""
# mypy: disallow_untyped_defs=False, disallow_untyped_calls=False

from __future__ import annotations

from numba import types

# Imported for the versions that they register.
from kesler.compiled import kernel_moves, kernel_norms, kernel_scores, kernel_units  # noqa: F401
from kesler.compiled.borrowed import borrow, hold
from kesler.compiled.jit import DOUBLE_TABLE, FLOAT_TABLE, INDICES, kernel
from kesler.compiled.learner import BLOCKS, HEARD, Blocks, Heard, Ratings, make_solver
from kesler.compiled.supports import KERNEL_LEARNER, PANEL, KernelLearner, make_kernel_scratch
from kesler.compiled.trial import learn_all, score_all

__all__ = ["PANEL", "Blocks", "Heard", "KernelLearner", "Ratings", "learn", "predict"]


@kernel(types.void(KERNEL_LEARNER, BLOCKS, HEARD, INDICES, FLOAT_TABLE, DOUBLE_TABLE))
def learn(learner, rows, heard, predictions, scores, probabilities):
    """Run a trial a row, for which there must be room; see `kesler.compiled.weight_trial.learn`."""
    learner_, rows_, heard_ = borrow(learner), borrow(rows), borrow(heard)
    scratch = make_kernel_scratch(learner_, rows.indptr)
    solver = make_solver(learner_, scratch.scores.shape[0], heard_)
    outputs = predictions, scores, probabilities
    learn_all(learner_, rows_, heard_, *outputs, borrow(scratch), borrow(solver))
    hold(scratch, solver)


@kernel(types.void(KERNEL_LEARNER, BLOCKS, INDICES, FLOAT_TABLE))
def predict(learner, rows, predictions, scores):
    """Score rows, changing nothing; predictions and scores as in `learn`."""
    learner_, rows_ = borrow(learner), borrow(rows)
    scratch = make_kernel_scratch(learner_, rows.indptr)
    score_all(learner_, rows_, predictions, scores, borrow(scratch))
    hold(scratch)

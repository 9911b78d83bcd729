"""The trial of `trial.py`, for learners whose hypotheses are weights."""
# mypy: disallow_untyped_defs=False, disallow_untyped_calls=False

from __future__ import annotations

from numba import types

from kesler.compiled.borrowed import borrow, hold
from kesler.compiled.jit import DOUBLE_TABLE, FLOAT_TABLE, INDICES, kernel
from kesler.compiled.learner import (
    BLOCKS,
    HEARD,
    LEARNER,
    Blocks,
    Heard,
    Learner,
    Ratings,
    make_scratch,
    make_solver,
)
from kesler.compiled.trial import learn_all, score_all

__all__ = ["Blocks", "Heard", "Learner", "Ratings", "learn", "predict"]


@kernel(types.void(LEARNER, BLOCKS, HEARD, INDICES, FLOAT_TABLE, DOUBLE_TABLE))
def learn(learner, rows, heard, predictions, scores, probabilities):
    """Run a trial a row.

    predictions[i] becomes the class of highest score before the answer was heard, -1 if none was
    known; scores[i] the scores of the classes known by then, and probabilities[i] those of the
    class predicted and of the answer, NaN if it was not known, unless they have no rows.
    """
    learner_, rows_, heard_ = borrow(learner), borrow(rows), borrow(heard)
    scratch = make_scratch(learner_, rows_)
    solver = make_solver(learner_, scratch.scores.shape[0], heard_)
    outputs = predictions, scores, probabilities
    learn_all(learner_, rows_, heard_, *outputs, borrow(scratch), borrow(solver))
    hold(scratch, solver)


@kernel(types.void(LEARNER, BLOCKS, INDICES, FLOAT_TABLE))
def predict(learner, rows, predictions, scores):
    """Score rows, changing nothing; predictions and scores as in `learn`."""
    learner_, rows_ = borrow(learner), borrow(rows)
    scratch = make_scratch(learner_, rows_)
    score_all(learner_, rows_, predictions, scores, borrow(scratch))
    hold(scratch)

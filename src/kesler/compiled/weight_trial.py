"""The trial of `trial.py`, for learners whose hypotheses are weights."""
# mypy: disallow_untyped_defs=False, disallow_untyped_calls=False

from __future__ import annotations

from numba import types

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
    scratch = make_scratch(learner, rows)
    solver = make_solver(learner, scratch.scores.shape[0], heard)
    learn_all(learner, rows, heard, predictions, scores, probabilities, scratch, solver)


@kernel(types.void(LEARNER, BLOCKS, INDICES, FLOAT_TABLE))
def predict(learner, rows, predictions, scores):
    """Score rows, changing nothing; predictions and scores as in `learn`."""
    scratch = make_scratch(learner, rows)
    score_all(learner, rows, predictions, scores, scratch)

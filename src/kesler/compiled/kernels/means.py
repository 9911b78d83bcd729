"""Scores by the means of the coefficients of support vectors after each trial.

The mean of a coefficient is c - s / n after n trials, where s is the sum of its steps, each times
the number of trials before it, as for weights (:mod:`kesler.compiled.weights.means`).
"""
# mypy: disallow_untyped_defs=False, disallow_untyped_calls=False

from __future__ import annotations

import numpy as np

from kesler.compiled.jit.decorators import always_inlined, inlined
from kesler.compiled.jit.pointers import pointer_reader, stay_apart
from kesler.compiled.jit.record_types import KERNEL_LEARNER_RECORD
from kesler.compiled.trial.variants import is_averaged, score

learner_at = pointer_reader(KERNEL_LEARNER_RECORD)


@always_inlined
def kernel_score_by_means(learner, indices, values, k, scratch, scores):
    """Compute scores as `score` does, from the means of the coefficients and thresholds."""
    score_apart(learner, indices, values, k, scratch, scores)


@inlined
def score_apart(learner, indices, values, k, scratch, scores):
    """Compute the means and the scores, in code that trials of other learners do not contain."""
    stay_apart()
    predictor = learner_at(learner.settings.predictor)
    for part in range(learner.parts.kind.shape[0]):
        update_means(learner, predictor, part)
    score(predictor, indices, values, k, scratch, scores)


@inlined
def update_means(learner, predictor, part):
    """Compute the means of all coefficients of a part, and of its thresholds."""
    weights, means = learner.weights, predictor.weights
    for e in range(weights.entry_starts[part, weights.following[part]]):
        means.coefficients[part, e] = np.float32(mean_coefficient(learner, part, e))
    for r in range(weights.thresholds.shape[2]):
        moved = weights.thresholds[part, 1, r] / max(1, learner.counts.n_trials)
        means.thresholds[part, 0, r] = weights.thresholds[part, 0, r] - moved


@inlined
def mean_coefficient(learner, part, e):
    """Return the coefficient of an entry that predicts: its mean, if means predict."""
    coefficient = np.float64(learner.weights.coefficients[part, e])
    if is_averaged(learner):
        coefficient -= learner.weights.states[part, e] / max(1, learner.counts.n_trials)
    return coefficient

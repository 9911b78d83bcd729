"""Scores by the means of the weights after each trial.

The mean of a weight is w - s / n after n trials, where s is the sum of its steps, each times the
number of trials before it. With a link, whose weights all change with their scale, it is
(s + w (p - q)) / n, where p is the sum of the scales after each trial, q is what that was when w
changed, and s is the sum of the scaled weight until then. A table of means has the layout of that
of the weights, so that scores are computed from it as from the weights; only the rows that a
prediction reads are up to date.
"""
# mypy: disallow_untyped_defs=False, disallow_untyped_calls=False

from __future__ import annotations

import numpy as np

from kesler.compiled.jit.decorators import always_inlined, inlined
from kesler.compiled.jit.pointers import pointer_reader, stay_apart
from kesler.compiled.jit.record_types import LEARNER_RECORD
from kesler.compiled.trial.variants import score
from kesler.compiled.weights.links import has_linked_means, sum_of_weights

learner_at = pointer_reader(LEARNER_RECORD)


@always_inlined
def dense_is_averaged(learner):
    """Return whether the means of the weights predict."""
    return learner.settings.predictor != 0


@always_inlined
def dense_score_by_means(learner, indices, values, k, scratch, scores):
    """Compute scores as `score` does, from the means of the weights."""
    score_apart(learner, indices, values, k, scratch, scores)


@inlined
def score_apart(learner, indices, values, k, scratch, scores):
    """Compute the means and the scores, in code that trials of other learners do not contain."""
    stay_apart()
    predictor, views = learner_at(learner.settings.predictor), scratch.views
    update_means(learner, predictor, indices, 0, indices.shape[0])
    for r in range(k if views.indices.shape[0] else 0):
        update_means(learner, predictor, views.indices, views.begins[r], views.ends[r])
    score(predictor, indices, values, k, scratch, scores)


@inlined
def update_means(learner, predictor, indices, start, stop):
    """Compute the means of the weights of some features or sub-experts."""
    weights, sums, means = learner.weights.values, learner.weights.states, predictor.weights.values
    n_trials, linked = np.float64(max(1, learner.counts.n_trials)), has_linked_means(learner)
    for j in range(start, stop):
        i = indices[j]
        for c in range(weights.shape[1]):
            if linked:
                means[i, c] = np.float32(sum_of_weights(learner, i, c) / n_trials)
            else:
                means[i, c] = np.float32(np.float64(weights[i, c]) - sums[0, i, c] / n_trials)

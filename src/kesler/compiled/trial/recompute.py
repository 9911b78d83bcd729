"""Recomputation of derived values after the statistics of several learners have been merged."""
# mypy: disallow_untyped_defs=False, disallow_untyped_calls=False

from __future__ import annotations

import math

import numpy as np
from numba import types

from kesler.compiled.jit.decorators import inlined, kernel
from kesler.compiled.jit.record_types import LEARNER_RECORD
from kesler.compiled.trial.forgetting import weigh_priors
from kesler.compiled.trial.records import (
    CENTRE,
    ORIGIN,
    POOLED_HEIGHT,
    POOLED_MEAN,
    POOLED_SHARPNESS,
    POOLED_SQUARES,
)
from kesler.compiled.views.statistics import LEAST_VARIANCE, renew, weigh_classes


@inlined
def recompute_moments(learner, layer):
    """Compute the Gaussian of each feature, over all rows and over those of each class."""
    for f in range(learner.statistics.pooled.shape[0]):
        pooled = learner.statistics.pooled[f]
        variance = pooled[POOLED_SQUARES] / learner.statistics.total.amount
        if variance > LEAST_VARIANCE:
            pooled[ORIGIN] = np.float64(np.float32(pooled[POOLED_MEAN]))
            pooled[POOLED_SHARPNESS] = math.sqrt(0.5 / variance)
            pooled[POOLED_HEIGHT] = -0.5 * math.log(variance)
            for r in range(learner.counts.n_classes):
                renew(learner, layer, f, r)
    if learner.statistics.prior != 0:
        weigh_priors(learner)


@kernel(types.void(LEARNER_RECORD))
def recompute(learner):
    """Recompute what maps read: the divisors of counts, and the Gaussians of means and squares."""
    weigh_classes(learner)
    for layer in range(learner.statistics.kinds.shape[0]):
        if learner.statistics.kinds[layer] == CENTRE and learner.statistics.total.amount > 0:
            recompute_moments(learner, layer)

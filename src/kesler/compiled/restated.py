"""What follows from statistics that were put together from those of several learners."""
# mypy: disallow_untyped_defs=False, disallow_untyped_calls=False

from __future__ import annotations

import math

import numpy as np
from numba import types

from kesler.compiled.forgetting import weigh_priors
from kesler.compiled.jit import inlined, kernel
from kesler.compiled.learner import (
    CENTRE,
    FIRST_SEEN,
    LEARNER,
    ORIGIN,
    POOLED_HEIGHT,
    POOLED_MEAN,
    POOLED_SHARPNESS,
    POOLED_SQUARES,
    PRIOR,
)
from kesler.compiled.pooled import LEAST_VARIANCE, renew, weigh_classes


@inlined
def restate_moments(learner, layer):
    """Compute the Gaussian of each feature, over all rows and over those of each class."""
    for f in range(learner.pooled.shape[0]):
        pooled = learner.pooled[f]
        variance = pooled[POOLED_SQUARES] / learner.amounts[0]
        if variance > LEAST_VARIANCE:
            pooled[ORIGIN] = np.float64(np.float32(pooled[POOLED_MEAN]))
            pooled[POOLED_SHARPNESS] = math.sqrt(0.5 / variance)
            pooled[POOLED_HEIGHT] = -0.5 * math.log(variance)
            for r in range(learner.counters[FIRST_SEEN]):
                renew(learner, layer, f, r)
    if learner.smoothing[PRIOR] != 0:
        weigh_priors(learner)


@kernel(types.void(LEARNER))
def restate(learner):
    """Bring what maps read up to date: divisors of counts, and Gaussians of means and squares."""
    weigh_classes(learner)
    for layer in range(learner.kinds.shape[0]):
        if learner.kinds[layer] == CENTRE and learner.amounts[0] > 0:
            restate_moments(learner, layer)

"""Statistics: what is kept of the instances of each class."""
# mypy: disallow_untyped_defs=False, disallow_untyped_calls=False

from __future__ import annotations

import numpy as np

from kesler.compiled.jit import inlined
from kesler.compiled.learner import FIRST, FULL, MEAN, NO_INSTANCE


@inlined
def join(learner, y):
    """Let a class begin without an instance: all that is kept of it is 0."""
    for i in range(learner.kinds.shape[0]):
        learner.totals[i, y] = NO_INSTANCE


@inlined
def take_in(learner, indices, values, y, weight):
    """Add the row to what is kept of class y, after the trial: a trial sees the past only."""
    share = np.float32(weight)
    for i in range(learner.kinds.shape[0]):
        kind, sums = learner.kinds[i], learner.statistics[i]
        if kind == FIRST:
            if learner.totals[i, y] == NO_INSTANCE:
                learner.totals[i, y] = 1
                for j in range(indices.shape[0]):
                    sums[indices[j], y] = values[j]
        elif learner.totals[i, y] + share <= FULL:
            learner.totals[i, y] += share
            for j in range(indices.shape[0]):
                if kind == MEAN:
                    sums[indices[j], y] += share * values[j]
                elif values[j] != 0:
                    sums[indices[j], y] += share

"""What a row counts: numbers of `forgetting`, all 1 if nothing is forgotten.

Weights w that begin at b are kept as b + worth (w - b).
"""
# mypy: disallow_untyped_defs=False, disallow_untyped_calls=False

from __future__ import annotations

import numpy as np

from kesler.compiled.jit.decorators import always_inlined


@always_inlined
def decay_offset_of(learner, part):
    """Return what is to be added to the weights kept of a part, to be worth times its weights."""
    return np.float32(learner.weights.initial[part] * (learner.decay.row.weight - 1.0))


@always_inlined
def fade(learner, k, scores):
    """Turn scores by weights as they are kept into those by weights."""
    if learner.decay.growth != 1:
        factor = np.float32(1.0 / learner.decay.row.weight)
        for r in range(k):
            scores[r] *= factor


@always_inlined
def grow(learner, n_moved, solver):
    """Turn what steps add to weights into what they add to weights as they are kept."""
    if learner.decay.growth != 1:
        for i in range(n_moved):
            solver.coefficients[solver.moved[i]] *= learner.decay.row.weight

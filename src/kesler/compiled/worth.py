"""What a row counts: numbers of `forgetting`, all 1 if nothing is forgotten.

Weights w that begin at b are kept as b + worth (w - b).
"""
# mypy: disallow_untyped_defs=False, disallow_untyped_calls=False

from __future__ import annotations

import numpy as np

from kesler.compiled.jit import always_inlined

# How many times what the row before counted, what the last one counted, and its root.
GROWTH, WORTH, ROOT = range(3)


@always_inlined
def lift_of(learner, part):
    """Return what is to be added to the weights kept of a part, to be worth times its weights."""
    return np.float32(learner.beginnings[part] * (learner.forgetting[WORTH] - 1.0))


@always_inlined
def fade(learner, k, scores):
    """Turn scores by weights as they are kept into those by weights."""
    if learner.forgetting[GROWTH] != 1:
        factor = np.float32(1.0 / learner.forgetting[WORTH])
        for r in range(k):
            scores[r] *= factor


@always_inlined
def grow(learner, n_moved, solver):
    """Turn what steps add to weights into what they add to weights as they are kept."""
    if learner.forgetting[GROWTH] != 1:
        for i in range(n_moved):
            solver.coefficients[solver.moved[i]] *= learner.forgetting[WORTH]

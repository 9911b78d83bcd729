"""Conversion between weights and stored weights, which are equal without decay.

Let g be the decayed weight of the last row (see `forgetting`). Weights w with the initial value b
are stored as b + g (w - b). Under a second-order preconditioner weights do not decay, but follow
from second moments that do.
"""
# mypy: disallow_untyped_defs=False, disallow_untyped_calls=False

from __future__ import annotations

import numpy as np

from kesler.compiled.jit.decorators import always_inlined
from kesler.compiled.weights.second_order import is_second_order


@always_inlined
def weights_decay(learner):
    """Return whether stored weights differ from weights."""
    return learner.decay.growth != 1 and not is_second_order(learner)


@always_inlined
def decay_offset_of(learner, part):
    """Return the summand that converts the stored weights of a part to g times its weights."""
    return np.float32(learner.weights.initial[part] * (learner.decay.row.weight - 1.0))


@always_inlined
def fade(learner, k, scores):
    """Convert scores by stored weights to scores by weights."""
    if weights_decay(learner):
        factor = np.float32(1.0 / learner.decay.row.weight)
        for r in range(k):
            scores[r] *= factor


@always_inlined
def grow(learner, n_moved, solver):
    """Convert changes of weights to changes of stored weights."""
    if weights_decay(learner):
        for i in range(n_moved):
            solver.coefficients[solver.moved[i]] *= learner.decay.row.weight

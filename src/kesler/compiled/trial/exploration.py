"""Exploration: the probability that each class is shown, and draws from these probabilities."""
# mypy: disallow_untyped_defs=False, disallow_untyped_calls=False

from __future__ import annotations

import numpy as np

from kesler.codes import Showing
from kesler.compiled.jit.decorators import DOUBLES, FLOATS, INT, inlined, kernel
from kesler.compiled.trial.expansion import random_share

# The kinds of exploration, as in `kesler.exploration`.
GREEDY = int(Showing.GREEDY)
UNIFORM = int(Showing.UNIFORM)
INVERSE_GAP = int(Showing.INVERSE_GAP)


@inlined
def find_chances(kind, parameters, n_trials, scores, k, winner, chances):
    """Write the probability that each of k classes is shown, after this many trials.

    The winner has the highest score. Classes whose score is not finite are not explored.
    """
    n = n_trials + 1.0
    for r in range(k):
        chances[r] = 0.0
    chances[winner] = 1.0
    if kind == UNIFORM:
        gamma = min(1.0, parameters[0] * n ** -parameters[1])
        for r in range(k):
            chances[r] = gamma / k
        chances[winner] += 1.0 - gamma
    elif kind == INVERSE_GAP:
        rate = parameters[0] * n ** parameters[1]
        for r in range(k):
            gap = np.float64(scores[winner]) - np.float64(scores[r])
            if r != winner and np.isfinite(gap):
                chances[r] = 1.0 / (k + rate * gap)
                chances[winner] -= chances[r]


@inlined
def drawn(chances, k, share):
    """Return the class that a random number from 0 to 1 selects."""
    total, last = 0.0, 0
    for r in range(k):
        if chances[r] > 0:
            total += chances[r]
            last = r
            if share < total:
                return last
    return last  # rounding may leave the sum below 1


@inlined
def share_of(number, seed):
    """Return the random number of a draw."""
    return random_share(number, np.uint64(seed))


@kernel(INT(INT, DOUBLES, INT, INT, INT, FLOATS, INT, DOUBLES))
def draw(kind, parameters, n_trials, number, seed, scores, winner, chances):
    """Return the class that is shown for scores, and write the probability of each."""
    k = scores.shape[0]
    find_chances(kind, parameters, n_trials, scores, k, winner, chances)
    return drawn(chances, k, share_of(number, seed))

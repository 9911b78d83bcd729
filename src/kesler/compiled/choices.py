"""Which constraints a rule is handed."""
# mypy: disallow_untyped_defs=False, disallow_untyped_calls=False

from __future__ import annotations

import numpy as np

from kesler.compiled.jit import inlined
from kesler.compiled.learner import ALL, GROWING, MISTAKEN, PREDICTED, VIOLATED, WORST
from kesler.compiled.scores import best


@inlined
def choose(scores, k, y, predicted, selection, chosen, losses):
    """Choose classes s that y must outscore by 1; return how many, with their losses."""
    if selection == PREDICTED:
        if predicted == y:
            return 0
        chosen[0] = predicted
        losses[0] = loss_against(scores, y, predicted)
        return 1
    worst = best(scores, k, y)
    if worst < 0 or loss_against(scores, y, worst) <= 0:
        return 0
    if selection == WORST or selection == GROWING:
        chosen[0] = worst
        losses[0] = loss_against(scores, y, worst)
        return 1
    m = 0
    for s in range(k):
        loss = loss_against(scores, y, s)
        ahead = scores[s] > scores[y] or (scores[s] == scores[y] and s < y)
        if s != y and (
            selection == ALL
            or (selection == VIOLATED and loss > 0)
            or (selection == MISTAKEN and ahead)
        ):
            chosen[m] = s
            losses[m] = loss
            m += 1
    return m


@inlined
def loss_against(scores, y, s):
    """Return 1 - (score of y - score of s), as double."""
    return 1.0 - (np.float64(scores[y]) - np.float64(scores[s]))

"""Replay: the order in which new rows, and rows drawn from a reservoir, are learnt."""
# mypy: disallow_untyped_defs=False, disallow_untyped_calls=False

from __future__ import annotations

import numpy as np
from numba import types

from kesler.compiled.jit.decorators import BOOLS, INT, INTS, inlined, kernel
from kesler.compiled.trial.expansion import random_share


@inlined
def slot_for(n_rows, size, least_chance, share):
    """Return the slot of the row after n_rows others, `size` or more if it is not kept.

    Every row is kept with the same probability (Vitter 1985, Algorithm R), or later ones with at
    least `least_chance`.
    """
    if n_rows < size:
        return np.int64(n_rows)
    chance = max(size / (n_rows + 1.0), least_chance)
    return np.int64(share * size / min(1.0, chance))


@kernel(INT(INT, INT, INT, INT, INT, types.float64, INTS, INTS, BOOLS))
def arrange(n_new, n_before, n_drawn, until, seed, least_chance, places, order, again):
    """Write the order of trials; return their number.

    After each new row, n_drawn rows of the reservoir are learnt again; then the row is added to it.
    Neither is done after the first `until` rows.

    n_before : number of rows offered to the reservoir before; seed : below 2^63; least_chance :
    the minimum probability that a row is kept; places : (size,), set to what each slot holds after
    the new rows; order : (n_new * (1 + n_drawn),), the row of each trial; again : whether it has
    been learnt before. Number i is new row i, and -1 - s the row in slot s of the reservoir before.
    """
    n, size, start = 0, places.shape[0], np.uint64(seed)
    for s in range(size):
        places[s] = -1 - s
    for i in range(n_new):
        n_rows = n_before + i
        first = n_rows * (1 + n_drawn)  # of the random numbers of this row
        order[n], again[n] = i, False
        n += 1
        if n_rows >= until:
            continue
        n_kept = min(n_rows, size)
        for j in range(n_drawn if n_kept else 0):
            slot = np.int64(random_share(first + 1 + j, start) * n_kept)
            order[n], again[n] = places[min(slot, n_kept - 1)], True
            n += 1
        slot = slot_for(n_rows, size, least_chance, random_share(first, start))
        if slot < size:
            places[slot] = i
    return n

"""Removal of support vectors beyond a budget; see :class:`kesler.budgets.Budget`."""
# mypy: disallow_untyped_defs=False, disallow_untyped_calls=False

from __future__ import annotations

import math

import numpy as np

from kesler.compiled.jit.decorators import inlined
from kesler.compiled.jit.simd import squared
from kesler.compiled.kernels.exact import SIMILARITIES, compare_stored
from kesler.compiled.kernels.supports import FORGETRON, PANEL

# Columns of `weights.sums`: the number of updates, the sums of their squared norms, of the norms of
# projection errors and of lost coefficients, that of (1 - phi) / (1 + phi), the deviation Q, and
# the largest squared norm of an update.
N_UPDATES, SQUARES, ERRORS, LOST, SHRUNK, DEVIATION, RADIUS = range(7)
# The share of the number of updates that the deviation may reach (Dekel et al. 2008).
SHARE = 15 / 32


@inlined
def remove_beyond(learner, part, n_before, indices, scratch):
    """Remove support vectors beyond the budget, given the index of the first one of the trial."""
    budget = learner.weights.budget
    if learner.weights.policy == FORGETRON:
        # One after the other, since the limit of the deviation rises with each.
        for s in range(n_before, learner.weights.following[part]):
            count_update(learner, part, s, indices, scratch)
            if s + 1 - learner.weights.oldest[part] > budget:
                forget_oldest(learner, part, s + 1, indices, scratch)
    else:
        while learner.weights.following[part] - learner.weights.oldest[part] > budget:
            remove(learner, part, smallest(learner, part))


# ---- the smallest coefficients -------------------------------------------------------------------


@inlined
def smallest(learner, part):
    """Return the support vector of the smallest sum of squared coefficients, of several the oldest.

    Each coefficient belongs to another hypothesis.
    """
    found, least = learner.weights.oldest[part], np.inf
    for s in range(learner.weights.oldest[part], learner.weights.following[part]):
        total = 0.0
        for e in range(
            learner.weights.entry_starts[part, s], learner.weights.entry_starts[part, s + 1]
        ):
            total += squared(np.float64(learner.weights.coefficients[part, e]))
        if total < least:
            found, least = s, total
    return found


@inlined
def remove(learner, part, s):
    """Remove support vector s: those after it move up by one place."""
    last = learner.weights.following[part] - 1
    if learner.weights.in_panels:
        move_columns(learner, part, s, last)
    else:
        starts = learner.weights.starts[part]
        a, b, end = starts[s], starts[s + 1], starts[last + 1]
        for e in range(b, end):
            learner.weights.features[part, e - b + a] = learner.weights.features[part, e]
            learner.weights.values[part, e - b + a] = learner.weights.values[part, e]
        close_gap(starts, s, last)
    starts = learner.weights.entry_starts[part]
    a, b, end = starts[s], starts[s + 1], starts[last + 1]
    for e in range(b, end):
        learner.weights.owners[part, e - b + a] = learner.weights.owners[part, e]
        learner.weights.coefficients[part, e - b + a] = learner.weights.coefficients[part, e]
    close_gap(starts, s, last)
    for i in range(s, last):
        learner.weights.squared_norms[part, i] = learner.weights.squared_norms[part, i + 1]
    learner.weights.following[part] = last


@inlined
def close_gap(starts, s, last):
    """Remove list s of lists that follow each other."""
    n = starts[s + 1] - starts[s]
    for i in range(s, last + 1):
        starts[i] = starts[i + 1] - n


@inlined
def move_columns(learner, part, s, last):
    """Move the columns after s up by one, and clear the last one."""
    for panel in range(s // PANEL, last // PANEL + 1):
        table = learner.weights.panels[part, panel]
        first = s % PANEL if panel == s // PANEL else 0
        for i in range(table.shape[0]):
            for j in range(first, PANEL - 1):
                table[i, j] = table[i, j + 1]
            table[i, PANEL - 1] = 0
            if panel < last // PANEL:
                table[i, PANEL - 1] = learner.weights.panels[part, panel + 1, i, 0]


# ---- the Forgetron -------------------------------------------------------------------------------


@inlined
def count_update(learner, part, s, indices, scratch):
    """Add a new support vector to the sums."""
    sums = learner.weights.sums[part]
    compare_stored(learner, part, s, indices, s, s + 1, scratch)
    square = inner_of_sums(learner, part, s, s, s + 1)
    sums[SQUARES] += square
    sums[RADIUS] = max(sums[RADIUS], square)
    sums[N_UPDATES] += 1


@inlined
def inner_of_sums(learner, part, r, first, stop):
    """Return <v, sum of v_s> for the summand v of support vector r and those of some others.

    The similarities must be those of u_r and the others.
    """
    total, starts = 0.0, learner.weights.entry_starts
    for s in range(first, stop):
        common = 0.0
        for e in range(starts[part, s], starts[part, s + 1]):
            for own in range(starts[part, r], starts[part, r + 1]):
                if learner.weights.owners[part, e] == learner.weights.owners[part, own]:
                    coefficient = np.float64(learner.weights.coefficients[part, own])
                    common += coefficient * np.float64(learner.weights.coefficients[part, e])
        total += common * learner.weights.work[SIMILARITIES, s - first]
    return total


@inlined
def largest_coefficient(learner, part, s):
    """Return the largest absolute coefficient of a support vector."""
    largest = 0.0
    for e in range(
        learner.weights.entry_starts[part, s], learner.weights.entry_starts[part, s + 1]
    ):
        largest = max(largest, abs(np.float64(learner.weights.coefficients[part, e])))
    return largest


@inlined
def shrinkage(a, b, c):
    """Return the largest phi of (0, 1] for which a phi^2 + b phi + c <= 0, given b > 0 > c."""
    c = min(c, 0.0)  # a file may hold any
    if a + b + c <= 0:
        return 1.0
    return min(1.0, -2.0 * c / (b + math.sqrt(max(0.0, b * b - 4.0 * a * c))))


@inlined
def forget_oldest(learner, part, following, indices, scratch):
    """Remove the oldest support vector after shrinking those before `following`.

    See Dekel et al. (2008), Section 6.
    """
    oldest = learner.weights.oldest[part]
    sums = learner.weights.sums[part]
    compare_stored(learner, part, oldest, indices, oldest, following, scratch)
    square = inner_of_sums(learner, part, oldest, oldest, oldest + 1)
    inner = inner_of_sums(learner, part, oldest, oldest, following)
    sigma, radius = largest_coefficient(learner, part, oldest), max(sums[RADIUS], 1e-300)
    a, b = (square - 2.0 * inner) / radius, 2.0 * sigma
    phi = shrinkage(a, b, sums[DEVIATION] - SHARE * sums[N_UPDATES])
    if phi < 1:
        shrink(learner, part, oldest, following, np.float32(phi))
    sums[DEVIATION] += a * phi * phi + b * phi
    sums[SQUARES] += (square - 2.0 * inner) * phi * phi
    sums[LOST] += sigma * phi
    sums[SHRUNK] += (1.0 - phi) / (1.0 + phi)
    learner.weights.oldest[part] = oldest + 1


@inlined
def shrink(learner, part, oldest, following, phi):
    """Multiply the coefficients of all support vectors by phi."""
    for e in range(
        learner.weights.entry_starts[part, oldest], learner.weights.entry_starts[part, following]
    ):
        learner.weights.coefficients[part, e] *= phi

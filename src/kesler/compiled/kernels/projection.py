"""Projection of updates onto the span of the stored support vectors (Orabona et al. 2009).

Each support vector of a part has an entry for each of the first hypotheses, up to the last one that
an update has changed. `weights.inverse` is the inverse of the Gram matrix of the support vectors,
in the kernel of the parameter `weights.widths`.
"""
# mypy: disallow_untyped_defs=False, disallow_untyped_calls=False

from __future__ import annotations

import math

import numpy as np

from kesler.compiled.jit.decorators import inlined
from kesler.compiled.kernels.exact import (
    PROJECTION,
    SIMILARITIES,
    compare_exactly,
    compare_stored,
    gather,
    squared_length,
)
from kesler.compiled.kernels.removals import (
    ERRORS,
    LOST,
    N_UPDATES,
    RADIUS,
    SQUARES,
)
from kesler.compiled.kernels.supports import PROJECTRON_PLUS, begin_state, call_double, store
from kesler.compiled.trial.choices import lead_of
from kesler.compiled.trial.variants import is_averaged

# A squared distance from the span below this share of K(x, x) counts as 0: kernels are exact to a
# ten-millionth, and the entries of the inverse are at most the inverse of this distance.
IN_SPAN = 1e-5
# The ratio of the parameters of the kernel from which on the inverse is computed again.
MOST_CHANGED = 1.1


@inlined
def project(learner, part, indices, view, size, scratch, solver):
    """Add c_r view to each hypothesis r, with the coefficients of scratch.column."""
    square, largest, width = measure_column(scratch.column)
    if width == 0:
        return
    now = scratch.doubles[0]
    keep_inverse(learner, part, indices, scratch)
    n = learner.weights.following[part]
    own = own_similarity(learner, part, indices, view, scratch)
    compare_exactly(learner, part, indices, view, 0, n, scratch)
    scratch.doubles[0] = now
    distance = own - solve(learner, part, n)
    if not (abs(distance) < np.inf):
        learner.counts.n_not_finite += 1
        return
    distance = max(0.0, distance)
    in_span = distance <= IN_SPAN * own
    step = 1.0
    if learner.weights.policy == PROJECTRON_PLUS:
        step = step_of(learner, square, own, distance, scratch, solver)
    near = in_span or largest * math.sqrt(distance) <= learner.weights.eta
    spread(learner, part, width)
    if near or n >= learner.weights.budget or step != 1.0:
        if step > 0:
            add_projected(learner, part, n, step, scratch.column)
            count(learner.weights.sums[part], square, own, distance, step, scratch, solver)
    else:
        store_whole(learner, part, indices, view, size, scratch.column)
        enlarge_inverse(learner, part, n, distance)
        count(learner.weights.sums[part], square, own, 0.0, 1.0, scratch, solver)


@inlined
def measure_column(column):
    """Return the sum of squares of the coefficients, the largest, and 1 + the last hypothesis."""
    square, largest, width = 0.0, 0.0, 0
    for t in range(column.shape[0]):
        if column[t] != 0:
            c = np.float64(column[t])
            square += c * c
            largest = max(largest, abs(c))
            width = t + 1
    return square, largest, width


@inlined
def own_similarity(learner, part, indices, view, scratch):
    """Return K(view, view)."""
    scratch.one[0, 0] = squared_length(learner, indices, view, scratch)
    scratch.one[1, 0] = 0.0
    if learner.weights.lists_all:  # a kernel of whole vectors reads the other one
        for j in range(indices.shape[0]):
            scratch.pair[j, 0] = view[j]
    call_double(
        learner.weights.double,
        view,
        scratch.pair,
        scratch.one[0],
        scratch.one[1],
        scratch.doubles,
        scratch.one[2],
    )
    return scratch.one[2, 0]


# ---- the step ------------------------------------------------------------------------------------


@inlined
def step_of(learner, square, own, distance, scratch, solver):
    """Return the step of Projectron++: 1 on a mistake, and 0 if the loss is too small."""
    if lead_of(scratch.scores, solver.better[0], solver.worse[0]) <= 0:
        return 1.0
    loss, norm = solver.losses[0], square * (own - distance)
    excess = loss - math.sqrt(distance) / learner.weights.eta
    if excess <= 0 or norm <= 0:
        return 0.0
    # A step of 1 would be taken for that of a mistake, which may store the row.
    return min(loss / norm, 2.0 * excess / norm, 1.0 - 1e-12)


@inlined
def count(sums, square, own, distance, step, scratch, solver):
    """Add an update by the projection of `step` times the view to the sums for bounds."""
    norm = square * (own - distance)
    sums[SQUARES] += step * step * norm
    sums[ERRORS] += step * math.sqrt(square * distance)
    sums[RADIUS] = max(sums[RADIUS], square * own)
    if step == 1.0:
        sums[N_UPDATES] += 1
    else:  # the update raises a score that was right: 2 step <f, z>, and sum of steps gained
        lead = lead_of(scratch.scores, solver.better[0], solver.worse[0])
        sums[SQUARES] += 2.0 * step * np.float64(lead)
        sums[LOST] -= step


# ---- the support vectors -------------------------------------------------------------------------


@inlined
def spread(learner, part, width):
    """Provide entries for this many hypotheses in each support vector, in place from the last."""
    starts, n = learner.weights.entry_starts[part], learner.weights.following[part]
    before = starts[1] if n else 0
    if width <= before:
        return
    owners, coefficients = learner.weights.owners[part], learner.weights.coefficients[part]
    for i in range(n):
        s = n - 1 - i
        for j in range(width):
            t = width - 1 - j
            value = coefficients[s * before + t] if t < before else np.float32(0)
            coefficients[s * width + t] = value
            owners[s * width + t] = t
            if is_averaged(learner):
                states = learner.weights.states[part]
                states[s * width + t] = states[s * before + t] if t < before else 0.0
        starts[s + 1] = (s + 1) * width


@inlined
def add_projected(learner, part, n, step, column):
    """Add the projection of a vector: coefficients[s, r] += step c_r d_s."""
    width = learner.weights.entry_starts[part, 1]
    coefficients, projection = learner.weights.coefficients[part], learner.weights.work[PROJECTION]
    for s in range(n):
        factor = step * projection[s]
        for t in range(min(width, column.shape[0])):
            amount = np.float32(factor * np.float64(column[t]))
            coefficients[s * width + t] += amount
            if is_averaged(learner):
                moved = learner.counts.n_trials * np.float64(amount)
                learner.weights.states[part, s * width + t] += moved


@inlined
def store_whole(learner, part, indices, view, size, column):
    """Append a support vector with an entry for each of the first hypotheses."""
    s = learner.weights.following[part]
    width = learner.weights.entry_starts[part, 1]
    if s == 0:
        _, _, width = measure_column(column)
    store(learner, part, indices, view, size)
    for t in range(width):
        learner.weights.owners[part, s * width + t] = t
        learner.weights.coefficients[part, s * width + t] = column[t]
        begin_state(learner, part, s * width + t)
    learner.weights.entry_starts[part, s + 1] = (s + 1) * width


# ---- the inverse of the Gram matrix --------------------------------------------------------------


@inlined
def solve(learner, part, n):
    """Set the projection to d = K^-1 k for the similarities k; return <k, d>.

    Four rows of the symmetric matrix per pass save stores.
    """
    k, d = learner.weights.work[SIMILARITIES], learner.weights.work[PROJECTION]
    inverse, stop = learner.weights.inverse[part], np.uintp(n)
    for j in range(stop):
        d[j] = 0.0
    i = 0
    while i + 4 <= n:
        a, b, c, e = inverse[i], inverse[i + 1], inverse[i + 2], inverse[i + 3]
        k1, k2, k3, k4 = k[i], k[i + 1], k[i + 2], k[i + 3]
        for j in range(stop):
            total = d[j] + k1 * a[j]
            total = total + k2 * b[j]
            total = total + k3 * c[j]
            d[j] = total + k4 * e[j]
        i += 4
    while i < n:
        a, k1 = inverse[i], k[i]
        for j in range(stop):
            d[j] += k1 * a[j]
        i += 1
    total = 0.0
    for j in range(stop):
        total += k[j] * d[j]
    return total


@inlined
def enlarge_inverse(learner, part, n, distance):
    """Add a row and a column for a support vector at a squared distance from the span."""
    inverse, d = learner.weights.inverse[part], learner.weights.work[PROJECTION]
    for i in range(n):
        factor = d[i] / distance
        for j in range(np.uintp(n)):
            inverse[i, j] += factor * d[j]
        inverse[i, n], inverse[n, i] = -factor, -factor
    inverse[n, n] = 1.0 / distance


@inlined
def keep_inverse(learner, part, indices, scratch):
    """Set the kernel's parameter to that of the inverse, which is computed again if it is old."""
    if learner.weights.recent.bandwidth.share == 0:
        return
    now, width = scratch.doubles[0], learner.weights.widths[part]
    n = learner.weights.following[part]
    if n == 0 or not (width < now * MOST_CHANGED and now < width * MOST_CHANGED):
        learner.weights.widths[part] = now
        for s in range(n):
            invert_next(learner, part, s, indices, scratch)
    scratch.doubles[0] = learner.weights.widths[part]


@inlined
def invert_next(learner, part, s, indices, scratch):
    """Enlarge the inverse of the Gram matrix of the support vectors before s by that of s."""
    if learner.weights.in_panels:
        features, view = gather(learner, part, s, indices)
        own = own_similarity(learner, part, features, view, scratch)
    else:
        start, end = learner.weights.starts[part, s], learner.weights.starts[part, s + 1]
        listed = learner.weights.features[part, start:end]
        own = own_similarity(
            learner, part, listed, learner.weights.values[part, start:end], scratch
        )
    compare_stored(learner, part, s, indices, 0, s, scratch)
    distance = own - solve(learner, part, s)
    enlarge_inverse(learner, part, s, max(distance, IN_SPAN * own))

"""Units that follow the rows: of features, by their ranges, and of distances, by their median.

Support vectors stand as they came, from the first value of each feature on, and are never written
again. In units a, 1 over the ranges, <x, u> is the plain inner product of the view x a^2 with u:
only squared norms are computed anew where a range grows, and for a row that is not learnt from they
can be, panel by panel, in scratch.
"""
# mypy: disallow_untyped_defs=False, disallow_untyped_calls=False

from __future__ import annotations

import math

import numpy as np

from kesler.compiled.conditioning import (
    METHOD,
    ORIGIN,
    RANGES,
    condition_ranges,
    in_range,
)
from kesler.compiled.jit import inlined
from kesler.compiled.scores import clear, keep_up, prepare
from kesler.compiled.supports import (
    IN_PANELS,
    NEXT,
    OLDEST,
    PANEL,
    KernelLearner,
    multiply_panel,
    set_distances,
)

# Of `bandwidth`: sigma is this share, 0 if it is fixed, of the median squared distance; of how many
# distances that is the median, and how many rows there were.
SHARE, MEDIAN, N_DISTANCES, N_ROWS = range(4)
# Sigma is a number that float32 bears, whatever the distances.
LEAST, GREATEST = 1e-30, 1e30


# ---- units of features ---------------------------------------------------------------------------


@condition_ranges.register(KernelLearner)
def kernel_condition_ranges(learner, indices, values, first, scratch):
    """Measure a row in the ranges that it leaves; tell whether they are wider than before."""
    scratch.widened[0] = 0
    for j in range(first):
        scratch.kept[j], scratch.units[j] = values[j], 1
    for j in range(first, values.shape[0]):
        offset, unit = in_range(learner, indices[j], values[j])
        _, before = in_range(learner, indices[j], learner.past[indices[j], ORIGIN])
        if unit != before:
            scratch.widened[0] = 1
        scratch.kept[j], scratch.units[j] = offset, unit
        scratch.conditioned[j] = offset * unit


@inlined
def set_plain_view(learner, indices, values, scratch):
    """views[0] = x, or what stands for it beside rows as they came, which kept becomes."""
    n, size, ranged = indices.shape[0], np.float32(0), learner.conditioning[METHOD] == RANGES
    view = scratch.views[0, 1 : n + 1]
    for j in range(n):
        view[j] = values[j]
        if ranged:
            view[j] *= scratch.units[j]
        else:
            scratch.kept[j] = values[j]
        size += view[j] * scratch.kept[j]
    scratch.sizes[0] = size


@inlined
def measure_panel(indices, units, panel, out):
    """out[s] = ||u_s||^2 in these units, summed as inner products are: ||x - x||^2 is then 0."""
    clear(out, PANEL)
    for j in range(indices.shape[0]):
        unit, i = units[j], np.uintp(indices[j])
        for s in range(np.uintp(PANEL)):
            out[s] += panel[i, s] * unit * unit * panel[i, s]


@inlined
def measure_supports(learner, indices, scratch):
    """Let the squared norms of all that is kept be those in the units of a row."""
    for part in range(learner.counts.shape[0]):
        oldest, following = learner.counts[part, OLDEST], learner.counts[part, NEXT]
        for panel in range(oldest // PANEL, (following + PANEL - 1) // PANEL):
            norms = learner.squared_norms[part, panel * PANEL : (panel + 1) * PANEL]
            measure_panel(indices, scratch.units, learner.panels[part, panel], norms)
    if learner.bandwidth[SHARE] != 0:
        measure_panel(indices, scratch.units, learner.recent, learner.recent_norms)


# ---- the unit of distances -----------------------------------------------------------------------


@prepare.register(KernelLearner)
def set_sigma(learner, indices, values, scratch):
    """Let sigma be a share of the median squared distance between this row and those before it.

    The median of all distances between a row and the PANEL rows before it is followed by steps up
    and down that become smaller as 1 / sqrt(n) (Robbins and Monro 1951), in ratios, so that it is
    as fast in all units.
    """
    if learner.bandwidth[SHARE] == 0:
        return
    set_plain_view(learner, indices, values, scratch)
    compare_with_recent(learner, indices, scratch)
    median, n = learner.bandwidth[MEDIAN], learner.bandwidth[N_DISTANCES]
    n_rows = int(learner.bandwidth[N_ROWS])
    for i in range(1, min(PANEL, n_rows) + 1):
        distance = np.float64(scratch.distances[(n_rows - i) % PANEL])
        if 0 < distance < np.inf:
            n += 1
            median = next_median(median, distance, n)
    scratch.bandwidth[MEDIAN], scratch.bandwidth[N_DISTANCES] = median, n
    sigma = learner.bandwidth[SHARE] * median if n > 0 else 1.0
    scratch.doubles[0] = 0.5 / min(GREATEST, max(LEAST, sigma))
    scratch.singles[0] = np.float32(scratch.doubles[0])


@inlined
def next_median(median, distance, n):
    """Return the estimate of a median after the n-th value."""
    if n == 1:
        return distance
    ratio = 1 + min(0.5, 1 / math.sqrt(n))
    return median * ratio if distance > median else median / ratio


@inlined
def compare_with_recent(learner, indices, scratch):
    """distances[s] = ||x - u_s||^2 for the recent rows."""
    view, norms = scratch.views[0, : indices.shape[0] + 1], scratch.norms
    if not learner.kernel[IN_PANELS]:
        multiply_recent_lists(learner, indices, view, scratch.inner)
    else:
        multiply_panel(indices, view[1:], learner.recent, scratch.inner)
    if scratch.widened[0]:
        measure_panel(indices, scratch.units, learner.recent, norms)
    else:
        for s in range(PANEL):
            norms[s] = learner.recent_norms[s]
    set_distances(scratch.sizes[0], norms, scratch.inner, scratch.distances)


@inlined
def multiply_recent_lists(learner, indices, view, out):
    """out[s] = <view, u_s> for the recent rows, which are lists; see `multiply_lists`."""
    for j in range(indices.shape[0]):
        learner.places[indices[j]] = j + 1
    for s in range(PANEL):
        total = np.float32(0)
        for e in range(learner.recent_lengths[s]):
            place = learner.places[learner.recent_features[s, e]]
            total += view[place] * learner.recent_values[s, e]
        out[s] = total
    for j in range(indices.shape[0]):
        learner.places[indices[j]] = 0


# ---- before a trial ------------------------------------------------------------------------------


@keep_up.register(KernelLearner)
def kernel_keep_up(learner, indices, values, scratch):
    """Let units follow a row that is about to be scored and learnt from, and keep it."""
    if scratch.widened[0]:
        measure_supports(learner, indices, scratch)
        scratch.widened[0] = 0
    if learner.bandwidth[SHARE] != 0:
        prepare(learner, indices, values, scratch)
        learner.bandwidth[MEDIAN] = scratch.bandwidth[MEDIAN]
        learner.bandwidth[N_DISTANCES] = scratch.bandwidth[N_DISTANCES]
        keep_recent(learner, indices, scratch.kept, scratch.sizes[0])


@inlined
def keep_recent(learner, indices, vector, size):
    """Put a row in the place of the oldest of the recent ones."""
    n_rows = int(learner.bandwidth[N_ROWS])
    s, n = n_rows % PANEL, indices.shape[0]
    if learner.kernel[IN_PANELS]:
        for i in range(learner.recent.shape[0]):
            learner.recent[i, s] = 0
        for j in range(n):
            learner.recent[indices[j], s] = vector[j]
    else:
        for j in range(n):
            learner.recent_features[s, j], learner.recent_values[s, j] = indices[j], vector[j]
        learner.recent_lengths[s] = n
    learner.recent_norms[s] = size
    learner.bandwidth[N_ROWS] = n_rows + 1

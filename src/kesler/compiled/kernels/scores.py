"""Scores of one instance where hypotheses are sums over support vectors, and units of features.

Support vectors are stored without scaling, relative to the first value of each feature, and are
never rewritten. In units a, the weights of features over their ranges, <x, u> is the plain inner
product of x a^2 and u: when units change, only squared norms are recomputed; for a row that is not
learnt from, they are recomputed panel by panel in scratch arrays.
"""
# mypy: disallow_untyped_defs=False, disallow_untyped_calls=False

from __future__ import annotations

import math

import numpy as np

from kesler.compiled.jit.decorators import always_inlined, inlined
from kesler.compiled.kernels.supports import (
    PANEL,
    call_single,
    hypothesis,
    multiply_panel,
    set_distances,
    squared_norm,
)
from kesler.compiled.trial.preprocessing import ORIGIN, RANGES, in_range
from kesler.compiled.trial.records import (
    GROUPED,
    LARGEST,
    ORDERED,
    PER_CLASS,
    SHARED,
    n_hypotheses,
)
from kesler.compiled.trial.relevance import has_relevance, in_distances
from kesler.compiled.trial.variants import prepare
from kesler.compiled.weights.scores import clear, compute_phi

# Bounds of sigma: float32 can represent it, whatever the distances are.
LEAST, GREATEST = 1e-30, 1e30


# ---- units of features ---------------------------------------------------------------------------


@always_inlined
def kernel_condition_ranges(learner, indices, values, first, scratch):
    """Scale a row by the ranges that include it, and by the weights of features, if there are any.

    Set `widened` to whether the units are others than those of the squared norms.
    """
    relevance = learner.relevance
    scratch.widened[0] = 0
    for j in range(first):
        scratch.stored[j], scratch.units[j] = values[j], 1
    for j in range(first, values.shape[0]):
        offset, unit = in_range(learner, indices[j], values[j])
        _, before = in_range(
            learner, indices[j], learner.preprocessing.statistics[indices[j], ORIGIN]
        )
        unit = in_distances(relevance.weights, indices[j], unit)
        before = in_distances(relevance.of_norms, indices[j], before)
        if unit != before:
            scratch.widened[0] = 1
        scratch.stored[j], scratch.units[j] = offset, unit
        scratch.conditioned[j] = offset * unit


@inlined
def set_plain_view(learner, indices, values, scratch):
    """Set views[0] to x, or to x a^2 with ranges, `stored` to the row and sizes[0] to <x, x>."""
    n, size, ranged = indices.shape[0], np.float32(0), learner.preprocessing.method == RANGES
    view = scratch.views[0, 1 : n + 1]
    for j in range(learner.preprocessing.n_constant):  # `set_direction_view` may have left it out
        scratch.stored[j] = values[j]
    for j in range(n):
        view[j] = values[j]
        if ranged:
            view[j] *= scratch.units[j]
        else:
            scratch.stored[j] = values[j]
        size += view[j] * scratch.stored[j]
    scratch.sizes[0] = size


@inlined
def set_direction_view(learner, indices, values, scratch):
    """Set the same for the direction of an ordered part: the constant feature is 0."""
    set_plain_view(learner, indices, values, scratch)
    view, size = scratch.views[0, 1 : indices.shape[0] + 1], np.float32(0)
    view[0], scratch.stored[0] = 0, 0
    for j in range(indices.shape[0]):
        size += view[j] * scratch.stored[j]
    scratch.sizes[0] = size


@inlined
def measure_panel(indices, units, panel, out):
    """Compute out[s] = ||u_s||^2 in these units, summed in the order of inner products.

    ||x - x||^2 is then exactly 0.
    """
    clear(out, PANEL)
    for j in range(indices.shape[0]):
        unit, i = units[j], np.uintp(indices[j])
        for s in range(np.uintp(PANEL)):
            out[s] += panel[i, s] * unit * unit * panel[i, s]


@inlined
def measure_supports(learner, indices, scratch):
    """Recompute the squared norms of support vectors and recent rows in the units of a row."""
    for part in range(learner.weights.oldest.shape[0]):
        oldest, following = learner.weights.oldest[part], learner.weights.following[part]
        for panel in range(oldest // PANEL, (following + PANEL - 1) // PANEL):
            norms = learner.weights.squared_norms[part, panel * PANEL : (panel + 1) * PANEL]
            measure_panel(indices, scratch.units, learner.weights.panels[part, panel], norms)
    if learner.weights.recent.bandwidth.share != 0:
        measure_panel(
            indices,
            scratch.units,
            learner.weights.recent.panel,
            learner.weights.recent.squared_norms,
        )


# ---- the bandwidth -------------------------------------------------------------------------------


@always_inlined
def set_sigma(learner, indices, values, scratch):
    """Set sigma to a multiple of the median squared distance between this row and earlier ones.

    The median of all distances between a row and the PANEL rows before it is estimated by steps up
    and down that decrease as 1 / sqrt(n) (Robbins and Monro 1951). The steps are ratios, so that
    convergence is equally fast in all units.
    """
    if learner.weights.recent.bandwidth.share == 0:
        return
    set_plain_view(learner, indices, values, scratch)
    compare_with_recent(learner, indices, scratch)
    median, n = (
        learner.weights.recent.bandwidth.median,
        learner.weights.recent.bandwidth.n_distances,
    )
    n_rows = int(learner.weights.recent.bandwidth.n_rows)
    for i in range(1, min(PANEL, n_rows) + 1):
        distance = np.float64(scratch.distances[(n_rows - i) % PANEL])
        if 0 < distance < np.inf:
            n += 1
            median = next_median(median, distance, n)
    scratch.median[0], scratch.n_distances[0] = median, n
    sigma = learner.weights.recent.bandwidth.share * median if n > 0 else 1.0
    scratch.doubles[0] = 0.5 / min(GREATEST, max(LEAST, sigma))
    scratch.singles[0] = np.float32(scratch.doubles[0])


@inlined
def next_median(median, distance, n):
    """Return the estimate of a median after value n."""
    if n == 1:
        return distance
    ratio = 1 + min(0.5, 1 / math.sqrt(n))
    return median * ratio if distance > median else median / ratio


@inlined
def compare_with_recent(learner, indices, scratch):
    """Compute distances[s] = ||x - u_s||^2 for the recent rows."""
    view, norms = scratch.views[0, : indices.shape[0] + 1], scratch.norms
    if not learner.weights.in_panels:
        multiply_recent_lists(learner, indices, view, scratch.inner)
    else:
        multiply_panel(indices, view[1:], learner.weights.recent.panel, scratch.inner)
    if scratch.widened[0]:
        measure_panel(indices, scratch.units, learner.weights.recent.panel, norms)
    else:
        for s in range(PANEL):
            norms[s] = learner.weights.recent.squared_norms[s]
    set_distances(scratch.sizes[0], norms, scratch.inner, scratch.distances)


@inlined
def multiply_recent_lists(learner, indices, view, out):
    """Compute out[s] = <view, u_s> for recent rows stored as lists; see `multiply_lists`."""
    for j in range(indices.shape[0]):
        learner.weights.places[indices[j]] = j + 1
    for s in range(PANEL):
        total = np.float32(0)
        for e in range(learner.weights.recent.lengths[s]):
            place = learner.weights.places[learner.weights.recent.features[s, e]]
            total += view[place] * learner.weights.recent.values[s, e]
        out[s] = total
    for j in range(indices.shape[0]):
        learner.weights.places[indices[j]] = 0


# ---- before a trial ------------------------------------------------------------------------------


@always_inlined
def kernel_keep_up(learner, indices, values, scratch):
    """Update units and sigma for a row that is to be scored and learnt from, and store the row."""
    if scratch.widened[0]:
        measure_supports(learner, indices, scratch)
        scratch.widened[0] = 0
        if has_relevance(learner.relevance):
            for j in range(learner.relevance.weights.shape[0]):
                learner.relevance.of_norms[j] = learner.relevance.weights[j]
    if learner.weights.recent.bandwidth.share != 0:
        prepare(learner, indices, values, scratch)
        if scratch.sizes[0] <= LARGEST:  # a norm that is not finite could not be saved
            learner.weights.recent.bandwidth.median = scratch.median[0]
            learner.weights.recent.bandwidth.n_distances = scratch.n_distances[0]
            keep_recent(learner, indices, scratch.stored, scratch.sizes[0])


@inlined
def keep_recent(learner, indices, vector, size):
    """Replace the oldest of the recent rows."""
    n_rows = int(learner.weights.recent.bandwidth.n_rows)
    s, n = n_rows % PANEL, indices.shape[0]
    if learner.weights.in_panels:
        for i in range(learner.weights.recent.panel.shape[0]):
            learner.weights.recent.panel[i, s] = 0
        for j in range(n):
            learner.weights.recent.panel[indices[j], s] = vector[j]
    else:
        for j in range(n):
            learner.weights.recent.features[s, j], learner.weights.recent.values[s, j] = (
                indices[j],
                vector[j],
            )
        learner.weights.recent.lengths[s] = n
    learner.weights.recent.squared_norms[s] = size
    learner.weights.recent.bandwidth.n_rows = n_rows + 1


@inlined
def multiply_lists(learner, part, first, view, m, out):
    """Compute out[s] = <view, u_s> for m support vectors stored as lists, from `first` on.

    The first entry of `view` is 0, for the features that the row does not list.
    """
    for s in range(m):
        total = np.float32(0)
        for e in range(
            learner.weights.starts[part, first + s], learner.weights.starts[part, first + s + 1]
        ):
            place = learner.weights.places[learner.weights.features[part, e]]
            total += view[place] * learner.weights.values[part, e]
        out[s] = total


@inlined
def compare(learner, part, panel, indices, r, m, scratch):
    """Compute similarities[s] = K(view r, u_s) for m support vectors of a panel."""
    first, view = panel * PANEL, scratch.views[r, : indices.shape[0] + 1]
    inner, distances, size = scratch.inner, scratch.distances, scratch.sizes[r]
    table = learner.weights.panels[part, panel if learner.weights.in_panels else 0]
    if learner.weights.in_panels:
        multiply_panel(indices, view[1:], table, inner)
    else:
        multiply_lists(learner, part, first, view, m, inner)
    if scratch.widened[0]:
        measure_panel(indices, scratch.units, table, scratch.norms)
        set_distances(size, scratch.norms, inner, distances)
    else:
        norms = learner.weights.squared_norms[part, first : first + PANEL]
        set_distances(size, norms, inner, distances)
    call_single(
        learner.weights.single,
        view[1:],
        table,
        inner,
        distances,
        scratch.singles,
        scratch.similarities[:m],
    )


@inlined
def add_weighted(factors, similarities, m, lanes):
    """Add factors[s] similarities[s] to lanes[s] for m support vectors of a panel."""
    for s in range(np.uintp(m)):
        lanes[s] += factors[s] * similarities[s]


@inlined
def n_in_panel(learner, part, panel):
    """Return the number of support vectors in a panel."""
    return min(PANEL, learner.weights.following[part] - panel * PANEL)


@inlined
def set_view(learner, part, indices, values, r, scratch):
    """Set views[r] to phi(x, r), and sizes[r] to its squared norm."""
    view = scratch.views[r, 1 : indices.shape[0] + 1]
    compute_phi(learner, part, indices, values, r, scratch, view)
    scratch.sizes[r] = squared_norm(view)


@inlined
def add_plain_scores(learner, part, indices, values, k, scratch, scores):
    """Add the scores of a part whose view of x is x itself: one comparison for all classes."""
    width = learner.parts.width[part] if learner.parts.kind[part] == GROUPED else k
    clear(scratch.column, width)
    set_plain_view(learner, indices, values, scratch)
    sum_similarities(learner, part, indices, scratch)
    for r in range(k):
        for i in range(n_hypotheses(learner, part, r)):
            scores[r] += scratch.column[hypothesis(learner, part, r, i)]


@inlined
def sum_similarities(learner, part, indices, scratch):
    """Add coefficient times similarity of view 0 to the hypotheses in scratch.column."""
    oldest, following = learner.weights.oldest[part], learner.weights.following[part]
    for panel in range(oldest // PANEL, (following + PANEL - 1) // PANEL):
        first, m = panel * PANEL, n_in_panel(learner, part, panel)
        compare(learner, part, panel, indices, 0, m, scratch)
        for s in range(max(0, oldest - first), m):
            start, stop = first + s, first + s + 1
            for e in range(
                learner.weights.entry_starts[part, start], learner.weights.entry_starts[part, stop]
            ):
                rise = learner.weights.coefficients[part, e] * scratch.similarities[s]
                scratch.column[learner.weights.owners[part, e]] += rise


@inlined
def add_ordered_scores(learner, part, indices, values, k, scratch, scores):
    """Add the sum over the thresholds below r of f(x) - threshold to scores[r]."""
    clear(scratch.column, 1)
    set_direction_view(learner, indices, values, scratch)
    sum_similarities(learner, part, indices, scratch)
    along, total = np.float64(scratch.column[0]), 0.0
    for i in range(1, k):
        r = learner.ranks.order[i]
        total += along + np.float64(values[0]) * learner.weights.thresholds[part, 0, r]
        scores[r] += np.float32(total)


@inlined
def set_factors(learner, part, panel, r, m, scratch):
    """Set factors[s] to the coefficient of K(phi(x, r), u_s) in the score of class r.

    The coefficient of a support vector that is no longer in use is 0.
    """
    first, kind = panel * PANEL, learner.parts.kind[part]
    for s in range(m):
        factor = np.float32(0)
        if first + s >= learner.weights.oldest[part]:
            start, stop = first + s, first + s + 1
            for e in range(
                learner.weights.entry_starts[part, start], learner.weights.entry_starts[part, stop]
            ):
                owner = learner.weights.owners[part, e]
                if kind == SHARED or is_owner(learner, part, r, owner):
                    factor += learner.weights.coefficients[part, e]
        scratch.factors[s] = factor


@inlined
def is_owner(learner, part, r, owner):
    """Return whether a hypothesis belongs to class r."""
    if learner.parts.kind[part] == PER_CLASS:
        return r == owner
    for i in range(n_hypotheses(learner, part, r)):
        if hypothesis(learner, part, r, i) == owner:
            return True
    return False


@inlined
def add_mapped_scores(learner, part, indices, values, k, scratch, scores):
    """Add the scores of a part whose view of x is phi(x, r): compare each panel with all views."""
    for r in range(k):
        set_view(learner, part, indices, values, r, scratch)
        clear(scratch.lanes[r], PANEL)
    first = learner.weights.oldest[part] // PANEL
    for panel in range(first, (learner.weights.following[part] + PANEL - 1) // PANEL):
        m = n_in_panel(learner, part, panel)
        for r in range(k):
            compare(learner, part, panel, indices, r, m, scratch)
            if r == 0 or learner.parts.kind[part] != SHARED:
                set_factors(learner, part, panel, r, m, scratch)
            add_weighted(scratch.factors, scratch.similarities, m, scratch.lanes[r])
    for r in range(k):
        total = np.float32(0)
        for s in range(PANEL):
            total += scratch.lanes[r, s]
        scores[r] += total


@always_inlined
def kernel_score(learner, indices, values, k, scratch, scores):
    """Compute scores[r] = sum_j coefficient_j K(phi(x, r), u_j) (Fink 2006, Sec. 4)."""
    clear(scores, k)
    if not learner.weights.in_panels:
        for j in range(indices.shape[0]):
            learner.weights.places[indices[j]] = j + 1
    for part in range(learner.parts.kind.shape[0]):
        if learner.parts.kind[part] == ORDERED:
            add_ordered_scores(learner, part, indices, values, k, scratch, scores)
        elif learner.parts.map[part] == 0:
            add_plain_scores(learner, part, indices, values, k, scratch, scores)
        else:
            add_mapped_scores(learner, part, indices, values, k, scratch, scores)
    if not learner.weights.in_panels:
        for j in range(indices.shape[0]):
            learner.weights.places[indices[j]] = 0

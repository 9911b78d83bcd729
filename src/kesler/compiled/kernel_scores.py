"""Scores of one instance: what the trial predicts by, where hypotheses are support vectors."""
# mypy: disallow_untyped_defs=False, disallow_untyped_calls=False

from __future__ import annotations

import numpy as np

from kesler.compiled.jit import inlined
from kesler.compiled.kernel_units import measure_panel, set_plain_view
from kesler.compiled.kernels import call_single
from kesler.compiled.learner import GROUPED, KIND, MAP, PER_CLASS, SHARED, WIDTH
from kesler.compiled.members import n_hypotheses
from kesler.compiled.scores import clear, compute_phi, score
from kesler.compiled.supports import (
    IN_PANELS,
    NEXT,
    OLDEST,
    PANEL,
    SINGLE,
    KernelLearner,
    hypothesis,
    multiply_panel,
    set_distances,
    squared_norm,
)


@inlined
def multiply_lists(learner, part, first, view, m, out):
    """out[s] = <view, u_s> for m support vectors that are lists, from `first` on.

    `view` has 0 in its first place, which is that of features that the row does not list.
    """
    for s in range(m):
        total = np.float32(0)
        for e in range(learner.starts[part, first + s], learner.starts[part, first + s + 1]):
            place = learner.places[learner.features[part, e]]
            total += view[place] * learner.values[part, e]
        out[s] = total


@inlined
def compare(learner, part, panel, indices, r, m, scratch):
    """similarities[s] = K(view r, u_s) for m support vectors of a panel."""
    first, view = panel * PANEL, scratch.views[r, : indices.shape[0] + 1]
    inner, distances, size = scratch.inner, scratch.distances, scratch.sizes[r]
    table = learner.panels[part, panel if learner.kernel[IN_PANELS] else 0]
    if learner.kernel[IN_PANELS]:
        multiply_panel(indices, view[1:], table, inner)
    else:
        multiply_lists(learner, part, first, view, m, inner)
    if scratch.widened[0]:
        measure_panel(indices, scratch.units, table, scratch.norms)
        set_distances(size, scratch.norms, inner, distances)
    else:
        norms = learner.squared_norms[part, first : first + PANEL]
        set_distances(size, norms, inner, distances)
    call_single(
        learner.kernel[SINGLE],
        view[1:],
        table,
        inner,
        distances,
        scratch.singles,
        scratch.similarities[:m],
    )


@inlined
def add_weighted(factors, similarities, m, lanes):
    """lanes[s] += factor[s] similarity[s] for m support vectors of a panel."""
    for s in range(np.uintp(m)):
        lanes[s] += factors[s] * similarities[s]


@inlined
def n_in_panel(learner, part, panel):
    """Return how many places of a panel are taken."""
    return min(PANEL, learner.counts[part, NEXT] - panel * PANEL)


@inlined
def set_view(learner, part, indices, values, r, scratch):
    """views[r] = phi(x, r)."""
    view = scratch.views[r, 1 : indices.shape[0] + 1]
    compute_phi(learner, part, indices, values, r, scratch, view)
    scratch.sizes[r] = squared_norm(view)


@inlined
def add_plain_scores(learner, part, indices, values, k, scratch, scores):
    """Scores of a part whose view of x is x itself: one comparison for all classes."""
    width = learner.parts[part, WIDTH] if learner.parts[part, KIND] == GROUPED else k
    clear(scratch.column, width)
    set_plain_view(learner, indices, values, scratch)
    oldest, following = learner.counts[part, OLDEST], learner.counts[part, NEXT]
    for panel in range(oldest // PANEL, (following + PANEL - 1) // PANEL):
        first, m = panel * PANEL, n_in_panel(learner, part, panel)
        compare(learner, part, panel, indices, 0, m, scratch)
        for s in range(max(0, oldest - first), m):
            start, stop = first + s, first + s + 1
            for e in range(learner.entry_starts[part, start], learner.entry_starts[part, stop]):
                rise = learner.coefficients[part, e] * scratch.similarities[s]
                scratch.column[learner.owners[part, e]] += rise
    for r in range(k):
        for i in range(n_hypotheses(learner, part, r)):
            scores[r] += scratch.column[hypothesis(learner, part, r, i)]


@inlined
def set_factors(learner, part, panel, r, m, scratch):
    """factors[s] = what K(phi(x, r), u_s) counts in the score of class r, 0 for the forgotten."""
    first, kind = panel * PANEL, learner.parts[part, KIND]
    for s in range(m):
        factor = np.float32(0)
        if first + s >= learner.counts[part, OLDEST]:
            start, stop = first + s, first + s + 1
            for e in range(learner.entry_starts[part, start], learner.entry_starts[part, stop]):
                owner = learner.owners[part, e]
                if kind == SHARED or is_owner(learner, part, r, owner):
                    factor += learner.coefficients[part, e]
        scratch.factors[s] = factor


@inlined
def is_owner(learner, part, r, owner):
    """Whether a hypothesis is one of class r."""
    if learner.parts[part, KIND] == PER_CLASS:
        return r == owner
    for i in range(n_hypotheses(learner, part, r)):
        if hypothesis(learner, part, r, i) == owner:
            return True
    return False


@inlined
def add_mapped_scores(learner, part, indices, values, k, scratch, scores):
    """Scores of a part whose view of x is phi(x, r): each panel is compared with all views."""
    for r in range(k):
        set_view(learner, part, indices, values, r, scratch)
        clear(scratch.lanes[r], PANEL)
    first = learner.counts[part, OLDEST] // PANEL
    for panel in range(first, (learner.counts[part, NEXT] + PANEL - 1) // PANEL):
        m = n_in_panel(learner, part, panel)
        for r in range(k):
            compare(learner, part, panel, indices, r, m, scratch)
            if r == 0 or learner.parts[part, KIND] != SHARED:
                set_factors(learner, part, panel, r, m, scratch)
            add_weighted(scratch.factors, scratch.similarities, m, scratch.lanes[r])
    for r in range(k):
        total = np.float32(0)
        for s in range(PANEL):
            total += scratch.lanes[r, s]
        scores[r] += total


@score.register(KernelLearner)
def kernel_score(learner, indices, values, k, scratch, scores):
    """Fink (2006) Sec. 4: scores[r] = sum_j coefficient_j K(phi(x, r), u_j)."""
    clear(scores, k)
    if not learner.kernel[IN_PANELS]:
        for j in range(indices.shape[0]):
            learner.places[indices[j]] = j + 1
    for part in range(learner.parts.shape[0]):
        if learner.parts[part, MAP] == 0:
            add_plain_scores(learner, part, indices, values, k, scratch, scores)
        else:
            add_mapped_scores(learner, part, indices, values, k, scratch, scores)
    if not learner.kernel[IN_PANELS]:
        for j in range(indices.shape[0]):
            learner.places[indices[j]] = 0
